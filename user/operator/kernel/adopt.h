/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adopt.h - connections that conntrack translates when their ports become ours. Each gets a record
 * by which our programs leave its packets to conntrack (bpf/adopt.bpf.c).
 */
#ifndef OPERATOR_KERNEL_ADOPT_H
#define OPERATOR_KERNEL_ADOPT_H

#include <linux/types.h>

#include "adoption.h"

#include "datapath/load/objects.h"
#include "lib/error.h"

/* Makes the record; program: of loader_load_adopt(). One that is there already is kept. *adopted
 * says what came of it. CNI_ERROR_KERNEL_REFUSED: the program cannot be run. */
int adopt_connection(int program, const struct adoption *adoption, enum adopted *adopted,
		     struct cni_error *err);

/* Whether there is such a record, of a connection that lives or not. */
bool adopt_is_recorded(const struct objects *objects, const struct connection_key *key);

/*
 * From the claim of a port until the connections that began just before it have their records, a
 * packet without a record must not begin one. So the port is claimed with a policy that admits no
 * client, and opened afterwards. A TCP client sends again what was dropped meanwhile.
 */
void adopt_close_policy(struct policy *policy);
/* Returns whether this attachment was claimed so, and not opened. */
bool adopt_is_closed(const struct objects *objects, struct owner owner);
/* Gives the attachment the policy that it is to have. Takes the lock. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN. */
int adopt_open_policy(const struct objects *objects, struct owner owner,
		      const struct policy *policy, struct cni_error *err);

#endif
