/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* install.c - `bpf-portmap install`: once, or for as long as it runs (watch.c). */
#include <stdio.h>
#include <stdlib.h>

#include "cni/json.h"
#include "operator/install/installer.h"
#include "operator/install/watch.h"
#include "operator/verbs.h"

int verb_install(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_installer struct installer installer;

	cni_json_begin();
	if (installer_open(&installer, options, err))
		return -1;
	if (options->watch)
		return watch_run(&installer, options->watch, err);
	if (installer_look(&installer, err) || installer_run(&installer, err))
		return -1;
	if (!installer.changes)
		puts("nothing to change");
	return EXIT_SUCCESS;
}
