/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * statuses.h - what the checks of `bpf-portmap doctor` say, in a number each.
 */
#ifndef OPERATOR_DOCTOR_STATUSES_H
#define OPERATOR_DOCTOR_STATUSES_H

#include "operator/view/statistics.h"

/* Runs the checks. A check that could not be run is left out. */
void doctor_read_statuses(struct statistics *statistics);

#endif
