/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_chain.h - reads the rules of one chain of nftables.
 */
#pragma once

#include "nat/nat_search.h"

/* Leaves in search->reading the chain's rules that are asked for, with one for each element of a
 * set in place of a look-up. */
void nft_chain_read(struct search *search, const struct chain *chain);
