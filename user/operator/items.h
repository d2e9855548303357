/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * items.h - --json: one object {"version":1,"host":NAME,"items":[...]}, an item a line, written as
 * they come. Keys are added within a version, never renamed.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/error.h"

#define ITEMS_VERSION 1

/* Begins as {.file = ...}. */
struct items {
	FILE *file;
	size_t count;
};

/* What the caller writes to the file next is an item. CNI_ERROR_IO. */
int items_next(struct items *items, struct cni_error *err);
/* CNI_ERROR_IO: standard output cannot be written to, as errno says. */
int items_refuse_write(struct cni_error *err);
/* Whether all that was written has arrived. CNI_ERROR_IO. */
int items_flush(FILE *file, struct cni_error *err);
/* Steals `summary`, the last key; NULL: there is none. Without items the array is empty.
 * CNI_ERROR_IO. */
int items_end(struct items *items, json_t *summary, struct cni_error *err);
