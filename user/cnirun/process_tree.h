/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * process_tree.h - ends a process together with what it has started.
 */
#ifndef CNIRUN_PROCESS_TREE_H
#define CNIRUN_PROCESS_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether we have a child, ended or not. A process that called exec() may have some that
 * it does not know. */
bool process_tree_has_children(void);

/* Kills our child and waits for it, and does the same with all that descends from it.
 * What was let go before (a daemon, whose parent has ended) stays. `others`: we have
 * children besides, so that only this one can be told from them. Gives up after some
 * seconds on what the kernel does not let go. */
void process_tree_kill(pid_t child, bool others);

#endif
