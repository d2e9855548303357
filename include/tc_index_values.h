/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tc_index_values.h - the values of skb->tc_index by which our programs tell each other about a
 * packet (bpf/tc_index.h); tests set them. */
#pragma once

#define TC_INDEX_OURS 0x6200     /* the upper byte of every value that is ours */
#define TC_INDEX_CONFIRM 2       /* the hook behind the stack shall confirm it */
#define TC_INDEX_SENT 4          /* sent by the fast path: to_uplink has nothing to do */
#define TC_INDEX_ENTERED_AGAIN 8 /* translated already where it enters once more (apply.h) */
/* IPv6: it entered with an address of the host as its source, which for IPv4 the stack refuses. */
#define TC_INDEX_HOSTS_ADDRESS 16
#define TC_INDEX_DONE 32  /* from_uplink: the hook behind the stack has nothing to do */
#define TC_INDEX_REPLY 64 /* from_container: to a process of this host, sent to lo (apply.h) */
