/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* iptables_save.c - what iptables-save prints, as chains and rules like those that nft prints. */
#include "operator/doctor/iptables_save.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"

struct place {
	const char *family, *table;
	int number; /* of the rule in all chains */
};

/* A rule that is being made. */
struct making {
	json_t *conditions;
	bool is_ipv4;
	bool negated; /* "!" was before the option */
	char *rest;   /* of the line */
};

/* The next word, without quotes; NULL: the line has ended. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " "), *end;

	if (!*word)
		return NULL;
	if (*word == '"') {
		end = strchrnul(++word, '"');
		*rest = end + (*end != '\0');
	} else {
		end = word + strcspn(word, " ");
		*rest = end + (*end != '\0');
	}
	*end = '\0';
	return word;
}

static void add(struct making *making, json_t *left, json_t *right, const char *op)
{
	json_array_append_new(making->conditions,
			      json_pack("{s:{s:s, s:o, s:o}}", "match", "op",
					making->negated ? "!=" : op, "left", left, "right", right));
	making->negated = false;
}

static void add_unknown(struct making *making)
{
	json_array_append_new(making->conditions, json_pack("{s:{s:s, s:s}}", "xt", "type", "match",
							    "name", "unknown"));
	making->negated = false;
}

static json_t *meta(const char *key)
{
	return json_pack("{s:{s:s}}", "meta", "key", key);
}

static json_t *conntrack(const char *key)
{
	return json_pack("{s:{s:s}}", "ct", "key", key);
}

static void take_interface(struct making *making, const char *key, char *name)
{
	size_t length = strlen(name);

	if (length && name[length - 1] == '+')
		name[length - 1] = '*';
	add(making, meta(key), json_string(name), "==");
}

static void take_address(struct making *making, const char *field, char *text)
{
	char *slash = strchrnul(text, '/');
	int length = *slash ? atoi(slash + 1) : making->is_ipv4 ? 32 : 128;

	/* A mask that is no prefix. */
	if (*slash && strchr(slash, '.')) {
		add_unknown(making);
		return;
	}
	*slash = '\0';
	add(making,
	    json_pack("{s:{s:s, s:s}}", "payload", "protocol", making->is_ipv4 ? "ip" : "ip6",
		      "field", field),
	    json_pack("{s:{s:s, s:i}}", "prefix", "addr", text, "len", length), "==");
}

/* "80", "80:90", "80,443,8000:8100" */
static json_t *read_ports(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (*end == ':')
			last = strtol(end + 1, &end, 10);
		if (end == text)
			break;
		json_array_append_new(list, json_pack("{s:[i,i]}", "range", (int)first, (int)last));
		text = end + (*end == ',');
	}
	return list;
}

static void take_ports(struct making *making, const char *field, const char *text)
{
	add(making, json_pack("{s:{s:s, s:s}}", "payload", "protocol", "th", "field", field),
	    read_ports(text), "in");
}

