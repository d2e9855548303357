/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs.c - the table of commands for people, their help, and running one. */
#include "operator/verbs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cni/version.h"
#include "plugin/commands.h"

static int run_attach(const struct options *options, char *const *operands, struct cni_error *err)
{
	if (options->load && command_load(err))
		return -1;
	return command_attach(operands, err);
}

static int run_drop_offload(const struct options *options, char *const *operands,
			    struct cni_error *err)
{
	return command_drop_offload(operands, err);
}

const struct verb verbs[] = {
	{"list", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_PORTS | OPTIONS_LIST, verb_list,
	 "shows the mapped ports, whose they are, and how much they are used: FLOWS, connections\n"
	 "now; NEW, those of them that were not answered, or did not go on, yet; TOTAL, begun\n"
	 "since the port was mapped"},
	{"who", " PORT[/PROTOCOL][@ADDRESS]", 1, 1, OPTIONS_OUTPUT, verb_who,
	 "shows everybody who could have this port of the host: mappings, rules of NAT of others,\n"
	 "processes that listen; and who gets what comes to it. Exit status: 0, it is free; 1, it\n"
	 "is taken; 3, it could not look"},
	{"flows", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_PORTS | OPTIONS_FLOWS, verb_flows,
	 "shows the connections: to mapped ports, masqueraded, and others that are remembered;\n"
	 "their state, which way packets go in and out of the container, how many there were,\n"
	 "and how long ago the last one came; at the end how full the table is"},
	{"stats", "", 0, 0, OPTIONS_OUTPUT | OPTIONS_STATS, verb_stats,
	 "shows how full the tables are, and what the programs have counted since they were\n"
	 "loaded"},
	{"doctor", " [PORT[/PROTOCOL]]", 0, 1, OPTIONS_OUTPUT | OPTIONS_DOCTOR, verb_doctor,
	 "looks for what keeps mapped ports, or this one, from being reached, and containers from\n"
	 "reaching others: sends a packet as a client, or a container, would, follows it, and\n"
	 "swallows what comes of it before it leaves; then looks at the host. Prints what is\n"
	 "wrong and what mends it. Exit status: 0; 1 after a warning, 2 after a failure, 3 where\n"
	 "it could not look"},
	{"trace", " PROTOCOL SOURCE[:PORT] DESTINATION:PORT | --live", 0, 8,
	 OPTIONS_OUTPUT | OPTIONS_TRACE, verb_trace,
	 "tells what the programs would do with a packet, on copies of their maps: nothing\n"
	 "changes. With --live, what they do with real ones, and which the kernel drops, where\n"
	 "and why; `trace --live host 192.0.2.10 and tcp port 8080` works, too"},
	{"migrate", " --from-portmap", 0, 0, OPTIONS_OUTPUT | OPTIONS_MIGRATE, verb_migrate,
	 "takes over the ports that the reference plugin portmap has mapped, without touching\n"
	 "the containers: maps them, keeps the connections that are there, and removes\n"
	 "portmap's rules, those of dead containers too. Exit status 1 where a port was left"},
	{"upgrade", "", 0, 0, OPTIONS_UPGRADE, verb_upgrade,
	 "replaces the programs in the kernel by those of this binary, at each hook at once, also\n"
	 "by an older version's; mappings and connections stay. One that was stopped half-way is\n"
	 "completed by the next, or by the next ADD"},
	{"support", " [FILE]", 0, 1, 0, verb_support,
	 "writes one tar file with what somebody needs who is to find a fault: maps, programs,\n"
	 "rules, routes, conflists, versions; without secrets; a manifest says what is in it.\n"
	 "FILE must not exist; \"-\": standard output. Default: in this directory"},
	{"attach", " [INTERFACE...]", 0, ANY_NUMBER, OPTIONS_ATTACH, run_attach,
	 "attaches to interfaces that came up since the last ADD, as the conflists of the\n"
	 "running containers say, or to those named; repairs what somebody removed; prints\n"
	 "what it changed. Does nothing where no container was ever added. A udev rule may\n"
	 "call it."},
	{"gc", "", 0, 0, OPTIONS_GC, verb_gc,
	 "removes what containers have left whose veth is gone and for which DEL was not called:\n"
	 "containerd and kubelet never call GC. Also portmap's rules for containers that are\n"
	 "gone. Prints what it removed. Touches nothing of a container that lives"},
	{"drop-offload", "", 0, 0, 0, run_drop_offload,
	 "lets no flow skip the IP stack until its firewall has let it through again: for\n"
	 "anyone who changed the rules and wants them to apply at once"},
	{"install", "", 0, 0, OPTIONS_INSTALL, verb_install,
	 "puts this program among a node's plugins, and in the conflist that its runtime takes,\n"
	 "the first by name, bpf-portmap in the place of portmap; nothing else in it changes.\n"
	 "The node stays as it is where the kernel, or the list, is none for bpf-portmap"},
	{"uninstall", "", 0, 0, OPTIONS_UNINSTALL, verb_uninstall,
	 "takes all of it off the host: conflists first, which have portmap again; then programs,\n"
	 "maps and qdiscs; the binary last. While containers have ports it stops after the\n"
	 "conflists, names them, and its exit status is 1; called again, it goes on"},
	{"completion", " bash|zsh|fish", 1, 1, 0, verb_completion,
	 "prints what completes commands and options in this shell. For bash, in\n"
	 "/usr/share/bash-completion/completions/bpf-portmap"},
};

const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);

void operator_print_help(FILE *file)
{
	fputs("bpf-portmap " PROGRAM_VERSION ": a chained CNI plugin that gives containers host"
	      " ports and masquerade with eBPF\nCNI versions:",
	      file);
	for (size_t i = 0; cni_versions[i]; i++)
		fprintf(file, " %s", cni_versions[i]);
	fputs("\nIt is run by a container runtime, which sets CNI_COMMAND. By hand:\n", file);
	for (size_t i = 0; i < verb_count; i++) {
		fprintf(file, "  bpf-portmap %s%s%s\n", verbs[i].name, verbs[i].operands,
			verbs[i].options ? " [OPTION...]" : "");
		command_line_print_indented(verbs[i].help, 6, file);
	}
	fputs("  bpf-portmap --help, COMMAND --help\n"
	      "  bpf-portmap --version\n"
	      "  cnirun --help\n"
	      "      a runtime for conflists\n"
	      "Exit status: 0; 1 after an error, which is on stderr; 64 after a command or option\n"
	      "that does not exist.\n",
	      file);
}

/* Output counts only if it arrives. */
static int finish(int status)
{
	return fflush(stdout) ? EXIT_FAILURE : status;
}

static int explain(const struct verb *verb)
{
	struct command_line line = options_of(verb->options);

	printf("usage: bpf-portmap %s%s%s\n", verb->name, verb->operands,
	       verb->options ? " [OPTION...]" : "");
	command_line_print_indented(verb->help, 6, stdout);
	if (verb->options)
		command_line_print_help(&line, stdout);
	return finish(EXIT_SUCCESS);
}

static int fail(struct cni_error *err, int status)
{
	const char *details = cni_error_details(err);

	fflush(stdout);
	fprintf(stderr, "bpf-portmap: %s%s%s\n", cni_error_message(err), *details ? "; " : "",
		details);
	cni_error_release(err);
	return status;
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
	return status < 0 ? fail(&err, EXIT_FAILURE) : finish(status);
}

static const struct verb *find_verb(const char *name)
{
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
	/* `help attach` is `attach --help`. */
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
