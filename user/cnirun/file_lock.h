/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * file_lock.h - waits for the lock of a file, but not for ever.
 *
 * Plugins inherit the locks of the program that runs them: their descriptors do not close on exec.
 * A plugin goes on when that program is killed, and the next operation on the same container must
 * not run beside it: a DEL beside an ADD leaves what the ADD does last, and nobody removes it. The
 * kernel knows when the plugin ends, and nothing else does. A plugin may hang, too, and then nobody
 * is left who kills it after its time limit: hence the limit here, and an error that says which
 * process it is.
 *
 * So who takes a lock gives it back by flock(LOCK_UN), as a process that a plugin has left running,
 * on purpose, may still have the descriptor.
 */
#ifndef CNIRUN_FILE_LOCK_H
#define CNIRUN_FILE_LOCK_H

#include "lib/error.h"

/* Takes the lock of an open file by flock(), `operation` being LOCK_SH or LOCK_EX. Waits for
 * `seconds` at most; 0: as long as it takes. `path` is for messages. CNI_ERROR_TRY_AGAIN names the
 * process that has it; CNI_ERROR_IO. */
int file_lock_wait(int fd, int operation, unsigned int seconds, const char *path,
		   struct cni_error *err);

#endif
