/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* migrate.c - `bpf-portmap migrate --from-portmap`: takes over the ports that the reference plugin
 * portmap has mapped, from containers that go on running. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "host/host.h"
#include "lib/cleanup.h"
#include "lib/ports.h"
#include "lib/run.h"
#include "lib/text.h"
#include "operator/conflists.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/install/lists.h"
#include "operator/migrate/containers.h"
#include "operator/verbs.h"
#include "plugin/commands.h"

#define KEEPER_TABLE "bpf_portmap_migrated"
#define NFT_SECONDS 30

static const struct table_column columns[] = {
	{"HOST", TABLE_LEFT, "host"},
	{"PROTO", TABLE_LEFT, "protocol"},
	{"NETWORK", TABLE_LEFT, "network"},
	{"CONTAINER", TABLE_LEFT, "container"},
	{"", TABLE_HIDDEN, "container_id"},
	{"TO", TABLE_LEFT, "to"},
	{"RULES", TABLE_LEFT, "rules"},
	{"CONNECTIONS", TABLE_RIGHT, "connections"},
	{"", TABLE_HIDDEN, "connections_not_kept"},
	{"RESULT", TABLE_LEFT, "result"},
	{"", TABLE_REMARK, "reason"},
};

static const char *word_of(const struct migrating *container, bool dry_run)
{
	switch (container->fate) {
	case MIGRATING_GONE:
		return dry_run ? "remove" : "removed";
	case MIGRATING_LEFT:
		return dry_run ? "leave" : "left";
	default:
		return dry_run ? "map" : "mapped";
	}
}

static void add_reason(struct output *output, const struct migrating *container)
{
	const char *reason = container->fate == MIGRATING_GONE ? "its container is gone"
			     : *container->reason              ? container->reason
							       : NULL;

	if (container->fate == MIGRATING_LEFT)
		output_remark(output, reason);
	else
		output_text(output, reason);
}

static void add_row(struct output *output, const struct migrating *container,
		    const struct migrating_port *port)
{
	char host[ENDPOINT_TEXT_SIZE];

	output_endpoint(output, format_host_port(port->key.host_address, port->key.host_port, host),
			port->key.host_address, port->key.host_port);
	output_text(output, port->key.protocol ? protocol_word(port->key.protocol) : "");
	output_text(output, container->network);
	output_text(output, container->name);
	output_text(output, container->id);
	output_endpoint(output, NULL, port->container_address, port->container_port);
	output_text(output, port->rules);
	output_number(output, port->kept);
	output_number(output, port->not_kept);
	output_text(output, word_of(container, output->options->dry_run));
	add_reason(output, container);
}

/* A .conf has one plugin alone. */
static bool names_portmap(const char *path)
{
	cleanup_json json_t *list = conflist_load_delegates(path);

	return conflist_plugin(list, REFERENCE_TYPE) || !strcmp(plugin_type(list), REFERENCE_TYPE);
}

static void take_conflist(void *context, const struct conflist_file *file)
{
	cleanup_free char *path = cni_format("%s", file->path);

	if (!names_portmap(path))
		return;
	cni_make_utf8(path);
	json_array_append_new(context, json_string(path));
}

/* The paths of those that still have the type portmap. */
static json_t *find_conflists(void)
{
	json_t *found = json_array();

	conflists_visit(take_conflist, found);
	return found;
}

static void print_conflists(void)
{
	cleanup_json json_t *found = find_conflists();
	const json_t *path;
	size_t i;

	if (json_array_size(found))
		puts("New containers still get portmap. Put \"type\": \"bpf-portmap\" in the place"
		     " of \"type\": \"portmap\" in:");
	json_array_foreach (found, i, path) {
		cleanup_free char *text = cni_format("%s", json_string_value(path));

		if (text)
			cni_printable(text, "");
		printf("  %s\n", text ? text : "");
	}
}

static int print(const struct migrating_list *containers, unsigned int kept,
		 const struct options *options, struct cni_error *err)
{
	cleanup_output struct output output = {.options = options};
	json_t *summary = NULL;

	if (containers->count)
		output_begin(&output, columns, sizeof(columns) / sizeof(columns[0]));
	else if (!options->json)
		puts("Nothing to migrate: portmap has no rules here.");
	for (size_t i = 0; i < containers->count; i++)
		for (size_t j = 0; j < containers->list[i].port_count; j++)
			add_row(&output, &containers->list[i], &containers->list[i].ports[j]);
	if (options->json)
		summary = json_pack("{s:b, s:i, s:o}", "dry_run", options->dry_run,
				    "connections_of_conntrack", (int)kept, "conflists_with_portmap",
				    find_conflists());
	if (output_end(&output, summary, err))
		return -1;
	if (options->json)
		return 0;
	if (kept)
		printf("conntrack still translates %u connection%s. The table"
		       " inet " KEEPER_TABLE " keeps it at work;\nrun this again when they have"
		       " ended, and the table is removed.\n",
		       kept, kept == 1 ? "" : "s");
	print_conflists();
	return 0;
}

