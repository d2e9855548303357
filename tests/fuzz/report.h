/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* report.h - prints a failure. */
#pragma once

#include "oracle.h"
#include "verify.h"

void report_packet(const struct visit *visit, const struct expectation *expected,
		   const struct outcome *outcome);
void report_world(const struct world *world);
/* The tables before and after the packet. */
void report_changes(const struct world *before, const struct world *after);
