/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host.c - makes the small host: namespaces, devices, addresses, routes, sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define MAX_SOCKETS 64

extern char **environ;

static int sockets[MAX_SOCKETS];
static int socket_count;

static const char devices[] = "link set lo up\n"
			      "link add uplink0 index 10 address 02:00:00:00:00:10 type veth"
			      " peer name wire0 index 110 address 02:00:00:00:01:10\n"
			      "link add uplink1 index 11 address 02:00:00:00:00:11 type veth"
			      " peer name wire1 index 111 address 02:00:00:00:01:11\n"
			      "link add bridge0 index 12 address 02:00:00:00:00:12 type bridge\n"
			      "link add veth1 index 13 address 02:00:00:00:00:13 type veth"
			      " peer name inside1 index 113 address 02:00:00:00:01:13\n"
			      "link add veth2 index 14 address 02:00:00:00:00:14 type veth"
			      " peer name inside2 index 114 address 02:00:00:00:01:14\n"
			      "link add veth3 index 15 address 02:00:00:00:00:15 type veth"
			      " peer name inside3 index 115 address 02:00:00:00:01:15\n"
			      "link add veth4 index 16 address 02:00:00:00:00:16 type veth"
			      " peer name inside4 index 116 address 02:00:00:00:01:16\n"
			      "link add veth5 index 17 address 02:00:00:00:00:17 type veth"
			      " peer name inside5 index 117 address 02:00:00:00:01:17\n"
			      "link add vpn0 index 18 address 02:00:00:00:00:18 type veth"
			      " peer name wire2 index 118 address 02:00:00:00:01:18\n"
			      "link set veth1 master bridge0\nlink set veth2 master bridge0\n"
			      "link set veth3 master bridge0\nlink set veth5 master bridge0\n"
			      "link set wire0 up\nlink set wire1 up\nlink set wire2 up\n"
			      "link set inside1 up\nlink set inside2 up\nlink set inside3 up\n"
			      "link set inside4 up\nlink set inside5 up\n"
			      "link set uplink0 up\nlink set uplink1 up\nlink set vpn0 up\n"
			      "link set veth1 up\nlink set veth2 up\nlink set veth3 up\n"
			      "link set veth4 up\nlink set veth5 up\nlink set bridge0 up\n";

static const char addresses[] =
	"addr add 192.0.2.1/24 dev uplink0\naddr add 192.0.2.2/24 dev uplink0\n"
	"addr add 203.0.113.1/24 dev uplink1\naddr add 172.16.0.1/24 dev vpn0\n"
	"addr add 10.10.0.1/16 dev bridge0\naddr add 10.20.0.1/32 dev veth4\n"
	"addr add 2001:db8:1::1/64 dev uplink0 nodad\n"
	"addr add 2001:db8:2::1/64 dev uplink1 nodad\n"
	"addr add fd00:10::1/64 dev bridge0 nodad\naddr add fd00:20::1/128 dev veth4 nodad\n"
	"route add 10.20.0.2/32 dev veth4\nroute add fd00:20::2/128 dev veth4\n"
	"neigh add 192.0.2.254 lladdr 02:00:00:00:02:54 dev uplink0\n"
	"neigh add 2001:db8:1::fe lladdr 02:00:00:00:02:54 dev uplink0\n"
	"neigh add 10.10.0.2 lladdr 02:00:00:00:01:13 dev bridge0\n"
	"neigh add fd00:10::2 lladdr 02:00:00:00:01:13 dev bridge0\n"
	"neigh add 10.20.0.2 lladdr 02:00:00:00:01:16 dev veth4\n"
	"neigh add fd00:20::2 lladdr 02:00:00:00:01:16 dev veth4\n"
	"route add default via 192.0.2.254 dev uplink0\n"
	"route add default via 2001:db8:1::fe dev uplink0\n";

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

void host_configure(const char *batch)
{
	char *const arguments[] = {"ip", "-batch", "-", NULL};
	posix_spawn_file_actions_t actions;
	int pipe_ends[2], status;
	pid_t child;

	if (pipe2(pipe_ends, O_CLOEXEC) || posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, pipe_ends[0], STDIN_FILENO))
		err(1, "pipe to ip");
	errno = posix_spawnp(&child, "ip", &actions, NULL, arguments, environ);
	if (errno)
		err(1, "cannot start ip; install iproute2");
	posix_spawn_file_actions_destroy(&actions);
	close(pipe_ends[0]);
	if (write(pipe_ends[1], batch, strlen(batch)) != (ssize_t)strlen(batch))
		err(1, "writing to ip");
	close(pipe_ends[1]);
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "ip failed");
}

