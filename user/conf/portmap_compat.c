/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portmap_compat.c - options of the reference plugin portmap that nothing here can obey. */
#include "conf/portmap_compat.h"

#include "lib/cleanup.h"
#include "cni/json.h"

int portmap_compat_ignore(const struct given *given, enum option_type type, struct cni_error *err)
{
	const char *text;
	json_int_t number;

	if (!cni_json_get(given->object, given->key))
		return 0;
	if (type == OPTION_IGNORED_NUMBER
		    ? cni_json_get_integer(given->object, given->key, &number, err)
		    : cni_json_get_string(given->object, given->key, &text, err))
		return -1;
	return conf_warn(given->warnings, err,
			 "\"%s\" has no effect: bpf-portmap uses no packet marks, and neither "
			 "iptables nor nftables",
			 given->key);
}

int portmap_compat_refuse(const struct given *given, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	json_t *conditions = NULL;

	if (cni_json_get_array(given->object, given->key, &conditions, err))
		return -1;
	if (!json_array_size(conditions))
		return 0;
	text = json_dumps(conditions, JSON_COMPACT);
	return cni_error_set(
		err, CNI_ERROR_UNSUPPORTED_FIELD,
		"unsupported field \"%s\": %s: conditions are written for iptables or nftables, "
		"which bpf-portmap does not use; remove the key: the options \"sourceRanges\" and "
		"\"uplinks\" say who may reach the ports",
		given->key, text ? text : "[...]");
}
