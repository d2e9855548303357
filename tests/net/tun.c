/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tun.c - a wire between two tun devices, one here and one in another network
 * namespace: packets without a link header, as a VPN or a modem hands them over.
 *
 * usage: tun NAME NETNS-PATH PEER-NAME [ARPHRD]
 * Returns when both devices are there; a process in the background copies until
 * it is ended or a device goes. ARPHRD: the number that the device NAME says of its
 * link layer, in place of "none".
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PACKET_SIZE 65536

static int open_tun(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, "/dev/net/tun");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request))
		err(1, "making %s", name);
	return fd;
}

static int open_tun_in(const char *netns, const char *name)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(1, "%s", netns);
	close(fd);
	return open_tun(name);
}

/* A device that is not up yet takes nothing: so does a wire without a plug. */
static void copy_packet(int from, int to)
{
	static char packet[PACKET_SIZE];
	ssize_t length = read(from, packet, sizeof(packet));

	if (length < 0)
		exit(0);
	if (write(to, packet, (size_t)length) < 0 && errno != EIO && errno != EINVAL)
		exit(0);
}

static _Noreturn void copy(int one, int other)
{
	struct pollfd ends[2] = {{.fd = one, .events = POLLIN}, {.fd = other, .events = POLLIN}};

	while (poll(ends, 2, -1) > 0) {
		if ((ends[0].revents | ends[1].revents) & (POLLERR | POLLHUP | POLLNVAL))
			break;
		if (ends[0].revents)
			copy_packet(one, other);
		if (ends[1].revents)
			copy_packet(other, one);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int here, there;

	if (argc != 4 && argc != 5)
		errx(2, "usage: tun NAME NETNS-PATH PEER-NAME [ARPHRD]");
	here = open_tun(argv[1]);
	if (argc == 5 && ioctl(here, TUNSETLINK, atoi(argv[4])))
		err(1, "TUNSETLINK %s", argv[4]);
	there = open_tun_in(argv[2], argv[3]);
	if (daemon(1, 0))
		err(1, "cannot go into the background");
	copy(here, there);
}
