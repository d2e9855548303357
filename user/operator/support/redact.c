/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* redact.c - conflists without what may be secret. */
#include "operator/support/redact.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "conf/conf.h"

#define MAX_DEPTH 16

/* clang-format off */
static const char *const known[] = {
	/* the specification */
	"cniVersion", "cniVersions", "name", "plugins", "type", "disableCheck", "disableGC",
	"loadOnlyInlinedPlugins", "capabilities", "ipMasq", "ipam", "dns", "nameservers", "domain",
	"search", "options",
	/* host-local, static, dhcp */
	"ranges", "subnet", "rangeStart", "rangeEnd", "gateway", "routes", "dst", "gw", "mtu",
	"advmss", "priority", "table", "scope", "dataDir", "resolvConf", "addresses", "address",
	/* bridge, ptp, macvlan, ipvlan, vlan */
	"bridge", "isGateway", "isDefaultGateway", "forceAddress", "ipMasqBackend", "hairpinMode",
	"promiscMode", "vlan", "vlanId", "vlanTrunk", "id", "minID", "maxID",
	"preserveDefaultVlan", "macspoofchk", "portIsolation", "disableContainerInterface",
	"master", "mode", "linkInContainer", "enabledad",
	/* portmap, bandwidth, tuning, firewall */
	"portMappings", "snat", "masqAll", "markMasqBit", "externalSetMarkChain", "conditionsV4",
	"conditionsV6", "backend", "ingressRate", "ingressBurst", "egressRate", "egressBurst",
	"shapedSubnets", "unshapedSubnets", "sysctl", "mac", "promisc", "txQLen", "allmulti",
	"firewalldZone", "iptablesAdminChainName", "ingressPolicy",
	/* flannel's conflist */
	"delegate",
};
/* clang-format on */

/* As plugins do, without regard to case. */
static bool is_known(const char *key)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcasecmp(known[i], key))
			return true;
	for (const struct option *option = conf_options; option->name; option++)
		if (!strcasecmp(option->name, key))
			return true;
	return false;
}

/* "https://user:password@host/" */
static bool has_credentials(const json_t *value)
{
	const char *text = json_string_value(value), *address = text ? strstr(text, "://") : NULL;

	return address && strchr(address, '@');
}

static void redact(json_t *value, int depth, bool any_key);

static void redact_object(json_t *object, int depth, bool any_key)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe (object, next, key, value) {
		/* Capabilities and sysctls have names that nobody lists; those of the first are
		 * true or false. */
		bool keeps = is_known(key) || json_is_boolean(value) || any_key;

		if (!keeps || depth == MAX_DEPTH || has_credentials(value))
			json_object_set_new(object, key, json_string(REDACTED));
		else
			redact(value, depth + 1, !strcasecmp(key, "sysctl"));
	}
}

static void redact(json_t *value, int depth, bool any_key)
{
	json_t *element;
	size_t i;

	if (json_is_object(value))
		redact_object(value, depth, any_key);
	json_array_foreach (value, i, element) {
		if (has_credentials(element))
			json_array_set_new(value, i, json_string(REDACTED));
		else
			redact(element, depth, false);
	}
}

void redact_conflist(json_t *list)
{
	redact(list, 0, false);
}
