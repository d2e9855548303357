/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* describe.c - what stands in the maps, in words for messages. */
#include "datapath/describe.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cni/address.h"
#include "datapath/attachments.h"
#include "datapath/maps.h"
#include "plugin/conf.h"

void describe_port(const struct portmap_key *key, char text[DESCRIBED_PORT_SIZE])
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	const char *where = cni_address_format(key->host_address, address);

	if (!memcmp(key->host_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE))
		where = "any IPv4 address";
	else if (!memcmp(key->host_address, cni_address_any_ipv6, CNI_ADDRESS_SIZE))
		where = "any IPv6 address";
	snprintf(text, DESCRIBED_PORT_SIZE, "host port %u/%s of %s", key->host_port,
		 conf_protocol_name(key->protocol), where);
}

static void describe_time(uint64_t seconds, char *text, size_t size)
{
	time_t time = (time_t)seconds;
	struct tm parts;

	if (!gmtime_r(&time, &parts) || !strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts))
		snprintf(text, size, "an unknown time");
}

void describe_attachment(const char key[ATTACHMENT_KEY_SIZE], char text[DESCRIBED_ATTACHMENT_SIZE])
{
	struct attachment_name name;

	if (!attachment_name_split(key, &name))
		snprintf(text, DESCRIBED_ATTACHMENT_SIZE, "an unknown attachment");
	else
		snprintf(text, DESCRIBED_ATTACHMENT_SIZE, "container %s, interface %s, network %s",
			 name.container_id, name.ifname, name.network);
}

/* Engines name containers by 64 hexadecimal digits, and know them by the first ones. */
static bool is_engines_id(const char *container_id)
{
	return strlen(container_id) == 64 && strspn(container_id, "0123456789abcdef") == 64;
}

static void advise_removal(const char key[ATTACHMENT_KEY_SIZE], uint32_t ifindex,
			   struct cni_error *err)
{
	struct attachment_name name;
	char engines[160] = "", without_engine[80] = "", veth[IF_NAMESIZE];
	bool known = attachment_name_split(key, &name) && is_engines_id(name.container_id);

	if (known)
		snprintf(engines, sizeof(engines),
			 " (`podman rm -f %.12s`; Kubernetes: the pod that"
			 " `crictl inspectp %.12s` shows)",
			 name.container_id, name.container_id);
	if (if_indextoname(ifindex, veth))
		snprintf(without_engine, sizeof(without_engine),
			 ", or `ip link delete %s` where no engine knows it any more", veth);
	cni_error_set_details(err,
			      "choose another host port or hostIP, or remove that container%s%s",
			      engines, without_engine);
}

int refuse_taken_port(const struct objects *objects, const struct portmap_key *key,
		      const struct slot *owner, struct cni_error *err)
{
	char port[DESCRIBED_PORT_SIZE], who[DESCRIBED_ATTACHMENT_SIZE],
		since[32] = "an unknown time";
	struct attachment_key owner_key = {0};
	struct attachment record;

	memcpy(owner_key.name, owner->attachment, strnlen(owner->attachment, ATTACHMENT_KEY_SIZE));
	if (attachment_read(objects, &owner_key, &record))
		describe_time(record.since, since, sizeof(since));
	describe_port(key, port);
	describe_attachment(owner->attachment, who);
	cni_error_set(err, CNI_ERROR_PORT_TAKEN, "%s is taken by %s, since %s", port, who, since);
	advise_removal(owner->attachment, owner->ifindex, err);
	return -1;
}
