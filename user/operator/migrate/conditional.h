/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conditional.h - portmap's rules for some packets alone: those of a list with "conditionsV4" or
 * "conditionsV6".
 */
#pragma once

#include "nat/portmap_rules.h"
#include "operator/migrate/containers.h"

/* Returns whether the rule has the conditions that the list of its container asks for, and no
 * others, as iptables itself says. True also where no option of ours does the same as these: the
 * list is refused then, which says more. */
bool conditional_as_listed(const struct migrating *container, const struct portmap_entry *entry);

/* Puts our options in the place of the conditions in the configuration of a container, and says so
 * in container->reason. Where none does the same for this network alone, or the list has one
 * already, the conditions stay, and reading them says why they are refused. */
void conditional_translate(struct migrating *container, json_t *config);
