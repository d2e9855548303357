/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json_fuzz.h - common to both targets of libFuzzer. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, so that libFuzzer keeps the input. */
#define MUST(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

/* Each function returns 0 and no error, or -1 and an error with a message. */
static inline int checked(int result, struct cni_error *err)
{
	MUST(result == 0 || result == -1);
	MUST((result == 0) == (err->code == 0));
	MUST(result == 0 || *cni_error_message(err));
	cni_error_release(err);
	return result;
}

static inline json_t *checked_json(json_t *json, struct cni_error *err)
{
	checked(json ? 0 : -1, err);
	return json;
}
