/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * taken_ports.h - host ports that somebody asks for and a process of the host has: which
 * these are, and saying so. Without any I/O.
 */
#ifndef PLUGIN_TAKEN_PORTS_H
#define PLUGIN_TAKEN_PORTS_H

#include "net/sockets.h"
#include "net/processes.h"
#include "conf/conf.h"

#define TAKEN_PORTS_TEXT_SIZE 768

struct taken_port {
	struct host_socket socket;
	struct socket_process holder;
};

/* Whether one of the claims, sorted by key, means a packet that the socket would get. */
bool claims_take_from(const struct port_claim *claims, size_t count,
		      const struct host_socket *listener);

/* In the order that they are told in: what a process has lies together. Returns how many
 * are left when those are told once that are alike. */
size_t taken_ports_sort(struct taken_port *ports, size_t count);

/* How many of these, sorted, the first one's process has. */
size_t taken_ports_of_first(const struct taken_port *ports, size_t count);

/* "nginx (pid 77) already holds host ports 80/tcp, 443/tcp at 0.0.0.0", for ports of one
 * process, sorted. Of very many not all are told. */
void taken_ports_describe(const struct taken_port *ports, size_t count,
			  char text[TAKEN_PORTS_TEXT_SIZE]);

/* Whether all of these can be reached from the host alone. */
bool taken_ports_are_loopback(const struct taken_port *ports, size_t count);

#endif
