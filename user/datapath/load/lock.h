/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock.h - the two locks of a host, that is, of a network namespace.
 *
 * The lock of the set: who works with the maps and programs that are there shares it from before
 * it opens them until it has done; who loads, replaces or removes them has it alone. The lock of
 * claims: one writer of records at a time. Take the first one first.
 *
 * Both are flock on files that only root can open, and that the kernel lets go of when their holder
 * dies: bus/platform/drivers_probe and .../uevent in sysfs, of mode 0200. Of sysfs there is one
 * file system for each network namespace, however often and wherever it is mounted; where /sys is
 * not known to be ours we mount it once more, where nobody sees it. Nothing is ever written.
 *
 * The directory of the pins would not do: it is another file in each BPF file system, of which `ip
 * netns exec` gives each command one, and a command that finds no pins adopts the maps of the
 * programs that run. A file in /run is another one in each container, and every process can open
 * /proc/self/ns/net.
 *
 * Users cannot open the files, nor can root of another user namespace, nor a container in the
 * host's network namespace, whose /sys is read-only. Root without any capability that sees a
 * writable /sys can; it can as well remove the pins, which its user owns.
 *
 * Who shares a lock overtakes whoever waits to have it alone, so that an unbroken stream of ADDs
 * would keep `upgrade` waiting. So that one announces itself by a second lock on the same file
 * (fcntl), and who comes to share the first one waits until it is gone, for two seconds at most:
 * one of those that have the lock already may be waiting for the very DEL that comes.
 *
 * In a container that plays the host, and whose runtime has made its sysfs read-only, the files
 * cannot be opened. There directories of that sysfs are locked, which every process in the
 * container can open.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/cleanup.h"
#include "lib/error.h"

/* Each takes a lock and returns a file descriptor that holds it until it is closed, or -1:
 * CNI_ERROR_TRY_AGAIN naming a holder when it could not be taken within 30 seconds,
 * CNI_ERROR_KERNEL_REFUSED when there can be none. None takes a lock twice. */
int lock_take_shared(struct cni_error *err);
int lock_take_exclusive(struct cni_error *err);
int lock_take_claims(struct cni_error *err);

#define cleanup_lock cleanup_close

#define LOCK_HOLDER_SIZE 160

/* Returns whether another process has a lock that ADD would wait for; says which. */
bool lock_is_held(char holder[LOCK_HOLDER_SIZE]);

/* Locks an open file. `what` says in messages what for. 0, or -1 and CNI_ERROR_TRY_AGAIN or
 * CNI_ERROR_IO. */
int lock_wait(int fd, const char *what, struct cni_error *err);

/* How our sysfs is recognised: the inode of lo's directory in it, as this network namespace's meta
 * has it; 0: not known. Each network namespace has its own lo, from its beginning to its end, and
 * no inode number of sysfs comes again. Where /sys has it nothing is mounted: when a mount ends
 * with its process the kernel waits for RCU, which takes 30 us of DEL's 650, and 8 ms on a busy
 * machine. */
void lock_expect_sysfs(uint64_t inode);
/* Returns what to expect from now on. Call it with a lock. 0: it cannot be known. */
uint64_t lock_sysfs_inode(void);
