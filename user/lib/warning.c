/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* warning.c - non-fatal problems, a line each on stderr and in the system's log. */
#include "lib/warning.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/text.h"

#define LINE_SIZE 1024

/* In the form of syslog(3), which would wait for a log daemon that does not read, and with it
 * whoever waits for a lock that is held here. Without the time: daemons put their own. */
static void log_line(const char *text)
{
	const struct sockaddr_un daemon = {.sun_family = AF_UNIX, .sun_path = _PATH_LOG};
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char line[LINE_SIZE + 64];
	int length = snprintf(line, sizeof(line), "<%d>bpf-portmap[%d]: %s",
			      LOG_DAEMON | LOG_WARNING, (int)getpid(), text);

	sendto(fd, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL,
	       (const struct sockaddr *)&daemon, sizeof(daemon));
}

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
	log_line(text);
}
