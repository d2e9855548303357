/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - the host during one command: its rtnetlink, its addresses, its datapath.
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "datapath/load/datapath.h"
#include "net/address_list.h"

struct netlink;

/* Begins as {0}. */
struct host {
	bool opened; /* false: host_close() must not take the zeros for file descriptors */
	/* Told of every interface that was changed; may be NULL. Survives host_open(). */
	void (*report)(const char *interface, const char *what, void *context);
	void *report_context;
	struct netlink *socket;
	struct address_list addresses;
	struct datapath datapath;
};

/* Reads all three and changes nothing. Until it is closed maps and programs are not replaced or
 * removed by others. Close it also after a failure. CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN,
 * CNI_ERROR_KERNEL_REFUSED. */
int host_open(struct host *host, enum pin_check check, struct cni_error *err);
/* The same without a lock: for those who only look. */
int host_open_to_read(struct host *host, struct cni_error *err);
/* The same, and no other command works meanwhile. */
int host_open_alone(struct host *host, struct cni_error *err);
void host_close(struct host *host);
/* For a command that ends now, and with it the process: closes no maps, which are many. */
void host_end(struct host *host);

/* For commands that work on what is there: finds the maps by the programs that run where pins are
 * lost. Refuses a datapath of another layout; one that was never loaded is not usable afterwards,
 * which is no error. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int host_recover(struct host *host, struct cni_error *err);

/* For DEL: opens the datapath alone, and the rest only where pins are lost. *usable: there is
 * something to clean up. Where all maps are of another layout there is not, and a warning is
 * printed. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN, CNI_ERROR_IO. */
int host_open_to_clean(struct host *host, bool *usable, struct cni_error *err);

void host_report(const struct host *host, const char *interface, const char *what);

/* Returns whether ports are mapped at this address: not at a broadcast address, nor at one of an
 * interface that the map interfaces has as excluded. */
bool host_maps_ports_at(const struct host *host, const struct local_address *address);

#define cleanup_host __attribute__((cleanup(host_close)))
#define cleanup_host_at_end __attribute__((cleanup(host_end)))

#endif
