/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_keys.c - the names of our options, and keys that look like a misspelt one.
 */
#include "plugin/conf_keys.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_EDITS 2
#define MAX_NAME 32
#define MAX_KEYS 256 /* more than anyone writes; comparing takes time */

/* Every option that conf*.c reads, in the order of bpf-portmap.conf(5). */
static const char *const options[] = {
	"ipMasq",           "ipMasq4",
	"ipMasq6",          "masqPorts",
	"snatAddresses",    "nonMasqueradeCIDRs",
	"maxFlows",         "snat",
	"masqAll",          "sourceRanges",
	"strict",           "excludeCIDRs",
	"uplinks",          "excludeInterfaces",
	"attach",           "flowEntries",
	"fastPath",         "localhost",
	"reserveHostPorts", "refuseForeign",
	"neverPorts",
};

/* Keys that CNI and runtimes put into an entry, and options of portmap that conf_foreign.c knows:
 * they are spelt right, however close they are to an option of ours. */
static const char *const others[] = {
	"type",         "name",         "cniVersion", "capabilities",         "runtimeConfig",
	"ipam",         "dns",          "args",       "prevResult",           "markMasqBit",
	"conditionsV4", "conditionsV6", "backend",    "externalSetMarkChain",
};

static bool is_among_others(const char *key)
{
	for (size_t i = 0; i < COUNT(others); i++)
		if (!strcasecmp(others[i], key))
			return true;
	return false;
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* The Levenshtein distance, without regard to case; both are at most MAX_NAME long. One row of the
 * table at a time: row[j] is the distance of the key's first letters to the name's first j. */
static size_t edits_between(const char *key, const char *name)
{
	size_t row[MAX_NAME + 1], length = strlen(name);

	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 1; key[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			size_t differs = tolower((unsigned char)key[i - 1]) !=
					 tolower((unsigned char)name[j - 1]);
			size_t best = min3(row[j] + 1, row[j - 1] + 1, diagonal + differs);

			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[length];
}

/* NULL: the key is like none of them. */
static const char *nearest_option(const char *key)
{
	const char *nearest = NULL;
	size_t fewest = MAX_EDITS + 1, length = strlen(key), edits;

	if (length > MAX_NAME)
		return NULL;
	for (size_t i = 0; i < COUNT(options); i++) {
		size_t option_length = strlen(options[i]);

		if (length > option_length + MAX_EDITS || option_length > length + MAX_EDITS)
			continue;
		edits = edits_between(key, options[i]);
		if (edits < fewest) {
			fewest = edits;
			nearest = options[i];
		}
	}
	return nearest;
}

int conf_check_keys(struct conf *conf, const json_t *config, struct cni_error *err)
{
	json_t *constless = (json_t *)config; /* the iterators of jansson take no const */
	const char *key, *nearest;
	size_t count = 0;
	json_t *value;

	json_object_foreach (constless, key, value) {
		if (++count > MAX_KEYS)
			break;
		nearest = nearest_option(key);
		if (!nearest || !strcasecmp(nearest, key) || is_among_others(key))
			continue;
		if (conf_warn(conf, err, "unknown key \"%s\" is ignored: did you mean \"%s\"?", key,
			      nearest))
			return -1;
	}
	return 0;
}
