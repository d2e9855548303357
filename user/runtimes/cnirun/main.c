/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* main.c - cnirun: runs the plugins of a conflist, as libcni and cnitool do. */
#include <string.h>

#include "runtimes/cnirun/output.h"
#include "runtimes/cnirun/verbs.h"

struct cnirun_verb {
	const char *name;
	const char *operands;
	unsigned int options;
	verb_function *run;
	const char *summary;
	const char *help;
};

#define ON_ATTACHMENT (OPTIONS_ATTACHMENT | OPTIONS_RUN | OPTIONS_CACHE)

static const struct cnirun_verb verbs[] = {
	{"add", "CONFLIST NETNS", ON_ATTACHMENT, verb_add,
	 "attach a network namespace to the network, print the result",
	 "Runs ADD of each plugin in order. When a plugin fails, or the result cannot be printed, "
	 "all\n"
	 "plugins get a DEL, unless an earlier add of this attachment succeeded and was not "
	 "deleted.\n"},
	{"del", "CONFLIST NETNS", ON_ATTACHMENT, verb_del, "detach it",
	 "Runs DEL of each plugin in reverse order. Options of add that are not given again are\n"
	 "taken from the cache. NETNS need not exist any more; with --id it may be \"\".\n"},
	{"check", "CONFLIST NETNS", ON_ATTACHMENT, verb_check, "check that all is still in place",
	 "Runs CHECK of each plugin in order, with the result of add. Needs a conflist of CNI "
	 "0.4.0\n"
	 "or later; does nothing if the conflist has disableCheck.\n"},
	{"gc", "CONFLIST", OPTIONS_RUN | OPTIONS_CACHE, verb_gc,
	 "delete the attachments whose network namespace is gone",
	 "Then runs GC of each plugin with the attachments that remain, if the conflist is of CNI\n"
	 "1.1.0. Does nothing if the conflist has disableGC.\n"},
	{"status", "CONFLIST", OPTIONS_RUN, verb_status, "ask whether an add would work",
	 "Runs STATUS of each plugin. For a conflist before CNI 1.1.0 no plugin is asked: cnirun\n"
	 "warns of that and succeeds, as libcni does.\n"},
	{"version", "CONFLIST", OPTIONS_RUN, verb_version,
	 "ask each plugin for the versions of CNI that it supports",
	 "The second column tells whether the conflist's version is among them.\n"},
	{"list", "CONFLIST", OPTIONS_CACHE, verb_list, "list the attachments",
	 "Prints what the cache has for the network, as JSON.\n"},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static const char conflist_help[] =
	"CONFLIST is the path of a .conflist, .conf or .json file, or the name of a network that\n"
	"is looked up in NETCONFPATH (default: /etc/cni/net.d).\n";

static const char netns_help[] =
	"NETNS is the path of a network namespace, or a name that `ip netns` lists.\n";

static int print_help(struct cni_error *err)
{
	output_text("usage: cnirun VERB CONFLIST [NETNS] [OPTION]...\n\n");
	for (size_t i = 0; i < VERB_COUNT; i++)
		output_text("  %-8s %-15s %s\n", verbs[i].name, verbs[i].operands,
			    verbs[i].summary);
	output_text(
		"\n%s%s\n`cnirun VERB --help` shows a verb's options. Exit status: 0, or 1 after "
		"an error, which is on stderr.\n",
		conflist_help, netns_help);
	return output_flush(err);
}

static int print_verb_help(const struct cnirun_verb *verb, struct cni_error *err)
{
	output_text("usage: cnirun %s %s [OPTION]...\n\n%s: %s.\n%s\n%s", verb->name,
		    verb->operands, verb->name, verb->summary, verb->help, conflist_help);
	if (verb->options & OPTIONS_ATTACHMENT)
		output_text("%s", netns_help);
	output_text("\n");
	options_print_help(verb->options);
	return output_flush(err);
}

static int run_verb(const struct cnirun_verb *verb, int argc, char **argv, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	struct options options = {0};
	int failed = options_parse(&options, argc, argv, verb->options, err);

	if (!failed && options.help)
		failed = print_verb_help(verb, err);
	else if (!failed)
		failed = conflist_find(&list, options.conflist, err) ||
			 verb->run(&options, &list, err);
	options_release(&options);
	return failed;
}

static int run_command_line(int argc, char **argv, struct cni_error *err)
{
	const char *name = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < VERB_COUNT; i++) {
		if (!strcmp(verbs[i].name, name))
			return run_verb(&verbs[i], argc - 1, argv + 1, err);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return print_help(err);
	if (!strcmp(name, "--version")) {
		output_text("cnirun " PROGRAM_VERSION "\n");
		return output_flush(err);
	}
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "%s%s%s: `cnirun --help` lists the verbs",
			     *name ? "unknown verb \"" : "no verb", name, *name ? "\"" : "");
}

int main(int argc, char **argv)
{
	return output_main(argc, argv, run_command_line, output_error);
}
