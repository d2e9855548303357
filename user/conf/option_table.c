/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * option_table.c - the table of options. The parser, the look for unknown keys and the list in
 * bpf-portmap.conf(5) come from it; that manual page explains the options at length.
 */
#include "conf/option_table.h"

#include <stdlib.h>

#include "lib/cleanup.h"
#include "lib/json.h"
#include "conf/addresses.h"

#define FIELD(member) offsetof(struct conf, member)
#define IGNORED "Accepted, with a warning that it has no effect."
#define RANGES(ranges, how_many) FIELD(policy.ranges), .count = FIELD(policy.how_many)

static const char *const attach_modes[] = {
	[ATTACH_AUTO] = "auto",
	[ATTACH_CLSACT] = "clsact",
	[ATTACH_TCX] = "tcx",
	NULL,
};

static const char *const fast_paths[] = {
	[FAST_PATH_OFF] = "off",
	[FAST_PATH_ESTABLISHED] = "established",
	[FAST_PATH_ALWAYS] = "always",
	NULL,
};

const struct option conf_options[] = {
	{"ipMasq", OPTION_BOOLEAN, FIELD(masquerade4), .preset = "false",
	 .help = "Connections that the container opens leave with the outgoing interface's "
		 "address."},
	{"ipMasq4", OPTION_BOOLEAN, FIELD(masquerade4), .fallback = "ipMasq", .preset = "false",
	 .help = "The same for one family."},
	{"ipMasq6", OPTION_BOOLEAN, FIELD(masquerade6), .fallback = "ipMasq", .preset = "false",
	 .help = "The same for one family."},
	{"masqPorts", OPTION_PORTS, FIELD(policy.masquerade_ports),
	 .otherwise = "1024 to 65535 without the host's ephemeral and reserved ports",
	 .help = "Source ports that masqueraded connections may have."},
	{"snatAddresses", OPTION_ADDRESSES, FIELD(policy), .otherwise = "the interface's",
	 .help = "Addresses of the host that masqueraded connections leave with instead."},
	{"nonMasqueradeCIDRs", OPTION_RANGES, RANGES(unmasqueraded, unmasqueraded_count),
	 .otherwise = "none", .help = "Connections to these addresses are not masqueraded."},
	{"snat", OPTION_BOOLEAN, FIELD(snat), .preset = "true",
	 .help = "A container reaches itself through its own host ports."},
	{"masqAll", OPTION_BOOLEAN, FIELD(policy.masquerade_all), .preset = "false",
	 .help = "Clients that come through a mapped port are masqueraded too."},
	/* An address in no range is kept out, so that exceptions alone would keep out everybody. */
	{"sourceRanges", OPTION_RANGES, RANGES(source_ranges, source_range_count), .limits = {1, 0},
	 .otherwise = "everybody", .help = "Which clients reach the mapped ports."},
	{"excludeCIDRs", OPTION_RANGES, RANGES(excluded, excluded_count), .otherwise = "none",
	 .help = "Addresses of the host at which no port is mapped."},
	{"strict", OPTION_BOOLEAN, FIELD(strict), .preset = "false",
	 .help = "Through an uplink nobody reaches the container but by its mapped ports."},
	{"localhost", OPTION_BOOLEAN, FIELD(localhost), .preset = "true",
	 .help = "Processes of the host reach the ports, also at 127.0.0.1 and ::1."},
	{"uplinks", OPTION_INTERFACES, FIELD(uplinks), .otherwise = "each that has an address",
	 .help = "Mapped ports are reached from outside, and containers masqueraded, at these"
		 " interfaces only, whatever other networks have."},
	{"excludeInterfaces", OPTION_INTERFACES, FIELD(excluded_interfaces),
	 .preset = "[\"kube-ipvs0\", \"nodelocaldns\"]",
	 .help = "Interfaces that are not uplinks, and at whose addresses no port is mapped, unless"
		 " hostIP names one, or another network's conflist names them in uplinks."},
	{"attach", OPTION_CHOICE, FIELD(attach), .choices = attach_modes, .preset = "\"auto\"",
	 .help = "How programs are attached to interfaces."},
	{"fastPath", OPTION_CHOICE, FIELD(fast_path), .choices = fast_paths,
	 .preset = "\"established\"", .help = "Which flows skip the host's IP stack."},
	/* When an answered flow took two entries, a list could ask for twice as many. */
	{"flowEntries", OPTION_NUMBER, FIELD(flow_entries),
	 .limits = {MIN_ASSURED, 2 * MAX_ASSURED}, .otherwise = "one for each 32 kB of memory",
	 .help = "How many assured flows the host can have."},
	{"maxFlows", OPTION_NUMBER, FIELD(policy.max_flows), .limits = {1, UINT32_MAX},
	 .otherwise = "a share of the table",
	 .help = "How many assured flows the container may have at a time."},
	{"reserveHostPorts", OPTION_BOOLEAN, FIELD(reserve_host_ports), .preset = "false",
	 .help = "No process of the host can bind to the ports until DEL."},
	{"refuseForeign", OPTION_BOOLEAN, FIELD(refuse_foreign), .preset = "false",
	 .help = "ADD fails with code 101 where rules of portmap, Docker, kube-proxy or others "
		 "map a port already."},
	{"neverPorts", OPTION_PORTS, FIELD(never_ports),
	 .otherwise = "none, with a warning for 10250/tcp",
	 .help = "Host ports that no container may have: ADD fails with code 7."},
	{"markMasqBit", OPTION_IGNORED_NUMBER, .help = IGNORED},
	{"externalSetMarkChain", OPTION_IGNORED_STRING, .help = IGNORED},
	{"backend", OPTION_IGNORED_STRING, .help = IGNORED},
	{"conditionsV4", OPTION_REFUSED, .help = "Refused with code 2 unless it is empty."},
	{"conditionsV6", OPTION_REFUSED, .help = "Refused with code 2 unless it is empty."},
	{0},
};

