/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conditional.h - portmap's rules for some packets alone: those of a list with "conditionsV4" or
 * "conditionsV6".
 */
#pragma once

#include <jansson.h>

#include "nat/portmap_rules.h"

/* Returns whether the rule has the conditions that the list of its container's ADD asks for, and no
 * others, as iptables itself says. True also where no option of ours does the same as these: the
 * list is refused then, which says more. */
bool conditional_as_listed(const json_t *cached, const struct portmap_entry *entry);

/* Puts our options in the place of the conditions in the configuration of a container, and returns
 * them as they stand in a list, malloc'ed. NULL: it has none, or none of our options does the same
 * for this network alone, or the list has one already. Then the conditions stay, and reading them
 * says why they are refused. */
char *conditional_translate(json_t *config);
