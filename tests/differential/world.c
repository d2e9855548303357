/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../net/tool.h"

/* A packet passes this many queues at most: of veths, of loopback, of ARP's question and answer. */
#define BARRIER_ROUNDS 8
#define BARRIER_TYPE 0x88b5 /* for local experiments, IEEE 802 */

struct world worlds[WORLDS];
const char *const end_names[] = {"client", "server", "web", "victim", "named", "plain", "host"};
const char *const world_names[] = {"portmap", "ours"};
static const char *const plugins[] = {"portmap", "bpf-portmap"};
static int own_netns = -1, barrier_near, barrier_far;

static void enter(int netns)
{
	if (setns(netns, CLONE_NEWNET))
		die("setns");
}

void host_enter(const struct world *world)
{
	enter(world->host);
}

void host_leave(void)
{
	enter(own_netns);
}

static int open_packet(const char *interface, uint16_t type, bool receives_header)
{
	struct sockaddr_ll local = {.sll_family = AF_PACKET, .sll_protocol = htons(type)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1,
	    size = 4 << 20;

	local.sll_ifindex = (int)if_nametoindex(interface);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    (receives_header && setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one))) ||
	    bind(fd, (struct sockaddr *)&local, sizeof(local)))
		die(interface);
	return fd;
}

void barrier_open(const char *near, const char *far)
{
	own_netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	barrier_near = open_packet(near, 0, false);
	barrier_far = open_packet(far, BARRIER_TYPE, false);
}

/* "endpoint NAME MAC GATEWAY-MAC IPV4 IPV6" */
static void read_endpoint(struct world *world, const char *line)
{
	char name[16], mac[18], gateway[18], v4[48], v6[48], path[64];
	struct endpoint *endpoint = world->ends;

	if (sscanf(line, "endpoint %15s %17s %17s %47s %47s", name, mac, gateway, v4, v6) != 5) {
		fprintf(stderr, "differential: world.sh says: %s\n", line);
		exit(2);
	}
	while (strcmp(end_names[endpoint - world->ends], name))
		endpoint++;
	for (int i = 0; i < 6; i++) {
		endpoint->mac[i] = (uint8_t)strtol(mac + 3 * i, NULL, 16);
		endpoint->gateway[i] = (uint8_t)strtol(gateway + 3 * i, NULL, 16);
	}
	endpoint->address[0] = address_of(v4);
	endpoint->address[1] = address_of(v6);
	if (endpoint->fd)
		close(endpoint->fd);
	snprintf(path, sizeof(path), "/proc/%d/root/run/netns/%s", world->pid, name);
	if (!endpoint->netns)
		endpoint->netns = open(path, O_RDONLY | O_CLOEXEC);
	enter(endpoint->netns);
	endpoint->fd = open_packet("eth0", ETH_P_ALL, true);
	host_leave();
}

/* Reads lines of world.sh to `done`. */
static bool read_answer(struct world *world)
{
	char line[256];
	size_t size = 0;

	while (read(world->answers, line + size, 1) == 1 && size < sizeof(line) - 1) {
		if (line[size++] != '\n')
			continue;
		line[size - 1] = 0;
		if (!strcmp(line, "done"))
			return true;
		read_endpoint(world, line);
		size = 0;
	}
	return false;
}

static void start(struct world *world, const char *script, const char *plugin)
{
	int input[2], output[2];
	cpu_set_t all;

	if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC))
		die("pipe");
	world->pid = fork();
	if (!world->pid) {
		/* Only who sends packets stays on one CPU. */
		memset(&all, 0xff, sizeof(all));
		sched_setaffinity(0, sizeof(all), &all);
		dup2(input[0], 0);
		dup2(output[1], 1);
		execlp("unshare", "unshare", "--net", "--mount", "bash", script, plugin, NULL);
		die("unshare");
	}
	close(input[0]);
	close(output[1]);
	world->commands = input[1];
	world->answers = output[0];
}

