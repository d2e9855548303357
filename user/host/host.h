/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - the host during one command: its rtnetlink, its addresses, its datapath, which it brings
 * from any state of the pins to one that is ready: the first load, a newer program, lost pins.
 */
#pragma once

#include "datapath/load/datapath.h"
#include "net/address_list.h"
#include "net/link.h"

struct netlink;

/* What host_settle() has made of an interface. */
struct host_interface {
	bool excluded; /* no port is mapped at its addresses */
	bool served;   /* it is an uplink, or a bridge of containers */
	char name[IF_NAMESIZE];
};

/* Begins as {0}. */
struct host {
	bool opened; /* false: host_close() must not take the zeros for file descriptors */
	/* Told of every interface that was changed; may be NULL. Survives host_open(). */
	void (*report)(const char *interface, const char *what, void *context);
	void *report_context;
	struct netlink *socket;
	struct address_list addresses;
	struct host_interface *interfaces; /* that have them; NULL: the maps say what they are */
	struct datapath datapath;
};

/* Reads all three and changes nothing. Unless it only reads, maps and programs are not replaced or
 * removed by others until it is closed. Close it also after a failure. CNI_ERROR_IO,
 * CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int host_open(struct host *host, enum datapath_use use, struct cni_error *err);
/* For DEL: opens the datapath alone, and the rest only where pins are lost. If it is usable then
 * there is something to clean up. Where all maps are of another layout there is not, and a warning
 * is printed. Errors as above. */
int host_open_to_clean(struct host *host, struct cni_error *err);
void host_close(struct host *host);
/* For a command that ends now, and with it the process: closes no maps, which are many. */
void host_end(struct host *host);

/* Loads, updates or repairs under the lock; does nothing where the open datapath is READY. Where
 * pins are lost, it adopts the maps of our programs that run at the addressed interfaces, so that
 * there is never a second set beside the first. `assured` says how many assured connections a new
 * table holds; 0: as fits the machine. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int host_make_ready(struct host *host, uint32_t assured, struct cni_error *err);

/* Loads the programs of this binary also where others are there, older or newer, and does what the
 * function above does; where nothing is loaded it loads nothing. Fails, when all the rest is done,
 * where a program at a hook could not be replaced. Errors as above. */
int host_upgrade(struct host *host, struct cni_error *err);

/* For commands that must find what is there, but load nothing new: makes the datapath ready where
 * there are maps to find. Where there are none it is not usable afterwards. Refuses one of another
 * layout. Errors as above. */
int host_recover(struct host *host, struct cni_error *err);
/* Does the same, and refuses nothing: what runs on maps of our layout is used. */
int host_recover_any(struct host *host, struct cni_error *err);

/* For uninstall: opens all maps that there are, by our programs that run where pins are lost, and
 * neither loads nor pins anything. Usable afterwards where there are all, of our layout. */
void host_find_maps(struct host *host);

/* Brings the hooks of one interface to what its entry says. CNI_ERROR_KERNEL_REFUSED. */
int hooks_settle(const struct datapath *datapath, const struct link_name *at,
		 const struct interface *entry, struct cni_error *err);

/* Calls host->report, with a name that is printable. */
void host_report(const struct host *host, const char *interface, const char *what);

/* Returns whether ports are mapped at this address: not at a broadcast address, nor at one of an
 * interface that the map interfaces has as excluded. */
bool host_maps_ports_at(const struct host *host, const struct local_address *address);

/* Returns whether one of the interfaces with an address is an uplink or a bridge of containers, and
 * is still there; writes its name then. */
bool host_serves(const struct host *host, size_t interface, char name[IF_NAMESIZE]);

#define cleanup_host __attribute__((cleanup(host_close)))
#define cleanup_host_at_end __attribute__((cleanup(host_end)))
