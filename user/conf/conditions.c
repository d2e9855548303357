/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conditions.c - portmap's conditions, words of iptables, as our options. */
#include "conf/conditions.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/address.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "lib/prefix.h"
#include "lib/text.h"

#define ALL_IPV4 "0.0.0.0/0"
#define ALL_IPV6 "::/0"

enum { MATCH_SOURCE, MATCH_DESTINATION, MATCH_INTERFACE, MATCH_COUNT };

static const struct match {
	const char *words[3]; /* iptables' for it */
	/* The key for what shall match, and the one for what shall not */
	const char *key, *negated;
} matches[MATCH_COUNT] = {
	[MATCH_SOURCE] = {{"-s", "--source", "--src"}, "sourceRanges", "sourceRanges"},
	[MATCH_DESTINATION] = {{"-d", "--destination", "--dst"}, "excludeCIDRs", "excludeCIDRs"},
	[MATCH_INTERFACE] = {{"-i", "--in-interface", NULL}, "uplinks", "excludeInterfaces"},
};

/* What the words at hand say: "!" perhaps, a match, its value. */
struct condition {
	int match;
	bool negated;
	const char *value;
};

static const char *word_at(const json_t *conditions, size_t *next)
{
	const char *word = json_string_value(json_array_get(conditions, *next));

	*next += word != NULL;
	return word ? word : "";
}

static bool is_match(const struct match *match, const char *word)
{
	for (size_t i = 0; i < sizeof(match->words) / sizeof(match->words[0]); i++)
		if (match->words[i] && !strcmp(match->words[i], word))
			return true;
	return false;
}

static bool read_condition(const json_t *conditions, size_t *next, struct condition *condition)
{
	const char *word = word_at(conditions, next);

	condition->negated = !strcmp(word, "!");
	if (condition->negated)
		word = word_at(conditions, next);
	for (condition->match = 0; condition->match < MATCH_COUNT; condition->match++)
		if (is_match(&matches[condition->match], word))
			break;
	condition->value = word_at(conditions, next);
	return condition->match < MATCH_COUNT && *condition->value;
}

/* "10.0.0.0/8,192.0.2.1" */
static json_t *split(const char *value)
{
	json_t *list = json_array();

	for (size_t length; *value; value += length + (value[length] == ',')) {
		length = strcspn(value, ",");
		json_array_append_new(list, json_stringn(value, length));
	}
	return list;
}

/* iptables' "eth+" is our "eth*". False: the name would be another one to us. */
static bool translate_names(json_t *list)
{
	json_t *element;
	size_t i;

	json_array_foreach (list, i, element) {
		const char *name = json_string_value(element);
		size_t length = strlen(name);

		if (strpbrk(name, "*?["))
			return false;
		if (length && name[length - 1] == '+')
			json_array_set_new(list, i, json_sprintf("%.*s*", (int)length - 1, name));
	}
	return true;
}

/* iptables also knows names of hosts, and masks as 255.255.0.0, which no option of ours does. */
static bool are_ranges(const json_t *list)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	const json_t *element;
	struct prefix prefix;
	size_t i;

	json_array_foreach (list, i, element)
		if (cni_address_parse(json_string_value(element), address) &&
		    prefix_parse(json_string_value(element), &prefix))
			return false;
	return true;
}

/* All but these: an exception for each, of all addresses of the family. */
static json_t *invert(json_t *list, const char *all)
{
	json_t *inverted = json_pack("[s]", all);
	const json_t *element;
	size_t i;

	json_array_foreach (list, i, element)
		json_array_append_new(inverted, json_sprintf("!%s", json_string_value(element)));
	json_decref(list);
	return inverted;
}

/* Returns what it names, as our options have it. NULL: they cannot. */
static json_t *read_value(const struct condition *condition, const char *all)
{
	bool is_interface = condition->match == MATCH_INTERFACE;
	json_t *list = is_interface ? json_pack("[s]", condition->value) : split(condition->value);

	if (!list || !(is_interface ? translate_names(list) : are_ranges(list))) {
		json_decref(list);
		return NULL;
	}
	/* Clients are named that may, addresses that may not. */
	if ((condition->match == MATCH_SOURCE && condition->negated) ||
	    (condition->match == MATCH_DESTINATION && !condition->negated))
		list = invert(list, all);
	return list;
}

/* Adds it to what the other family's conditions have. Ours about interfaces are for both families:
 * where both name some, these must be the same. */
static bool add_value(json_t *keys, const struct condition *condition, json_t *list)
{
	const struct match *match = &matches[condition->match];
	const char *key = condition->negated ? match->negated : match->key;
	json_t *present = json_object_get(keys, key);

	if (condition->match == MATCH_INTERFACE &&
	    (json_object_get(keys, match->key) || json_object_get(keys, match->negated)))
		return present && json_equal(present, list);
	return present ? !json_array_extend(present, list) : !json_object_set(keys, key, list);
}

/* Adds one family's. Returns false where no key of ours does the same: two of one kind must both
 * hold, which one list cannot say. */
static bool translate(json_t *keys, const json_t *conditions, const char *all, bool *has_source)
{
	bool seen[MATCH_COUNT] = {false};
	struct condition condition;

	for (size_t next = 0; next < json_array_size(conditions);) {
		cleanup_json json_t *list = NULL;

		if (!read_condition(conditions, &next, &condition) || seen[condition.match])
			return false;
		seen[condition.match] = true;
		list = read_value(&condition, all);
		if (!list || !add_value(keys, &condition, list))
			return false;
	}
	*has_source = seen[MATCH_SOURCE];
	return true;
}

json_t *conditions_translate(const json_t *config)
{
	cleanup_json json_t *keys = or_exit(json_object());
	bool source4, source6;

	if (!translate(keys, cni_json_get(config, "conditionsV4"), ALL_IPV4, &source4) ||
	    !translate(keys, cni_json_get(config, "conditionsV6"), ALL_IPV6, &source6))
		return NULL;
	/* A list with ranges of one family lets in nobody of the other one. */
	if (source4 != source6)
		json_array_append_new(json_object_get(keys, "sourceRanges"),
				      json_string(source4 ? ALL_IPV6 : ALL_IPV4));
	return json_incref(keys);
}

char *conditions_print(const json_t *keys)
{
	cleanup_free char *text = or_exit(json_dumps(keys, 0));

	/* Without its braces. */
	return or_exit(cni_format("%.*s", (int)strlen(text) - 2, text + 1));
}
