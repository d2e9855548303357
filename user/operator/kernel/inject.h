/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* inject.h - hands the kernel a frame as if it had come in by an interface. */
#ifndef OPERATOR_KERNEL_INJECT_H
#define OPERATOR_KERNEL_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XDP_NAME_SIZE 16

/* By BPF_PROG_TEST_RUN of a program that redirects to the interface's ingress: on behind the
 * driver, so that generic XDP, tc programs and the IP stack see it, and a native XDP program does
 * not. 0, or -1 and errno; what the kernel drops after that is no failure. */
int inject_frame(uint32_t ifindex, const uint8_t *frame, uint32_t length);

/* Runs the interface's XDP program, if it has one, for the frame, which is not changed. Returns
 * whether it drops the frame, and then its name. */
bool inject_xdp_drops(uint32_t ifindex, const uint8_t *frame, uint32_t length,
		      char name[XDP_NAME_SIZE]);

#endif
