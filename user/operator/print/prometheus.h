/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prometheus.h - statistics in Prometheus' text format.
 */
#pragma once

#include <stdio.h>

#include "operator/view/statistics.h"

/* Writes them; `mappings` NULL: no series for single ports. Errors show in the file. */
void prometheus_write(FILE *file, const struct statistics *statistics, struct view *view,
		      const struct mappings *mappings);

/* Writes them to the file of that name, which is replaced as a whole, so that no reader sees a
 * part. CNI_ERROR_IO. */
int prometheus_replace(const char *path, const struct statistics *statistics, struct view *view,
		       const struct mappings *mappings, struct cni_error *err);
