/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - the host during one command: its rtnetlink, its addresses, its datapath.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "datapath/load/datapath.h"
#include "net/address_list.h"

struct nl_sock;

/* Begins as {0}. */
struct host {
	bool opened; /* zeros are no file descriptors to close */
	/* Told of every interface that was changed; NULL: nobody wants to know. Survives
	 * host_open(). */
	void (*report)(const char *interface, const char *what);
	struct nl_sock *socket;
	struct address_list addresses;
	struct datapath datapath;
};

void host_report(const struct host *host, const char *interface, const char *what);

/* Looks at all three and changes nothing. Close it also after a failure. */
int host_open(struct host *host, enum pins_use use, struct cni_error *err);
/* The same for an ADD that can do without: the network is looked at only where the datapath is
 * usable. */
int host_open_if_usable(struct host *host, struct cni_error *err);
void host_close(struct host *host);

/* For commands that clean up. Opens the datapath alone, and the rest only where pins are
 * lost and must be found by what runs. *usable: there is something to clean up in; where
 * all maps are of another layout there is not, and a warning is printed. Codes 102, 11, 5. */
int host_open_to_clean(struct host *host, bool *usable, struct cni_error *err);

#define cleanup_host __attribute__((cleanup(host_close)))

#endif
