/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.c - the one error of a run: setting, wrapping, reading.
 */
#include "cni/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL where memory is short; readers of the error put up with that. */
static char *text_format(const char *format, va_list arguments)
{
	char *text = NULL;

	if (vasprintf(&text, format, arguments) < 0)
		return NULL;
	return text;
}

int cni_error_set(struct cni_error *err, int code, const char *format, ...)
{
	va_list arguments;
	char *message;

	/* Formatted before the release: the arguments may quote the old message. */
	va_start(arguments, format);
	message = text_format(format, arguments);
	va_end(arguments);

	cni_error_release(err);
	err->code = code;
	err->message = message;
	return -1;
}

int cni_error_set_details(struct cni_error *err, const char *format, ...)
{
	va_list arguments;
	char *details;

	va_start(arguments, format);
	details = text_format(format, arguments);
	va_end(arguments);

	free(err->details);
	err->details = details;
	return -1;
}

int cni_error_wrap(struct cni_error *err, const char *format, ...)
{
	va_list arguments;
	char *message = NULL;
	char *prefix;

	va_start(arguments, format);
	prefix = text_format(format, arguments);
	va_end(arguments);

	if (prefix && asprintf(&message, "%s: %s", prefix, cni_error_message(err)) >= 0) {
		free(err->message);
		err->message = message;
	}
	free(prefix);
	return -1;
}

int cni_error_no_memory(struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "out of memory");
}

const char *cni_error_message(const struct cni_error *err)
{
	return err->message && *err->message ? err->message : "out of memory";
}

const char *cni_error_details(const struct cni_error *err)
{
	return err->details ? err->details : "";
}

void cni_error_release(struct cni_error *err)
{
	free(err->message);
	free(err->details);
	*err = (struct cni_error){0};
}
