/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * installer.h - our binary among the plugins of a node, and our plugin in the list that its runtime
 * takes.
 *
 * Agents of the network write the same files, and runtimes read them, at any instant. At every
 * instant the list is whole, and the binaries are there that it names: the binary comes first, and
 * goes last. A run that is killed anywhere is completed by the next one.
 */
#pragma once

#include "operator/install/files.h"
#include "operator/options.h"

#define DEFAULT_BIN_DIR "/opt/cni/bin"
#define DEFAULT_CONF_DIR "/etc/cni/net.d"

struct installer {
	bool alias;
	const char *bin_path;
	char conf_path[PATH_MAX];
	char *list;       /* NULL: the one that runtimes take */
	struct file self; /* this program */
	struct directory bin, conf;
	bool had_lock;  /* what killed runs have left is gone */
	size_t changes; /* of files, since the beginning */
};

/* From the options. To be closed after a failure, too. CNI_ERROR_IO. */
int installer_open(struct installer *installer, const struct options *options,
		   struct cni_error *err);
void installer_close(struct installer *installer);

/* Opens both directories, as they are by now. CNI_ERROR_IO. */
int installer_look(struct installer *installer, struct cni_error *err);

/* Makes binary and list ours where they are not; prints what it changes. The node stays as it is
 * where the kernel could not run the programs, or the list is none for us. With the alias there
 * need not be a list yet. CNI_ERROR_IO, CNI_ERROR_DECODE (a list that is no JSON, half written
 * perhaps), CNI_ERROR_INVALID_CONFIGURATION, CNI_ERROR_NOT_AVAILABLE, CNI_ERROR_TRY_AGAIN. */
int installer_run(struct installer *installer, struct cni_error *err);

#define cleanup_installer __attribute__((cleanup(installer_close)))
