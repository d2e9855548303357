/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* connections.c - the connections that conntrack translates for rules of portmap. */
#include "operator/migrate/containers.h"

#include <errno.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <string.h>

#include "lifetime.h"

#include "adoption.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/maps.h"
#include "operator/kernel/conntrack.h"
#include "operator/kernel/inject.h"
#include "operator/kernel/tracing.h"

/* What one reading of conntrack is for. */
struct pass {
	struct migrating *containers;
	size_t count;
	const struct keeping *keeping; /* NULL: they are counted alone */
	struct cni_error *err;
	bool failed;
};

static bool is_at(const struct migrating_port *port, uint8_t protocol, const uint8_t *address,
		  uint16_t number)
{
	const uint8_t *wanted = port->key.host_address;

	return port->key.protocol == protocol && port->key.host_port == number &&
	       cni_address_is_ipv4(address) == cni_address_is_ipv4(wanted) &&
	       (cni_address_is_any(wanted) || !memcmp(wanted, address, CNI_ADDRESS_SIZE));
}

/* portmap's rule has translated its destination. */
static bool is_through(const struct migrating_port *port, const struct conntrack_entry *entry)
{
	const struct conntrack_tuple *original = &entry->original;

	return entry->destination_translated &&
	       is_at(port, original->protocol, original->destination, original->destination_port) &&
	       entry->reply.source_port == port->container_port &&
	       !memcmp(entry->reply.source, port->container_address, CNI_ADDRESS_SIZE);
}

/* Something else, iptables' MASQUERADE say, has given it the host port as its source: its replies
 * would be taken for requests to the mapping. */
static bool is_masqueraded_to(const struct migrating_port *port,
			      const struct conntrack_entry *entry)
{
	const struct conntrack_tuple *reply = &entry->reply;

	return entry->source_translated && !entry->destination_translated &&
	       is_at(port, reply->protocol, reply->destination, reply->destination_port);
}

/* One that has ended needs no record: the next from this port is to go by the mapping. */
static bool has_ended(const struct conntrack_entry *entry)
{
	return entry->tcp_state == TCP_CONNTRACK_TIME_WAIT ||
	       entry->tcp_state == TCP_CONNTRACK_CLOSE;
}

/* The record must not outlive conntrack's entry, behind which nothing translates any more. */
static void make_adoption(const struct conntrack_entry *entry, bool masqueraded,
			  struct adoption *adoption)
{
	const struct conntrack_tuple *tuple = masqueraded ? &entry->reply : &entry->original;
	struct connection_key *key = &adoption->key;

	*adoption = (struct adoption){0};
	memcpy(key->inside, tuple->destination, sizeof(key->inside));
	memcpy(key->outside, tuple->source, sizeof(key->outside));
	key->inside_port = tuple->destination_port;
	key->outside_port = tuple->source_port;
	key->protocol = (enum protocol)tuple->protocol;
	if (entry->timeout < TIMEOUT_UDP_NEW)
		adoption->idle = TIMEOUT_UDP_NEW - entry->timeout;
}

/* Makes the record, unless it is there. The program reads this behind an Ethernet header. */
static int adopt(int program, const struct adoption *adoption, uint32_t *adopted,
		 struct cni_error *err)
{
	uint8_t frame[ADOPTION_OFFSET + sizeof(*adoption)] = {0};

	memcpy(frame + ADOPTION_OFFSET, adoption, sizeof(*adoption));
	if (!program_run(program, frame, sizeof(frame), adopted))
		return 0;
	return bpf_error_set(err, errno,
			     "the kernel does not run the program that records connections");
}

static void keep(struct pass *pass, struct migrating_port *port,
		 const struct conntrack_entry *entry, bool masqueraded)
{
	uint32_t adopted = ADOPTED;
	struct adoption adoption;

	make_adoption(entry, masqueraded, &adoption);
	if (pass->keeping && adopt(pass->keeping->program, &adoption, &adopted, pass->err)) {
		pass->failed = true;
		return;
	}
	if (masqueraded)
		return;
	if (adopted == ADOPTED)
		port->kept++;
	else
		port->not_kept++;
}

/* False: it is none of this container's. */
static bool take_of(struct pass *pass, struct migrating *container,
		    const struct conntrack_entry *entry)
{
	for (size_t i = 0; i < container->port_count; i++) {
		bool through = is_through(&container->ports[i], entry);

		if (!through && !is_masqueraded_to(&container->ports[i], entry))
			continue;
		keep(pass, &container->ports[i], entry, !through);
		return true;
	}
	return false;
}

static void take_entry(const struct conntrack_entry *entry, void *context)
{
	struct pass *pass = context;
	bool taken = (!entry->source_translated && !entry->destination_translated) ||
		     has_ended(entry) || pass->failed;

	for (size_t i = 0; i < pass->count && !taken; i++)
		taken = pass->containers[i].fate == MIGRATING_MAP &&
			take_of(pass, &pass->containers[i], entry);
}

static int read_all(struct pass *pass, struct cni_error *err)
{
	for (size_t i = 0; i < pass->count; i++)
		for (size_t j = 0; j < pass->containers[i].port_count; j++)
			pass->containers[i].ports[j].kept = pass->containers[i].ports[j].not_kept =
				0;
	return conntrack_read(take_entry, pass, err) || pass->failed ? -1 : 0;
}

int connections_keep(struct keeping *keeping, struct cni_error *err)
{
	struct pass pass = {keeping->container, 1, .keeping = keeping, .err = err};

	if (keeping->program < 0)
		keeping->program = programs_load_adopt(keeping->objects, err);
	return keeping->program < 0 ? -1 : read_all(&pass, err);
}

int connections_count(const struct migrating_list *containers, struct cni_error *err)
{
	struct pass pass = {containers->list, containers->count, .err = err};

	return read_all(&pass, err);
}

struct remaining {
	const struct objects *objects;
	unsigned int count;
};

static void take_remaining(const struct conntrack_entry *entry, void *context)
{
	struct remaining *remaining = context;
	struct connection connection;
	struct adoption adoption;

	if (!entry->destination_translated || has_ended(entry))
		return;
	make_adoption(entry, false, &adoption);
	remaining->count += connection_read(remaining->objects, &adoption.key, &connection) &&
			    connection.kind == FLOW_FOREIGN;
}

int connections_left(const struct objects *objects, unsigned int *count, struct cni_error *err)
{
	struct remaining remaining = {.objects = objects};

	if (conntrack_read(take_remaining, &remaining, err))
		return -1;
	*count = remaining.count;
	return 0;
}
