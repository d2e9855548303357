/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_foreign.c - options that nothing here obeys.
 */
#include "plugin/conf_foreign.h"

#include <stdlib.h>

#include "cni/json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Raw iptables or nftables matches: nothing here could obey them. */
static int check_conditions(const json_t *config, struct cni_error *err)
{
	static const char *const keys[] = {"conditionsV4", "conditionsV6"};

	for (size_t i = 0; i < COUNT(keys); i++) {
		json_t *conditions = NULL;
		char *text;

		if (cni_json_get_array(config, keys[i], &conditions, err))
			return -1;
		if (!json_array_size(conditions))
			continue;
		text = json_dumps(conditions, JSON_COMPACT);
		cni_error_set(
			err, CNI_ERROR_UNSUPPORTED_FIELD,
			"unsupported field \"%s\": %s: conditions are written for iptables or "
			"nftables, which bpf-portmap does not use; remove the key: the options "
			"\"sourceRanges\" and \"uplinks\" say who may reach the ports",
			keys[i], text ? text : "[...]");
		free(text);
		return -1;
	}
	return 0;
}

/* Options of portmap that speak of iptables, so that its lists work unchanged. */
static int warn_of_portmap_options(struct conf *conf, const json_t *config, struct cni_error *err)
{
	static const char *const texts[] = {"externalSetMarkChain", "backend"};
	const char *text = "";
	json_int_t bit;

	if (cni_json_get_integer(config, "markMasqBit", &bit, err))
		return -1;
	if (cni_json_get(config, "markMasqBit") &&
	    conf_warn(conf, err, "\"markMasqBit\" has no effect: bpf-portmap marks no packets"))
		return -1;
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (cni_json_get_string(config, texts[i], &text, err))
			return -1;
		if (cni_json_get(config, texts[i]) &&
		    conf_warn(
			    conf, err,
			    "\"%s\" has no effect: bpf-portmap uses neither iptables nor nftables",
			    texts[i]))
			return -1;
	}
	return 0;
}

int conf_check_foreign(struct conf *conf, const json_t *config, struct cni_error *err)
{
	if (check_conditions(config, err))
		return -1;
	return warn_of_portmap_options(conf, config, err);
}
