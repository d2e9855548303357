/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "operator/trace/trace.h"
int trace_dry_run(const struct options *options, const struct trace_packet *packet,
		  struct view *view, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "not yet");
}
