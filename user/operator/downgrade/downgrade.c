/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * downgrade.c - `bpf-portmap downgrade`: puts an older version in the place of this one, with the
 * containers that run.
 *
 * Over the same layout the older version's own `upgrade` does it. Else it cannot read our maps, and
 * has each container added again, by CNI:
 *
 * - The list of ADDs is on file before the first change (adds.h). The next `upgrade` turns back
 *   what a killed run has left; so does the next `downgrade`, and begins anew.
 * - Our pins are removed, and with them the programs at sockets: from now on to the end the host's
 *   own processes do not reach mapped ports. Our programs at interfaces stay at their hooks and
 *   hold our maps: for packets nothing changes yet.
 * - The older version loads its programs (rehearsal.h).
 * - Our attachments are removed. from_container drops what comes from a veth without an attachment,
 *   so that nothing leaves untranslated while the uplinks have the older programs and the container
 *   is unknown to them. Each ADD then puts the older program in its place.
 * - The connections that were there are written to the older maps.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "datapath/load/lock.h"
#include "host/host.h"
#include "host/removal.h"
#include "lib/cleanup.h"
#include "operator/add_cache.h"
#include "operator/downgrade/adds.h"
#include "operator/downgrade/connections.h"
#include "operator/downgrade/older_binary.h"
#include "operator/downgrade/plan.h"
#include "operator/downgrade/quiet.h"
#include "operator/downgrade/rehearsal.h"
#include "operator/downgrade/restore.h"
#include "operator/items.h"
#include "operator/verbs.h"

/* One run. */
struct downgrade {
	const struct options *options;
	struct older_binary older;
	struct host host;
	struct adds adds;
	json_t *plan; /* what is to be added again */
	struct kept_connections connections;
	size_t added;
	double begun, closed; /* seconds */
	bool done;
};

/* Does not come back where it succeeds. */
static int run_its_upgrade(const struct downgrade *downgrade, struct cni_error *err)
{
	const char *arguments[5] = {downgrade->older.path, "upgrade"};
	size_t count = 2;

	if (downgrade->options->dry_run)
		arguments[count++] = "--dry-run";
	if (downgrade->options->json)
		arguments[count++] = "--json";
	execv(downgrade->older.path, (char *const *)arguments);
	return cni_error_set(err, CNI_ERROR_IO, "cannot execute %s", downgrade->older.path);
}

/* What a run that was killed has left is turned back first. */
static int begin(struct downgrade *downgrade, struct cni_error *err)
{
	size_t ignored;

	if (adds_open(&downgrade->adds, err))
		return -1;
	if (downgrade->adds.list && downgrade->options->dry_run)
		return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
				     "a downgrade was not completed (%s): run it without --dry-run,"
				     " or `bpf-portmap upgrade`, which turns it back",
				     downgrade->adds.path);
	if (restore_after_downgrade(&downgrade->adds, &ignored, err))
		return -1;
	return host_open(&downgrade->host, PINS_ALL, err);
}

