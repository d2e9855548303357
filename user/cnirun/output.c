/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.c - what cnirun says: results on stdout, everything else on stderr.
 */
#define _GNU_SOURCE
#include "cnirun/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cni/cleanup.h"
#include "cni/printable.h"

/* Formatted and cleaned; NULL without memory. */
static char *clean_text(const char *format, va_list arguments)
{
	char *text = NULL;

	if (vasprintf(&text, format, arguments) < 0)
		return NULL;
	cni_printable(text, "\n");
	return text;
}

int output_json(const json_t *value, struct cni_error *err)
{
	/* ASCII: what a terminal obeys stands as \uNNNN, which is the same to a parser. */
	if (json_dumpf(value, stdout, JSON_INDENT(4) | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) ||
	    putchar('\n') == EOF)
		return cni_error_set(err, CNI_ERROR_IO, "cannot write to stdout: %s",
				     strerror(errno));
	return output_flush(err);
}

void output_text(const char *format, ...)
{
	cleanup_free char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	text = clean_text(format, arguments);
	va_end(arguments);
	fputs(text ? text : "out of memory\n", stdout);
}

int output_flush(struct cni_error *err)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write to stdout: %s", strerror(errno));
}

static void write_line(const char *prefix, const char *format, va_list arguments)
{
	cleanup_free char *text = clean_text(format, arguments);

	fprintf(stderr, "%s%s\n", prefix, text ? text : "out of memory");
}

void output_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line("cnirun: warning: ", format, arguments);
	va_end(arguments);
}

static void write_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void write_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line("cnirun: ", format, arguments);
	va_end(arguments);
}

void output_error(const struct cni_error *err)
{
	const char *details = cni_error_details(err);

	write_error("%s%s%s", cni_error_message(err), *details ? "; " : "", details);
}
