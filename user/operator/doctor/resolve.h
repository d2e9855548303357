/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * resolve.h - what address a container finds for a name: by its own /etc/hosts and resolv.conf, and
 * from within its network namespace.
 */
#pragma once

#include "operator/doctor/doctor.h"

struct resolved {
	bool is_found;
	uint8_t address[CNI_ADDRESS_SIZE]; /* of the subject's family */
	char said[160];                    /* who said so: "/etc/hosts"; or why there is none */
};

/* Takes three seconds, and one for the server that is asked last, where none answers. */
void resolve_name(struct doctor *doctor, const struct subject *subject, const char *name,
		  struct resolved *resolved);
