/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_cause.h - what a probe's fate means. */
#ifndef OPERATOR_DOCTOR_PROBE_CAUSE_H
#define OPERATOR_DOCTOR_PROBE_CAUSE_H

#include "operator/doctor/probe.h"

/* Adds a finding, cause first, unless the packet was answered as it should be. */
void probe_report(struct doctor *doctor, const struct subject *subject, const struct probe_way *way,
		  struct prober *prober, const struct probe_result *result);
/* The same of what a container has sent. */
void probe_report_outwards(struct doctor *doctor, const struct subject *subject,
			   const struct probe_way *way, struct prober *prober,
			   const struct probe_result *result);

#endif
