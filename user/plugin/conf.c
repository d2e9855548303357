/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf.c - our own keys of the configuration as a plain struct, without any I/O.
 */
#include "plugin/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/environment.h"
#include "cni/json.h"
#include "plugin/conf_interfaces.h"
#include "plugin/conf_ports.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int conf_warn(struct conf *conf, struct cni_error *err, const char *format, ...)
{
	char **grown = reallocarray(conf->warnings, conf->warning_count + 1, sizeof(*grown));
	va_list arguments;
	int length;

	if (!grown)
		return cni_error_no_memory(err);
	conf->warnings = grown;
	va_start(arguments, format);
	length = vasprintf(&grown[conf->warning_count], format, arguments);
	va_end(arguments);
	if (length < 0)
		return cni_error_no_memory(err);
	conf->warning_count++;
	return 0;
}

/* Accepting an option and not obeying it would be worse than refusing it. */
static int refuse_as_not_there_yet(const char *key, const char *value, const char *advice,
				   struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\"%s%s is not there yet in this version of bpf-portmap: %s", key,
			     *value ? ": " : "", value, advice);
}

static int refuse_missing_options(const json_t *config, struct cni_error *err)
{
	static const char *const keys[] = {
		"masqPorts", "snatAddresses", "nonMasqueradeCIDRs", "sourceRanges", "excludeCIDRs",
	};

	for (size_t i = 0; i < COUNT(keys); i++) {
		const json_t *value = cni_json_get(config, keys[i]);

		/* An empty list asks for nothing. */
		if (value && !(json_is_array(value) && json_array_size(value) == 0))
			return refuse_as_not_there_yet(keys[i], "", "remove the key", err);
	}
	return 0;
}

/* Switches of which one position works. */
static int check_switches(const json_t *config, struct cni_error *err)
{
	static const struct {
		const char *key;
		bool works;
	} switches[] = {
		{"snat", true},
		{"masqAll", false},
		{"localhost", false},
		{"reserveHostPorts", false},
	};

	for (size_t i = 0; i < COUNT(switches); i++) {
		bool works = switches[i].works;
		bool value = works;

		if (cni_json_get_boolean(config, switches[i].key, &value, err))
			return -1;
		if (value != works)
			return refuse_as_not_there_yet(switches[i].key, value ? "true" : "false",
						       works ? "remove the key or set it to true"
							     : "remove the key or set it to false",
						       err);
	}
	return 0;
}

static int check_fast_path(const json_t *config, struct cni_error *err)
{
	const char *value = "off";

	if (cni_json_get_string(config, "fastPath", &value, err))
		return -1;
	if (!strcmp(value, "off"))
		return 0;
	if (!strcmp(value, "established") || !strcmp(value, "always"))
		return refuse_as_not_there_yet("fastPath", value,
					       "remove the key or set it to \"off\"", err);
	return cni_error_set(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"\"fastPath\" is \"%s\", must be \"off\", \"established\" or \"always\"", value);
}

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
			"nftables, which bpf-portmap does not use; remove the key (the options "
			"\"sourceRanges\" and \"uplinks\" are meant for this, in a later "
			"version)",
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

static int read_masquerade(struct conf *conf, const json_t *config, struct cni_error *err)
{
	bool both = false;

	if (cni_json_get_boolean(config, "ipMasq", &both, err))
		return -1;
	conf->masquerade4 = both;
	conf->masquerade6 = both;
	if (cni_json_get_boolean(config, "ipMasq4", &conf->masquerade4, err))
		return -1;
	return cni_json_get_boolean(config, "ipMasq6", &conf->masquerade6, err);
}

static int read_attach(struct conf *conf, const json_t *config, struct cni_error *err)
{
	static const char *const names[] = {
		[ATTACH_AUTO] = "auto",
		[ATTACH_CLSACT] = "clsact",
		[ATTACH_TCX] = "tcx",
	};
	const char *value = names[ATTACH_AUTO];

	if (cni_json_get_string(config, "attach", &value, err))
		return -1;
	for (size_t i = 0; i < COUNT(names); i++) {
		if (!strcmp(names[i], value)) {
			conf->attach = (enum attach_mode)i;
			return 0;
		}
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"attach\" is \"%s\", must be \"auto\", \"clsact\" or \"tcx\"",
			     value);
}

static int read_flow_entries(struct conf *conf, const json_t *config, struct cni_error *err)
{
	json_int_t wanted = 0;
	uint32_t entries = MIN_FLOWS;

	conf->flow_entries = 0;
	if (!cni_json_get(config, "flowEntries"))
		return 0;
	if (cni_json_get_integer(config, "flowEntries", &wanted, err))
		return -1;
	if (wanted < MIN_FLOWS || wanted > MAX_FLOWS)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"flowEntries\" is %" JSON_INTEGER_FORMAT
				     ", must be %d to %d (it is rounded up to a power of two)",
				     wanted, MIN_FLOWS, MAX_FLOWS);
	while (entries < (uint32_t)wanted)
		entries *= 2;
	conf->flow_entries = entries;
	return 0;
}

static int read_capabilities(struct conf *conf, const json_t *config, struct cni_error *err)
{
	json_t *capabilities = NULL;

	if (cni_json_get_object(config, "capabilities", &capabilities, err))
		return -1;
	if (capabilities &&
	    cni_json_get_boolean(capabilities, "bandwidth", &conf->bandwidth_declared, err))
		return cni_error_wrap(err, "capabilities");
	return 0;
}

int conf_parse_options(struct conf *conf, const json_t *config, struct cni_error *err)
{
	if (refuse_missing_options(config, err) || check_switches(config, err) ||
	    check_fast_path(config, err) || check_conditions(config, err) ||
	    warn_of_portmap_options(conf, config, err) || read_masquerade(conf, config, err) ||
	    read_attach(conf, config, err) || read_flow_entries(conf, config, err) ||
	    conf_read_interfaces(conf, config, err) || read_capabilities(conf, config, err))
		return -1;
	return 0;
}

static int read_bandwidth(struct conf *conf, const json_t *runtime_config, struct cni_error *err)
{
	static const char *const limits[] = {
		"ingressRate",
		"ingressBurst",
		"egressRate",
		"egressBurst",
	};
	json_t *bandwidth = NULL;

	if (cni_json_get_object(runtime_config, "bandwidth", &bandwidth, err))
		return cni_error_wrap(err, "runtimeConfig");
	for (size_t i = 0; bandwidth && i < COUNT(limits); i++) {
		json_int_t value = 0;

		if (cni_json_get_integer(bandwidth, limits[i], &value, err))
			return cni_error_wrap(err, "runtimeConfig.bandwidth");
		if (value)
			conf->bandwidth_limited = true;
	}
	return 0;
}

int conf_parse(struct conf *conf, const json_t *config, const char *args, struct cni_error *err)
{
	json_t *runtime_config = NULL;

	conf->kubernetes = cni_args_have_key(args, "K8S_POD_NAME");
	if (conf_parse_options(conf, config, err) ||
	    cni_json_get_object(config, "runtimeConfig", &runtime_config, err))
		return -1;
	if (!runtime_config)
		return 0;
	if (read_bandwidth(conf, runtime_config, err))
		return -1;
	return conf_read_port_mappings(conf, runtime_config, err);
}

void conf_release(struct conf *conf)
{
	for (size_t i = 0; i < conf->warning_count; i++)
		free(conf->warnings[i]);
	free(conf->warnings);
	free(conf->mappings);
	conf_release_interfaces(conf);
	*conf = (struct conf){0};
}
