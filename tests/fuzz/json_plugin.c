/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * json_plugin.c - libFuzzer for the input of the plugin.
 *
 * The first line of an input has the CNI_ variables, separated by tabs; the rest is stdin.
 */
#include <jansson.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "cni/network_config.h"
#include "cni/result.h"
#include "cni/version.h"
#include "conf/request.h"
#include "operator/install/lists.h"
#include "json_fuzz.h"

#define VARIABLES 16

/* Changes the line: each tab becomes the end of a variable. */
static void read_environment(char *line, struct cni_environment *environment)
{
	static char *variables[VARIABLES + 1];
	size_t count = 0;

	for (char *next; line && count < VARIABLES; line = next) {
		next = strchr(line, '\t');
		if (next)
			*next++ = '\0';
		if (strchr(line, '='))
			variables[count++] = line;
	}
	variables[count] = NULL;
	environ = variables;
	cni_environment_read(environment);
}

static int claim_compare(const struct port_claim *a, const struct port_claim *b)
{
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static void claim_ports(struct conf *conf, const struct cni_result *result, const char *ifname)
{
	const struct cni_result_address *v4 = cni_result_first_address(result, true, ifname);
	const struct cni_result_address *v6 = cni_result_first_address(result, false, ifname);
	const struct port_claim *claims = conf->ports;
	struct cni_error err = {0};

	if (checked(conf_claim_ports(conf, v4 ? v4->address : NULL, v6 ? v6->address : NULL, &err),
		    &err))
		return;
	for (size_t i = 0; i < conf->port_count; i++) {
		MUST(claims[i].key.host_port && claims[i].portmap.container_port);
		MUST(!i || claim_compare(&claims[i - 1], &claims[i]) < 0);
	}
}

static void take_prev_result(const struct cni_network_config *config, struct conf *conf,
			     const char *ifname)
{
	cleanup_json json_t *relabelled = NULL;
	struct cni_result result = {0};
	struct cni_error err = {0};
	json_t *json;

	if (checked(cni_network_config_get_prev_result(config, &json, &err), &err))
		return;
	if (!checked(cni_result_read(&result, json, config->version, &err), &err)) {
		claim_ports(conf, &result, ifname);
		relabelled = cni_result_relabel(json, config->version);
		MUST(relabelled);
	}
	cni_result_release(&result);
}

static void take_config(const struct cni_network_config *config,
			const struct cni_environment *environment)
{
	cleanup_json json_t *valid = NULL;
	struct conf options = {0}, conf = {0};
	struct cni_error err = {0};
	int result;

	result = checked(conf_parse_options(&options, config->root, &err), &err);
	conf_release(&options);
	if (!checked(conf_parse(&conf, config->root, environment->args, &err), &err)) {
		MUST(result == 0);
		take_prev_result(config, &conf, environment->ifname);
	}
	conf_release(&conf);
	if (!checked(cni_attachments_read(&valid, config->root, &err), &err))
		cni_attachments_have(valid, environment->container_id, environment->ifname);
}

/* What install writes into a conflist, uninstall takes out again, to the byte. */
static void change_list(const char *text, size_t size)
{
	cleanup_free char *list = strndup(text, size), *changed = NULL, *back = NULL;
	struct cni_error err = {0};
	enum list_verdict verdict = list_text_judge(text, size, "a.conflist", &err);

	checked(verdict == LIST_HAS_REFERENCE || verdict == LIST_HAS_OURS ? 0 : -1, &err);
	if (verdict != LIST_HAS_REFERENCE)
		return;
	changed = list_text_change(list, REFERENCE_TYPE, OUR_TYPE, "a.conflist", &err);
	if (checked(changed ? 0 : -1, &err))
		return;
	MUST(list_text_judge(changed, strlen(changed), "a.conflist", &err) == LIST_HAS_OURS);
	back = list_text_change(changed, OUR_TYPE, REFERENCE_TYPE, "a.conflist", &err);
	MUST(back && !strcmp(back, list));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t line = end ? (size_t)(end - data) : size;
	cleanup_free char *text = strndup((const char *)data, line);
	size_t skip = end ? line + 1 : size;
	struct cni_network_config config = {0};
	struct cni_environment environment;
	struct cni_error err = {0};
	char **before = environ;

	MUST(text);
	read_environment(text, &environment);
	checked(cni_environment_validate(&environment, &err), &err);
	if (!checked(cni_network_config_parse(&config, (const char *)data + skip, size - skip,
					      &environment, &err),
		     &err))
		take_config(&config, &environment);
	cni_network_config_release(&config);
	change_list((const char *)data + skip, size - skip);
	environ = before;
	return 0;
}
