/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.h - the error of a run: what CNI prints as {code, msg, details}.
 *
 * A function that can fail takes a struct cni_error as its last argument, leaves it untouched on
 * success, and sets it where the cause is known; NULL: nobody wants it. Its callers may add context
 * with cni_error_wrap(). main() prints the error, once.
 *
 * What is not fatal is a warning, a line on stderr and in the system's log: Podman and kubelet hide
 * what a plugin prints when it succeeds.
 */
#pragma once

#include <stdbool.h>

/* CNI specification 1.1.0, section 2 and STATUS; from 100 on our own. */
enum cni_error_code {
	CNI_ERROR_INCOMPATIBLE_VERSION = 1,
	CNI_ERROR_UNSUPPORTED_FIELD = 2,
	CNI_ERROR_UNKNOWN_CONTAINER = 3,
	CNI_ERROR_INVALID_ENVIRONMENT = 4,
	CNI_ERROR_IO = 5,
	CNI_ERROR_DECODE = 6,
	CNI_ERROR_INVALID_CONFIGURATION = 7,
	CNI_ERROR_INVALID_NETNS = 8, /* not in the specification, but in libcni */
	CNI_ERROR_TRY_AGAIN = 11,
	CNI_ERROR_NOT_AVAILABLE = 50, /* STATUS: ADD would fail */
	CNI_ERROR_LIMITED = 51,       /* STATUS: and containers that are there suffer */
	CNI_ERROR_PORT_TAKEN = 101,
	CNI_ERROR_KERNEL_REFUSED = 102,
};

/* Begins as {0}. Callers read the message through cni_error_message(). */
struct cni_error {
	int code;
	char *message;
	char *details;
};

/* Replaces what was there. All that return an int return -1, so that callers can return it. */
int cni_error_set(struct cni_error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Does the same where NULL says that there is an error. */
#define cni_error_null(...) (cni_error_set(__VA_ARGS__), NULL)
int cni_error_set_details(struct cni_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Puts "PREFIX: " before the message. */
int cni_error_wrap(struct cni_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* For operations that go on after the first error: appends `one` to `all` on a line of its own,
 * details included, and releases it. The code of the first error stays. */
void cni_error_join(struct cni_error *all, struct cni_error *one);
/* Moves it, details included, to where there was none. -1. */
int cni_error_move(struct cni_error *to, struct cni_error *from);
/* Joins on one line, behind "; ". -1. */
int cni_error_chain(struct cni_error *all, struct cni_error *one);

bool cni_error_is_set(const struct cni_error *err);

/* Never NULL, never empty; details: "" where there are none. */
const char *cni_error_message(const struct cni_error *err);
const char *cni_error_details(const struct cni_error *err);
/* The same in one: puts the details behind the message. */
const char *cni_error_whole(struct cni_error *err);

/* Leaves it as {0}. */
void cni_error_release(struct cni_error *err);

#define cleanup_error __attribute__((cleanup(cni_error_release)))

/* Prints and logs one line, prefixed with the plugin's name; no newline needed. A log daemon that
 * does not read is not waited for. */
void warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
