/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rehearsal.h - lets the older version load its programs while ours still work.
 *
 * That takes the kernel's verifier a second or more, and might fail. So the older version adds, and
 * deletes, a container that is made for it: the network namespace of a process that waits, whose
 * list keeps it away from all interfaces of the host. What comes after needs milliseconds for each
 * container.
 */
#ifndef OPERATOR_DOWNGRADE_REHEARSAL_H
#define OPERATOR_DOWNGRADE_REHEARSAL_H

#include "lib/error.h"

/* Nothing may be pinned. Where such a container cannot be made it is a warning. CNI_ERROR_IO where
 * the older version does not work here. */
int rehearse(const char *binary, struct cni_error *err);

#endif
