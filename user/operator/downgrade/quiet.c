/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quiet.c - keeps connections from harm while the ports of containers are closed. */
#include "operator/downgrade/quiet.h"

#include <stdbool.h>
#include <stdio.h>

#include "lib/address.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/warning.h"
#include "operator/add_cache.h"
#include "operator/run_command.h"

#define NAME "bpf_portmap_downgrade"
#define TABLE "inet " NAME
#define SECONDS 30
#define WITHOUT "table " TABLE " { }\ndelete table " TABLE "\n"

/* One transaction. */
static bool run_nft(const char *script, char why[COMMAND_FAILURE_SIZE])
{
	static const char *const arguments[] = {"nft", "-f", "-", NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .input = script, .seconds = SECONDS};

	if (command_run(&run))
		return true;
	command_run_why(&run, why);
	return false;
}

/* Every address is read and written again, so nothing else comes into the script. */
static void print_addresses(FILE *script, const json_t *adds, bool ipv4)
{
	uint8_t address[CNI_ADDRESS_SIZE], length;
	char text[CNI_ADDRESS_TEXT_SIZE];
	const json_t *add, *ip;
	size_t i, j;

	json_array_foreach (adds, i, add)
		json_array_foreach (json_object_get(json_object_get(json_object_get(add, "config"),
								    "prevResult"),
						    "ips"),
				    j, ip)
			if (!cni_address_parse_cidr(add_cache_text(ip, "address"), address,
						    &length) &&
			    cni_address_is_ipv4(address) == ipv4)
				fprintf(script, "		%s saddr %s drop\n",
					ipv4 ? "ip" : "ip6", cni_address_format(address, text));
}

void quiet_begin(const json_t *adds)
{
	cleanup_free char *text = NULL;
	char why[COMMAND_FAILURE_SIZE];
	size_t size;
	FILE *script = need(open_memstream(&text, &size));

	fputs(WITHOUT "table " TABLE " {\n"
		      "	chain output {\n"
		      "		type filter hook output priority -400;\n"
		      "		tcp flags & rst == rst drop\n"
		      "		icmp type destination-unreachable drop\n"
		      "		icmpv6 type destination-unreachable drop\n"
		      "	}\n"
		      "	chain forward {\n"
		      "		type filter hook forward priority -400;\n",
	      script);
	print_addresses(script, adds, true);
	print_addresses(script, adds, false);
	fputs("	}\n}\n", script);
	fclose(script);
	if (!run_nft(text, why))
		warning("connections that send just now may end: %s", why);
}

int quiet_end(struct cni_error *err)
{
	static const char *const arguments[] = {"nft", "list", "table", "inet", NAME, NULL};
	cleanup_command struct command_run list = {.arguments = arguments, .seconds = SECONDS};
	char why[COMMAND_FAILURE_SIZE];

	/* Without nft, or without nf_tables in the kernel, there is none. */
	if (run_nft(WITHOUT, why) || !command_run(&list))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "the table " TABLE " stays, in which packets are dropped: %s; `nft"
			     " delete table " TABLE "` removes it",
			     why);
}
