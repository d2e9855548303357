/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock.c - the two locks of a host. */
#include "datapath/load/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "datapath/load/bpf_error.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/io.h"
#include "net/processes.h"

/* Containers that start with the machine wait for the first ADD, which loads the programs: seconds
 * of processor time, of which a busy machine gives it little. Kubelet waits two minutes. */
#define TIMEOUT_SECONDS 30
#define LET_PASS_SECONDS 2
#define LET_PASS_NANOSECONDS 10000000
#define LOOPBACK "class/net/lo"

enum lock {
	LOCK_SET,
	LOCK_CLAIMS,
	LOCK_COUNT,
};

static const struct {
	const char *file;
	const char *directory; /* where sysfs is read-only */
	const char *what;
} locks[LOCK_COUNT] = {
	[LOCK_SET] = {"bus/platform/drivers_probe", "bus/platform/drivers",
		      "this host's maps and programs"},
	[LOCK_CLAIMS] = {"bus/platform/uevent", "bus/platform/devices",
			 "this host's port mappings"},
};

static uint64_t expected_inode;

/* 0: there is none, or it is in another PID namespace, which the kernel does not list. */
static int find_holder(const struct stat *status)
{
	cleanup_stream FILE *file = fopen("/proc/locks", "re");
	unsigned int device_major, device_minor;
	unsigned long inode;
	char line[256];
	int pid;

	/* "1: FLOCK  ADVISORY  WRITE 1234 00:04:4026531833 0 EOF" */
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%lu", &pid, &device_major,
			   &device_minor, &inode) == 4 &&
		    inode == status->st_ino &&
		    makedev(device_major, device_minor) == status->st_dev)
			return pid;
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

/* After a wait in vain nobody waits once more: an ADD that fails takes a lock to clean up. */
static int wait_until_taken(int fd, int operation, const char *what, struct cni_error *err)
{
	static bool in_vain;
	const struct lock_wanted wanted = {
		.fd = fd, .operation = operation, .seconds = in_vain ? 0 : TIMEOUT_SECONDS};
	int failed = lock_file_take(&wanted);
	char holder[LOCK_HOLDER_SIZE];

	in_vain = failed && errno == EWOULDBLOCK;
	if (!failed)
		return 0;
	if (!in_vain)
		return cni_error_set(err, CNI_ERROR_IO, "cannot take the lock of %s: %s", what,
				     strerror(errno));
	describe_holder(fd, holder);
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "the lock of %s has been held by %s for over %d seconds; try again"
			     " later",
			     what, holder, TIMEOUT_SECONDS);
}

int lock_wait(int fd, const char *what, struct cni_error *err)
{
	return wait_until_taken(fd, LOCK_EX, what, err);
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

void lock_expect_sysfs(uint64_t inode)
{
	expected_inode = inode;
}

uint64_t lock_sysfs_inode(void)
{
	struct stat lo;

	if (!expected_inode && own_sysfs() >= 0 && !fstatat(own_sysfs(), LOOPBACK, &lo, 0))
		expected_inode = lo.st_ino;
	return expected_inode;
}

/* What is mounted on /sys, if that is ours, else -1. It stays open. */
static int mounted_sysfs(void)
{
	static int sysfs = -1;
	struct stat lo;

	if (sysfs < 0 && expected_inode) {
		sysfs = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (sysfs < 0 || fstatat(sysfs, LOOPBACK, &lo, 0) || lo.st_ino != expected_inode)
			cleanup_close_pointer(&sysfs);
	}
	return sysfs;
}

/* -1: /sys is not ours, or mounted read-only, or something else is mounted over the file. */
static int open_mounted(const char *name)
{
	struct open_how how = {.flags = O_WRONLY | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV};
	int sysfs = mounted_sysfs();

	return sysfs < 0 ? -1 : (int)syscall(SYS_openat2, sysfs, name, &how, sizeof(how));
}

static int open_lock(enum lock lock, struct cni_error *err)
{
	int fd = open_mounted(locks[lock].file), sysfs;

	if (fd >= 0)
		return fd;
	sysfs = own_sysfs();
	if (sysfs < 0)
		return bpf_error_set(
			err, errno,
			"cannot mount the sysfs of this network namespace, which has the"
			" lock of its port mappings");
	fd = openat(sysfs, locks[lock].file, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == EROFS)
		fd = openat(sysfs, locks[lock].directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return bpf_error_set(err, errno,
			     "cannot open %s in sysfs, which is the lock of port mappings",
			     locks[lock].file);
}

/* Another process may have announced itself already, which will do for this one. */
static void announce(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (!fcntl(fd, F_OFD_SETLK, &all) || errno != EBADF)
		return;
	/* A directory cannot be open for writing. */
	all.l_type = F_RDLCK;
	fcntl(fd, F_OFD_SETLK, &all);
}

static bool is_announced(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return !fcntl(fd, F_OFD_GETLK, &all) && all.l_type != F_UNLCK;
}

static void let_pass(int fd)
{
	const struct timespec pause = {.tv_nsec = LET_PASS_NANOSECONDS};
	int64_t end = clock_ms() + LET_PASS_SECONDS * MS_PER_SECOND;

	while (is_announced(fd) && clock_ms() < end)
		nanosleep(&pause, NULL);
}

static int take_lock(enum lock lock, int operation, struct cni_error *err)
{
	int fd = open_lock(lock, err);
	struct stat netns;

	if (fd >= 0 && operation == LOCK_SH)
		let_pass(fd);
	else if (fd >= 0 && lock == LOCK_SET)
		announce(fd);
	if (fd < 0 || !wait_until_taken(fd, operation, locks[lock].what, err))
		return fd;
	if (err && err->code == CNI_ERROR_TRY_AGAIN && !stat("/proc/self/ns/net", &netns))
		cni_error_wrap(err, "network namespace %lu", (unsigned long)netns.st_ino);
	close(fd);
	return -1;
}

int lock_take_shared(struct cni_error *err)
{
	return take_lock(LOCK_SET, LOCK_SH, err);
}

int lock_take_exclusive(struct cni_error *err)
{
	return take_lock(LOCK_SET, LOCK_EX, err);
}

int lock_take_claims(struct cni_error *err)
{
	return take_lock(LOCK_CLAIMS, LOCK_EX, err);
}

bool lock_is_held(char holder[LOCK_HOLDER_SIZE])
{
	bool held = false;

	for (int lock = 0; !held && lock < LOCK_COUNT; lock++) {
		cleanup_close int fd = open_lock((enum lock)lock, NULL);

		held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
		if (held)
			describe_holder(fd, holder);
	}
	return held;
}
