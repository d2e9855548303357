/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * errors.h - several errors in one, for operations that go on after the first.
 */
#ifndef CNIRUN_ERRORS_H
#define CNIRUN_ERRORS_H

#include "cni/error.h"

/* Appends `one` to `all` on a line of its own, details included, and releases it. The
 * first error's code stays. */
void errors_join(struct cni_error *all, struct cni_error *one);

#endif