bool worlds_make(const char *script)
{
	bool made = true;

	memset(worlds, 0, sizeof(worlds));
	for (int i = 0; i < WORLDS; i++)
		start(&worlds[i], script, plugins[i]);
	for (int i = 0; i < WORLDS; i++) {
		struct world *world = &worlds[i];
		char path[64];

		made = read_answer(world) && made;
		snprintf(path, sizeof(path), "/proc/%d/ns/net", world->pid);
		world->host = open(path, O_RDONLY | O_CLOEXEC);
		if (!made)
			continue;
		host_enter(world);
		world->counters =
			open("/proc/thread-self/net/stat/nf_conntrack", O_RDONLY | O_CLOEXEC);
		host_leave();
	}
	return made;
}

void worlds_end(void)
{
	for (int i = 0; i < WORLDS; i++) {
		struct world *world = &worlds[i];

		for (int end = 0; end < ENDS; end++) {
			if (world->ends[end].fd)
				close(world->ends[end].fd);
			if (world->ends[end].netns)
				close(world->ends[end].netns);
		}
		close(world->counters);
		close(world->host);
		close(world->commands);
		close(world->answers);
	}
	for (int i = 0; i < WORLDS; i++)
		waitpid(worlds[i].pid, NULL, 0);
}

bool worlds_command(const char *command)
{
	bool done = true;

	for (int i = 0; i < WORLDS; i++)
		if (dprintf(worlds[i].commands, "%s\n", command) < 0)
			return false;
	for (int i = 0; i < WORLDS; i++)
		done = read_answer(&worlds[i]) && done;
	return done;
}

/* A column of each CPU's line, below the line with the names */
unsigned long world_counter(const struct world *world, enum counter column)
{
	char text[4096], *line = text;
	ssize_t size = pread(world->counters, text, sizeof(text) - 1, 0);
	unsigned long sum = 0;

	text[size < 0 ? 0 : size] = 0;
	while ((line = strchr(line, '\n')) && line[1]) {
		char *at = ++line;

		for (int i = 0; i < (int)column; i++)
			strtoul(at, &at, 16);
		sum += strtoul(at, NULL, 16);
	}
	return sum;
}

enum end end_of(const struct world *world, const struct in6_addr *address)
{
	for (int end = 0; end < ENDS; end++)
		if (same_address(&world->ends[end].address[!is_v4(address)], address))
			return (enum end)end;
	return HOST;
}

void world_send(struct world *world, enum end from, const struct packet *packet,
		const uint8_t *bytes, size_t size)
{
	struct endpoint *sender = &world->ends[from];
	enum end to = end_of(world, &packet->destination);
	const uint8_t *neighbour =
		from >= WEB && to >= WEB && to < ENDS ? world->ends[to].mac : sender->gateway;
	struct virtio_net_hdr offload = {0};
	struct ether_header ethernet;
	struct iovec parts[] = {
		{&offload, sizeof(offload)}, {&ethernet, sizeof(ethernet)}, {(void *)bytes, size}};

	memcpy(ethernet.ether_dhost, neighbour, 6);
	memcpy(ethernet.ether_shost, sender->mac, 6);
	ethernet.ether_type = htons(is_v4(&packet->source) ? ETHERTYPE_IP : ETHERTYPE_IPV6);
	if (writev(sender->fd, parts, 3) < 0)
		die("sending a frame");
}

struct arrival *world_note(struct world *world, enum end end)
{
	if (world->count == MAX_ARRIVALS) {
		fprintf(stderr, "differential: too many arrivals\n");
		exit(2);
	}
	memset(&world->arrivals[world->count], 0, sizeof(struct arrival));
	world->arrivals[world->count].end = end;
	return &world->arrivals[world->count++];
}

static struct fragments *fragments_of(struct world *world, enum end end,
				      const struct headers *headers)
{
	struct fragments *found = world->fragments;

	for (; found < world->fragments + world->fragments_count; found++)
		if (found->end == end && found->first.fragment_id == headers->fragment_id &&
		    same_address(&found->first.packet.source, &headers->packet.source) &&
		    same_address(&found->first.packet.destination, &headers->packet.destination))
			return found;
	if (world->fragments_count == 16)
		return NULL;
	memset(found, 0, sizeof(*found));
	found->first = *headers;
	found->end = end;
	world->fragments_count++;
	return found;
}

