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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/cleanup.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

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

int netns_is_own(int netns, bool *own, struct cni_error *err)
{
	struct stat theirs, ours;

	if (fstat(netns, &theirs) || stat(OWN_NETNS, &ours))
		return cni_error_set(err, CNI_ERROR_IO, "cannot look at " OWN_NETNS ": %s",
				     strerror(errno));
	*own = theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
	return 0;
}

int netns_get_cookie(uint64_t *cookie, struct cni_error *err)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*cookie);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &size))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the kernel does not tell the network namespace's cookie (%s);"
				     " Linux 5.15 or newer is needed",
				     strerror(errno));
	return 0;
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
