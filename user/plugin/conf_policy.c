/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_policy.c - the options that say how flows of the container are treated.
 */
#include "plugin/conf_policy.h"

#include <string.h>

#include "cni/json.h"
#include "plugin/conf_port_set.h"
#include "plugin/conf_ranges.h"

/* As with portmap, masqAll is a kind of snat. */
static int read_switches(struct conf *conf, const json_t *config, struct cni_error *err)
{
	bool snat = true, all = false;

	if (cni_json_get_boolean(config, "snat", &snat, err) ||
	    cni_json_get_boolean(config, "masqAll", &all, err))
		return -1;
	conf->policy.keep_hairpin_source = !snat;
	conf->policy.masquerade_all = snat && all;
	if (all && !snat)
		return conf_warn(conf, err, "\"masqAll\" has no effect where \"snat\" is false");
	return 0;
}

static int read_max_flows(struct policy *policy, const json_t *config, struct cni_error *err)
{
	json_int_t value = 0;

	if (cni_json_get_integer(config, "maxFlows", &value, err))
		return -1;
	if (cni_json_get(config, "maxFlows") && (value < 1 || value > UINT32_MAX))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"maxFlows\" is %" JSON_INTEGER_FORMAT
				     ", must be 1 to %u; without the key there is no limit",
				     value, UINT32_MAX);
	policy->max_flows = (__u32)value;
	return 0;
}

/* NULL, or what keeps it from being a source on the network. */
static const char *find_source_fault(const char *text, const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address);

	if (ipv4 && strchr(text, ':'))
		return "is an IPv4 address in IPv6 notation";
	if (cni_address_is_loopback(address))
		return "is a loopback address";
	if (ipv4 ? address[12] == 0 : !memcmp(address, cni_address_any_ipv6, CNI_ADDRESS_SIZE))
		return "is the address of nobody";
	if (ipv4 ? address[12] >= 224 : address[0] == 0xff)
		return "is the address of a group or reserved";
	if (ipv4 ? address[12] == 169 && address[13] == 254
		 : address[0] == 0xfe && (address[1] & 0xc0) == 0x80)
		return "is link-local";
	return NULL;
}

static int append_source(struct policy *policy, const uint8_t address[CNI_ADDRESS_SIZE],
			 struct cni_error *err)
{
	bool ipv4 = cni_address_is_ipv4(address);
	__u8(*sources)[CNI_ADDRESS_SIZE] = ipv4 ? policy->sources4 : policy->sources6;
	__u8 *count = ipv4 ? &policy->source4_count : &policy->source6_count;

	/* Twice in the list would be chosen twice as often. */
	for (__u8 i = 0; i < *count; i++)
		if (!memcmp(sources[i], address, CNI_ADDRESS_SIZE))
			return 0;
	if (*count == POLICY_ADDRESSES)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"snatAddresses\" has more than %d IPv%c addresses, which is "
				     "all that are possible: remove some",
				     POLICY_ADDRESSES, ipv4 ? '4' : '6');
	memcpy(sources[(*count)++], address, CNI_ADDRESS_SIZE);
	return 0;
}

static int read_source(struct policy *policy, const json_t *element, size_t index,
		       struct cni_error *err)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	const char *text, *fault;

	if (cni_json_get_string_element(element, "snatAddresses", index, &text, err))
		return -1;
	fault = cni_address_parse(text, address) ? "is no IP address"
						 : find_source_fault(text, address);
	if (fault)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"snatAddresses\"[%zu] is \"%s\", which %s: give an address "
				     "of the host, such as \"203.0.113.7\" or \"2001:db8::7\", "
				     "without prefix length",
				     index, text, fault);
	return append_source(policy, address, err);
}

static int read_sources(struct policy *policy, const json_t *config, struct cni_error *err)
{
	json_t *array = NULL;
	json_t *element;
	size_t index;

	if (cni_json_get_array(config, "snatAddresses", &array, err))
		return -1;
	json_array_foreach (array, index, element)
		if (read_source(policy, element, index, err))
			return -1;
	return 0;
}

/* Who is in no range is kept out, so exceptions alone keep everybody out. */
static int check_source_ranges(const struct policy *policy, struct cni_error *err)
{
	for (__u8 i = 0; i < policy->source_range_count; i++)
		if (!policy->source_ranges[i].exception)
			return 0;
	if (!policy->source_range_count)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"sourceRanges\" has nothing but exceptions, so that nobody could "
			     "reach the mapped ports: add whom they are exceptions of, such as "
			     "\"0.0.0.0/0\" and \"::/0\"");
}

static int warn_of_idle_exceptions(struct conf *conf, struct cni_error *err)
{
	const struct policy *policy = &conf->policy;

	if (conf_warn_of_idle_exceptions(conf, "nonMasqueradeCIDRs", policy->unmasqueraded,
					 policy->unmasqueraded_count, err) ||
	    conf_warn_of_idle_exceptions(conf, "sourceRanges", policy->source_ranges,
					 policy->source_range_count, err))
		return -1;
	return conf_warn_of_idle_exceptions(conf, "excludeCIDRs", policy->excluded,
					    policy->excluded_count, err);
}

static int read_ranges(struct conf *conf, const json_t *config, struct cni_error *err)
{
	struct policy *policy = &conf->policy;

	if (conf_read_ranges(conf, config, "nonMasqueradeCIDRs", policy->unmasqueraded,
			     &policy->unmasqueraded_count, err) ||
	    conf_read_ranges(conf, config, "sourceRanges", policy->source_ranges,
			     &policy->source_range_count, err) ||
	    conf_read_ranges(conf, config, "excludeCIDRs", policy->excluded,
			     &policy->excluded_count, err) ||
	    check_source_ranges(policy, err))
		return -1;
	return warn_of_idle_exceptions(conf, err);
}

int conf_read_policy(struct conf *conf, const json_t *config, struct cni_error *err)
{
	if (read_switches(conf, config, err) || read_max_flows(&conf->policy, config, err) ||
	    conf_read_port_set(config, "masqPorts", conf->policy.masquerade_ports, err) ||
	    read_sources(&conf->policy, config, err))
		return -1;
	return read_ranges(conf, config, err);
}

int conf_check_excluded(const struct conf *conf, struct cni_error *err)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < conf->mapping_count; i++) {
		const struct port_mapping *mapping = &conf->mappings[i];

		if (mapping->kind == ONE_ADDRESS &&
		    conf_ranges_hold(conf->policy.excluded, conf->policy.excluded_count,
				     mapping->host_address))
			return cni_error_set(
				err, CNI_ERROR_INVALID_CONFIGURATION,
				"runtimeConfig.portMappings[%zu]: \"hostIP\" is \"%s\", which "
				"\"excludeCIDRs\" keeps from being mapped: give another address, "
				"or add the exception \"!%s\" to \"excludeCIDRs\"",
				i, cni_address_format(mapping->host_address, text), text);
	}
	return 0;
}
