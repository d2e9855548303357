/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * printable.h - text from strangers, before a terminal gets it.
 */
#ifndef CNI_PRINTABLE_H
#define CNI_PRINTABLE_H

/* Puts a '?' in place of each byte that a terminal would obey instead of showing it: control
 * characters (escape sequences begin with one) but those in `kept` ("\n"; "" for none),
 * marks that turn the direction of writing, and bytes that are no UTF-8. */
void cni_printable(char *text, const char *kept);

#endif
