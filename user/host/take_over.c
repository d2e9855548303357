/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* take_over.c - from the maps of an older release to ours, while packets pass. */
#include "host/take_over.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "datapath/attach/attach.h"
#include "datapath/attach/socket_hooks.h"
#include "datapath/load/loader.h"
#include "datapath/load/lock.h"
#include "datapath/records/adopt.h"
#include "lib/cleanup.h"

#define SLOW_PROGRAM_MILLISECONDS 50

/* Readings of the old connections. */
struct pass {
	int program;
	struct take_over_report *report;
	/* CLOCK_MONOTONIC, seconds, of when the last one began; 0: this is the first */
	uint32_t before, now;
};

int take_over_begin(struct older_set *set, const struct datapath *datapath, struct cni_error *err)
{
	return lock_need_older(err) || older_open(set, datapath->directory, datapath->layout, err)
		       ? -1
		       : 0;
}

/* Waits for programs that were replaced and still run on another CPU: what they begin must be seen
 * by the reading that follows. The kernel ends this call when every CPU was in user space. */
static void wait_for_programs(void)
{
	const struct timespec pause = {.tv_nsec = SLOW_PROGRAM_MILLISECONDS * 1000000L};

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&pause, NULL);
}

/* It has had no packet since the last reading, which had room for all. A program's clock may be a
 * tick behind. */
static bool is_unchanged(const struct pass *pass, const struct taken_over *connection)
{
	return pass->before && !pass->report->failed && connection->last_seen + 1 < pass->before;
}

static int take_connection(const struct taken_over *connection, void *context,
			   struct cni_error *err)
{
	const struct pass *pass = context;
	enum adopted adopted = ADOPTED;

	if (!is_unchanged(pass, connection) &&
	    adopt_taken_over(pass->program, connection, &adopted, err))
		return -1;
	if (adopted == ADOPTED)
		pass->report->connections++;
	else
		pass->report->failed++;
	return 0;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int take_connections(const struct older_set *set, struct pass *pass, struct cni_error *err)
{
	pass->before = pass->report->failed ? 0 : pass->now;
	pass->now = (uint32_t)now();
	pass->report->connections = pass->report->failed = 0;
	return set->layout->walk_connections(set->maps, take_connection, pass, err);
}

/* See take_over.h for why in this order. */
static int replace_programs(const struct older_set *set, const struct datapath *datapath,
			    struct pass *pass, struct cni_error *err)
{
	if (attach_refresh(datapath, 1U << HOOK_EGRESS, err))
		return -1;
	wait_for_programs();
	if (take_connections(set, pass, err) || attach_refresh(datapath, 1U << HOOK_INGRESS, err))
		return -1;
	socket_hooks_refresh(datapath);
	wait_for_programs();
	set->layout->copy_marks(set->maps, &datapath->objects);
	return take_connections(set, pass, err);
}

int take_over_run(const struct older_set *set, const struct datapath *datapath,
		  struct take_over_report *report, struct cni_error *err)
{
	struct pass pass = {.report = report};
	cleanup_close int program = -1;
	double begin;

	/* What the kernel may refuse comes before 0.1 is kept out. */
	if (loader_load_adopt(&datapath->objects, LOADER_TAKE_OVER, &program, err) ||
	    older_freeze(set, err) || set->layout->copy_records(set->maps, &datapath->objects, err))
		return -1;
	pass.program = program;
	set->layout->copy_marks(set->maps, &datapath->objects);
	if (take_connections(set, &pass, err))
		return -1;
	begin = now();
	if (replace_programs(set, datapath, &pass, err))
		return -1;
	report->from_layout = set->layout->layout;
	report->waited = now() - begin;
	return 0;
}
