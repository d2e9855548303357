/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* taken_ports.c - host ports that somebody asks for and a process of the host has. */
#include "plugin/taken_ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/request.h"

/* So many are told of one process: 8000-8999/tcp is one. */
#define MAX_TOLD 8

/* A specific address and any of its family overlap, two specific ones if they are the same. */
static bool addresses_overlap(const struct port_claim *claim, const struct host_socket *listener)
{
	const uint8_t *wanted = claim->key.host_address, *has = listener->address;

	if (cni_address_is_ipv4(wanted) != cni_address_is_ipv4(has))
		return listener->both_families;
	/* No packet from outside has such a destination. */
	if (cni_address_is_any(wanted) && cni_address_is_loopback(has))
		return claim->localhost;
	return cni_address_is_any(wanted) || cni_address_is_any(has) ||
	       !memcmp(wanted, has, CNI_ADDRESS_SIZE);
}

/* The claims of one protocol and port lie together: only the address comes behind. */
static int compare_port(const struct port_claim *claim, const struct portmap_key *wanted)
{
	return memcmp(&claim->key, wanted, offsetof(struct portmap_key, host_address));
}

static size_t first_of_port(const struct port_claim *claims, size_t count,
			    const struct portmap_key *wanted)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_port(&claims[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool claims_take_from(const struct port_claim *claims, size_t count,
		      const struct host_socket *listener)
{
	struct portmap_key wanted = {.protocol = listener->protocol, .host_port = listener->port};

	for (size_t i = first_of_port(claims, count, &wanted);
	     i < count && !compare_port(&claims[i], &wanted); i++)
		if (addresses_overlap(&claims[i], listener))
			return true;
	return false;
}

static int compare_holders(const struct taken_port *a, const struct taken_port *b)
{
	return a->holder.pid < b->holder.pid ? -1 : a->holder.pid > b->holder.pid;
}

static int compare_places(const struct taken_port *a, const struct taken_port *b)
{
	int addresses = memcmp(a->socket.address, b->socket.address, CNI_ADDRESS_SIZE);

	return addresses ? addresses : a->socket.protocol - b->socket.protocol;
}

static int compare_taken(const void *left, const void *right)
{
	const struct taken_port *a = left, *b = right;
	int holders = compare_holders(a, b);
	int places = holders ? holders : compare_places(a, b);

	return places ? places : a->socket.port - b->socket.port;
}

size_t taken_ports_sort(struct taken_port *ports, size_t count)
{
	size_t kept = 0;

	qsort(ports, count, sizeof(*ports), compare_taken);
	/* SO_REUSEPORT: each of a server's workers has a socket. */
	for (size_t i = 0; i < count; i++)
		if (!kept || compare_taken(&ports[kept - 1], &ports[i]))
			ports[kept++] = ports[i];
	return kept;
}

size_t taken_ports_of_first(const struct taken_port *ports, size_t count)
{
	size_t same = 1;

	while (same < count && !compare_holders(&ports[0], &ports[same]))
		same++;
	return same;
}

bool taken_ports_are_loopback(const struct taken_port *ports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!cni_address_is_loopback(ports[i].socket.address))
			return false;
	return true;
}

struct text {
	char *end;
	size_t left;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text->end, text->left, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= text->left)
		length = text->left ? (int)text->left - 1 : 0;
	text->end += length;
	text->left -= (size_t)length;
}

static void add_holder(struct text *text, const struct socket_process *holder)
{
	if (holder->pid)
		add(text, "%s (pid %d)", holder->name, (int)holder->pid);
	else
		add(text, "a process that /proc does not show, or the kernel,");
}

/* How many from here on are one range of ports at the same address. */
static size_t range_length(const struct taken_port *ports, size_t count)
{
	size_t length = 1;

	while (length < count && !compare_places(&ports[0], &ports[length]) &&
	       ports[length].socket.port == ports[0].socket.port + length)
		length++;
	return length;
}

/* "80/tcp, 8000-8099/tcp at 0.0.0.0"; the address behind the last one at it. */
static void add_range(struct text *text, const struct taken_port *ports, size_t length,
		      bool is_last_at_address)
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	const struct host_socket *first = &ports[0].socket;

	add(text, "%u", first->port);
	if (length > 1)
		add(text, "-%u", ports[length - 1].socket.port);
	add(text, "/%s", conf_protocol_name(first->protocol));
	if (is_last_at_address)
		add(text, " at %s", cni_address_format(first->address, address));
}

static bool is_another_address(const struct taken_port *a, const struct taken_port *b)
{
	return memcmp(a->socket.address, b->socket.address, CNI_ADDRESS_SIZE) != 0;
}

void taken_ports_describe(const struct taken_port *ports, size_t count,
			  char buffer[TAKEN_PORTS_TEXT_SIZE])
{
	struct text text = {buffer, TAKEN_PORTS_TEXT_SIZE};
	size_t told = 0, length;

	add_holder(&text, &ports[0].holder);
	add(&text, " already holds host port%s ", count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i += length) {
		size_t next;

		length = range_length(&ports[i], count - i);
		next = i + length;
		if (told++)
			add(&text, ", ");
		if (told > MAX_TOLD) {
			add(&text, "and %zu more", count - i);
			return;
		}
		add_range(&text, &ports[i], length,
			  next == count || told == MAX_TOLD ||
				  is_another_address(&ports[i], &ports[next]));
	}
}
