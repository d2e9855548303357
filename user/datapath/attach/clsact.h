/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clsact.h - programs as direct-action filters of the clsact qdisc, or at ingress of
 * the ingress qdisc.
 */
#ifndef DATAPATH_ATTACH_CLSACT_H
#define DATAPATH_ATTACH_CLSACT_H

#include <stdbool.h>
#include <stdint.h>

#include "datapath/attach/tcx.h"

/* Makes the qdisc. EEXIST: a qdisc is there, this or `ingress`. 0, or -1 and errno. */
int clsact_create(uint32_t ifindex);
/* Removes the qdisc with all its filters: only for the caller that has just made it. */
void clsact_destroy(uint32_t ifindex);

/* Returns the id of the program at our handle and priority, or 0. */
uint32_t clsact_find(uint32_t ifindex, enum hook hook);

/* Returns the ifindex to which a filter at ingress that comes before ours sends packets, or 0. */
uint32_t clsact_find_redirect(uint32_t ifindex);

/* Attaches at our handle and priority; where a program is there already, EEXIST unless it is to be
 * replaced. Then checks that the kernel has it. 0, or -1 and errno. */
int clsact_attach(uint32_t ifindex, enum hook hook, int program_fd, bool replace);
int clsact_detach(uint32_t ifindex, enum hook hook);

#endif
