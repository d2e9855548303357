/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * give.h - writes connections of ours into the maps of bpf-portmap 0.1.
 */
#ifndef DATAPATH_LAYOUTS_0_1_GIVE_H
#define DATAPATH_LAYOUTS_0_1_GIVE_H

#include "datapath/layouts/older.h"

void give_connections_0_1(const int *maps, struct given_connections *connections);

#endif
