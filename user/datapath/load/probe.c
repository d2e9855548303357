/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe.c - whether this host could run the programs. */
#include "datapath/load/probe.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "datapath/load/bpffs.h"
#include "datapath/load/bpf_error.h"

#define KERNEL_MAJOR 5
#define KERNEL_MINOR 15

static bool kernel_is_too_old(const char *release)
{
	int kernel_major, kernel_minor;

	if (sscanf(release, "%d.%d", &kernel_major, &kernel_minor) != 2)
		return false;
	return kernel_major < KERNEL_MAJOR ||
	       (kernel_major == KERNEL_MAJOR && kernel_minor < KERNEL_MINOR);
}

/* The look-up needs the capability that the rest needs too, and changes nothing. */
int probe_permission(struct cni_error *err)
{
	__u32 id;

	if (!bpf_prog_get_next_id(0, &id) || errno == ENOENT)
		return 0;
	return bpf_error_set(err, errno, "the kernel refuses bpf()");
}

int probe_kernel(struct cni_error *err)
{
	struct utsname system;

	if (!uname(&system) && kernel_is_too_old(system.release))
		return cni_error_set(err, CNI_ERROR_NOT_AVAILABLE,
				     "this kernel is Linux %s, bpf-portmap needs %d.%d or newer",
				     system.release, KERNEL_MAJOR, KERNEL_MINOR);
	if (probe_permission(err)) {
		err->code = CNI_ERROR_NOT_AVAILABLE;
		return -1;
	}
	if (access(BPFFS, F_OK))
		return cni_error_set(err, CNI_ERROR_NOT_AVAILABLE,
				     "there is no " BPFFS " to pin maps in (%s); is sysfs mounted?",
				     strerror(errno));
	return 0;
}
