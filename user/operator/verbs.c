/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs.c - the table of commands for people, their help, and running one. */
#include "operator/verbs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cni/version.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/items.h"

const struct verb verbs[] = {
	{"list", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_PORTS | OPTIONS_LIST, verb_list, "Looking",
	 "the mapped ports: whose they are, how much they are used",
	 "shows the mapped ports, whose they are, and how much they are used: FLOWS, connections"
	 " now; NEW, those still in the handshake; TOTAL, begun since the port was mapped. Ports in"
	 " a row that lead to a container's ports in the same row are one line; with --json each"
	 " has its own. Then it shows the containers that have no port and are masqueraded"},
	{"who", " PORT[/PROTOCOL][@ADDRESS]", 1, 1, OPTIONS_OUTPUT, verb_who, NULL,
	 "everybody who claims a port of the host, and who gets it",
	 "shows everybody who could have this port of the host: mappings, NAT rules of others,"
	 " processes that listen; and who gets the packets. Exit status: 0, it is free; 1, it is"
	 " taken; 3, it could not look"},
	{"flows", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_PORTS | OPTIONS_FLOWS, verb_flows, NULL,
	 "the connections, and which client or container has most",
	 "shows the connections: to mapped ports, masqueraded, and others that are remembered;"
	 " their state, whether packets into and out of the container go through the IP stack or"
	 " past it, how many there were, and how long ago the last one came. The last line says how"
	 " full the table is. --by client and --by container count the connections of each, the"
	 " most first"},
	{"stats", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_STATS, verb_stats, NULL,
	 "counters, and how full the tables are; also for Prometheus",
	 "shows how full the tables are, and what the programs have counted since they were"
	 " loaded"},
	{"doctor", " [PORT[/PROTOCOL]]", 0, 1, OPTIONS_OUTPUT | OPTIONS_DOCTOR, verb_doctor, NULL,
	 "what keeps mapped ports from being reached, and what mends it",
	 "looks for what keeps mapped ports, or this one, from being reached, and containers from"
	 " reaching others: it sends a packet as a client, or a container, would, follows it, and"
	 " discards the answer before it leaves the host; then it checks the host. It prints what"
	 " is wrong and what mends it. Exit status: 0; 1 after a warning, 2 after a failure, 3"
	 " where it could not look, 4 where nothing is wrong as far as it looked and no packet was"
	 " sent. The last line says to how many mapped ports none was sent"},
	{"trace", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_TRACE, verb_trace, NULL,
	 "what the programs do with packets, and which the kernel drops",
	 "shows what the programs do with packets as they come, and which packets the kernel drops,"
	 " where and why; with --json an object a line"},
	{"repair", " [INTERFACE...]", 0, ANY_NUMBER, OPTIONS_REPAIR, verb_repair, "Changing",
	 "attaches what is missing, removes what dead containers have left",
	 "brings the host to where the running containers want it: it attaches programs to"
	 " interfaces that came up since the last ADD, or to those named; attaches again what"
	 " somebody removed; removes what containers have left whose veth is gone and for which"
	 " DEL was not called, and portmap's rules for containers that are gone. It prints what it"
	 " changed, and attaches nothing where no container was ever added. `gc` and `attach` are"
	 " other names of it, for scripts and units"},
	{"upgrade", "", 0, 0, OPTIONS_UPGRADE, verb_upgrade, NULL,
	 "puts this version's programs in the place of those that run",
	 "replaces the programs in the kernel by those of this binary, without a gap at any hook;"
	 " an older binary replaces newer ones, too. Mappings and connections stay. If it was"
	 " interrupted, run it again; the next ADD completes it, too"},
	{"drop-offload", "", 0, 0, 0, verb_drop_offload, NULL,
	 "sends every flow through the firewall again",
	 "lets no flow skip the IP stack until the host's firewall has let it through again: for"
	 " anyone who changed the firewall's rules and wants them to apply at once"},
	{"install", "", 0, 0, OPTIONS_INSTALL, verb_install, "On a node",
	 "puts bpf-portmap in the place of portmap in the conflist",
	 "puts this program among a node's plugins, and puts bpf-portmap in the place of portmap in"
	 " the conflist that its runtime takes, which is the first by name; nothing else in it"
	 " changes. The node stays as it is where the kernel or the list cannot be used with"
	 " bpf-portmap; the error says why"},
	{"migrate", " --from-portmap", 0, 0, OPTIONS_OUTPUT | OPTIONS_MIGRATE, verb_migrate, NULL,
	 "takes over the ports that portmap has mapped",
	 "takes over the ports that the reference plugin portmap has mapped, without touching the"
	 " containers: it maps them, keeps the connections that are there, and removes portmap's"
	 " rules, those of dead containers too. Exit status 1 where a port was left"},
	{"uninstall", "", 0, 0, OPTIONS_UNINSTALL, verb_uninstall, NULL,
	 "takes all of it off the host again",
	 "takes all of it off the host: it restores portmap in the conflists, then removes "
	 "programs,"
	 " maps and qdiscs, and the binary last. While containers have ports it stops after the"
	 " conflists, names them, and its exit status is 1; called again, it goes on"},
	{"support", " [FILE]", 0, 1, 0, verb_support, NULL,
	 "diagnostics for a bug report, in a file",
	 "writes one tar file with diagnostics for a bug report: maps, programs, rules, routes,"
	 " conflists, versions; without secrets. A manifest says what is in it. FILE must not"
	 " exist; \"-\" is standard output. By default the file is made in this directory"},
};

