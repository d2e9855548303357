/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* error.c - the one error of a run: setting, wrapping, reading. */
#include "lib/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/text.h"

int cni_error_set(struct cni_error *err, int code, const char *format, ...)
{
	va_list arguments;
	char *message;

	if (!err)
		return -1;
	/* Formatted before the release: the arguments may quote the old message. */
	va_start(arguments, format);
	message = cni_format_list(format, arguments);
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

	if (!err)
		return -1;
	va_start(arguments, format);
	details = cni_format_list(format, arguments);
	va_end(arguments);

	free(err->details);
	err->details = details;
	return -1;
}

int cni_error_wrap(struct cni_error *err, const char *format, ...)
{
	cleanup_free char *prefix = NULL;
	va_list arguments;
	char *message;

	if (!err)
		return -1;
	va_start(arguments, format);
	prefix = cni_format_list(format, arguments);
	va_end(arguments);

	message = cni_format("%s: %s", prefix, cni_error_message(err));
	free(err->message);
	err->message = message;
	return -1;
}

/* Moves the details into the message. */
const char *cni_error_whole(struct cni_error *err)
{
	if (*cni_error_details(err))
		cni_error_set(err, err->code, "%s; %s", cni_error_message(err),
			      cni_error_details(err));
	return cni_error_message(err);
}

int cni_error_move(struct cni_error *to, struct cni_error *from)
{
	if (!to)
		return -1;
	*to = *from;
	*from = (struct cni_error){0};
	return -1;
}

static void join_errors(struct cni_error *all, struct cni_error *one, const char *separator)
{
	cni_error_whole(all);
	cni_error_whole(one);
	if (!cni_error_is_set(all)) {
		cni_error_move(all, one);
		return;
	}
	cni_error_set(all, all->code, "%s%s%s", cni_error_message(all), separator,
		      cni_error_message(one));
	cni_error_release(one);
}

void cni_error_join(struct cni_error *all, struct cni_error *one)
{
	join_errors(all, one, "\n");
}

int cni_error_chain(struct cni_error *all, struct cni_error *one)
{
	if (all)
		join_errors(all, one, "; ");
	cni_error_release(one);
	return -1;
}

bool cni_error_is_set(const struct cni_error *err)
{
	return err->code || err->message;
}

const char *cni_error_message(const struct cni_error *err)
{
	return err->message && *err->message ? err->message : "unknown error";
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
