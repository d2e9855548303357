/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * race_rows.c - several CPUs work on the same connections at once; whatever the order, places,
 * aliases and counts are right in the end.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "row.h"

#define THREADS 2
#define PACKETS 15000
#define CLOSERS 200
#define FIRST_PORT 1000

static atomic_int waiting;

/* Waits until all threads are here. */
static void meet(int round)
{
	atomic_fetch_add(&waiting, 1);
	while (atomic_load(&waiting) < THREADS * round)
		;
}

static void stay_on(int thread)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(thread % cpus, &here);
	sched_setaffinity(0, sizeof(here), &here);
}

static void run_threads(void *(*run)(void *thread))
{
	pthread_t threads[THREADS];

	atomic_store(&waiting, 0);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			errx(1, "making a thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void connect_client(int port)
{
	ARRIVE(TCP(v4_client, port, v4_host, 8080, SYN));
	LEAVE(TCP(v4_container_one, 80, v4_client, port, SYN | ACK));
	ARRIVE(TCP(v4_client, port, v4_host, 8080, ACK));
}

static void *close_side(void *thread)
{
	stay_on((int)(long)thread);
	for (int i = 0; i < CLOSERS; i++) {
		meet(i + 1);
		if (thread)
			LEAVE(TCP(v4_container_one, 80, v4_client, FIRST_PORT + i, FIN | ACK));
		else
			ARRIVE(TCP(v4_client, FIRST_PORT + i, v4_host, 8080, FIN | ACK));
	}
	return NULL;
}

static uint32_t count_of_one(void)
{
	return fixture_share_of(ONE).flows[ACCOUNT_PROVEN];
}

/* Two CPUs see the FINs of the two sides at the same moment. */
static void closing_row(void)
{
	row_begin("two FINs at once close a flow, and it no longer counts");
	host_close_sockets();
	fixture_reset();
	for (int i = 0; i < CLOSERS; i++)
		connect_client(FIRST_PORT + i);
	if (count_of_one() != CLOSERS)
		row_fail("%u are connected", count_of_one());
	run_threads(close_side);
	if (count_of_one() != 0)
		row_fail("%u of %d are not closed", count_of_one(), CLOSERS);
	records_check();
	row_end();
}

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 10;
}

static const unsigned int flags[] = {SYN,       SYN | ACK, ACK, ACK,
				     ACK | PSH, FIN | ACK, RST, RST | ACK};

/* A packet of one of a few connections: mapped, masqueraded, direct, the host's own. */
static void send_any(unsigned int *state)
{
	unsigned int kind = next_random(state) % 8, sort = flags[next_random(state) % 8];
	int port = FIRST_PORT + (int)(next_random(state) % 12);
	int external = 20000 + (int)(next_random(state) % 4);
	const struct packet packets[] = {
		TCP(v4_client, port, v4_host, 8080, sort),
		TCP(v4_container_one, 80, v4_client, port, sort),
		TCP(v4_container_one, port, v4_server, 443, sort),
		TCP(v4_server, 443, v4_host, external, sort),
		UDP(v4_container_two, port, v4_server, 53),
		UDP(v4_server, 53, v4_host, external),
		TCP(v4_client, port, v4_container_one, 80, sort),
		UDP(v4_host, external, v4_server, 53),
	};
	static const enum hook hooks[] = {FROM_UPLINK, TO_UPLINK,   TO_UPLINK,   FROM_UPLINK,
					  TO_UPLINK,   FROM_UPLINK, FROM_UPLINK, TO_UPLINK};

	if (kind == 7)
		row_send_of_host(hooks[kind], UPLINK, &packets[kind]);
	else
		row_send(hooks[kind], UPLINK, &packets[kind]);
	if (kind == 6)
		row_send(TO_CONTAINER, BRIDGE, &packets[kind]);
}

static void *send_all(void *thread)
{
	unsigned int state = 4711 + (unsigned int)(long)thread;

	stay_on((int)(long)thread);
	meet(1);
	for (int i = 0; i < PACKETS; i++)
		send_any(&state);
	return NULL;
}

static void random_row(void)
{
	char says[120];

	snprintf(says, sizeof(says), "%d packets at random on %d CPUs, few tuples and fewer ports",
		 THREADS * PACKETS, THREADS);
	row_begin(says);
	host_close_sockets();
	fixture_reset();
	fixture_set_masquerade_ports(20000, 20003);
	run_threads(send_all);
	records_check();
	row_end();
}

static void crowded_row(void)
{
	row_begin("the same with a full ring, where each new flow pushes out another");
	fixture_reset();
	fixture_set_masquerade_ports(20000, 20003);
	for (int nth = 0; nth < MIN_HALF_OPEN; nth++) {
		const struct entry record =
			MAPPED(NEW, IPPROTO_UDP, v4_client_other, 1 + nth, v4_host, 8080,
			       v4_container_one, 80, 1 + nth, .owner = ONE);

		fixture_put(&record);
	}
	run_threads(send_all);
	records_check();
	row_end();
}

void race_rows(void)
{
	cpu_set_t before;

	if (sched_getaffinity(0, sizeof(before), &before))
		err(1, "asking for CPUs");
	closing_row();
	random_row();
	crowded_row();
	sched_setaffinity(0, sizeof(before), &before);
	fixture_reset();
}
