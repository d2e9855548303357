/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach_verify.h - whether our programs are where they must be, and the maps that they use.
 */
#ifndef DATAPATH_ATTACH_ATTACH_VERIFY_H
#define DATAPATH_ATTACH_ATTACH_VERIFY_H

#include "datapath/load/datapath.h"

/* Returns whether the interface has a program that only a container's veth has, of whichever
 * set. */
bool attach_is_container_veth(uint32_t ifindex);

/* Opens the maps of a program of ours if they are whole, of our layout and of this host. Returns
 * false where they are not, and nothing is open. */
bool attach_maps_of_program(int program_fd, uint64_t netns_cookie, int maps[MAP_COUNT]);
/* Does the same for whatever program of ours is at the interface's hooks. */
bool attach_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT]);

#endif
