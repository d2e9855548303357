/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* option_types.h - a row of the table of options (option_table.c), and what holds for options of
 * any type. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h"
#include "lib/error.h"

enum option_type {
	OPTION_BOOLEAN, /* bool, or a byte that is 0 or 1 */
	OPTION_NUMBER,  /* uint32_t within `limits`; 0 where the option is missing */
	OPTION_CHOICE,  /* a byte: which of `choices` */
	OPTION_PORTS,   /* struct port_range[MASQUERADE_RANGES] */
	/* struct address_range[POLICY_RANGES]; `count`: a byte, how many; `limits.least`: so many
	 * of them, 0 or 1, must be no exception */
	OPTION_RANGES,
	OPTION_ADDRESSES,  /* struct policy: its sources */
	OPTION_INTERFACES, /* char[CONF_NAMES_SIZE] */
	/* options of portmap, which have no field: a number or a string without effect; refused */
	OPTION_IGNORED_NUMBER,
	OPTION_IGNORED_STRING,
	OPTION_REFUSED,
};

struct limits {
	uint32_t least;
	uint32_t most;
};

struct option {
	const char *name;
	enum option_type type;
	size_t field; /* where it goes: the offset in struct conf */
	size_t count;
	struct limits limits;
	const char *const *choices; /* up to a NULL */
	const char *fallback;       /* the option that is read where this one is missing */
	const char *preset;         /* JSON, read where that one is missing too; NULL: nothing */
	const char *otherwise;      /* where nothing is read: what then holds, in words */
	const char *help;
};

/* What a parser reads: a key of an object that may be missing. Parsers take JSON's null for a
 * missing key, and fail with CNI_ERROR_DECODE for a wrong type, with
 * CNI_ERROR_INVALID_CONFIGURATION for a wrong value. */
struct given {
	const json_t *object;
	const char *key;
	json_t *warnings; /* strings: lines for stderr, without newline */
};

/* Adds a line to the warnings. */
void conf_warn(json_t *warnings, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* *value stays where the key is missing. */
int option_read_number(const struct given *given, struct limits limits, uint32_t *value,
		       struct cni_error *err);

/* Sets *chosen to the value's place among the choices, which are compared without regard to case. A
 * missing key is refused. */
int option_read_choice(const struct given *given, const char *const *choices, uint8_t *chosen,
		       struct cni_error *err);

/* How the strings of an array are read. `add` returns NULL, or what is wrong with the text:
 * "is empty"; `advice` follows in the message. */
struct string_list {
	size_t most;
	const char *advice;
	const char *(*add)(void *field, const char *text);
};

int option_read_strings(const struct given *given, const struct string_list *list, void *field,
			struct cni_error *err);

#define CHOICES_TEXT_SIZE 64
/* Writes "a", "b" or "c", in quotation marks; returns text. */
const char *option_list_choices(const char *const *choices, char text[CHOICES_TEXT_SIZE]);

/* Unknown keys are legal, and ignored. The first ones that are neither an option nor CNI's get a
 * warning: each may be a misspelt option. The table ends with a row without a name. */
void option_check_keys(const struct option *options, const json_t *config, json_t *warnings);

/* Names of interfaces and globs, as in fnmatch(3): each ends with a zero byte, and the whole with
 * another one, as in the map networks. */
#define CONF_NAMES_MOST 64
#define CONF_NAME_LENGTH 64 /* for a few bracket expressions; fnmatch takes its time with more */
#define CONF_NAMES_SIZE (CONF_NAMES_MOST * (CONF_NAME_LENGTH + 1) + 1)

bool conf_is_glob(const char *name);

/* Returns whether a name or glob of the list is that of the interface. */
bool conf_names_interface(const char *names, const char *interface);

/* Reads an array of names. */
int conf_read_names(char names[CONF_NAMES_SIZE], const struct given *given, struct cni_error *err);

/* Ports may be added repeatedly and in any order; they are read back as ranges. Begins as {0}. */
struct port_set {
	uint64_t words[PORT_WORDS];
};

void port_set_add(struct port_set *set, struct port_range range);
void port_set_remove(struct port_set *set, struct port_range range);

/* Returns the first range of the set, not looking at ports below `from`; {0, 0}: there is none. */
struct port_range port_set_next(const struct port_set *set, unsigned int from);

/* Calls `change`, one of the two above, for each range of "80-90,8080", as the kernel writes it. */
void port_set_change_by_list(struct port_set *set, const char *list,
			     void (*change)(struct port_set *set, struct port_range range));

/* Reads "1024-2000,5000", 5000, or an array of both. Ascending ranges, those that touch united; all
 * {0, 0} where the key is missing or the array is empty. */
int conf_read_port_set(struct port_range ranges[MASQUERADE_RANGES], const struct given *given,
		       struct cni_error *err);
