/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* keeper.c - a table of nftables that keeps conntrack and its translation at work. */
#include "operator/migrate/keeper.h"

#include <stddef.h>
#include <string.h>

#include "operator/run_command.h"

#define SECONDS 30

static int run_nft(const char *script, const char *what, struct cni_error *err)
{
	static const char *const arguments[] = {"nft", "-f", "-", NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .input = script, .seconds = SECONDS};
	char why[COMMAND_FAILURE_SIZE];

	if (command_run(&run))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot %s the table " KEEPER_TABLE ": %s", what,
			     command_run_why(&run, why));
}

/* One transaction, in which conntrack is never without a rule that needs it. */
int keeper_add(struct cni_error *err)
{
	return run_nft("table inet " KEEPER_TABLE " { }\n"
		       "delete table inet " KEEPER_TABLE "\n"
		       "table inet " KEEPER_TABLE " {\n"
		       "	chain prerouting {\n"
		       "		type nat hook prerouting priority 300; policy accept;\n"
		       "		ct state established comment \"keeps conntrack at work for"
		       " connections that portmap has mapped\"\n"
		       "	}\n"
		       "}\n",
		       "make", err);
}

bool keeper_exists(void)
{
	static const char *const arguments[] = {"nft", "list", "tables", "inet", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};

	return command_run(&run) && run.output &&
	       strstr(run.output, "table inet " KEEPER_TABLE "\n");
}

int keeper_remove(struct cni_error *err)
{
	return run_nft("delete table inet " KEEPER_TABLE "\n", "remove", err);
}
