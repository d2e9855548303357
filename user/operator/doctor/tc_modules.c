/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tc_modules.c - whether a kernel without TCX can hold our programs. */
#include "operator/doctor/tc_modules.h"

#include <stddef.h>
#include <string.h>

const char *tc_module_missing(const char *listing)
{
	static const char *const modules[] = {"sch_ingress", "cls_bpf"};

	for (size_t i = 0; *listing && i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!strstr(listing, modules[i]))
			return modules[i];
	return NULL;
}
