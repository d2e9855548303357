/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * series.h - many packets to a port, small ones and such as fill the uplink's MTU: how many are
 * answered.
 */
#pragma once

#include "operator/doctor/probe.h"

/* Sends so many as the client of the way, to whom one was answered before, until a few seconds are
 * over. Adds a finding where some are lost or refused, or those of one size; where `says`, also
 * where all are answered. */
void series_probe(struct doctor *doctor, const struct subject *subject, struct probe_way *way,
		  uint32_t count, bool says);
