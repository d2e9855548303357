/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_command.c - the firewall's rules as nft prints them. */
#include "operator/doctor/nft_command.h"

#include <stdlib.h>
#include <string.h>

#include "cni/json.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/text_file.h"
#include "operator/doctor/iptables_save.h"
#include "operator/run_command.h"

#define COMMAND_SECONDS 10

static char *read_output(const char *const *arguments, size_t *length, char **why)
{
	cleanup_command struct command_run run = {.arguments = arguments,
						  .seconds = COMMAND_SECONDS};
	char failure[COMMAND_FAILURE_SIZE];
	char *text = NULL;

	if (!command_run(&run) && !run.length) {
		*why = cni_format("%s", command_run_why(&run, failure));
		return NULL;
	}
	text = run.output;
	*length = run.length;
	run.output = NULL;
	return text;
}

static json_t *read_nft(char **why)
{
	const char *const arguments[] = {"nft", "-j", "list", "ruleset", NULL};
	size_t length = 0;
	cleanup_free char *text = read_output(arguments, &length, why);
	cleanup_json json_t *whole = NULL;
	json_t *ruleset;
	json_error_t error;

	if (!text)
		return NULL;
	cni_json_begin();
	whole = json_loadb(text, length, 0, &error);
	ruleset = json_object_get(whole, "nftables");
	if (json_is_array(ruleset))
		return json_incref(ruleset);
	*why = cni_format("nft prints no JSON: %s", error.text);
	return NULL;
}

static bool is_text(const json_t *object, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value && !strcmp(value, text);
}

static bool is_of_table(const json_t *entry, const char *family)
{
	const json_t *one = json_object_get(entry, "chain");

	one = one ? one : json_object_get(entry, "rule");
	return is_text(one, "family", family) && is_text(one, "table", "filter");
}

/* Whether the family's table "filter" is iptables-nft's. */
static bool has_iptables_nft(const json_t *ruleset, const char *family)
{
	const json_t *entry, *chain;
	size_t i;

	json_array_foreach (ruleset, i, entry) {
		chain = json_object_get(entry, "chain");
		if (is_of_table(entry, family) && is_text(chain, "name", "FORWARD"))
			return true;
	}
	return false;
}

static bool has_legacy_filter(const char *path)
{
	char names[256] = "\n"; /* one a line */

	text_file_read(path, names + 1, sizeof(names) - 1);
	return strstr(names, "\nfilter\n");
}

/* Its words replace what nft says of the same table. */
static void read_iptables_nft(json_t *ruleset, const char *family, char *command)
{
	const char *const arguments[] = {command, "-t", "filter", NULL};
	cleanup_free char *ignored = NULL;
	size_t length = 0;
	cleanup_free char *text = read_output(arguments, &length, &ignored);

	if (!text || !length)
		return;
	for (size_t i = json_array_size(ruleset); i > 0; i--)
		if (is_of_table(json_array_get(ruleset, i - 1), family))
			json_array_remove(ruleset, i - 1);
	iptables_save_parse(ruleset, text, family, "filter");
}

static void read_legacy(json_t *ruleset, const char *family, char *command)
{
	const char *const arguments[] = {command, "-t", "filter", NULL};
	cleanup_free char *ignored = NULL;
	size_t length = 0;
	cleanup_free char *text = read_output(arguments, &length, &ignored);

	if (text && length)
		iptables_save_parse(ruleset, text, family, LEGACY_TABLE);
}

json_t *nft_command_read(char **why)
{
	json_t *ruleset = read_nft(why);

	if (!ruleset)
		return NULL;
	if (has_iptables_nft(ruleset, "ip"))
		read_iptables_nft(ruleset, "ip", "iptables-nft-save");
	if (has_iptables_nft(ruleset, "ip6"))
		read_iptables_nft(ruleset, "ip6", "ip6tables-nft-save");
	if (has_legacy_filter("/proc/net/ip_tables_names"))
		read_legacy(ruleset, "ip", "iptables-legacy-save");
	if (has_legacy_filter("/proc/net/ip6_tables_names"))
		read_legacy(ruleset, "ip6", "ip6tables-legacy-save");
	return ruleset;
}
