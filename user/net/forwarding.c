/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* forwarding.c - whether the host is a router. */
#include "net/forwarding.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/cleanup.h"

bool forwarding_is_on(bool ipv4, const char *interface)
{
	cleanup_close int fd = -1;
	char path[64], value = '1';

	snprintf(path, sizeof(path), "/proc/sys/net/ipv%c/conf/%s/forwarding", ipv4 ? '4' : '6',
		 interface);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, &value, 1) != 1 || value != '0';
}
