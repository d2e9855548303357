/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * binaries.h - our binary in a directory of plugins, also under the name of the reference plugin,
 * which is kept beside it.
 */
#pragma once

#include "operator/install/files.h"

#define OUR_BINARY "bpf-portmap"
#define ALIAS "portmap"
#define KEPT_REFERENCE "portmap.reference"

/* Returns whether the file is the program `self`, and can be run. */
bool binary_is_self(const struct directory *directory, const char *name, const struct file *self);

/* Puts the program `self` under this name, where it is not there yet. Returns whether it was put
 * there, or -1 and CNI_ERROR_IO. */
int binary_put(const struct directory *directory, const char *name, const struct file *self,
	       struct cni_error *err);

/* Puts `self` in the place of the reference plugin, and keeps that as KEPT_REFERENCE, where its
 * containers' DEL finds it. There is a file `portmap` at every instant. Returns whether something
 * changed; -1: CNI_ERROR_IO; CNI_ERROR_INVALID_CONFIGURATION where `portmap` is a link to a program
 * that may look at its own name, as that of k3s does. */
int alias_put(const struct directory *directory, const struct file *self, struct cni_error *err);

/* Returns whether the alias is there already. */
bool alias_is_put(const struct directory *directory, const struct file *self);

/* Undoes alias_put(). Returns as above. */
int alias_undo(const struct directory *directory, struct cni_error *err);

/* Removes our binary, of whatever version. Returns as above. */
int binary_remove(const struct directory *directory, struct cni_error *err);

/* Fails with CNI_ERROR_INVALID_CONFIGURATION where a package has put the alias there. */
int binaries_check_package(const struct directory *directory, struct cni_error *err);
