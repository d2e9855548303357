/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_error_test.c - the one error of a run.
 */
#include "cni_testing.h"

TEST(set_returns_failure_and_keeps_all_parts,
     "error: set returns -1 and keeps code, message, details")
{
	struct cni_error err = {0};

	assert_int_equal(cni_error_set(&err, CNI_ERROR_IO, "cannot read %s", "x"), -1);
	assert_int_equal(cni_error_set_details(&err, "errno %d", 5), -1);
	assert_int_equal(err.code, 5);
	assert_string_equal(cni_error_message(&err), "cannot read x");
	assert_string_equal(cni_error_details(&err), "errno 5");
	cni_error_release(&err);
}

TEST(set_replaces_message_and_details,
     "error: set replaces message and details, and may quote them")
{
	struct cni_error err = {0};

	cni_error_set(&err, CNI_ERROR_IO, "first");
	cni_error_set_details(&err, "of the first");
	cni_error_set(&err, CNI_ERROR_DECODE, "second after %s", cni_error_message(&err));
	assert_int_equal(err.code, 6);
	assert_string_equal(cni_error_message(&err), "second after first");
	assert_string_equal(cni_error_details(&err), "");
	cni_error_release(&err);
}

TEST(wrap_puts_prefixes_in_front_and_keeps_the_code,
     "error: wrap puts prefixes in front and keeps the code")
{
	struct cni_error err = {0};

	cni_error_set(&err, CNI_ERROR_INVALID_CONFIGURATION, "bad port");
	cni_error_set_details(&err, "70000");
	assert_int_equal(cni_error_wrap(&err, "portMappings[%d]", 3), -1);
	cni_error_wrap(&err, "runtimeConfig");
	assert_string_equal(cni_error_message(&err), "runtimeConfig: portMappings[3]: bad port");
	assert_string_equal(cni_error_details(&err), "70000");
	assert_int_equal(err.code, 7);
	cni_error_release(&err);
}

TEST(chain_keeps_the_first_code_and_all_messages,
     "error: chain keeps the first code and all messages")
{
	struct cni_error all = {0}, one = {0};

	cni_error_set(&one, CNI_ERROR_PORT_TAKEN, "first");
	assert_int_equal(cni_error_chain(&all, &one), -1);
	assert_false(cni_error_is_set(&one));
	cni_error_set(&one, CNI_ERROR_IO, "second");
	cni_error_set_details(&one, "of the second");
	cni_error_chain(&all, &one);
	assert_int_equal(all.code, CNI_ERROR_PORT_TAKEN);
	assert_string_equal(cni_error_message(&all), "first; second; of the second");
	assert_string_equal(cni_error_details(&all), "");
	cni_error_release(&all);
}

TEST(release_leaves_an_empty_error, "error: release twice leaves an empty error")
{
	struct cni_error err = {0};

	cni_error_set(&err, CNI_ERROR_IO, "out of order");
	assert_int_equal(err.code, CNI_ERROR_IO);
	cni_error_release(&err);
	cni_error_release(&err);
	assert_int_equal(err.code, 0);
	assert_string_equal(cni_error_details(&err), "");
}

TEST(codes_are_those_of_the_specification, "error: codes are those of the specification")
{
	assert_int_equal(CNI_ERROR_INCOMPATIBLE_VERSION, 1);
	assert_int_equal(CNI_ERROR_UNSUPPORTED_FIELD, 2);
	assert_int_equal(CNI_ERROR_UNKNOWN_CONTAINER, 3);
	assert_int_equal(CNI_ERROR_INVALID_ENVIRONMENT, 4);
	assert_int_equal(CNI_ERROR_IO, 5);
	assert_int_equal(CNI_ERROR_DECODE, 6);
	assert_int_equal(CNI_ERROR_INVALID_CONFIGURATION, 7);
	assert_int_equal(CNI_ERROR_INVALID_NETNS, 8);
	assert_int_equal(CNI_ERROR_TRY_AGAIN, 11);
	assert_int_equal(CNI_ERROR_NOT_AVAILABLE, 50);
	assert_int_equal(CNI_ERROR_LIMITED, 51);
	assert_int_equal(CNI_ERROR_PORT_TAKEN, 101);
	assert_int_equal(CNI_ERROR_KERNEL_REFUSED, 102);
}
