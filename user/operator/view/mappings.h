/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mappings.h - the mapped ports, with the connections that each has now. */
#pragma once

#include "operator/options.h"
#include "operator/print/format.h"
#include "operator/view/view.h"

/* Containers of one workload may have a port one after the other (containers.h). */
enum mapping_turn {
	TURN_NOW,   /* it gets new connections */
	TURN_COMES, /* it gets none yet, as no process serves the port in it */
	TURN_GOES,  /* it gets them until its successor serves the port */
	TURN_GONE,  /* it gets none any more, and has its former ones */
};

/* A mapped port, or a container without one that is masqueraded: then key.host_port is 0, and
 * key.host_address is the container's own. */
struct mapping {
	struct portmap_key key;
	struct portmap portmap;
	uint8_t place; /* of the port's containers: 0 has it, 1 and 2 had it before */
	enum mapping_turn turn;
	uint16_t last_port; /* of a range; else key.host_port */
	uint32_t flows;     /* connections that are not closed */
	uint32_t half_open; /* of these, those that are not assured */
};

/* Ordered by port, protocol and address; ports first. Begins as {0}. */
struct mappings {
	struct mapping *list;
	size_t count;
};

/* Reads all mapped ports. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int mappings_read(struct mappings *mappings, const struct view *view, struct cni_error *err);
/* Adds those that have been replaced, and whose containers live, and sees whose turn it is. Codes
 * as above. */
int mappings_add_replaced(struct mappings *mappings, const struct view *view,
			  struct cni_error *err);
/* Returns whether new connections go to it, as far as its workload is concerned. */
bool mapping_gets_new(const struct mapping *mapping);
/* What people should know of its turn; NULL: nothing. */
const char *mapping_turn_text(const struct mapping *mapping);
/* Adds the containers that are masqueraded and have none of these. Codes as above. */
int mappings_add_masqueraded(struct mappings *mappings, const struct view *view,
			     struct cni_error *err);
/* Counts the connections of each, which reads all of them. CNI_ERROR_KERNEL_REFUSED. */
int mappings_count_flows(struct mappings *mappings, struct view *view, struct cni_error *err);
/* Makes one mapping, with the connections of all, of those that are a range of a container's
 * ports. */
void mappings_join_ranges(struct mappings *mappings);
void mappings_release(struct mappings *mappings);

#define RANGE_TEXT_SIZE (ENDPOINT_TEXT_SIZE + 6)

/* Both return `text`: "*:8080", of a range "*:8000-8099"; and where that leads to,
 * "10.88.0.2:80-179", or the address alone of a container without a port. */
const char *mapping_format_host(const struct mapping *mapping, char text[RANGE_TEXT_SIZE]);
const char *mapping_format_target(const struct mapping *mapping, char text[RANGE_TEXT_SIZE]);

#define SHOWN_PORTS 4
#define PORTS_TEXT_SIZE (SHOWN_PORTS * (ENDPOINT_TEXT_SIZE + 16) + 32)

/* Writes "*:8080/tcp, *:8081/tcp and 7 more", "masqueraded", or "no port", and returns how many of
 * these mappings the owner has. */
size_t mappings_write_ports(const struct mappings *mappings, struct owner owner,
			    char text[PORTS_TEXT_SIZE]);

/* Returns whether `list` shows the mapping; `container` may be NULL. */
bool mapping_matches(const struct mapping *mapping, const struct container_info *container,
		     const struct options *options);

#define cleanup_mappings __attribute__((cleanup(mappings_release)))
