/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * install.c - `bpf-portmap install`: once, or with --watch for as long as it runs. Then it installs
 * again what agents of the network replace, and does what nobody else does on a node of Kubernetes:
 * `repair`, from time to time.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/io.h"
#include "datapath/load/bpffs.h"
#include "lib/memory.h"
#include "operator/install/installer.h"
#include "operator/verbs.h"

/* A directory that is replaced (k3s has a new one for each release) or appears tells nobody who
 * watched the old one, so both are looked up again this often. */
#define LOOK_EVERY 3000
/* Many changes in a row are one. */
#define SETTLE 50
/* What fails may make files first, which is an event again. */
#define AFTER_FAILURE 1000
/* Somebody who undoes a change within this time is waited for. */
#define CALM 10000
/* Half a list is nothing to talk about while it is being written. */
#define WRITING 5000

#define EVENTS \
	(IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* The programs are loaded once, when the list has bpf-portmap, before a container needs them. */
enum load {
	LOAD_NOT_YET,
	LOAD_DUE,
	LOAD_DONE,
};

/* What is watched. */
enum watched {
	BINARIES,
	LISTS,
	FOLDER, /* of the network's plugins, where the list has one (CNI 1.3) */
	DIRECTORIES,
};

/* All times are milliseconds of CLOCK_MONOTONIC. */
struct watch {
	struct installer *installer;
	int inotify; /* -1: there is none to be had */
	int signals;
	int watched[DIRECTORIES]; /* what inotify calls each; -1: none */
	int64_t look_at, not_before;
	int64_t changed_at;
	bool fights;          /* somebody has undone the last change */
	int64_t broken_since; /* the list is no JSON; 0: it is */
	char *said;           /* the last error, which is said once */
	int64_t chores_at, chores_every;
	pid_t chores;
	enum load load;
	int warnings;    /* what they print on stderr, in memory */
	char *warned_of; /* what that was the last time */
};

/* --- what nobody else does --------------------------------------------------------------- */

/* In a process of its own, so that whatever happens there ends there. */
static void do_chores(const struct watch *watch)
{
	/* Where a container sees no BPF file system, the node's first ADD makes one and loads. */
	struct options options = {.load = watch->load == LOAD_DUE && bpffs_is_mounted()};
	static char *const none[] = {NULL};
	cleanup_error struct cni_error err = {0};
	sigset_t signals;
	int status;

	sigemptyset(&signals);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	if (watch->warnings >= 0)
		dup2(watch->warnings, STDERR_FILENO);
	status = verb_repair(&options, none, &err);
	if (status)
		fprintf(stderr, "bpf-portmap: repair: %s\n", cni_error_message(&err));
	fflush(stdout);
	_exit(status ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void start_chores(struct watch *watch, int64_t now)
{
	if (watch->chores || now < watch->chores_at)
		return;
	watch->chores_at = now + watch->chores_every;
	fflush(stdout);
	cleanup_close_pointer(&watch->warnings);
	watch->warnings = memfd_create("warnings", MFD_CLOEXEC);
	watch->chores = fork();
	if (!watch->chores)
		do_chores(watch);
	if (watch->chores < 0)
		watch->chores = 0;
	if (watch->chores && watch->load == LOAD_DUE)
		watch->load = LOAD_DONE;
}

/* What they warn of every time is said once. */
static void say_warnings(struct watch *watch)
{
	cleanup_error struct cni_error ignored = {0};
	char *text = NULL;
	size_t length;

	if (watch->warnings >= 0 && !lseek(watch->warnings, 0, SEEK_SET))
		text = cni_read_all(watch->warnings, CNI_INPUT_LIMIT, "", &length, &ignored);
	if (!text)
		return;
	if (!watch->warned_of || strcmp(watch->warned_of, text) != 0)
		fputs(text, stderr);
	free(watch->warned_of);
	watch->warned_of = text;
}

/* Also children of others, where this is the first process of a container. */
static void reap(struct watch *watch)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		if (pid == watch->chores) {
			watch->chores = 0;
			say_warnings(watch);
		}
}

/* --- what agents undo -------------------------------------------------------------------- */

static void follow_directory(struct watch *watch, enum watched which, const char *path)
{
	int before = watch->watched[which];
	bool is_watched = before < 0;

	watch->watched[which] = inotify_add_watch(watch->inotify, path, EVENTS);
	/* Of the same directory it is the same as before. */
	for (size_t i = 0; i < DIRECTORIES; i++)
		is_watched |= watch->watched[i] == before;
	if (!is_watched)
		inotify_rm_watch(watch->inotify, before);
}

static void say_once(struct watch *watch, const struct cni_error *err)
{
	const char *message = cni_error_message(err);

	if (watch->said && !strcmp(watch->said, message))
		return;
	free(watch->said);
	watch->said = or_exit(strdup(message));
	fprintf(stderr, "bpf-portmap: %s\n", message);
}

static void after_failure(struct watch *watch, const struct cni_error *err, int64_t now)
{
	if (err->code != CNI_ERROR_DECODE) {
		watch->broken_since = 0;
		watch->not_before = now + AFTER_FAILURE;
		say_once(watch, err);
		return;
	}
	if (!watch->broken_since)
		watch->broken_since = now;
	if (now - watch->broken_since >= WRITING)
		say_once(watch, err);
}

static void after_success(struct watch *watch)
{
	if (watch->said)
		puts("binary and list are as they should be");
	free(TAKE(watch->said));
	watch->broken_since = 0;
	if (watch->load == LOAD_NOT_YET) {
		watch->load = LOAD_DUE;
		watch->chores_at = 0;
	}
}

/* Whoever changes it back at once must not keep the processor busy. */
static void after_change(struct watch *watch, int64_t now)
{
	bool undone = watch->changed_at && now - watch->changed_at < CALM;

	if (undone && !watch->fights)
		printf("somebody undoes the change again and again: waiting for %d seconds each"
		       " time\n",
		       LOOK_EVERY / 1000);
	watch->fights = undone;
	watch->changed_at = now;
	watch->not_before = now + (undone ? LOOK_EVERY : SETTLE);
}

static void look(struct watch *watch, int64_t now)
{
	struct installer *installer = watch->installer;
	cleanup_error struct cni_error err = {0};
	size_t changes = installer->changes;

	/* Before they are looked at, so that nothing is missed. */
	follow_directory(watch, BINARIES, installer->bin_path);
	follow_directory(watch, LISTS, installer->conf_path);
	watch->look_at = now + LOOK_EVERY;
	watch->not_before = now + SETTLE;
	if (installer_look(installer, &err) || installer_run(installer, &err))
		after_failure(watch, &err, now);
	else
		after_success(watch);
	/* The list has told which one that is. */
	follow_directory(watch, FOLDER, installer->folder.path);
	if (installer->changes != changes)
		after_change(watch, now);
}

/* What happened is seen by looking; an overflow is an event like others. */
static bool drain(int inotify)
{
	char events[16384];
	bool any = false;

	while (read(inotify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

/* Returns whether it is to end. */
static bool wait_for_something(struct watch *watch)
{
	struct pollfd files[] = {{.fd = watch->signals, .events = POLLIN},
				 {.fd = watch->inotify, .events = POLLIN}};
	int64_t now = clock_ms(), until = watch->look_at;
	struct signalfd_siginfo signal;

	if (!watch->chores && watch->chores_at < until)
		until = watch->chores_at;
	/* Events wait until it is time to look. */
	if (now < watch->not_before) {
		until = watch->not_before;
		files[1].fd = -1;
	}
	poll(files, 2, until > now ? (int)(until - now) : 0);
	while (read(watch->signals, &signal, sizeof(signal)) == sizeof(signal))
		if (signal.ssi_signo != SIGCHLD)
			return true;
	return false;
}

static int open_watch(struct watch *watch, struct cni_error *err)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	watch->signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (watch->signals < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot wait for signals: %s",
				     strerror(errno));
	watch->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (watch->inotify < 0)
		fprintf(stderr,
			"bpf-portmap: no inotify: %s (fs.inotify.max_user_instances): looks at the"
			" directories every %d seconds\n",
			strerror(errno), LOOK_EVERY / 1000);
	return 0;
}

/* Until SIGTERM or SIGINT, which leave everything in place. `every`: seconds from one `repair` to
 * the next. */
static int run_watch(struct installer *installer, uint32_t every, struct cni_error *err)
{
	struct watch watch = {
		.installer = installer,
		.watched = {-1, -1, -1},
		.warnings = -1,
		.chores_every = (int64_t)every * 1000,
	};
	bool ends = false, due = true;
	int result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	result = open_watch(&watch, err);
	while (!result && !ends) {
		int64_t now = clock_ms();

		due |= drain(watch.inotify) || now >= watch.look_at;
		if (due && now >= watch.not_before) {
			look(&watch, now);
			due = false;
		}
		reap(&watch);
		start_chores(&watch, now);
		ends = wait_for_something(&watch);
	}
	/* Nothing of this process goes on behind it, and has the lock, for example, or waits for
	 * one longer than whoever ends this does. What it has begun the next one completes. */
	if (watch.chores && !kill(watch.chores, SIGTERM))
		waitpid(watch.chores, NULL, 0);
	cleanup_close_pointer(&watch.inotify);
	cleanup_close_pointer(&watch.signals);
	cleanup_close_pointer(&watch.warnings);
	free(watch.said);
	free(watch.warned_of);
	return result;
}

int verb_install(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_installer struct installer installer;

	if (installer_open(&installer, options, err))
		return -1;
	if (options->watch)
		return run_watch(&installer, options->watch, err);
	if (installer_look(&installer, err) || installer_run(&installer, err))
		return -1;
	if (!installer.changes)
		puts("nothing to change");
	return EXIT_SUCCESS;
}
