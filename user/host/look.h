/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * look.h - looks at the host, once, for the plan.
 */
#pragma once

#include "datapath/records/networks.h"
#include "host/container.h"
#include "host/host.h"
#include "plan/look.h"

/* What is looked at. Begins as {0}: interfaces that have an address or that a conflist names, and
 * of those that the map has already only what may have changed. */
struct look_at {
	const struct container *container; /* the one at hand, its veth found; NULL: none */
	bool adds;                         /* it is added */
	char *const *named;                /* by an administrator, up to a NULL; NULL: none */
	bool entries;                      /* every entry of the map, and every interface whole */
	bool veths;                        /* containers' veths, too */
	bool veth_hooks;                   /* and what hangs there */
	bool stops_at_news;                /* looks at no interface if there is news of networks */
	bool refuses_damage;               /* host_settle() fails for it and changes nothing */
};

/* A look, and what it points into. Begins as {0}. */
struct host_look {
	struct look found;
	struct known_network *networks;
	size_t network_count;
	bool has_news_of_networks; /* the map does not have what the living ones say now */
	/* The conflist of the container at hand says something else than the map has for its
	 * network, whose entry this is to be. */
	bool network_is_new;
	struct network_key network_key;
	struct network network;

	/* While it is made. */
	struct host *host;
	const struct look_at *at;
	bool knows_qdiscs;
	struct qdisc_list qdiscs;
};

/* Works with the addresses that the host has read. Release the look also after a failure.
 * CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED. */
int host_look(struct host_look *look, struct host *host, const struct look_at *at,
	      struct cni_error *err);
void host_look_release(struct host_look *look);

#define cleanup_look __attribute__((cleanup(host_look_release)))
