/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * processes.h - which process has a socket open, what it is called, and in which container one is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "net/sockets.h"

/* Reads what fits of /proc/PID/FILE, with a NUL behind it. Returns the length; "" where it cannot
 * be read. */
size_t process_file(pid_t pid, const char *file, char *text, size_t size);

/* Reads the name that it gives itself, without what a terminal would obey. False: there is no such
 * process. */
bool process_name(pid_t pid, char name[PROCESS_NAME_SIZE]);

/* Makes the holder of each socket the first process, by number, that has it: mostly the oldest one
 * of a server and its workers. Says whether its command line has the argument (NULL: none). Reads
 * the open files of every process until all holders are found, which takes milliseconds; stops
 * after half a second of CPU time. */
void processes_find_holders(struct socket_list *sockets, const char *argument);

/* Returns whether a process is in the network namespace that this one knows by that number, as
 * IFLA_LINK_NETNSID has it. True where it cannot be told: what may live is nobody's. */
bool processes_are_in_netns(int number);

/* Returns whether a process is in a cgroup with this in its name, as engines name those of a
 * container or a sandbox. False also where the ID is too short to be told from other words. */
bool processes_are_in_container(const char *container_id);
