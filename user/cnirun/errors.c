/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * errors.c - several errors in one, for operations that go on after the first.
 */
#include "cnirun/errors.h"

#include <stdbool.h>

static void fold_details(struct cni_error *err)
{
	const char *details = cni_error_details(err);

	if (*details)
		cni_error_set(err, err->code, "%s; %s", cni_error_message(err), details);
}

void errors_join(struct cni_error *all, struct cni_error *one)
{
	bool is_first = !all->code && !all->message;

	fold_details(all);
	fold_details(one);
	if (is_first)
		cni_error_set(all, one->code, "%s", cni_error_message(one));
	else
		cni_error_set(all, all->code, "%s\n%s", cni_error_message(all),
			      cni_error_message(one));
	cni_error_release(one);
}