/* What is not complete when the step ends, no receiver could use: it does not count. */
static void add_fragment(struct world *world, enum end end, const struct headers *headers)
{
	struct fragments *fragments = fragments_of(world, end, headers);
	size_t last = headers->part.offset + headers->part.size;
	struct arrival *arrival;

	if (!fragments || last > sizeof(fragments->bytes) || fragments->total == SIZE_MAX)
		return;
	memcpy(fragments->bytes + headers->part.offset, headers->bytes, headers->part.size);
	for (size_t at = headers->part.offset / 8; at * 8 < last; at++)
		fragments->seen[at / 64] |= 1ull << at % 64;
	if (!headers->part.more)
		fragments->total = last;
	if (!fragments->total)
		return;
	for (size_t at = 0; at * 8 < fragments->total; at++)
		if (!(fragments->seen[at / 64] >> at % 64 & 1))
			return;
	arrival = world_note(world, end);
	arrival->packet = fragments->first.packet;
	packet_read_transport(&arrival->packet, fragments->bytes, fragments->total, false, false);
	fragments->total = SIZE_MAX;
}

static void add_frame(struct world *world, enum end end, const uint8_t *bytes, size_t size,
		      bool partial)
{
	struct headers headers;
	struct arrival *arrival;

	if (!packet_headers(&headers, bytes, size))
		return;
	if (headers.part.offset || headers.part.more) {
		add_fragment(world, end, &headers);
		return;
	}
	arrival = world_note(world, end);
	arrival->packet = headers.packet;
	packet_read_transport(&arrival->packet, headers.bytes, headers.part.size, partial, false);
	/* What the kernel does by itself between neighbours */
	if (arrival->packet.protocol == IPPROTO_ICMP ? arrival->packet.icmp >= ICMP_HOST_UNREACHABLE
						     : (arrival->packet.protocol != IPPROTO_TCP &&
							arrival->packet.protocol != IPPROTO_UDP))
		world->count--;
}

static void collect(struct world *world)
{
	struct pollfd polls[ENDS];

	for (int end = 0; end < ENDS; end++)
		polls[end] = (struct pollfd){.fd = world->ends[end].fd, .events = POLLIN};
	if (poll(polls, ENDS, 0) <= 0)
		return;
	for (int end = 0; end < ENDS; end++) {
		struct virtio_net_hdr offload;
		uint8_t frame[4096];
		struct iovec parts[] = {{&offload, sizeof(offload)}, {frame, sizeof(frame)}};
		ssize_t size;

		if (!polls[end].revents)
			continue;
		while ((size = readv(world->ends[end].fd, parts, 2)) > 0)
			if (size > (ssize_t)(sizeof(offload) + ETH_HLEN) &&
			    !memcmp(frame, world->ends[end].mac, ETH_ALEN))
				add_frame(world, (enum end)end, frame + ETH_HLEN,
					  (size_t)size - sizeof(offload) - ETH_HLEN,
					  offload.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM);
	}
}

/* All runs on one CPU, whose queue of received packets is served in its order: when a frame has
 * come through, so has all that was queued before it, and the next frame is behind what that has
 * sent. */
void worlds_settle(void)
{
	uint8_t frame[60] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, BARRIER_TYPE >> 8, BARRIER_TYPE & 0xff};
	struct pollfd far = {.fd = barrier_far, .events = POLLIN};

	for (int round = 0; round < BARRIER_ROUNDS; round++) {
		if (write(barrier_near, frame, sizeof(frame)) < 0)
			die("barrier");
		if (poll(&far, 1, 10000) != 1 || read(barrier_far, frame, sizeof(frame)) < 0)
			die("the barrier's frame does not arrive");
	}
	for (int i = 0; i < WORLDS; i++)
		collect(&worlds[i]);
}
