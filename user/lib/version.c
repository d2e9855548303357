/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* version.c - which of two versions is older. */
#include "lib/version.h"

#include <stdlib.h>
#include <string.h>

bool version_is_older(const char *a, const char *b)
{
	for (int part = 0; part < 3; part++) {
		char *a_end, *b_end;
		unsigned long a_number = strtoul(a, &a_end, 10);
		unsigned long b_number = strtoul(b, &b_end, 10);

		if (a_number != b_number)
			return a_number < b_number;
		a = *a_end == '.' ? a_end + 1 : a_end;
		b = *b_end == '.' ? b_end + 1 : b_end;
	}
	if (*a == '~' && *b == '~')
		return strcmp(a, b) < 0;
	return *a == '~';
}
