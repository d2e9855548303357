/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* layout.h - reads the maps of bpf-portmap 0.1. */
#ifndef DATAPATH_LAYOUTS_0_1_LAYOUT_H
#define DATAPATH_LAYOUTS_0_1_LAYOUT_H

#include "datapath/layouts/older.h"

extern const struct older_layout layout_0_1;

#endif
