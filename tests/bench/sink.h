/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sink.h - what sink.c and generator.c tell sink.bpf.c; after vmlinux.h or the kernel's own. */
#ifndef TESTS_BENCH_SINK_H
#define TESTS_BENCH_SINK_H

struct sink_settings {
	__u32 port;   /* UDP packets to this one, in host byte order; 0: to any */
	__u32 answer; /* 1: sends each packet back to where it came from; 0: drops it */
};

#endif
