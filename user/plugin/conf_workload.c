/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_workload.c - whose container it is, as CNI_ARGS say.
 */
#include "plugin/conf_workload.h"

#include <stdbool.h>
#include <string.h>

#include "cni/environment.h"

/* Appends what fits, and keeps the zero at the end. */
static void append(char *text, size_t size, const char *value, size_t length)
{
	size_t used = strlen(text);

	for (size_t i = 0; i < length && used + 1 < size; i++)
		text[used++] = value[i] >= ' ' && value[i] <= '~' ? value[i] : '?';
}

/* False: CNI_ARGS do not have it, or it is empty. */
static bool append_argument(char *text, size_t size, const char *args, const char *key)
{
	size_t length;
	const char *value = cni_args_get(args, key, &length);

	if (!value || !length)
		return false;
	append(text, size, value, length);
	return true;
}

static void read_nomad(struct workload *workload, const char *args)
{
	append_argument(workload->namespace, sizeof(workload->namespace), args, "NOMAD_NAMESPACE");
	if (!cni_args_have_key(args, "NOMAD_GROUP_NAME"))
		return;
	append(workload->name, sizeof(workload->name), "/", 1);
	append_argument(workload->name, sizeof(workload->name), args, "NOMAD_GROUP_NAME");
}

void conf_read_workload(struct workload *workload, const char *args)
{
	*workload = (struct workload){0};
	if (append_argument(workload->name, sizeof(workload->name), args, "K8S_POD_NAME")) {
		bool has_namespace =
			append_argument(workload->namespace, sizeof(workload->namespace), args,
					"K8S_POD_NAMESPACE");

		workload->kind = has_namespace ? WORKLOAD_POD : WORKLOAD_CONTAINER;
	} else if (append_argument(workload->name, sizeof(workload->name), args, "NOMAD_JOB_ID")) {
		workload->kind = WORKLOAD_NOMAD;
		read_nomad(workload, args);
	}
}
