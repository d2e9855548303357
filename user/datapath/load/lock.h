/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock.h - one writer at a time for each host, that is, for each network namespace.
 *
 * flock on a file that only root can open, that each network namespace has one of, and that the
 * kernel lets go of when its holder dies: bus/platform/drivers_probe in sysfs. Of sysfs there is
 * one file system for each network namespace, however often and wherever it is mounted; where /sys
 * is not known to be ours we mount it once more, where nobody sees it. So the lock is
 * the same in all mount, PID and cgroup namespaces, needs no file of ours, and is there before any
 * map is. The file has mode 0200: users cannot open it, nor can root of another user namespace, nor
 * a container in the host's network namespace whose /sys is read-only. Nothing is ever written to
 * it.
 *
 * In a container that plays the host, and whose runtime has made its sysfs read-only, the file
 * cannot be opened. There it is the network namespace's own file, which every process can open.
 *
 * A socket in a SOCKMAP of one element would exclude as well, but nobody can wait for it, and
 * before the first ADD there is no map.
 */
#ifndef DATAPATH_LOAD_LOCK_H
#define DATAPATH_LOAD_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

/* Takes the lock. Returns a file descriptor that holds it until lock_release(), or -1 and
 * CNI_ERROR_TRY_AGAIN naming the holder when it could not be taken within ten seconds;
 * CNI_ERROR_KERNEL_REFUSED when there can be none. A process has it once at a time. */
int lock_take(struct cni_error *err);

#define LOCK_HOLDER_SIZE 160

/* Returns whether another process has it now; says which. Waits for nobody. */
bool lock_is_held(char holder[LOCK_HOLDER_SIZE]);

/* Takes the lock that allows one mount at a time in this mount namespace. *lock begins as -1, and
 * stays so where /sys is read-only: then there is none. 0, or -1 and CNI_ERROR_TRY_AGAIN. */
int lock_take_mounting(int *lock, struct cni_error *err);

/* Locks an open file. `what` says in messages what for. 0, or -1 and CNI_ERROR_TRY_AGAIN or
 * CNI_ERROR_IO. */
int lock_wait(int fd, const char *what, struct cni_error *err);

void lock_release(int *fd);

#define cleanup_lock __attribute__((cleanup(lock_release)))

/* Names a directory that only root can write to, for a note of how our sysfs is recognised. Where
 * there is one, and /sys is ours, that is used, and nothing is mounted: when a mount ends with its
 * process the kernel waits for RCU, which takes 30 us of DEL's 650, and 8 ms on a busy machine. */
void lock_remember_in(const char *directory, uint64_t netns_cookie);

/* Writes the note. Without it, sysfs is mounted each time. */
void lock_note_sysfs(void);

#endif
