/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* load_log_test.c - which program the kernel refused, and why, out of libbpf's warnings. */
#include "cni_testing.h"

#include "datapath/load/bpf_error.h"

static void expect_reason(const char *log, const char *program, const char *verifier)
{
	struct load_log_reason reason;

	load_log_read(log, &reason);
	assert_string_equal(reason.program, program);
	assert_string_equal(reason.verifier, verifier);
}

TEST(test_verifier, "verifier")
{
	expect_reason("libbpf: prog 'from_uplink': BPF program load failed: Permission denied\n"
		      "libbpf: prog 'from_uplink': -- BEGIN PROG LOAD LOG --\n"
		      "10: (61) r1 = *(u32 *)(r0 +0)\n"
		      "R0 invalid mem access 'map_value_or_null'\n"
		      "verification time 12 usec\n"
		      "stack depth 8+0\n"
		      "processed 11 insns (limit 1000000) max_states_per_insn 0 total_states 0\n"
		      "-- END PROG LOAD LOG --\n"
		      "libbpf: prog 'from_uplink': failed to load: -13\n"
		      "libbpf: failed to load object 'portmap_bpf'\n",
		      "from_uplink", "R0 invalid mem access 'map_value_or_null'");
}

/* Its beginning is cut off. */
TEST(test_tail, "tail")
{
	expect_reason("mem access 'scalar'\n"
		      "processed 11 insns (limit 1000000)\n\n"
		      "-- END PROG LOAD LOG --\n"
		      "libbpf: prog 'to_uplink': failed to load: -22\n",
		      "to_uplink", "mem access 'scalar'");
}

TEST(test_verifier_says_nothing, "verifier says nothing")
{
	expect_reason("libbpf: Failed to bump RLIMIT_MEMLOCK (err = -1)\n"
		      "libbpf: prog 'to_uplink': BPF program load failed: Invalid argument\n"
		      "libbpf: prog 'to_uplink': -- BEGIN PROG LOAD LOG --\n"
		      "processed 0 insns (limit 1000000)\n"
		      "-- END PROG LOAD LOG --\n"
		      "libbpf: prog 'to_uplink': failed to load: -22\n",
		      "to_uplink", "");
	expect_reason("libbpf: prog 'to_uplink': failed to load: -22\n", "to_uplink", "");
}

TEST(test_no_program, "no program")
{
	expect_reason("libbpf: Error in bpf_create_map_xattr(flows):Cannot allocate memory(-12)\n",
		      "", "");
	expect_reason("", "", "");
}
