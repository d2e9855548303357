/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* inject.c - hands the kernel a frame as if it had come in by an interface. */
#include "operator/kernel/inject.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "lib/cleanup.h"

#define FRAME_SIZE 2048 /* XDP may make it longer */

static int load(uint32_t ifindex)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = (int)ifindex},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = BPF_F_INGRESS},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_clone_redirect},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "inject", "GPL", instructions,
			     sizeof(instructions) / sizeof(*instructions), NULL);
}

int inject_frame(uint32_t ifindex, const uint8_t *frame, uint32_t length)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = length);
	cleanup_close int program = load(ifindex);

	if (program < 0 || bpf_prog_test_run_opts(program, &run))
		return -1;
	/* A positive one is the network stack's word that it has dropped the frame. */
	errno = (int)run.retval < 0 ? -(int)run.retval : 0;
	return errno ? -1 : 0;
}

static bool drops(int program, uint32_t ifindex, const uint8_t *frame, uint32_t length)
{
	uint8_t out[FRAME_SIZE];
	struct xdp_md context = {.data_end = length, .ingress_ifindex = ifindex};
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = length,
			    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &context,
			    .ctx_size_in = sizeof(context));

	return !bpf_prog_test_run_opts(program, &run) &&
	       (run.retval == XDP_DROP || run.retval == XDP_ABORTED);
}

bool inject_xdp_drops(uint32_t ifindex, const uint8_t *frame, uint32_t length,
		      char name[XDP_NAME_SIZE])
{
	DECLARE_LIBBPF_OPTS(bpf_xdp_query_opts, found);
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info), id;
	cleanup_close int program = -1;

	if (bpf_xdp_query((int)ifindex, 0, &found))
		return false;
	id = found.drv_prog_id ? found.drv_prog_id : found.skb_prog_id;
	program = id ? bpf_prog_get_fd_by_id(id) : -1;
	if (program < 0 || !drops(program, ifindex, frame, length))
		return false;
	bpf_obj_get_info_by_fd(program, &info, &size);
	memcpy(name, info.name, XDP_NAME_SIZE);
	name[XDP_NAME_SIZE - 1] = '\0';
	return true;
}
