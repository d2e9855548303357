/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * by_hand.h - the plugin on a command line: commands for administrators. The runtime runs the CNI
 * commands.
 */
#ifndef PLUGIN_BY_HAND_H
#define PLUGIN_BY_HAND_H

/* `arguments`: what stands behind the program's name, at least one, ended by NULL. The exit
 * status: 0, 1 after an error, EX_USAGE. */
int by_hand_run(char *const *arguments);

/* What the plugin is, and which commands there are, on stderr: where CNI_COMMAND is missing,
 * stdout belongs to CNI. */
void by_hand_introduce(void);

#endif
