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
#include "plugin/conf_foreign.h"
#include "plugin/conf_interfaces.h"
#include "plugin/conf_keys.h"
#include "plugin/conf_policy.h"
#include "plugin/conf_port_set.h"
#include "plugin/conf_ports.h"
#include "plugin/conf_workload.h"

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

static int read_host_processes(struct conf *conf, const json_t *config, struct cni_error *err)
{
	conf->localhost = true;
	if (cni_json_get_boolean(config, "localhost", &conf->localhost, err))
		return -1;
	if (cni_json_get_boolean(config, "refuseForeign", &conf->refuse_foreign, err))
		return -1;
	return cni_json_get_boolean(config, "reserveHostPorts", &conf->reserve_host_ports, err);
}

/* The value's place among the names; `chosen` before is the default. */
static int read_choice(const json_t *config, const char *key, const char *const names[],
		       size_t count, size_t *chosen, struct cni_error *err)
{
	const char *value = names[*chosen];
	char list[64] = "";
	size_t length = 0;

	if (cni_json_get_string(config, key, &value, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(names[i], value)) {
			*chosen = i;
			return 0;
		}
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s\"%s\"",
					   i == 0          ? ""
					   : i + 1 < count ? ", "
							   : " or ",
					   names[i]);
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"%s\" is \"%s\", must be %s",
			     key, value, list);
}

static int read_attach(struct conf *conf, const json_t *config, struct cni_error *err)
{
	static const char *const names[] = {
		[ATTACH_AUTO] = "auto",
		[ATTACH_CLSACT] = "clsact",
		[ATTACH_TCX] = "tcx",
	};
	size_t chosen = ATTACH_AUTO;

	if (read_choice(config, "attach", names, COUNT(names), &chosen, err))
		return -1;
	conf->attach = (enum attach_mode)chosen;
	return 0;
}

static int read_fast_path(struct conf *conf, const json_t *config, struct cni_error *err)
{
	static const char *const names[] = {
		[FAST_PATH_OFF] = "off",
		[FAST_PATH_ESTABLISHED] = "established",
		[FAST_PATH_ALWAYS] = "always",
	};
	size_t chosen = FAST_PATH_ESTABLISHED;

	if (read_choice(config, "fastPath", names, COUNT(names), &chosen, err))
		return -1;
	conf->fast_path = (enum fast_path)chosen;
	return 0;
}

/* When an answered flow took two entries, a list could ask for twice as many. */
#define MOST_FLOW_ENTRIES (2 * MAX_ASSURED)

static int read_flow_entries(struct conf *conf, const json_t *config, struct cni_error *err)
{
	json_int_t wanted = 0;
	uint32_t entries = MIN_ASSURED;

	conf->flow_entries = 0;
	if (!cni_json_get(config, "flowEntries"))
		return 0;
	if (cni_json_get_integer(config, "flowEntries", &wanted, err))
		return -1;
	if (wanted < MIN_ASSURED || wanted > MOST_FLOW_ENTRIES)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"flowEntries\" is %" JSON_INTEGER_FORMAT
				     ", must be %d to %d (it is rounded up to a power of two)",
				     wanted, MIN_ASSURED, MOST_FLOW_ENTRIES);
	while (entries < (uint32_t)wanted && entries < MAX_ASSURED)
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

static int read_never_ports(struct conf *conf, const json_t *config, struct cni_error *err)
{
	conf->never_ports_given = cni_json_get(config, "neverPorts");
	return conf_read_port_set(config, "neverPorts", conf->never_ports, err);
}

int conf_parse_options(struct conf *conf, const json_t *config, struct cni_error *err)
{
	if (conf_check_keys(conf, config, err) || conf_check_foreign(conf, config, err) ||
	    read_masquerade(conf, config, err) || conf_read_policy(conf, config, err) ||
	    conf_read_interfaces(conf, config, err) || read_attach(conf, config, err) ||
	    read_fast_path(conf, config, err) || read_flow_entries(conf, config, err) ||
	    read_host_processes(conf, config, err) || read_never_ports(conf, config, err) ||
	    cni_json_get_boolean(config, "strict", &conf->strict, err))
		return -1;
	return read_capabilities(conf, config, err);
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
		if (!value)
			continue;
		conf->bandwidth_limited = true;
		conf->egress_limited |= !strncmp(limits[i], "egress", strlen("egress"));
	}
	return 0;
}

int conf_parse(struct conf *conf, const json_t *config, const char *args, struct cni_error *err)
{
	json_t *runtime_config = NULL;

	conf->kubernetes = cni_args_have_key(args, "K8S_POD_NAME");
	conf_read_workload(&conf->workload, args);
	if (conf_parse_options(conf, config, err) ||
	    cni_json_get_object(config, "runtimeConfig", &runtime_config, err))
		return -1;
	if (!runtime_config)
		return 0;
	if (read_bandwidth(conf, runtime_config, err) ||
	    conf_read_port_mappings(conf, runtime_config, err))
		return -1;
	return conf_check_excluded(conf, err);
}

bool conf_may_limit_bandwidth(const struct conf *conf)
{
	return conf->bandwidth_limited || (conf->kubernetes && !conf->bandwidth_declared);
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
