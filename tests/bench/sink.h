/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sink.h - settings of sink.bpf.c; to be included after vmlinux.h or the kernel's headers. */
#pragma once

enum sink_action {
	SINK_DROP = 0,
	SINK_ANSWER = 1, /* back to where it came from */
	SINK_PASS = 2,   /* on into the IP stack */
};

struct sink_settings {
	__u32 port; /* UDP packets to this one, in host byte order; 0: to any */
	enum sink_action action;
};
