/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* warning.c - non-fatal problems, a line each on stderr. */
#include "lib/warning.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/text.h"

void warning(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* They quote configurations, names and rules of others. */
	cni_printable(text, "");
	/* One write, so that lines of parallel runs into one log stay whole. */
	fprintf(stderr, "bpf-portmap: warning: %s\n", text);
}