void host_create(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		err(1, "cannot make namespaces; run this as root");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("bpf", "/sys/fs/bpf", "bpf", 0, NULL))
		err(1, "mounting a private bpffs");
	write_file("/proc/sys/net/ipv4/conf/all/forwarding", "1");
	write_file("/proc/sys/net/ipv4/conf/default/forwarding", "1");
	write_file("/proc/sys/net/ipv6/conf/all/forwarding", "1");
	write_file("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	host_configure(devices);
	host_configure(addresses);
}

bool host_set_conntrack_stream(const char *seconds)
{
	const char *path = "/proc/sys/net/netfilter/nf_conntrack_udp_timeout_stream";

	if (access(path, W_OK))
		return false;
	write_file(path, seconds);
	return true;
}

void host_set_forwarding(const char *device, bool on)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/forwarding", device);
	write_file(path, on ? "1" : "0");
}

void host_forget_routes(const struct bpf_map *answers)
{
	size_t size = (bpf_map__value_size(answers) + 7) / 8 * 8;
	void *nothing = calloc((size_t)libbpf_num_possible_cpus(), size);

	for (uint32_t place = 0; nothing && place < bpf_map__max_entries(answers); place++)
		if (bpf_map_update_elem(bpf_map__fd(answers), &place, nothing, BPF_ANY))
			err(1, "clearing %s", bpf_map__name(answers));
	free(nothing);
}

const uint8_t *host_mac(enum device device)
{
	static uint8_t mac[6] = {2, 0, 0, 0, 0, 0};

	mac[5] = (uint8_t)(device / 10 << 4 | device % 10);
	return mac;
}

const uint8_t *host_neighbour_mac(void)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 2, 0x54};

	return mac;
}

const uint8_t *host_container_two_mac(void)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 1, 0x14};

	return mac;
}

const uint8_t *host_container_mac(enum device veth)
{
	static uint8_t mac[6] = {2, 0, 0, 0, 1, 0};

	mac[5] = host_mac(veth)[5];
	return mac;
}

static socklen_t socket_address(struct sockaddr_storage *storage, const char *text, uint16_t port)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)storage;
	struct sockaddr_in *v4 = (struct sockaddr_in *)storage;

	memset(storage, 0, sizeof(*storage));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
		errx(1, "not an address: %s", text);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof(*v6);
}

static void set_option(int fd, int level, int option)
{
	int yes = 1;

	if (setsockopt(fd, level, option, &yes, sizeof(yes)))
		err(1, "option %d of a socket", option);
}

static void connect_socket(int fd, const struct host_socket *wanted)
{
	struct sockaddr_storage peer;
	socklen_t size = socket_address(&peer, wanted->peer, wanted->peer_port);

	if (connect(fd, (struct sockaddr *)&peer, size))
		err(1, "connecting %s to %s", wanted->address, wanted->peer);
}

void host_open_socket(const struct host_socket *wanted)
{
	struct sockaddr_storage storage;
	socklen_t size = socket_address(&storage, wanted->address, wanted->port);
	bool tcp = wanted->protocol == IPPROTO_TCP;
	int type = tcp ? SOCK_STREAM : SOCK_DGRAM;
	int fd = socket(storage.ss_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		err(1, "socket");
	if (socket_count == MAX_SOCKETS)
		errx(1, "too many sockets");
	sockets[socket_count++] = fd;
	set_option(fd, SOL_SOCKET, SO_REUSEADDR);
	if (wanted->v6_only)
		set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	/* In repair mode connect() sends nothing and the socket is established at once. */
	if (tcp && wanted->peer)
		set_option(fd, IPPROTO_TCP, TCP_REPAIR);
	if (bind(fd, (struct sockaddr *)&storage, size))
		err(1, "binding %s port %u", wanted->address, wanted->port);
	if (wanted->peer)
		connect_socket(fd, wanted);
	else if (tcp && listen(fd, 8))
		err(1, "listening on %s port %u", wanted->address, wanted->port);
}

static int watching = -1;

void host_watch(enum device device)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = device};

	host_watch_end();
	watching = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (watching < 0 || bind(watching, (struct sockaddr *)&address, sizeof(address)))
		err(1, "watching device %d", device);
}

void host_watch_end(void)
{
	if (watching >= 0)
		close(watching);
	watching = -1;
}

size_t host_watched(uint8_t *frame, size_t size, int wait)
{
	struct pollfd readable = {.fd = watching, .events = POLLIN};
	struct sockaddr_ll from;
	socklen_t from_size;
	ssize_t got;

	do {
		from_size = sizeof(from);
		poll(&readable, 1, wait);
		got = recvfrom(watching, frame, size, 0, (struct sockaddr *)&from, &from_size);
	} while (got >= 0 && from.sll_pkttype == PACKET_OUTGOING);
	return got < 0 ? 0 : (size_t)got;
}

void host_close_sockets(void)
{
	while (socket_count > 0)
		close(sockets[--socket_count]);
}
