/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - cni-ipam: Docker's addresses from CNI's IPAM plugins.
 */
#include <string.h>

#include "cnirun/output.h"
#include "ipam/reconcile.h"
#include "ipam/server.h"
#include "ipam/settings.h"

static const char serve_help[] =
	"usage: cni-ipam [OPTION]...\n"
	"       cni-ipam reconcile [OPTION]...\n\n"
	"A remote IPAM driver of Docker: `docker network create --ipam-driver cni-ipam` has\n"
	"addresses given by a CNI plugin. A --subnet that is a range of a CNI network in\n"
	"NETCONFPATH (default: /etc/cni/net.d) shares that network's addresses; --ipam-opt\n"
	"network=NAME says which network is meant.\n\n";

static const char reconcile_help[] =
	"usage: cni-ipam reconcile [OPTION]...\n\n"
	"Compares with what Docker has, prints the differences, and gives back what no network or\n"
	"container of Docker has. What Docker has and cni-ipam lacks is taken over from files of\n"
	"host-local, or asked for.\n\n";

static int run_command_line(int argc, char **argv, struct cni_error *err)
{
	bool reconciles = argc > 1 && !strcmp(argv[1], "reconcile");
	unsigned int set = reconciles ? SETTINGS_RECONCILE : SETTINGS_SERVE;
	struct settings settings = {0};
	int failed;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		output_text("cni-ipam " PROGRAM_VERSION "\n");
		return output_flush(err);
	}
	failed = settings_parse(&settings, argc - reconciles, argv + reconciles, set, err);
	if (!failed && settings.help) {
		output_text("%s", reconciles ? reconcile_help : serve_help);
		settings_print_help(set);
		failed = output_flush(err);
	} else if (!failed) {
		failed = reconciles ? reconcile(&settings, err) : server_run(&settings, err);
	}
	settings_release(&settings);
	return failed;
}

int main(int argc, char **argv)
{
	return output_main(argc, argv, run_command_line, output_error);
}
