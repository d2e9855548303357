/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* settings.h - the command line of cni-ipam. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "runtimes/cnirun/runtime_conf.h"

/* Begins as {0}. The strings are borrowed from the command line. */
struct settings {
	bool help;
	bool dry_run;
	bool json;
	const char *socket;
	const char *state; /* a directory */
	const char *docker;
	char *driver;             /* as Docker calls it; malloc'ed */
	unsigned int grace;       /* seconds */
	json_t *ipam;             /* the object for pools that are of no conflist */
	struct runtime_conf conf; /* where plugins are, how long they may take */
};

/* Which options a verb has. */
enum settings_set {
	SETTINGS_SERVE = 1 << 0,
	SETTINGS_RECONCILE = 1 << 1,
};

/* Reads the options behind argv[0]. CNI_ERROR_INVALID_ENVIRONMENT, and what reading the file of
 * --ipam sets. */
int settings_parse(struct settings *settings, int argc, char **argv, unsigned int set,
		   struct cni_error *err);
/* Takes the driver's name from the socket's, as Docker does. CNI_ERROR_INVALID_ENVIRONMENT. */
int settings_name_driver(struct settings *settings, const char *socket, struct cni_error *err);
void settings_release(struct settings *settings);

void settings_print_help(unsigned int set);