/* Warns of an option of the reference plugin portmap that is about marks or chains, so that its
 * lists work unchanged. */
static int ignore_option(const struct given *given, enum option_type type, struct cni_error *err)
{
	const char *text;
	json_int_t number;

	if (!cni_json_get(given->object, given->key))
		return 0;
	if (type == OPTION_IGNORED_NUMBER
		    ? cni_json_get_integer(given->object, given->key, &number, err)
		    : cni_json_get_string(given->object, given->key, &text, err))
		return -1;
	conf_warn(given->warnings,
		  "\"%s\" has no effect: bpf-portmap uses no packet marks, and neither "
		  "iptables nor nftables",
		  given->key);
	return 0;
}

/* Refuses an option of portmap's unless it is empty: ports would be open to more clients than asked
 * for. Says which options do the same, where some do. */
static int refuse_option(const struct given *given, struct cni_error *err)
{
	cleanup_free char *text = NULL, *ours = NULL;
	cleanup_json json_t *keys = NULL;
	json_t *conditions = NULL;

	if (cni_json_get_array(given->object, given->key, &conditions, err))
		return -1;
	if (!json_array_size(conditions))
		return 0;
	text = json_dumps(conditions, JSON_COMPACT);
	keys = conditions_translate(given->object);
	ours = keys ? conditions_print(keys) : NULL;
	return cni_error_set(
		err, CNI_ERROR_UNSUPPORTED_FIELD,
		"unsupported field \"%s\": %s: conditions are written for iptables or nftables, "
		"which bpf-portmap does not use; %s%s",
		given->key, text ? text : "[...]",
		ours ? "put in its place: "
		     : "remove the key: the options \"sourceRanges\" (clients),"
		       " \"excludeCIDRs\" (addresses of the host) and"
		       " \"uplinks\" (interfaces) say who may reach the ports",
		ours ? ours : "");
}

static int read_value(struct conf *conf, const struct option *option, const struct given *given,
		      struct cni_error *err)
{
	char *field = (char *)conf + option->field;

	switch (option->type) {
	case OPTION_BOOLEAN:
		return cni_json_get_boolean(given->object, given->key, (bool *)field, err);
	case OPTION_NUMBER:
		return option_read_number(given, option->limits, (uint32_t *)(void *)field, err);
	case OPTION_CHOICE:
		return option_read_choice(given, option->choices, (uint8_t *)field, err);
	case OPTION_PORTS:
		return conf_read_port_set((void *)field, given, err);
	case OPTION_RANGES:
		return conf_read_ranges((void *)field, (__u8 *)conf + option->count, given,
					option->limits.least, err);
	case OPTION_ADDRESSES:
		return conf_read_sources((void *)field, given, err);
	case OPTION_INTERFACES:
		return conf_read_names(field, given, err);
	case OPTION_IGNORED_NUMBER:
	case OPTION_IGNORED_STRING:
		return ignore_option(given, option->type, err);
	case OPTION_REFUSED:
		break;
	}
	return refuse_option(given, err);
}

static int read_option(struct conf *conf, const struct option *option, const json_t *config,
		       struct cni_error *err)
{
	struct given given = {config, option->name, conf->warnings};
	cleanup_json json_t *preset = NULL;

	if (option->fallback && !cni_json_get(config, option->name))
		given.key = option->fallback;
	if (option->preset && !cni_json_get(config, given.key)) {
		preset = json_pack("{s:o}", given.key,
				   json_loads(option->preset, JSON_DECODE_ANY, NULL));
		given.object = preset;
	}
	return read_value(conf, option, &given, err);
}

int conf_parse_options(struct conf *conf, const json_t *config, struct cni_error *err)
{
	struct policy *policy = &conf->policy;
	uint32_t entries = MIN_ASSURED;

	conf->warnings = json_array();
	option_check_keys(conf_options, config, conf->warnings);
	for (const struct option *option = conf_options; option->name; option++)
		if (read_option(conf, option, config, err))
			return -1;
	/* What follows from more than the value of one option. */
	conf->never_ports_given = cni_json_get(config, "neverPorts");
	while (entries < conf->flow_entries && entries < MAX_ASSURED)
		entries *= 2;
	if (conf->flow_entries)
		conf->flow_entries = entries;
	policy->keep_hairpin_source = !conf->snat;
	/* As with portmap, masqAll is a kind of snat. */
	if (!conf->snat && policy->masquerade_all)
		conf_warn(conf->warnings, "\"masqAll\" has no effect where \"snat\" is false");
	policy->masquerade_all &= conf->snat;
	return 0;
}

void conf_release(struct conf *conf)
{
	json_decref(conf->warnings);
	free(conf->ports);
	*conf = (struct conf){0};
}
