/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* given_addresses.c - which addresses a container was given. */
#include "host/given_addresses.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/json.h"

/* netavark writes a file NETWORK_CONTAINER here after the container's rules, so that it can write
 * these again when firewalld has removed them, and deletes it with the rules. The folder is the
 * same for all of root's Podmans. */
#define NETAVARK_PORTS "/run/containers/networks/firewall/ports"

static bool has_endpoint(const struct objects *objects, uint64_t container,
			 const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct endpoint_key key;
	struct endpoint endpoint;
	struct slot slot;

	memcpy(key.address, address, CNI_ADDRESS_SIZE);
	return endpoint_read(objects, &key, &endpoint) &&
	       owner_read(objects, endpoint.owner, &slot) && slot.container == container;
}

static bool is_named_for(const char *file, uint64_t container)
{
	const char *id = strrchr(file, '_');

	return id && digest_add(DIGEST_OF_NOTHING, id + 1, strlen(id + 1)) == container;
}

static bool file_has_address(const char *file, const uint8_t address[CNI_ADDRESS_SIZE])
{
	const char *key = cni_address_is_ipv4(address) ? "container_ip_v4" : "container_ip_v6";
	char path[sizeof(NETAVARK_PORTS) + 1 + sizeof(((struct dirent *)0)->d_name)];
	cleanup_json json_t *written = NULL;
	uint8_t given[CNI_ADDRESS_SIZE];
	const char *text;

	snprintf(path, sizeof(path), NETAVARK_PORTS "/%s", file);
	written = json_load_file(path, 0, NULL);
	text = json_string_value(json_object_get(written, key));
	return text && !cni_address_parse(text, given) && !memcmp(given, address, sizeof(given));
}

static bool netavark_gave(uint64_t container, const uint8_t address[CNI_ADDRESS_SIZE])
{
	cleanup_listing DIR *folder = opendir(NETAVARK_PORTS);
	const struct dirent *entry;
	bool gave = false;

	while (!gave && folder && (entry = readdir(folder)))
		gave = is_named_for(entry->d_name, container) &&
		       file_has_address(entry->d_name, address);
	return gave;
}

bool container_was_given(const struct objects *objects, uint64_t container,
			 const uint8_t address[CNI_ADDRESS_SIZE])
{
	return has_endpoint(objects, container, address) || netavark_gave(container, address);
}
