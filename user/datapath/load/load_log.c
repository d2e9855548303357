/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* load_log.c - what libbpf's warnings say of a load that the kernel refused. */
#include "datapath/load/load_log.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *find_last(const char *text, const char *wanted)
{
	const char *last = NULL;

	for (text = strstr(text, wanted); text; text = strstr(text + 1, wanted))
		last = text;
	return last;
}

/* What the verifier counts comes behind what it says. */
static bool is_figure(const char *line)
{
	static const char *const beginnings[] = {"processed ", "verification time ", "stack depth ",
						 "max_states", "\n"};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(line, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

void load_log_read(const char *log, struct load_log_reason *reason)
{
	static const char prefix[] = "prog '";
	/* "libbpf: prog 'from_uplink': failed to load: -13" */
	const char *name = find_last(log, prefix);
	const char *line = find_last(log, "-- END PROG LOAD LOG --");

	*reason = (struct load_log_reason){0};
	if (name)
		snprintf(reason->program, sizeof(reason->program), "%.*s",
			 (int)strcspn(name + strlen(prefix), "'"), name + strlen(prefix));
	/* The verifier's last line that is no figure, back to where libbpf's own begin. */
	while (line && line > log) {
		for (line--; line > log && line[-1] != '\n'; line--)
			;
		if (!strncmp(line, "libbpf: ", strlen("libbpf: ")))
			return;
		if (is_figure(line))
			continue;
		snprintf(reason->verifier, sizeof(reason->verifier), "%.*s",
			 (int)strcspn(line, "\n"), line);
		return;
	}
}
