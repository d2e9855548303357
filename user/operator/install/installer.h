/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * installer.h - puts our binary among the plugins of a node, and our plugin into the list that its
 * runtime takes.
 *
 * Agents of the network write the same files, and runtimes read them, at any instant. At every
 * instant the list is whole, and the binaries are there that it names: the binary comes first, and
 * goes last. The next run completes one that was killed anywhere.
 */
#pragma once

#include "operator/install/files.h"
#include "operator/options.h"

#define OUR_BINARY "bpf-portmap"
#define ALIAS "portmap"                    /* our binary under the reference plugin's name */
#define KEPT_REFERENCE "portmap.reference" /* that plugin, beside it */
#define DEFAULT_BIN_DIR "/opt/cni/bin"
#define DEFAULT_CONF_DIR "/etc/cni/net.d"

struct installer {
	bool alias;
	const char *bin_path;
	char conf_path[PATH_MAX];
	char *list;       /* NULL: the one that runtimes take */
	struct file self; /* this program */
	struct directory bin, conf;
	struct directory folder;       /* of the network's plugins, where `portmap` is one */
	const struct directory *where; /* our plugin is put: conf, or folder */
	bool had_lock;                 /* and has removed what killed runs left */
	size_t changes;                /* to files, since the beginning */
};

/* Opens it by the options. Close it also after a failure. CNI_ERROR_IO. */
int installer_open(struct installer *installer, const struct options *options,
		   struct cni_error *err);
void installer_close(struct installer *installer);

/* Opens both directories anew, as they may have been replaced. CNI_ERROR_IO. */
int installer_look(struct installer *installer, struct cni_error *err);

/* Makes binary and list ours where they are not; prints what it changes. The node stays as it is
 * where the kernel could not run the programs, or the list is one that is refused (lists.h).
 * With the alias there need not be a list yet. CNI_ERROR_IO, CNI_ERROR_DECODE (a list that is no
 * JSON, half written perhaps), CNI_ERROR_INVALID_CONFIGURATION, CNI_ERROR_NOT_AVAILABLE,
 * CNI_ERROR_TRY_AGAIN. */
int installer_run(struct installer *installer, struct cni_error *err);

#define cleanup_installer __attribute__((cleanup(installer_close)))

/* Puts the program `self` under this name, where it is not there yet. Returns whether it was put
 * there, or -1 and CNI_ERROR_IO. */
int binary_put(const struct directory *directory, const char *name, const struct file *self,
	       struct cni_error *err);

/* Puts the reference plugin back in the place of the alias. Returns as above. */
int alias_undo(const struct directory *directory, struct cni_error *err);

/* Removes our binary, of whatever version. Returns as above. */
int binary_remove(const struct directory *directory, struct cni_error *err);

/* Fails with CNI_ERROR_INVALID_CONFIGURATION where a package has put the alias there. */
int binaries_check_package(const struct directory *directory, struct cni_error *err);