/* Writes again the pins that were lost, and changes nothing else. */
static int look(struct downgrade *downgrade, struct cni_error *err)
{
	struct host *host = &downgrade->host;

	downgrade->plan = json_array();
	if (host_recover(host, err))
		return -1;
	if (datapath_is_usable(&host->datapath) &&
	    (plan_adds(downgrade->plan, host, err) ||
	     connections_read(&downgrade->connections, &host->datapath, err)))
		return -1;
	return 0;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* What an ADD claims after the look is not removed. */
static int close_ports(struct downgrade *downgrade, struct cni_error *err)
{
	struct host *host = &downgrade->host;
	cleanup_lock int lock = lock_take(err);

	return lock < 0 || plan_check(downgrade->adds.list, host, err) ||
			       host_close_ports(host, &lock, err)
		       ? -1
		       : 0;
}

/* Our maps live on as long as our programs are at a hook. */
static int change(struct downgrade *downgrade, struct cni_error *err)
{
	struct host *host = &downgrade->host;

	if (pins_remove(host->datapath.directory, err) || rehearse(downgrade->older.path, err))
		return -1;
	downgrade->begun = now();
	quiet_begin(downgrade->adds.list);
	/* By now no other one begins in the IP stack. */
	if (connections_read(&downgrade->connections, &host->datapath, err) ||
	    close_ports(downgrade, err) ||
	    adds_run(&downgrade->adds, downgrade->older.path, &downgrade->added, err))
		return -1;
	connections_give(&downgrade->connections);
	return 0;
}

/* As it was, but for the connections. */
static int turn_back(struct downgrade *downgrade, struct cni_error *err)
{
	struct cni_error failure = {0};
	size_t ignored;

	if (restore_after_downgrade(&downgrade->adds, &ignored, &failure))
		cni_error_chain(err, &failure);
	else
		cni_error_wrap(err, "the containers have bpf-portmap " PROGRAM_VERSION " again");
	return -1;
}

static int change_or_turn_back(struct downgrade *downgrade, struct cni_error *err)
{
	if (adds_save(&downgrade->adds, json_incref(downgrade->plan), err))
		return -1;
	if (change(downgrade, err))
		return turn_back(downgrade, err);
	if (quiet_end(err))
		return -1;
	downgrade->closed = now() - downgrade->begun;
	downgrade->done = true;
	adds_finish(&downgrade->adds);
	return 0;
}

/* A terminal that is closed, say, must not leave ports closed: what would end this process does so
 * afterwards. */
static int carry_out(struct downgrade *downgrade, struct cni_error *err)
{
	sigset_t ends, before;
	int result;

	sigemptyset(&ends);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, &before);
	result = change_or_turn_back(downgrade, err);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

static int print_json(const struct downgrade *downgrade, struct cni_error *err)
{
	struct items items = {.file = stdout};
	const json_t *add;
	size_t i;

	json_array_foreach (downgrade->plan, i, add)
		if (items_add(&items,
			      json_pack("{s:O, s:O, s:O}", "network",
					json_object_get(add, "network"), "container_id",
					json_object_get(add, "container_id"), "ifname",
					json_object_get(add, "ifname")),
			      err))
			return -1;
	return items_end(&items,
			 json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:f}", "from_version",
				   PROGRAM_VERSION, "to_version", downgrade->older.version,
				   "downgraded", downgrade->done, "containers",
				   (json_int_t)downgrade->added, "connections",
				   (json_int_t)downgrade->connections.count, "connections_given",
				   (json_int_t)downgrade->connections.given, "milliseconds",
				   downgrade->closed * 1000),
			 err);
}

static int print_text(const struct downgrade *downgrade)
{
	bool dry_run = downgrade->options->dry_run;
	size_t count = dry_run ? json_array_size(downgrade->plan) : downgrade->added;

	printf("%s bpf-portmap " PROGRAM_VERSION " by %s; it %s %zu container%s again",
	       dry_run ? "would replace" : "replaced", downgrade->older.version,
	       dry_run ? "would add" : "has added", count, count == 1 ? "" : "s");
	if (!dry_run)
		printf("; for %.0f ms their ports were closed, and what they sent was dropped",
		       downgrade->closed * 1000);
	printf("\n%zu connections, %zu of them masqueraded, ", downgrade->connections.count,
	       downgrade->connections.masqueraded);
	if (dry_run)
		puts("would be carried over as far as that can be");
	else
		printf("were there; %zu were carried over\n", downgrade->connections.given);
	return 0;
}

static bool is_replaced(const struct datapath *datapath)
{
	return datapath_is_older(datapath) && !(datapath->layout & LAYOUT_TAKEN_OVER);
}

static bool has_something(const struct datapath *datapath)
{
	return datapath->state != DATAPATH_ABSENT && !is_replaced(datapath);
}

static int print(const struct downgrade *downgrade, struct cni_error *err)
{
	const struct datapath *datapath = &downgrade->host.datapath;

	if (downgrade->options->json)
		return print_json(downgrade, err);
	if (has_something(datapath))
		return print_text(downgrade);
	if (is_replaced(datapath))
		printf("nothing to do: the programs are those of bpf-portmap %s\n",
		       datapath->maker);
	else
		puts("nothing is loaded: the first ADD of the older version loads its programs");
	return 0;
}

static int run(struct downgrade *downgrade, const char *path, struct cni_error *err)
{
	const struct datapath *datapath = &downgrade->host.datapath;

	if (older_binary_examine(&downgrade->older, path, err) || begin(downgrade, err))
		return -1;
	if (downgrade->older.has_our_layout)
		return run_its_upgrade(downgrade, err);
	if (!is_replaced(datapath) && look(downgrade, err))
		return -1;
	if (has_something(datapath) && !downgrade->options->dry_run && carry_out(downgrade, err))
		return -1;
	return print(downgrade, err);
}

int verb_downgrade(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct downgrade downgrade = {.options = options, .adds = ADDS_NONE};
	int result;

	/* A reader that goes must not end it half-way. */
	signal(SIGPIPE, SIG_IGN);
	result = run(&downgrade, operands[0], err);
	adds_close(&downgrade.adds);
	connections_release(&downgrade.connections);
	json_decref(downgrade.plan);
	host_close(&downgrade.host);
	return result;
}
