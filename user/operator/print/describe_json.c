/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* describe_json.c - what several verbs show, as JSON. */
#include "operator/print/describe_json.h"

json_t *json_endpoint(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	return json_pack("{s:s, s:i}", "address", cni_address_format(address, text), "port",
			 (int)port);
}

const char *container_kind_word(const struct container_info *container)
{
	switch (container->record.workload.kind) {
	case WORKLOAD_POD:
		return "pod";
	case WORKLOAD_NOMAD:
		return "job";
	default:
		return "container";
	}
}

json_t *json_container(const struct view *view, const struct container_info *container)
{
	char veth[IF_NAMESIZE];

	if (!container)
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?}", "name", container->text, "kind",
			 container_kind_word(container), "id", container->name.container_id,
			 "network", container->name.network, "interface", container->name.ifname,
			 "host_interface",
			 view_interface(view, container->record.ifindex, veth) ? veth : NULL);
}
