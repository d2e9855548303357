/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* warning.c - non-fatal problems, a line each on stderr. */
#include "lib/warning.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"

#define KEPT_SIZE 1024

static char kept[KEPT_SIZE];

static void keep(const char *text)
{
	size_t used = strlen(kept), length = strlen(text);

	if (used + length + 2 > sizeof(kept))
		return;
	memcpy(kept + used, text, length);
	kept[used + length] = '\n';
	kept[used + length + 1] = '\0';
}

/* They quote configurations, names and rules of others. */
static void print(const char *format, va_list arguments, char text[KEPT_SIZE])
{
	vsnprintf(text, KEPT_SIZE, format, arguments);
	cni_printable(text, "");
	/* One write, so that lines of parallel runs into one log stay whole. */
	fprintf(stderr, "bpf-portmap: warning: %s\n", text);
}

void warning(const char *format, ...)
{
	char text[KEPT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments, text);
	va_end(arguments);
	keep(text);
}

void warning_passing(const char *format, ...)
{
	char text[KEPT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments, text);
	va_end(arguments);
}

const char *warnings_kept(void)
{
	return kept;
}
