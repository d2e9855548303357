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
#include "host/host.h"
#include "lib/cleanup.h"
#include "operator/print/items.h"
#include "operator/verbs.h"

/* Where our programs are. */
struct survey {
	unsigned int interfaces, hooks; /* hooks: of interfaces */
	bool has_older;                 /* one is not that which is pinned */
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
static unsigned int survey_hook(struct survey *survey, const struct datapath *datapath,
				const struct hook_look *hook)
{
	unsigned int count = 0;

	for (size_t i = 0; i < hook->count; i++) {
		const struct hung *hung = &hook->list[i];

		if (hung->program == PROGRAM_COUNT || hung->on_other_maps)
			continue;
		survey->has_older |= hung->id != datapath->objects.program_ids[hung->program];
		count++;
	}
	return count;
}

static unsigned int survey_interface(struct survey *survey, const struct datapath *datapath,
				     uint32_t ifindex)
{
	struct hooks_look look;
	unsigned int count = 0;

	hooks_look(&look, ifindex, qdisc_at_ingress(ifindex), &datapath->objects);
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		count += survey_hook(survey, datapath, &look.hooks[hook]);
	hooks_look_release(&look);
	return count;
}

static int survey_host(struct survey *survey, const struct datapath *datapath,
		       struct cni_error *err)
{
	struct if_nameindex *interfaces = if_nameindex();

	*survey = (struct survey){0};
	if (!interfaces)
		return cni_error_set(err, CNI_ERROR_IO, "cannot list the interfaces: %s",
				     strerror(errno));
	for (struct if_nameindex *interface = interfaces; interface->if_index; interface++) {
		unsigned int hooks = survey_interface(survey, datapath, interface->if_index);

		survey->hooks += hooks;
		survey->interfaces += hooks > 0;
	}
	if_freenameindex(interfaces);
	return 0;
}

static void print_text(const struct upgrade *upgrade)
{
	bool dry_run = upgrade->options->dry_run;

	printf("%s the programs of bpf-portmap %s by those of %s at %u hook%s of %u interface%s;"
	       " mappings and connections stay in their maps\n",
	       dry_run ? "would replace" : "replaced",
	       upgrade->from[0] ? upgrade->from : "(version unknown)", PROGRAM_VERSION,
	       upgrade->survey.hooks, upgrade->survey.hooks == 1 ? "" : "s",
	       upgrade->survey.interfaces, upgrade->survey.interfaces == 1 ? "" : "s");
}

static int print_json(const struct upgrade *upgrade, struct cni_error *err)
{
	struct items items = {.file = stdout};

	return items_end(&items,
			 json_pack("{s:s, s:s, s:b, s:i, s:i}", "from_version", upgrade->from,
				   "to_version", PROGRAM_VERSION, "upgraded",
				   upgrade->needed && !upgrade->options->dry_run, "hooks",
				   (int)upgrade->survey.hooks, "interfaces",
				   (int)upgrade->survey.interfaces),
			 err);
}

/* What can be known without changing anything. */
static int look(struct upgrade *upgrade, struct cni_error *err)
{
	struct datapath *datapath = &upgrade->host.datapath;

	if (host_open(&upgrade->host, DATAPATH_READ, err))
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
	bool ignored[SOCKET_PURPOSES];

	if (host_upgrade(host, err) || socket_hooks_repair(&host->datapath, false, ignored, err))
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
	if (upgrade->needed) {
		print_text(upgrade);
		return 0;
	}
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
