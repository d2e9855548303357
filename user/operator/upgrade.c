/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* upgrade.c - `bpf-portmap upgrade`: brings this binary's programs to the interfaces. */
#include <errno.h>
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "datapath/attach/socket_hooks.h"
#include "host/host.h"
#include "host/ready.h"
#include "lib/cleanup.h"
#include "operator/print/items.h"
#include "operator/print/table.h"
#include "operator/verbs.h"

/* At how many interfaces our programs are. */
struct survey {
	unsigned int interfaces[PROGRAM_COUNT][HOOK_COUNT][MECHANISM_COUNT];
	bool at_sockets[SOCKET_PURPOSES];
	bool has_older; /* one is not that which is pinned */
};

/* One run. */
struct upgrade {
	const struct options *options;
	struct host host;
	char from[PROGRAM_VERSION_SIZE]; /* "": not known */
	bool needed;
	struct survey survey;
};

/* By TCX, a program stays at an interface that is moved here from another host's network namespace;
 * it works on that host's maps, and is replaced only when this host takes the interface. Where our
 * maps cannot be read, nothing tells the two apart. */
static void survey_hook(struct survey *survey, const struct datapath *datapath, uint32_t ifindex,
			enum hook hook)
{
	struct attached_programs found;

	hook_find_programs(ifindex, hook, &found);
	for (size_t i = 0; i < found.count; i++) {
		const struct attached_program *program = &found.list[i];
		bool older = program->id != datapath->objects.program_ids[program->program];

		if (older && datapath_is_usable(datapath) &&
		    !program_uses_maps(program->id, &datapath->objects))
			continue;
		survey->has_older |= older;
		survey->interfaces[program->program][hook][program->mechanism]++;
	}
}

static int survey_host(struct survey *survey, const struct datapath *datapath,
		       struct cni_error *err)
{
	struct if_nameindex *interfaces = if_nameindex();

	*survey = (struct survey){0};
	if (!interfaces)
		return cni_error_set(err, CNI_ERROR_IO, "cannot list the interfaces: %s",
				     strerror(errno));
	for (struct if_nameindex *interface = interfaces; interface->if_index; interface++)
		for (int hook = 0; hook < HOOK_COUNT; hook++)
			survey_hook(survey, datapath, interface->if_index, (enum hook)hook);
	if_freenameindex(interfaces);
	for (int purpose = 0; purpose < SOCKET_PURPOSES; purpose++)
		survey->at_sockets[purpose] =
			socket_hooks_are_used(datapath, (enum socket_purpose)purpose);
	return 0;
}

/* What is printed of one program. */
struct line {
	const char *program, *hook, *by;
	unsigned int interfaces; /* 0: it is at sockets */
};

typedef int visit_line(const struct line *line, void *context, struct cni_error *err);

static int visit_socket_lines(const struct survey *survey, visit_line *visit, void *context,
			      struct cni_error *err)
{
	for (int purpose = 0; purpose < SOCKET_PURPOSES; purpose++) {
		if (!survey->at_sockets[purpose])
			continue;
		for_each_socket_program (program, (enum socket_purpose)purpose) {
			struct line line = {socket_program_name(program), "sockets", "link", 0};

			if (visit(&line, context, err))
				return -1;
		}
	}
	return 0;
}

static int visit_lines(const struct survey *survey, visit_line *visit, void *context,
		       struct cni_error *err)
{
	static const char *const mechanisms[MECHANISM_COUNT] = {
		[MECHANISM_TCX] = "tcx",
		[MECHANISM_CLSACT] = "filter",
	};

	for (int i = 0; i < PROGRAM_COUNT * HOOK_COUNT * MECHANISM_COUNT; i++) {
		int program = i / (HOOK_COUNT * MECHANISM_COUNT);
		int hook = i / MECHANISM_COUNT % HOOK_COUNT, mechanism = i % MECHANISM_COUNT;
		struct line line = {program_name((enum program_number)program),
				    hook_name((enum hook)hook), mechanisms[mechanism],
				    survey->interfaces[program][hook][mechanism]};

		if (line.interfaces && visit(&line, context, err))
			return -1;
	}
	return visit_socket_lines(survey, visit, context, err);
}

