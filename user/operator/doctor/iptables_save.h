/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * iptables_save.h - what iptables-save prints, as chains and rules like those that nft prints:
 * most matches of iptables-nft have no words in nft. Without any I/O.
 */
#ifndef OPERATOR_DOCTOR_IPTABLES_SAVE_H
#define OPERATOR_DOCTOR_IPTABLES_SAVE_H

#include <jansson.h>

/* Adds them to the array. `text` is torn apart. What is not understood is a condition that may
 * match, or not. */
void iptables_save_parse(json_t *ruleset, char *text, const char *family, const char *table);

#endif
