/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* upgrade.c - `bpf-portmap upgrade`: brings this binary's programs to the interfaces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "datapath/attach/socket_hooks.h"
#include "host/host.h"
#include "lib/memory.h"
#include "net/link.h"
#include "operator/verbs.h"
#include "operator/view/view.h"

/* One run. */
struct upgrade {
	const struct options *options;
	struct host host;
	char from[PROGRAM_VERSION_SIZE]; /* "": not known */
	bool needed;
};

/* By TCX, a program stays at an interface that is moved here from another host's network namespace;
 * it works on that host's maps, and is replaced only when this host takes the interface. Where our
 * maps cannot be read, nothing tells the two apart. */
static bool has_older(const struct datapath *datapath, uint32_t ifindex)
{
	struct hooks_look look;
	bool found = false;

	hooks_look(&look, ifindex, qdisc_at_ingress(ifindex), &datapath->objects);
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		for_each (hung, look.hooks[hook].list, look.hooks[hook].count)
			found |= hung->program != PROGRAM_COUNT && !hung->on_other_maps &&
				 hung->id != datapath->objects.program_ids[hung->program];
	hooks_look_release(&look);
	return found;
}

/* One that an earlier run could not replace. */
static int find_older(const struct datapath *datapath, bool *found, struct cni_error *err)
{
	struct link_names links = {0};
	int result = link_names_read(&links, err);

	*found = false;
	for (size_t i = 0; i < links.count && !result; i++)
		*found |= has_older(datapath, links.list[i].ifindex);
	free(links.list);
	return result;
}

/* What can be known without changing anything. */
static int look(struct upgrade *upgrade, struct cni_error *err)
{
	struct datapath *datapath = &upgrade->host.datapath;

	if (host_open(&upgrade->host, DATAPATH_READ, err))
		return -1;
	if (datapath->state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(datapath, err);
	memcpy(upgrade->from, datapath->maker, sizeof(upgrade->from));
	upgrade->needed = datapath->state != DATAPATH_ABSENT;
	if (!upgrade->needed)
		return view_check(datapath, err);
	if (datapath->state != DATAPATH_READY || strcmp(datapath->maker, PROGRAM_VERSION) != 0)
		return 0;
	if (find_older(datapath, &upgrade->needed, err))
		return -1;
	if (upgrade->needed)
		upgrade->from[0] = '\0';
	return 0;
}

static int replace(struct upgrade *upgrade, struct cni_error *err)
{
	struct host *host = &upgrade->host;
	bool ignored[SOCKET_PURPOSES];

	return host_upgrade(host, err) || socket_hooks_repair(&host->datapath, false, ignored, err)
		       ? -1
		       : 0;
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
	if (upgrade->needed)
		printf("%s the programs of bpf-portmap %s by those of %s; mappings and"
		       " connections stay in their maps\n",
		       upgrade->options->dry_run ? "would replace" : "replaced",
		       *upgrade->from ? upgrade->from : "(version unknown)", PROGRAM_VERSION);
	else
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
