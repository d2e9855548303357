/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock.c - one writer at a time for each host. */
#include "datapath/load/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "net/processes.h"
#include "lib/cleanup.h"
#include "datapath/load/bpf_error.h"

#define TIMEOUT_SECONDS 10
#define OWN_NETNS "/proc/self/ns/net"
#define HOST_LOCK "bus/platform/drivers_probe"
#define OTHER_HOST_LOCK "bus/cpu/drivers_probe" /* in a kernel without the first */

static void interrupt(int signal)
{
	(void)signal;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Waits in the kernel's queue; a timer ends the wait. It fires again and again, because once could
 * be just before flock() is entered. */
static int wait_for_lock(int fd)
{
	struct sigaction action = {.sa_handler = interrupt}, old_action;
	struct itimerval tick = {{0, 100000}, {0, 100000}}, old_timer;
	double end = now() + TIMEOUT_SECONDS;
	int result;

	sigaction(SIGALRM, &action, &old_action);
	setitimer(ITIMER_REAL, &tick, &old_timer);
	do
		result = flock(fd, LOCK_EX);
	while (result && errno == EINTR && now() < end);
	setitimer(ITIMER_REAL, &old_timer, NULL);
	sigaction(SIGALRM, &old_action, NULL);
	return result;
}

/* 0: there is none, or it is in another PID namespace, which the kernel does not list. */
static int find_holder(const struct stat *status)
{
	FILE *file = fopen("/proc/locks", "re");
	unsigned int device_major, device_minor;
	unsigned long inode;
	char line[256];
	int pid;

	/* "1: FLOCK  ADVISORY  WRITE 1234 00:04:4026531833 0 EOF" */
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &device_major,
			   &device_minor, &inode) == 4 &&
		    inode == status->st_ino &&
		    makedev(device_major, device_minor) == status->st_dev) {
			fclose(file);
			return pid;
		}
	if (file)
		fclose(file);
	return 0;
}

static void describe_holder(int fd, char text[LOCK_HOLDER_SIZE])
{
	char name[PROCESS_NAME_SIZE];
	struct stat status;
	int pid;

	if (fstat(fd, &status))
		memset(&status, 0, sizeof(status));
	pid = find_holder(&status);
	if (pid && process_name(pid, name))
		snprintf(text, LOCK_HOLDER_SIZE, "process %d (%s)", pid, name);
	else
		snprintf(text, LOCK_HOLDER_SIZE,
			 "a process that cannot be seen from here (`grep %02x:%02x:%lu /proc/locks`"
			 " on the host shows its number)",
			 major(status.st_dev), minor(status.st_dev), (unsigned long)status.st_ino);
}

int lock_wait(int fd, const char *what, struct cni_error *err)
{
	char holder[LOCK_HOLDER_SIZE];

	if (!flock(fd, LOCK_EX | LOCK_NB) || (errno == EWOULDBLOCK && !wait_for_lock(fd)))
		return 0;
	if (errno != EINTR)
		return cni_error_set(err, CNI_ERROR_IO, "cannot take the lock of %s: %s", what,
				     strerror(errno));
	describe_holder(fd, holder);
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "the lock of %s has been held by %s for over %d seconds; try again"
			     " later",
			     what, holder, TIMEOUT_SECONDS);
}

/* It stays mounted until the process ends: the kernel waits for RCU when a mount goes, so there is
 * one for each process, and it goes last. -1 and errno. glibc has the calls from 2.36 on. */
static int own_sysfs(void)
{
	static int mount = -1;
	cleanup_close int context = -1;

	if (mount >= 0)
		return mount;
	context = (int)syscall(SYS_fsopen, "sysfs", FSOPEN_CLOEXEC);
	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return mount;
}

#define NOTE_SIZE 128
#define NOTE_TEXT_SIZE 48

static char note[NOTE_SIZE];
static uint64_t noted_cookie;

void lock_remember_in(const char *directory, uint64_t netns_cookie)
{
	noted_cookie = netns_cookie;
	if (snprintf(note, sizeof(note), "%s/sysfs", directory) >= (int)sizeof(note))
		note[0] = '\0';
}

