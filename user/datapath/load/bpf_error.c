/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf_error.c - what it means when the kernel refuses something about BPF. */
#include "datapath/load/bpf_error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "lib/io.h"

static const char *find_last(const char *text, const char *wanted)
{
	const char *last = NULL;

	for (text = strstr(text, wanted); text; text = strstr(text + 1, wanted))
		last = text;
	return last;
}

/* What the verifier counts comes behind what it says. */
static bool is_figure(const char *line)
{
	static const char *const beginnings[] = {"processed ", "verification time ", "stack depth ",
						 "max_states", "\n"};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(line, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

void load_log_read(const char *log, struct load_log_reason *reason)
{
	static const char prefix[] = "prog '";
	/* "libbpf: prog 'from_uplink': failed to load: -13" */
	const char *name = find_last(log, prefix);
	const char *line = find_last(log, "-- END PROG LOAD LOG --");

	*reason = (struct load_log_reason){0};
	if (name)
		snprintf(reason->program, sizeof(reason->program), "%.*s",
			 (int)strcspn(name + strlen(prefix), "'"), name + strlen(prefix));
	/* The verifier's last line that is no figure, back to where libbpf's own begin. */
	while (line && line > log) {
		for (line--; line > log && line[-1] != '\n'; line--)
			;
		if (!strncmp(line, "libbpf: ", strlen("libbpf: ")))
			return;
		if (is_figure(line))
			continue;
		snprintf(reason->verifier, sizeof(reason->verifier), "%.*s",
			 (int)strcspn(line, "\n"), line);
		return;
	}
}

static bool file_has(const char *path, const char *text)
{
	char content[256];

	text_file_read(path, content, sizeof(content));
	return strstr(content, text) != NULL;
}

const char *bpf_error_obstacle(void)
{
	/* The initial user namespace maps everything to itself. */
	if (!file_has("/proc/self/uid_map", "4294967295"))
		return "bpf-portmap runs rootless, in a user namespace, where the kernel allows "
		       "no BPF programs; run it as root of the host";
	if (file_has("/sys/kernel/security/lockdown", "[confidentiality]"))
		return "the kernel is locked down (confidentiality); boot without lockdown or "
		       "with lockdown=integrity";
	return NULL;
}

/* Why, in a sentence, or "". */
static const char *reason_of(int errno_value)
{
	const char *obstacle;

	switch (errno_value) {
	case EPERM:
	case EACCES:
		obstacle = bpf_error_obstacle();
		return obstacle ? obstacle
				: "the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN are "
				  "needed";
	case ENOSYS:
		return "this kernel has no BPF; Linux 5.15 or newer with CONFIG_BPF_SYSCALL is "
		       "needed";
	case ENOMEM:
		return "not enough memory: raise the memory limit of the service that runs "
		       "containers (MemoryMax of containerd.service, say), or lower "
		       "\"flowEntries\"";
	case EROFS:
		return "the file system is mounted read-only";
	default:
		return "";
	}
}

int bpf_error_set(struct cni_error *err, int errno_value, const char *format, ...)
{
	cleanup_free char *what = NULL;
	const char *reason = reason_of(errno_value);
	va_list arguments;

	va_start(arguments, format);
	what = cni_format_list(format, arguments);
	va_end(arguments);
	/* In the message, not the details: some runtimes show only the former. */
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "%s: %s%s%s", what,
			     strerror(errno_value), *reason ? ": " : "", reason);
}
