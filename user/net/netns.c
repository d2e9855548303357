/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netns.c - network namespaces: opening, telling apart, entering for a moment. */
#include "net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"

#define OWN_NETNS "/proc/self/ns/net"

int netns_open(const char *path, struct cni_error *err)
{
	/* NONBLOCK: the path may name a FIFO or a device, which must not hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
				     "CNI_NETNS \"%s\" does not open: %s", path, strerror(errno));
	/* ENOTTY for whatever is not a namespace at all. */
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
		close(fd);
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
				     "CNI_NETNS \"%s\" is not a network namespace", path);
	}
	return fd;
}

bool netns_is_own(const char *path)
{
	struct stat theirs, ours;

	return !stat(path, &theirs) && !stat(OWN_NETNS, &ours) && theirs.st_dev == ours.st_dev &&
	       theirs.st_ino == ours.st_ino;
}

int netns_call(int netns, int (*function)(void *context, struct cni_error *err), void *context,
	       struct cni_error *err)
{
	cleanup_close int home = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	int result;

	if (home < 0)
		return cni_error_set(err, CNI_ERROR_IO, OWN_NETNS " does not open: %s",
				     strerror(errno));
	if (setns(netns, CLONE_NEWNET))
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
				     "cannot enter the container's network namespace: %s",
				     strerror(errno));
	result = function(context, err);
	if (setns(home, CLONE_NEWNET))
		abort();
	return result;
}
