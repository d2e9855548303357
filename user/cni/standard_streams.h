/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * standard_streams.h - what a program does first, so that standard input, output and error that are
 * closed harm nothing.
 */
#ifndef CNI_STANDARD_STREAMS_H
#define CNI_STANDARD_STREAMS_H

/* Opens /dev/null in the place of those that are closed, so that no file that is opened later gets
 * their number; what is written to a standard output that was closed is still an error. A reader
 * that has gone is an error of write(2), too, and not the end of the process. */
void standard_streams_guard(void);

#endif
