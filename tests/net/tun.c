/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tun.c - a wire between two tun devices, one in this network namespace and one in another. Packets
 * have no link header, as those of a VPN or a modem.
 */
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool.h"

#define PACKET_SIZE 65536

const char tool_usage[] =
	"tun NAME NETNS-PATH PEER-NAME [ARPHRD]\n"
	"     returns when both devices exist; a process in the background copies packets until\n"
	"     it is killed or a device is removed\n"
	"     ARPHRD: the type number of the device NAME, instead of that of \"none\"\n";

static int open_tun(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die("/dev/net/tun");
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, TUNSETIFF, &request))
		die(name);
	return fd;
}

static int open_tun_in(const char *netns, const char *name)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(netns);
	close(fd);
	return open_tun(name);
}

/* A device that is not up yet refuses packets; they are lost. */
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
		die_usage();
	here = open_tun(argv[1]);
	if (argc == 5 && ioctl(here, TUNSETLINK, parse_number(argv[4], 0, 65535)))
		die("TUNSETLINK");
	there = open_tun_in(argv[2], argv[3]);
	if (daemon(1, 0))
		die("daemon");
	copy(here, there);
}