/* The note for this sysfs: the network namespace's cookie, and the inode of lo's directory.
 * Each network namespace has its own lo, from its beginning to its end, and no inode number of
 * sysfs comes again. */
static bool text_of(int sysfs, char text[NOTE_TEXT_SIZE])
{
	struct stat root, lo;

	if (fstat(sysfs, &root) || fstatat(sysfs, "class/net/lo", &lo, 0) ||
	    root.st_dev != lo.st_dev)
		return false;
	snprintf(text, NOTE_TEXT_SIZE, "%" PRIu64 "-%llu", noted_cookie,
		 (unsigned long long)lo.st_ino);
	return true;
}

void lock_note_sysfs(void)
{
	char text[NOTE_TEXT_SIZE];

	if (!note[0] || !text_of(own_sysfs(), text))
		return;
	unlink(note);
	/* What a link leads to can be read by one system call. */
	if (symlink(text, note))
		note[0] = '\0';
}

/* Opens the lock in what is mounted on /sys, if that is ours. -1: it is not, or it is mounted
 * read-only, or has no such file. */
static int open_mounted(void)
{
	char noted[NOTE_TEXT_SIZE] = "", found[NOTE_TEXT_SIZE];
	struct statfs file_system;
	cleanup_close int sysfs = -1;
	struct stat root, file;
	int fd;

	if (!note[0] || readlink(note, noted, sizeof(noted) - 1) < 0)
		return -1;
	sysfs = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sysfs < 0 || fstatfs(sysfs, &file_system) || file_system.f_type != SYSFS_MAGIC ||
	    !text_of(sysfs, found) || strcmp(noted, found) != 0)
		return -1;
	fd = openat(sysfs, HOST_LOCK, O_WRONLY | O_CLOEXEC);
	/* Something else may be mounted over it. */
	if (fd < 0 || (!fstat(sysfs, &root) && !fstat(fd, &file) && root.st_dev == file.st_dev))
		return fd;
	close(fd);
	return -1;
}

static int open_host_lock(struct cni_error *err)
{
	int fd = open_mounted(), sysfs;

	if (fd >= 0)
		return fd;
	sysfs = own_sysfs();
	if (sysfs < 0)
		return bpf_error_set(
			err, errno,
			"cannot mount the sysfs of this network namespace, which has the"
			" lock of its port mappings");
	fd = openat(sysfs, HOST_LOCK, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		fd = openat(sysfs, OTHER_HOST_LOCK, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno != EROFS)
		return bpf_error_set(err, errno,
				     "cannot open " HOST_LOCK
				     " in sysfs, which is the lock of port mappings");
	fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd
		       : cni_error_set(err, CNI_ERROR_IO, OWN_NETNS " does not open: %s",
				       strerror(errno));
}

int lock_take(struct cni_error *err)
{
	int fd = open_host_lock(err);
	struct stat netns;

	if (fd < 0)
		return -1;
	if (lock_wait(fd, "this host's port mappings", err)) {
		if (err->code == CNI_ERROR_TRY_AGAIN && !stat(OWN_NETNS, &netns))
			cni_error_wrap(err, "network namespace %lu", (unsigned long)netns.st_ino);
		close(fd);
		return -1;
	}
	return fd;
}

bool lock_is_held(char holder[LOCK_HOLDER_SIZE])
{
	struct cni_error ignored = {0};
	int fd = open_host_lock(&ignored);
	bool held;

	cni_error_release(&ignored);
	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	if (held)
		describe_holder(fd, holder);
	close(fd);
	return held;
}

/* All processes of the mount namespace see the same /sys, whatever their network namespace. It may
 * be that of our own, so this is another file than that of lock_take(). */
int lock_take_mounting(int *lock, struct cni_error *err)
{
	*lock = open("/sys/bus/platform/uevent", O_WRONLY | O_CLOEXEC);
	return *lock < 0 ? 0 : lock_wait(*lock, "mounting the BPF file system", err);
}

void lock_release(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