/* "RELATED,ESTABLISHED" */
static void take_words(struct making *making, const char *key, char *text)
{
	json_t *list = json_array();
	char *word, *state = NULL;

	for (char *c = text; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	for (word = strtok_r(text, ",", &state); word; word = strtok_r(NULL, ",", &state))
		json_array_append_new(list, json_string(word));
	add(making, conntrack(key), list, "in");
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

/* Options with a value that say no more than we know, or are conditions that we know. */
static bool take_option(struct making *making, const char *option, char *value)
{
	static const char *const modules[] = {"tcp",       "udp",       "sctp",  "comment",
					      "conntrack", "multiport", "state", NULL};

	if (!strcmp(option, "-i") || !strcmp(option, "-o"))
		take_interface(making, option[1] == 'i' ? "iifname" : "oifname", value);
	else if (!strcmp(option, "-s") || !strcmp(option, "-d"))
		take_address(making, option[1] == 's' ? "saddr" : "daddr", value);
	else if (!strcmp(option, "-p"))
		add(making, meta("l4proto"), json_string(value), "==");
	else if (!strcmp(option, "--dport") || !strcmp(option, "--dports"))
		take_ports(making, "dport", value);
	else if (!strcmp(option, "--sport") || !strcmp(option, "--sports"))
		take_ports(making, "sport", value);
	else if (!strcmp(option, "--ctstate") || !strcmp(option, "--state"))
		take_words(making, "state", value);
	else if (!strcmp(option, "--ctstatus"))
		take_words(making, "status", value);
	else if (!strcmp(option, "--ctdir"))
		take_words(making, "direction", value);
	else if (!strcmp(option, "--ctorigdstport"))
		add(making,
		    json_pack("{s:{s:s, s:s}}", "ct", "key", "proto-dst", "dir", "original"),
		    read_ports(value), "in");
	else if (!strcmp(option, "-m") && !strcmp(value, "rt"))
		add(making, meta("l4proto"), json_string("a routing header"), "==");
	else if (!strcmp(option, "-m"))
		return is_one_of(value, modules);
	else if (!strncmp(option, "--rt-", 5))
		return true;
	else
		return !strcmp(option, "--comment");
	return true;
}

static json_t *make_verdict(const char *target, bool jumps_for_good)
{
	static const char *const without[] = {
		"LOG",     "NFLOG",   "MARK", "CONNMARK", "TCPMSS", "CLASSIFY", "AUDIT", "TRACE",
		"SECMARK", "NOTRACK", "CT",   "CHECKSUM", "DSCP",   "TOS",      NULL};

	if (!strcmp(target, "ACCEPT"))
		return json_pack("{s:n}", "accept");
	if (!strcmp(target, "DROP") || !strcmp(target, "REJECT"))
		return json_pack("{s:n}", "drop");
	if (!strcmp(target, "RETURN"))
		return json_pack("{s:n}", "return");
	if (is_one_of(target, without))
		return json_pack("{s:n}", "counter");
	return json_pack("{s:{s:s}}", jumps_for_good ? "goto" : "jump", "target", target);
}

/* "CHAIN -i eth0 -p tcp -m tcp --dport 80 -j ACCEPT" */
static json_t *parse_rule(char *line, const struct place *place)
{
	struct making making = {json_array(), !strcmp(place->family, "ip"), false, line};
	const char *chain = next_word(&making.rest);
	char *word;

	while ((word = next_word(&making.rest))) {
		if (!strcmp(word, "!")) {
			making.negated = true;
			continue;
		}
		if (!strcmp(word, "-j") || !strcmp(word, "-g")) {
			char *target = next_word(&making.rest);

			json_array_append_new(making.conditions,
					      make_verdict(target ? target : "", word[1] == 'g'));
			break;
		}
		if (*word != '-')
			continue; /* a value of what is not understood */
		if (*making.rest == '-' || !*making.rest ||
		    !take_option(&making, word, next_word(&making.rest)))
			add_unknown(&making);
	}
	return json_pack("{s:{s:s, s:s, s:s, s:i, s:o}}", "rule", "family", place->family, "table",
			 place->table, "chain", chain ? chain : "", "handle", place->number, "expr",
			 making.conditions);
}

/* "FORWARD DROP [0:0]" */
static json_t *parse_chain(char *line, const struct place *place)
{
	const char *name = next_word(&line), *policy = next_word(&line);
	bool is_base = name && !strcmp(name, "FORWARD");

	return json_pack("{s:{s:s, s:s, s:s, s:s?, s:s?}}", "chain", "family", place->family,
			 "table", place->table, "name", name ? name : "", "hook",
			 is_base ? "forward" : NULL, "policy",
			 policy && !strcmp(policy, "DROP") ? "drop" : "accept");
}

void iptables_save_parse(json_t *ruleset, char *text, const char *family, const char *table)
{
	struct place place = {family, table, 0};
	char *line, *state = NULL;

	/* Names of chains and interfaces may have any bytes; jansson takes only UTF-8. */
	cni_make_utf8(text);
	for (line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		json_t *entry = NULL;

		if (*line == ':')
			entry = parse_chain(line + 1, &place);
		else if (!strncmp(line, "-A ", 3)) {
			place.number++;
			entry = parse_rule(line + 3, &place);
		} else {
			continue;
		}
		json_array_append_new(ruleset, entry);
	}
}
