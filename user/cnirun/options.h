/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.h - the command line of a verb, completed from the environment.
 */
#ifndef CNIRUN_OPTIONS_H
#define CNIRUN_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>

#include "cni/error.h"
#include "cnirun/execute.h"

/* Debian has its plugins in /usr/lib/cni, Fedora in /usr/libexec/cni, all others, by
 * the plugins' own releases, in /opt/cni/bin. */
#define OPTIONS_DEFAULT_CNI_PATH "/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni"
#define OPTIONS_DEFAULT_IFNAME "eth0"
/* kubelet gives its runtime as long; the dhcp plugin tries for more than a minute. */
#define OPTIONS_DEFAULT_TIMEOUT 120

/* Which options a verb takes. */
enum option_set {
	OPTIONS_ATTACHMENT = 1 << 0, /* and NETNS */
	OPTIONS_RUN = 1 << 1,        /* it runs plugins */
	OPTIONS_CACHE = 1 << 2,
	OPTIONS_JSON = 1 << 3,
};

/* Begins as {0}. */
struct options {
	bool help;
	bool json;
	const char *conflist;
	char *netns;        /* absolute path, or "" */
	char *container_id; /* NULL: none given, and none can be made of the netns */
	const char *ifname;
	json_t *args;            /* pairs; NULL: not given */
	json_t *capability_args; /* an object; NULL: not given */
	json_t *demanded;        /* those of them that the command line names */
	struct execution execution;
	const char *cache_directory;
};

/* argv[0] is the verb. Code 4. */
int options_parse(struct options *options, int argc, char **argv, unsigned int set,
		  struct cni_error *err);
void options_release(struct options *options);

/* The options of the set, a line each, to stdout. */
void options_print_help(unsigned int set);

#endif
