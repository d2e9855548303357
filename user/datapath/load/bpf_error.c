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
#include "net/text_file.h"

static bool file_has(const char *path, const char *text)
{
	char content[256];

	text_file_read(path, content, sizeof(content));
	return strstr(content, text) != NULL;
}

/* The initial user namespace maps everything to itself. */
static bool in_user_namespace(void)
{
	return !file_has("/proc/self/uid_map", "4294967295");
}

const char *bpf_error_obstacle(void)
{
	if (in_user_namespace())
		return "bpf-portmap runs rootless, in a user namespace, where the kernel allows "
		       "no BPF programs; run it as root of the host";
	if (file_has("/sys/kernel/security/lockdown", "[confidentiality]"))
		return "the kernel is locked down (confidentiality); boot without lockdown or "
		       "with lockdown=integrity";
	return NULL;
}

static const char *permission_reason(void)
{
	const char *obstacle = bpf_error_obstacle();

	return obstacle ? obstacle
			: "the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN are needed";
}

/* Why, in a sentence, or "". */
static const char *reason_of(int errno_value)
{
	switch (errno_value) {
	case EPERM:
	case EACCES:
		return permission_reason();
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
	int length;

	va_start(arguments, format);
	length = vasprintf(&what, format, arguments);
	va_end(arguments);
	if (length < 0) {
		what = NULL;
		return cni_error_no_memory(err);
	}
	if (!*reason)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "%s: %s", what,
				     strerror(errno_value));
	/* In the message, not the details: some runtimes show only the former. */
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "%s: %s: %s", what,
			     strerror(errno_value), reason);
}