/* Decides about each container. Changes nothing. */
static int plan(struct migrating_list *containers, struct host *host, struct cni_error *err)
{
	cleanup_portmap_entries struct portmap_entries entries = {0};

	if (portmap_entries_read(&entries, NULL, err))
		return -1;
	if (!entries.count)
		return 0;
	if (host_open(host, DATAPATH_READ, err))
		return -1;
	if (host->datapath.state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(&host->datapath, err);
	migrating_find(containers, &entries, host);
	for (size_t i = 0; i < containers->count; i++) {
		cleanup_error struct cni_error invalid = {0};

		if (containers->list[i].fate == MIGRATING_MAP &&
		    take_over_check(&containers->list[i], &invalid))
			migrating_leave(&containers->list[i], "%s", cni_error_message(&invalid));
	}
	return connections_count(containers, err);
}

/*
 * The keeper is a table of nftables that keeps conntrack and its translation at work. The kernel
 * looks packets up in conntrack only while some rule of the network namespace needs that, and
 * translates only while there is a chain of type nat. portmap's rules may have been the last ones.
 * A rule that does nothing, in a table of our own, stays in their place until the connections have
 * ended.
 */
static int run_nft(const char *script, const char *what, struct cni_error *err)
{
	const char *const arguments[] = {"nft", script, NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = NFT_SECONDS};

	if (command_run(&run))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "cannot %s the table " KEEPER_TABLE ": nft fails%s%s", what,
			     *run.errors ? ": " : "", run.errors);
}

/* Makes it anew in one transaction, in which conntrack is never without a rule that needs it. */
static int keeper_add(struct cni_error *err)
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

static bool keeper_exists(void)
{
	static const char *const arguments[] = {"nft", "list", "tables", "inet", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = NFT_SECONDS};

	return command_run(&run) && run.output &&
	       strstr(run.output, "table inet " KEEPER_TABLE "\n");
}

/* *left: connections that conntrack goes on to translate, by this run and those before it. */
static int see_to_keeper(const struct migrating_list *containers, unsigned int *left,
			 struct cni_error *err)
{
	cleanup_host struct host host = {0};

	*left = 0;
	if (!containers->count && !keeper_exists())
		return 0;
	if (host_open(&host, DATAPATH_READ, err) ||
	    (datapath_is_usable(&host.datapath) &&
	     connections_left(&host.datapath.objects, left, err)))
		return -1;
	if (*left)
		return keeper_add(err);
	return keeper_exists() ? run_nft("delete table inet " KEEPER_TABLE "\n", "remove", err) : 0;
}

/* portmap's own DEL removes those of iptables-legacy, by whatever iptables it finds. */
static int check_removed(const struct migrating *container, struct cni_error *err)
{
	cleanup_portmap_entries struct portmap_entries entries = {0};

	if (portmap_entries_read(&entries, container->id, err))
		return -1;
	for (size_t i = 0; i < entries.count; i++)
		if (portmap_entry_is_of(&entries.list[i], container->network, container->id))
			return cni_error_set(err, CNI_ERROR_IO,
					     "portmap's DEL has left rules of container %s: make"
					     " `iptables` the variant (nft or legacy) with which"
					     " portmap has written them, and run migrate again",
					     container->name);
	return 0;
}

static int carry_out(struct migrating_list *containers, unsigned int *left, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result = 0;

	for (size_t i = 0; i < containers->count; i++) {
		cleanup_error struct cni_error refused = {0};

		if (containers->list[i].fate == MIGRATING_MAP &&
		    take_over(&containers->list[i], &refused))
			migrating_leave(&containers->list[i], "%s", cni_error_message(&refused));
	}
	/* Before the rules go, or connections would. */
	if (see_to_keeper(containers, left, err))
		return -1;
	for (size_t i = 0; i < containers->count; i++)
		if (containers->list[i].fate != MIGRATING_LEFT &&
		    (reference_remove_rules(containers->list[i].network, containers->list[i].id,
					    &failure) ||
		     check_removed(&containers->list[i], &failure)))
			result = cni_error_chain(err, &failure);
	return result;
}

static bool anything_left(const struct migrating_list *containers)
{
	for (size_t i = 0; i < containers->count; i++)
		if (containers->list[i].fate == MIGRATING_LEFT ||
		    (containers->list[i].fate == MIGRATING_MAPPED &&
		     migrating_not_kept(&containers->list[i])))
			return true;
	return false;
}

int verb_migrate(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_host struct host host = {0};
	cleanup_migrating struct migrating_list containers = {0};
	struct cni_error failure = {0};
	unsigned int kept = 0;
	int result = 0;

	if (!options->from_portmap) {
		fputs("bpf-portmap: migrate needs --from-portmap; see bpf-portmap migrate --help\n",
		      stderr);
		return EX_USAGE;
	}
	/* A reader that goes must not end it half-way. */
	signal(SIGPIPE, SIG_IGN);
	if (geteuid() != 0)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "portmap's rules cannot be read: run it as root");
	if (plan(&containers, &host, err))
		return -1;
	if (!options->dry_run)
		result = carry_out(&containers, &kept, err);
	if (print(&containers, kept, options, &failure))
		result = cni_error_chain(err, &failure);
	return result ? -1 : anything_left(&containers) ? EXIT_FAILURE : EXIT_SUCCESS;
}
