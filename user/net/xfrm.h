/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xfrm.h - IPsec in the network namespace the process is in. */
#ifndef NET_XFRM_H
#define NET_XFRM_H

#include <stdbool.h>

/* Whether there are policies for packets that leave or are forwarded (`ip xfrm policy`); those of
 * single sockets do not count. What cannot be asked is not there. */
bool xfrm_has_policies(void);

#endif
