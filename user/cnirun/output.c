/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.c - what cnirun says: results on stdout, everything else on stderr.
 */
#include "cnirun/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int output_json(const json_t *value, struct cni_error *err)
{
	if (json_dumpf(value, stdout, JSON_INDENT(4) | JSON_ENCODE_ANY) || putchar('\n') == EOF)
		return cni_error_set(err, CNI_ERROR_IO, "cannot write to stdout: %s",
				     strerror(errno));
	return output_flush(err);
}

void output_text(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
}

int output_flush(struct cni_error *err)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write to stdout: %s", strerror(errno));
}

void output_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("cnirun: warning: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

void output_error(const struct cni_error *err)
{
	const char *details = cni_error_details(err);

	fprintf(stderr, "cnirun: %s%s%s\n", cni_error_message(err), *details ? "; " : "", details);
}
