/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_options_test.c - what holds for each row of the table of options, and that README.md agrees.
 */
#include "cni_testing.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "conf/option_table.h"

static void begins_with_its_name(const struct option *option, const char *text)
{
	size_t length = strlen(option->name);

	assert_int_equal(text[0], '"');
	assert_memory_equal(text + 1, option->name, length);
	assert_int_equal(text[length + 1], '"');
}

#define OF(type) (1 << OPTION_##type)
#define LISTS (OF(RANGES) | OF(ADDRESSES) | OF(INTERFACES))

/* Values of which JSON type an option of these types does not take. */
static const struct {
	int types;
	const char *value, *message;
} wrong_types[] = {
	{~0, "{}", "found an object"},
	{OF(BOOLEAN), "'false'", "\" must be true or false, found the string \"false\""},
	{OF(NUMBER), "'1000'", "\" must be an integer, found the string \"1000\""},
	{OF(NUMBER), "1.5", "\" must be an integer"},
	{OF(PORTS), "true", "\" must be a string, an integer or an array of those, found true"},
	{OF(PORTS), "5000.5", "found the number 5000.5"},
	{OF(PORTS), "[[1]]", "found an array"},
	{OF(PORTS), "[null]", "found null"},
	{LISTS, "'10.0.0.1'", "\" must be an array, found the string \"10.0.0.1\""},
	{LISTS, "[10]", "\"[0] must be a string, found the number 10"},
	{LISTS, "[null]", "\"[0] must be a string, found null"},
	{LISTS, "[['10.0.0.1']]", "\"[0] must be a string, found an array"},
};

static void refuses_wrong_types(const struct option *option)
{
	for (size_t i = 0; i < COUNT(wrong_types); i++) {
		cleanup_json json_t *config =
			json_pack("{s:o}", option->name, json_of(wrong_types[i].value));
		struct conf conf = {0};

		if (!(wrong_types[i].types & 1 << option->type))
			continue;
		assert_int_equal(conf_parse_options(&conf, config, &fault), -1);
		begins_with_its_name(option, cni_error_message(&fault));
		assert_error(6, wrong_types[i].message);
		conf_release(&conf);
	}
}

static void warns_of_it_misspelt(const struct option *option)
{
	char key[64], expected[96];
	cleanup_json json_t *config = json_object();
	struct conf conf = {0};

	snprintf(key, sizeof(key), "%s_", option->name);
	snprintf(expected, sizeof(expected), "unknown key \"%s\" is ignored", key);
	json_object_set_new(config, key, json_object());
	assert_int_equal(conf_parse_options(&conf, config, &fault), 0);
	assert_int_equal(json_array_size(conf.warnings), 1);
	assert_string_equal(json_string_value(json_array_get(conf.warnings, 0)), expected);
	conf_release(&conf);
}

/* What a user reads of it. */
static void is_explained(const struct option *option)
{
	assert_non_null(option->help);
	assert_int_equal(option->help[strlen(option->help) - 1], '.');
	assert_int_equal(!option->preset && !option->otherwise,
			 option->type >= OPTION_IGNORED_NUMBER);
	assert_int_equal(option->type == OPTION_NUMBER, option->limits.most != 0);
	assert_int_equal(option->type == OPTION_CHOICE, option->choices != NULL);
}

static void keeps_the_rules(void **state)
{
	refuses_wrong_types(*state);
	warns_of_it_misspelt(*state);
	is_explained(*state);
}

ADD_TESTS(of_each_option)
{
	for (const struct option *option = conf_options; option->name; option++)
		test_add(option->name, keeps_the_rules, option);
}

static const struct option *find(const char *name)
{
	for (const struct option *option = conf_options; option->name; option++)
		if (!strcmp(option->name, name))
			return option;
	return NULL;
}

/* The next text in backticks, in place; NULL: there is none. */
static char *next_code(char **text)
{
	char *begin = strchr(*text, '`'), *end = begin ? strchr(begin + 1, '`') : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return begin + 1;
}

/* Whether the option may have a value: of a choice each one is known. */
static bool takes(const struct option *option, const char *value)
{
	if (option->type != OPTION_CHOICE || *value != '"')
		return true;
	for (const char *const *choice = option->choices; *choice; choice++)
		if (!strncmp(value + 1, *choice, strlen(*choice)) &&
		    !strcmp(value + 1 + strlen(*choice), "\""))
			return true;
	return false;
}

/* "| `name` | ... |", or "| `name`, `name` | `default` | ... |": how many names there are. */
static size_t check_row(char *row)
{
	char *rest = strchr(row, '|'), *code;
	const struct option *option = NULL;
	size_t count = 0;

	if (rest)
		*rest++ = '\0';
	while ((code = next_code(&row)) != NULL) {
		if (!strncmp(code, "capabilities.", strlen("capabilities.")))
			continue;
		option = find(code);
		if (!option)
			print_error("README.md has `%s`, which is no option\n", code);
		assert_non_null(option);
		count++;
	}
	if (rest && option && rest[1] == '`' && option->preset) {
		code = next_code(&rest);
		if (strcmp(code, option->preset))
			print_error("README.md says %s of %s\n", code, option->name);
		assert_string_equal(code, option->preset);
	}
	while (rest && option && (code = next_code(&rest)) != NULL) {
		if (!takes(option, code))
			print_error("README.md has %s of %s\n", code, option->name);
		assert_true(takes(option, code));
	}
	return count;
}

TEST(readme_agrees, "README.md has options that there are, with their defaults")
{
	FILE *readme = fopen("README.md", "re");
	bool is_about_options = false;
	size_t names = 0, size = 0;
	char *line = NULL;

	assert_non_null(readme);
	while (getline(&line, &size, readme) > 0) {
		if (line[0] == '#')
			is_about_options = !strcmp(line, "## Options\n");
		if (is_about_options && !strncmp(line, "| `", 3))
			names += check_row(line + 2);
	}
	free(line);
	fclose(readme);
	assert_true(names >= 6);
}
