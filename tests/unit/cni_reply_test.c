/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cni_reply_test.c - what reaches stdout and stderr, seen from outside the process.
 */
#include "cni_testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "cni/reply.h"

struct output {
	char *stdout_text;
	char *stderr_text;
	int status; /* of wait() */
};

static char *read_all(int fd)
{
	size_t length;
	char *text = cni_read_all(fd, CNI_INPUT_LIMIT, "pipe", &length, &fault);

	assert_non_null(text);
	close(fd);
	return text;
}

/* Runs it in a child, as a reply is once in a process. stdout_fd: where stdout goes in
 * place of the pipe, or -1. */
static void run_child(int (*function)(void), int stdout_fd, struct output *output)
{
	int out[2];
	int log[2];
	pid_t child;

	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(log), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		standard_streams_guard();
		dup2(stdout_fd >= 0 ? stdout_fd : out[1], STDOUT_FILENO);
		dup2(log[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		close(log[1]);
		_exit(function() ? 1 : 0);
	}
	close(out[1]);
	close(log[1]);
	output->stdout_text = read_all(out[0]);
	output->stderr_text = read_all(log[0]);
	assert_int_equal(waitpid(child, &output->status, 0), child);
}

static void output_release(struct output *output)
{
	free(output->stdout_text);
	free(output->stderr_text);
}

/* stdout must be one JSON document and a newline; returns it. */
static json_t *one_document(const struct output *output)
{
	size_t length = strlen(output->stdout_text);
	json_error_t error;
	json_t *json = json_loads(output->stdout_text, 0, &error);

	assert_non_null(json);
	assert_int_equal(output->stdout_text[length - 1], '\n');
	return json;
}

static int reply_result(void)
{
	cleanup_json json_t *result = json_of("{\"cniVersion\":\"1.0.0\",\"z\":1,\"a\":2}");

	return cni_reply_result(result, &fault);
}

TEST(result_is_one_document_with_its_order, "a result is one document and keeps its order")
{
	cleanup_json json_t *json = NULL;
	struct output output;

	run_child(reply_result, -1, &output);
	json = one_document(&output);
	assert_json_text(json, "{\"cniVersion\":\"1.0.0\",\"z\":1,\"a\":2}");
	assert_string_equal(output.stderr_text, "");
	assert_int_equal(output.status, 0);
	output_release(&output);
}

static int reply_versions(void)
{
	return cni_reply_versions(&fault);
}

TEST(versions_are_one_line, "VERSION answers one line with our newest")
{
	struct output output;

	run_child(reply_versions, -1, &output);
	assert_string_equal(output.stdout_text,
			    "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.1.0\",\"0.2.0\","
			    "\"0.3.0\",\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n");
	output_release(&output);
}

static int reply_plain_error(void)
{
	cni_error_set(&fault, CNI_ERROR_INVALID_CONFIGURATION, "bad port");
	cni_reply_error("0.4.0", &fault);
	cni_error_release(&fault);
	return 0;
}

TEST(error_without_details_leaves_them_out,
     "an error has cniVersion, code, msg, and no empty details")
{
	cleanup_json json_t *json = NULL;
	struct output output;

	run_child(reply_plain_error, -1, &output);
	json = one_document(&output);
	assert_json_text(json, "{\"cniVersion\":\"0.4.0\",\"code\":7,\"msg\":\"bad port\"}");
	assert_string_equal(output.stderr_text, "");
	output_release(&output);
}

static int reply_error_with_strange_text(void)
{
	cni_error_set(&fault, CNI_ERROR_INVALID_ENVIRONMENT, "a\xff\xc3\xa9\xe2\x82 \"\n\x01z");
	cni_error_set_details(&fault, "%s", "\xc0\x80\xed\xa0\x80");
	cni_reply_error("1.1.0", &fault);
	cni_error_release(&fault);
	return 0;
}

TEST(error_is_valid_json_whatever_it_quotes, "an error is valid JSON whatever it quotes")
{
	cleanup_json json_t *json = NULL;
	struct output output;

	run_child(reply_error_with_strange_text, -1, &output);
	json = one_document(&output);
	assert_string_equal(json_string_value(json_object_get(json, "msg")),
			    "a?\xc3\xa9?? \"\n\x01z");
	assert_string_equal(json_string_value(json_object_get(json, "details")), "?????");
	output_release(&output);
}

static int reply_result_then_error(void)
{
	reply_result();
	cni_error_set(&fault, CNI_ERROR_IO, "too late");
	cni_reply_error("1.1.0", &fault);
	cni_error_release(&fault);
	return reply_result();
}

TEST(nothing_follows_a_reply, "nothing follows a reply on stdout")
{
	cleanup_json json_t *json = NULL;
	struct output output;

	run_child(reply_result_then_error, -1, &output);
	json = one_document(&output);
	assert_null(json_object_get(json, "code"));
	assert_string_equal(output.stderr_text, "too late\n");
	assert_int_equal(WEXITSTATUS(output.status), 1);
	output_release(&output);
}

/* As main does: the reply fails, so the error is printed. */
static int reply_and_report(void)
{
	cleanup_json json_t *result = json_of("{\"cniVersion\":\"1.0.0\"}");
	int code;

	if (!cni_reply_result(result, &fault))
		return 0;
	cni_reply_error("1.0.0", &fault);
	code = fault.code;
	cni_error_release(&fault);
	return code == CNI_ERROR_IO;
}

TEST(full_device_is_an_io_error, "a full device is 5")
{
	cleanup_close int full = open("/dev/full", O_WRONLY);
	struct output output;

	assert_true(full >= 0);
	run_child(reply_and_report, full, &output);
	assert_string_equal(output.stderr_text,
			    "cannot write the reply to stdout: No space left on device\n");
	assert_int_equal(WEXITSTATUS(output.status), 1);
	output_release(&output);
}

TEST(reader_that_has_gone_is_an_io_error, "a reader that has gone is 5 and no signal")
{
	struct output output;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	run_child(reply_and_report, ends[1], &output);
	close(ends[1]);
	assert_true(WIFEXITED(output.status));
	assert_int_equal(WEXITSTATUS(output.status), 1);
	assert_string_equal(output.stderr_text, "cannot write the reply to stdout: Broken pipe\n");
	output_release(&output);
}
