/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list_text_test.c - which plugins a conflist has, and the one word of it that changes. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "lib/cleanup.h"
#include "operator/install/list_text.h"

