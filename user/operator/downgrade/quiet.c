/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quiet.c - keeps this host from answering for containers whose ports are closed for a moment. */
#include "operator/downgrade/quiet.h"

#include "lib/warning.h"
#include "operator/run_command.h"

#define TABLE "inet bpf_portmap_downgrade"
#define SECONDS 30
#define WITHOUT "table " TABLE " { }\ndelete table " TABLE "\n"

/* One transaction. */
static void run_nft(const char *script, const char *meaning)
{
	static const char *const arguments[] = {"nft", "-f", "-", NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .input = script, .seconds = SECONDS};
	char why[COMMAND_FAILURE_SIZE];

	if (!command_run(&run))
		warning("%s: %s", meaning, command_run_why(&run, why));
}

void quiet_begin(void)
{
	run_nft(WITHOUT "table " TABLE " {\n"
			"	chain output {\n"
			"		type filter hook output priority -400;\n"
			"		tcp flags & rst == rst drop\n"
			"		icmp type destination-unreachable drop\n"
			"		icmpv6 type destination-unreachable drop\n"
			"	}\n"
			"}\n",
		"connections that send just now may be reset by this host");
}

void quiet_end(void)
{
	run_nft(WITHOUT, "the table " TABLE " stays, in which this host drops its RSTs");
}
