/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - runs the real programs on single packets, by BPF_PROG_TEST_RUN.
 *
 * Each row runs one program on one packet, at one device of a small host in its own namespaces. It
 * checks the verdict, the whole packet against one built from scratch, the records of connections,
 * and the counters.
 */
#include <stdio.h>

#include "row.h"

int main(void)
{
	host_create();
	fixture_load();
	mapping_rows();
	masquerade_rows();
	portless_rows();
	policy_rows();
	direct_rows();
	host_rows();
	neighbour_rows();
	identity_rows();
	lifetime_rows();
	tcp_state_rows();
	table_rows();
	port_share_rows();
	race_rows();
	parsing_rows();
	checksum_rows();
	error_rows();
	sctp_rows();
	raw_rows();
	memo_rows();
	memo_tcp_rows();
	fragment_rows();
	offload_rows();
	garbage_rows();
	host_close_sockets();
	fixture_unload();
	return row_finish() ? 1 : 0;
}
