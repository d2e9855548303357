/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * items.h - --json: one object {"version":1,"host":NAME,"items":[...]}, an item a line, written as
 * they come. Keys are added within a version, never renamed.
 */
#ifndef OPERATOR_PRINT_ITEMS_H
#define OPERATOR_PRINT_ITEMS_H

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

/* Steals the item; NULL: a text of it was not UTF-8. CNI_ERROR_IO. */
int items_add(struct items *items, json_t *item, struct cni_error *err);
/* An item that is JSON already. CNI_ERROR_IO. */
int items_add_text(struct items *items, const char *text, struct cni_error *err);
/* Steals `summary`, the last key; NULL: there is none. Without items the array is empty.
 * CNI_ERROR_IO. */
int items_end(struct items *items, json_t *summary, struct cni_error *err);

#endif
