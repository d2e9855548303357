/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_set.h - sets of ports: as a bit for each port, as ranges, and as options.
 */
#pragma once

#include <linux/types.h>
#include <stdint.h>

#include "abi.h"
#include "conf/option.h"

/* Ports may be added repeatedly and in any order; they are read back as ranges. Begins as {0}. */
struct port_set {
	uint64_t words[PORT_WORDS];
};

void port_set_add(struct port_set *set, struct port_range range);
void port_set_remove(struct port_set *set, struct port_range range);

/* Returns the first range of the set, not looking at ports below `from`; {0, 0}: there is none. */
struct port_range port_set_next(const struct port_set *set, unsigned int from);

/* Calls `change`, one of the two above, for each range of "80-90,8080", as the kernel writes it. */
void port_set_change_by_list(struct port_set *set, const char *list,
			     void (*change)(struct port_set *set, struct port_range range));

/* Reads "80" or "80-90", of 1 to 65535, from the beginning of the text. Returns what follows, or
 * NULL where there is no such range; the last port may be below the first. */
const char *port_range_parse(const char *text, struct port_range *range);

/* Reads "1024-2000,5000", 5000, or an array of both. Ascending ranges, those that touch united; all
 * {0, 0} where the key is missing or the array is empty. */
int conf_read_port_set(struct port_range ranges[MASQUERADE_RANGES], const struct given *given,
		       struct cni_error *err);
