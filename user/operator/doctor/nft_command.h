/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_command.h - the firewall's rules as nft prints them.
 */
#ifndef OPERATOR_DOCTOR_NFT_COMMAND_H
#define OPERATOR_DOCTOR_NFT_COMMAND_H

#include <jansson.h>

#define LEGACY_TABLE "filter (legacy)"

/* The array of `nft -j list ruleset`, and the rules of iptables for what is forwarded, as
 * iptables-save prints them; those of iptables-legacy are in the table LEGACY_TABLE. NULL: it
 * cannot be had, and *why, malloc'ed, says why. */
json_t *nft_command_read(char **why);

#endif
