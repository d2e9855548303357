/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* warning.c - non-fatal problems, a line each on stderr and in the system's log. */
#include "lib/warning.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "lib/text.h"

#define LINE_SIZE 1024

void warning(const char *format, ...)
{
	char text[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* They quote configurations, names and rules of others. */
	cni_printable(text, "");
	/* One write, so that lines of parallel runs into one log stay whole. */
	fprintf(stderr, "bpf-portmap: warning: %s\n", text);
	openlog("bpf-portmap", LOG_PID, LOG_DAEMON);
	syslog(LOG_WARNING, "%s", text);
	closelog();
}
