/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * restore.h - turns a downgrade back that was killed, or failed.
 */
#ifndef OPERATOR_DOWNGRADE_RESTORE_H
#define OPERATOR_DOWNGRADE_RESTORE_H

#include "operator/downgrade/adds.h"

/* Takes over what the older version has; then adds what is missing, and removes the file. Where
 * there is none it does nothing. A container that cannot be added is named, and the file stays.
 * *count: how many were added.
 * CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int restore_after_downgrade(struct adds *adds, size_t *count, struct cni_error *err);

/* For uninstall: removes what a killed run has left, and adds nothing. CNI_ERROR_IO,
 * CNI_ERROR_TRY_AGAIN. */
int forget_downgrade(struct cni_error *err);

#endif
