/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* output.c - what cnirun and cni-ipam say: results on stdout, everything else on stderr. */
#include "runtimes/cnirun/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/json.h"
#include "lib/text.h"

/* Formatted and cleaned. */
static char *clean_text(const char *format, va_list arguments)
{
	char *text = cni_format_list(format, arguments);

	cni_printable(text, "\n");
	return text;
}

int output_json(const json_t *value, struct cni_error *err)
{
	/* In ASCII, control characters are \uNNNN, which a terminal does not obey. */
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
	fputs(text, stdout);
}

int output_flush(struct cni_error *err)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write to stdout: %s", strerror(errno));
}

void output_warn(const char *format, ...)
{
	cleanup_free char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	text = clean_text(format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s: warning: %s\n", program_invocation_short_name, text);
}

void output_error(struct cni_error *err)
{
	cleanup_free char *text = cni_format("%s", cni_error_whole(err));

	cni_printable(text, "\n");
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

int output_main(int argc, char **argv, output_run *run, void (*report)(struct cni_error *err))
{
	struct cni_error err = {0};
	int failed;

	standard_streams_guard();
	cni_json_begin();
	failed = run(argc, argv, &err);
	if (failed)
		report(&err);
	cni_error_release(&err);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
