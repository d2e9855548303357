/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tc_modules.h - whether a kernel without TCX can hold our programs. Without any I/O.
 */
#ifndef OPERATOR_DOCTOR_TC_MODULES_H
#define OPERATOR_DOCTOR_TC_MODULES_H

/* Returns the module that is missing, or NULL. `listing`: what modules.builtin, modules.dep and
 * /proc/modules say, one behind the other; "" where none can be read, which proves nothing. */
const char *tc_module_missing(const char *listing);

#endif