const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);

void operator_print_help(FILE *file)
{
	fputs("bpf-portmap " PROGRAM_VERSION ": a chained CNI plugin that gives containers host"
	      " ports and\nmasquerade with eBPF, for CNI",
	      file);
	for (size_t i = 0; cni_versions[i]; i++)
		fprintf(file, " %s", cni_versions[i]);
	fputs(".\nA container runtime runs it with CNI_COMMAND.\n"
	      "By hand: bpf-portmap COMMAND [OPTION...]\n",
	      file);
	for (size_t i = 0; i < verb_count; i++) {
		if (verbs[i].group)
			fprintf(file, "\n%s\n", verbs[i].group);
		fprintf(file, "  %-13s %s\n", verbs[i].name, verbs[i].summary);
	}
	fputs("\nbpf-portmap COMMAND --help explains a command and its options; --version tells"
	      "\nthe version. Exit status: 0; 1 after an error, which is on stderr; 64 after a"
	      "\ncommand, option or operand that does not exist; who and doctor have others.\n",
	      file);
}

/* Names of files and interfaces are anybody's. */
static int fail(struct cni_error *err, int status)
{
	const char *details = cni_error_details(err);
	cleanup_free char *text =
		cni_format("%s%s%s", cni_error_message(err), *details ? "; " : "", details);

	cni_printable(text, "\n");
	fflush(stdout);
	fprintf(stderr, "bpf-portmap: %s\n", text);
	cni_error_release(err);
	return status;
}

/* Output counts only if it arrives. */
static int finish(int status)
{
	struct cni_error err = {0};

	if (!items_flush(stdout, &err))
		return status;
	/* A status that says more stays. */
	return fail(&err, status ? status : EXIT_FAILURE);
}

static int explain(const struct verb *verb)
{
	struct command_line line = options_of(verb->options);

	printf("usage: bpf-portmap %s%s%s\n", verb->name, verb->operands,
	       verb->options ? " [OPTION...]" : "");
	command_line_print_indented(verb->help, 6, stdout);
	command_line_print_help(&line, stdout);
	return finish(EXIT_SUCCESS);
}

/* Words that are no option, or no command. */
static int refuse_word(const char *word)
{
	const char *quote = *word == '-' ? "" : "\"";

	fprintf(stderr, "bpf-portmap: unknown %s %s%.60s%s; see bpf-portmap --help\n",
		*quote ? "command" : "option", quote, word, quote);
	return EX_USAGE;
}

static int check_operands(const struct verb *verb, int count, char *const *operands,
			  struct cni_error *err)
{
	const char *what = verb->max_operands ? "takes no further" : "takes no";

	if (count < verb->min_operands)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "%s needs%s; see bpf-portmap %s --help", verb->name,
				     verb->operands, verb->name);
	if (count <= verb->max_operands)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "%s %s \"%.60s\"; see bpf-portmap %s --help", verb->name, what,
			     operands[verb->max_operands], verb->name);
}

static int run_verb(const struct verb *verb, int count, char **words)
{
	struct command_line line = options_of(verb->options);
	struct options options = {0};
	struct cni_error err = {0};
	int status, first = command_line_read(&line, count, words, &options, &err);

	if (first >= 0 && options.help)
		return explain(verb);
	if (first < 0 || check_operands(verb, count - first, words + first, &err))
		return fail(&err, EX_USAGE);
	/* `flows | head` ends as soon as nobody reads on. Whoever changes something goes on. */
	if (verb->options & OPTIONS_OUTPUT)
		signal(SIGPIPE, SIG_DFL);
	status = verb->run(&options, words + first, &err);
	if (status < 0)
		return fail(&err,
			    err.code == CNI_ERROR_INVALID_ENVIRONMENT ? EX_USAGE : EXIT_FAILURE);
	return finish(status);
}

static const struct verb *find_verb(const char *name)
{
	/* For scripts and units. */
	if (!strcmp(name, "gc") || !strcmp(name, "attach"))
		name = "repair";
	for (size_t i = 0; i < verb_count; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

int operator_run(int count, char **words)
{
	/* `help list` is `list --help`. */
	bool explains = is_help(words[0]) && words[1] && !is_help(words[1]);
	const char *name = words[explains];
	const struct verb *verb = find_verb(name);

	if (verb)
		return explains ? explain(verb) : run_verb(verb, count, words);
	if (is_help(name))
		operator_print_help(stdout);
	else if (!strcmp(name, "--version"))
		puts("bpf-portmap " PROGRAM_VERSION);
	else
		return refuse_word(name);
	return finish(EXIT_SUCCESS);
}