static int print_line(const struct line *line, void *context, struct cni_error *err)
{
	struct table *table = context;

	table_cell(table, line->program);
	table_cell(table, line->hook);
	table_cell(table, line->by);
	if (line->interfaces)
		table_printf(table, "%u", line->interfaces);
	else
		table_cell(table, "");
	return 0;
}

static void print_versions(const struct upgrade *upgrade)
{
	printf("%s the programs of bpf-portmap %s by those of %s; mappings and connections stay in"
	       " their maps\n",
	       upgrade->options->dry_run ? "would replace" : "replaced",
	       upgrade->from[0] ? upgrade->from : "(version unknown)", PROGRAM_VERSION);
}

static int print_text(const struct upgrade *upgrade, struct cni_error *err)
{
	static const struct table_column columns[] = {
		{"PROGRAM", TABLE_LEFT},
		{"HOOK", TABLE_LEFT},
		{"BY", TABLE_LEFT},
		{"INTERFACES", TABLE_RIGHT},
	};
	cleanup_table struct table table;

	print_versions(upgrade);
	table_begin(&table, stdout, columns, sizeof(columns) / sizeof(columns[0]));
	return visit_lines(&upgrade->survey, print_line, &table, err) || table_end(&table, err) ? -1
												: 0;
}

static int add_item(const struct line *line, void *context, struct cni_error *err)
{
	return items_add(context,
			 json_pack("{s:s, s:s, s:s, s:i}", "program", line->program, "hook",
				   line->hook, "by", line->by, "interfaces", (int)line->interfaces),
			 err);
}

static int print_json(const struct upgrade *upgrade, struct cni_error *err)
{
	struct items items = {.file = stdout};

	if (upgrade->needed && visit_lines(&upgrade->survey, add_item, &items, err))
		return -1;
	return items_end(&items,
			 json_pack("{s:s, s:s, s:b}", "from_version", upgrade->from, "to_version",
				   PROGRAM_VERSION, "upgraded",
				   upgrade->needed && !upgrade->options->dry_run),
			 err);
}

/* What can be known without changing anything. */
static int look(struct upgrade *upgrade, struct cni_error *err)
{
	struct datapath *datapath = &upgrade->host.datapath;

	if (host_open_to_read(&upgrade->host, err))
		return -1;
	if (datapath->state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(datapath, err);
	if (survey_host(&upgrade->survey, datapath, err))
		return -1;
	memcpy(upgrade->from, datapath->maker, sizeof(upgrade->from));
	if (datapath->state == DATAPATH_READY && !strcmp(datapath->maker, PROGRAM_VERSION)) {
		upgrade->needed = upgrade->survey.has_older;
		/* Of one that an earlier run could not replace nobody knows the version. */
		if (upgrade->needed)
			upgrade->from[0] = '\0';
	} else {
		upgrade->needed = datapath->state != DATAPATH_ABSENT;
	}
	return 0;
}

static int replace(struct upgrade *upgrade, struct cni_error *err)
{
	struct host *host = &upgrade->host;

	if (datapath_upgrade(&host->datapath, &host->addresses, err) ||
	    socket_hooks_repair(&host->datapath, err))
		return -1;
	return survey_host(&upgrade->survey, &host->datapath, err);
}

static int run(struct upgrade *upgrade, struct cni_error *err)
{
	struct host *host = &upgrade->host;

	if (look(upgrade, err))
		return -1;
	if (upgrade->needed && !upgrade->options->dry_run && replace(upgrade, err))
		return -1;
	/* Uninstall may have had the lock before. */
	upgrade->needed &= host->datapath.state != DATAPATH_ABSENT;
	if (upgrade->options->json)
		return print_json(upgrade, err);
	if (upgrade->needed)
		return print_text(upgrade, err);
	puts(host->datapath.state == DATAPATH_ABSENT
		     ? "nothing is loaded: the first ADD loads the programs of bpf-portmap"
		       " " PROGRAM_VERSION
		     : "nothing to do: the programs are those of "
		       "bpf-portmap " PROGRAM_VERSION);
	return 0;
}

int verb_upgrade(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct upgrade upgrade = {.options = options};
	int result = run(&upgrade, err);

	host_close(&upgrade.host);
	return result;
}
