/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_run_test.c - the whole of cnirun with plugins that are shell scripts: what they
 * are told, in which order, and what becomes of their answers.
 */
#include "cnirun_testing.h"

#include <errno.h>

#include <signal.h>

/* Its main() is called in a child of each test. */
int cnirun_main(int argc, char **argv);
#define main cnirun_main
#include "cnirun/main.c"
#undef main

#define ID "c1"
/* It exists, and no script looks into it. */
#define NETNS "/proc/self/ns/net"

/* Notes each call and its stdin; FAKE/TYPE.COMMAND, where it exists, is what it does
 * beyond that; else ADD answers with a result that names the plugin. */
static const char script[] =
	"#!/bin/sh\n"
	"me=${0##*/}\n"
	"cat >\"$FAKE/stdin.$me.$CNI_COMMAND\"\n"
	"env | grep ^CNI_ | sort >\"$FAKE/env.$me.$CNI_COMMAND\"\n"
	"echo \"$CNI_COMMAND $me\" >>\"$FAKE/calls\"\n"
	"if [ -e \"$FAKE/$me.$CNI_COMMAND\" ]; then . \"$FAKE/$me.$CNI_COMMAND\"; fi\n"
	"if [ \"$CNI_COMMAND\" = ADD ]; then echo \"{\\\"cniVersion\\\":\\\"1.1.0\\\","
	"\\\"by\\\":\\\"$me\\\"}\"; fi\n"
	"if [ \"$CNI_COMMAND\" = VERSION ]; then echo '{\"cniVersion\":\"1.0.0\","
	"\"supportedVersions\":[\"0.4.0\",\"1.0.0\"]}'; fi\n";

static int exit_status;
static char last_output[FILE_SIZE];
static char last_errors[FILE_SIZE];

static void make_plugin(const char *type)
{
	char name[64];

	snprintf(name, sizeof(name), "bin/%s", type);
	sandbox_write(name, script);
	assert_int_equal(chmod(sandbox_path(name), 0755), 0);
}

/* What the plugin does at that command, before its ordinary answer. */
static void instruct(const char *type_and_command, const char *commands)
{
	sandbox_write(type_and_command, commands);
}

static void write_list(const char *version, const char *keys, const char *plugins)
{
	char text[2048];

	snprintf(text, sizeof(text), "{\"cniVersion\":\"%s\",\"name\":\"n\",%s\"plugins\":[%s]}",
		 version, keys, plugins);
	sandbox_write("n.conflist", text);
}

#define THREE "{\"type\":\"a\"},{\"type\":\"b\"},{\"type\":\"c\"}"

static int setup(void **state)
{
	if (sandbox_setup(state))
		return -1;
	sandbox_make_directory("bin");
	make_plugin("a");
	make_plugin("b");
	make_plugin("c");
	write_list("1.1.0", "", THREE);
	/* It stands before messages. */
	program_invocation_short_name = (char *)"cnirun";
	setenv("FAKE", sandbox, 1);
	setenv("CNI_PATH", sandbox_path("bin"), 1);
	setenv("CNI_CACHE_DIR", sandbox_path("cni"), 1);
	return 0;
}

static void redirect(const char *name, int to)
{
	int fd = open(sandbox_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || dup2(fd, to) < 0)
		_exit(99);
}

/* For children_ignored(). */
static bool ignore_children;

static void run_in_child(char **arguments)
{
	int count = 0;

	if (ignore_children)
		signal(SIGCHLD, SIG_IGN);
	while (arguments[count])
		count++;
	redirect("stdout", STDOUT_FILENO);
	redirect("stderr", STDERR_FILENO);
	/* exit, not _exit: buffers are written and leaks are looked for. */
	exit(cnirun_main(count, arguments));
}

/* "cnirun VERB ...", the list's path for "LIST"; ends with NULL. */
static int run_cnirun(const char *verb, ...)
{
	static char list_path[PATH_SIZE * 2];
	char *arguments[24] = {(char *)"cnirun", (char *)verb};
	int count = 2;
	int status;
	va_list list;
	pid_t pid;

	snprintf(list_path, sizeof(list_path), "%s", sandbox_path("n.conflist"));
	va_start(list, verb);
	for (char *next = va_arg(list, char *); next; next = va_arg(list, char *))
		arguments[count++] = strcmp(next, "LIST") ? next : list_path;
	va_end(list);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		run_in_child(arguments);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(last_output, sizeof(last_output), "%s", sandbox_read("stdout"));
	snprintf(last_errors, sizeof(last_errors), "%s", sandbox_read("stderr"));
	exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	return exit_status;
}

#define ADD(...) run_cnirun("add", "LIST", NETNS, "--id", ID, ##__VA_ARGS__, NULL)
#define DEL(...) run_cnirun("del", "LIST", NETNS, "--id", ID, ##__VA_ARGS__, NULL)
#define CHECK(...) run_cnirun("check", "LIST", NETNS, "--id", ID, ##__VA_ARGS__, NULL)
#define GC() run_cnirun("gc", "LIST", NULL)
#define CACHE_FILE "cni/results/n-" ID "-eth0"

static void assert_success(void)
{
	if (exit_status)
		print_error("exit status %d: %s\n", exit_status, last_errors);
	assert_int_equal(exit_status, 0);
}

static void assert_failure(const char *message)
{
	if (!strstr(last_errors, message))
		print_error("no \"%s\" in: %s\n", message, last_errors);
	assert_int_equal(exit_status, 1);
	assert_non_null(strstr(last_errors, message));
	assert_string_equal(last_output, "");
}

/* And forgets them. */
static void assert_calls(const char *expected)
{
	assert_string_equal(sandbox_read("calls"), expected);
	unlink(sandbox_path("calls"));
}

/* Of the object the plugin found on stdin; "" where the key is missing. */
static void assert_stdin(const char *plugin_and_command, const char *key, const char *expected)
{
	char name[64];
	json_t *object;

	snprintf(name, sizeof(name), "stdin.%s", plugin_and_command);
	object = json_of(sandbox_read(name));
	if (*expected)
		assert_json_text(json_object_get(object, key), expected);
	else
		assert_null(json_object_get(object, key));
	json_decref(object);
}

#define RESULT_OF_A "{\"cniVersion\":\"1.1.0\",\"by\":\"a\"}"
#define RESULT_OF_B "{\"cniVersion\":\"1.1.0\",\"by\":\"b\"}"
#define RESULT_OF_C "{\"cniVersion\":\"1.1.0\",\"by\":\"c\"}"

static void assert_output_json(const char *expected)
{
	json_t *json = json_of(last_output);

	assert_json_text(json, expected);
	json_decref(json);
}

static void add_in_order(void **state)
{
	ADD();
	assert_success();
	assert_calls("ADD a\nADD b\nADD c\n");
	assert_stdin("a.ADD", "prevResult", "");
	assert_stdin("b.ADD", "prevResult", RESULT_OF_A);
	assert_stdin("c.ADD", "prevResult", RESULT_OF_B);
	assert_output_json(RESULT_OF_C);
	assert_true(sandbox_has(CACHE_FILE));
}

static void del_in_reverse(void **state)
{
	ADD();
	assert_calls("ADD a\nADD b\nADD c\n");
	DEL();
	assert_success();
	assert_string_equal(last_output, "");
	assert_calls("DEL c\nDEL b\nDEL a\n");
	assert_stdin("c.DEL", "prevResult", RESULT_OF_C);
	assert_stdin("a.DEL", "prevResult", RESULT_OF_C);
	assert_false(sandbox_has(CACHE_FILE));
	DEL();
	assert_success();
	assert_stdin("c.DEL", "prevResult", "");
}

static void del_before_040(void **state)
{
	write_list("0.3.1", "", "{\"type\":\"a\"}");
	instruct("a.ADD", "echo '{\"cniVersion\":\"0.3.1\"}'; exit 0\n");
	ADD();
	assert_success();
	DEL();
	assert_success();
	assert_stdin("a.DEL", "prevResult", "");
}

static void environment_passed(void **state)
{
	char expected[PATH_SIZE * 4];

	setenv("CNI_CONTAINERID", "stale", 1);
	ADD("--ifname", "net7", "--args", "A=1;B=2");
	unsetenv("CNI_CONTAINERID");
	assert_success();
	snprintf(expected, sizeof(expected),
		 "CNI_ARGS=A=1;B=2\nCNI_CACHE_DIR=%s/cni\nCNI_COMMAND=ADD\nCNI_CONTAINERID=c1\n"
		 "CNI_IFNAME=net7\nCNI_NETNS=" NETNS "\nCNI_PATH=%s/bin\n",
		 sandbox, sandbox);
	assert_string_equal(sandbox_read("env.a.ADD"), expected);
}

static void environment_of_status(void **state)
{
	char expected[PATH_SIZE * 4];

	setenv("CNI_IFNAME", "stale", 1);
	run_cnirun("status", "LIST", NULL);
	unsetenv("CNI_IFNAME");
	assert_success();
	snprintf(expected, sizeof(expected),
		 "CNI_ARGS=\nCNI_CACHE_DIR=%s/cni\nCNI_COMMAND=STATUS\nCNI_CONTAINERID=\n"
		 "CNI_IFNAME=\nCNI_NETNS=\nCNI_PATH=%s/bin\n",
		 sandbox, sandbox);
	assert_string_equal(sandbox_read("env.a.STATUS"), expected);
}

struct name_row {
	const char *name;
	const char *option;
	const char *value;
};

static const struct name_row name_rows[] = {
	{"[s126] container ID with a slash", "--id", "../c"},
	{"[s126] container ID empty", "--id", ""},
	{"[s126] container ID that begins with a dot", "--id", ".c"},
	{"[s126] ifname of 16 bytes", "--ifname", "abcdefghijklmnop"},
	{"[s126] ifname with a slash", "--ifname", "a/b"},
	{"[s126] ifname empty", "--ifname", ""},
	{"[s126] ifname ..", "--ifname", ".."},
};

static void bad_name(void **state)
{
	const struct name_row *row = *state;

	ADD(row->option, row->value);
	assert_failure("cnirun: ");
	assert_calls("");
}

static void failed_add_is_undone(void **state)
{
	instruct("b.ADD",
		 "echo '{\"code\":101,\"msg\":\"port 80 is taken\",\"details\":\"by x\"}'\n"
		 "exit 1\n");
	ADD();
	assert_failure(
		"cnirun: plugin type=\"b\" name=\"n\" failed (add): port 80 is taken; by x\n");
	assert_calls("ADD a\nADD b\nDEL c\nDEL b\nDEL a\n");
	assert_stdin("b.DEL", "prevResult", RESULT_OF_A);
	assert_false(sandbox_has(CACHE_FILE));
}

static void undoing_goes_on(void **state)
{
	instruct("c.ADD", "echo '{\"code\":7,\"msg\":\"first\"}'; exit 1\n");
	instruct("b.DEL", "echo '{\"code\":7,\"msg\":\"second\"}'; exit 1\n");
	ADD();
	assert_failure("failed (add): first\nwhen cleaning up: plugin type=\"b\" name=\"n\" failed "
		       "(delete): second");
	assert_calls("ADD a\nADD b\nADD c\nDEL c\nDEL b\nDEL a\n");
}

/* Nobody would know of the attachment. */
static void unprinted_add_is_undone(void **state)
{
	assert_int_equal(symlink("/dev/full", sandbox_path("stdout")), 0);
	ADD();
	assert_failure("cnirun: cannot write to stdout: No space left on device");
	assert_calls("ADD a\nADD b\nADD c\nDEL c\nDEL b\nDEL a\n");
	assert_stdin("a.DEL", "prevResult", RESULT_OF_C);
	assert_false(sandbox_has(CACHE_FILE));
	instruct("b.DEL", "echo '{\"code\":5,\"msg\":\"busy\"}'; exit 1\n");
	ADD();
	assert_failure("when cleaning up: plugin type=\"b\" name=\"n\" failed (delete): busy");
	assert_true(sandbox_has(CACHE_FILE));
	unlink(sandbox_path("stdout"));
	unlink(sandbox_path("b.DEL"));
	DEL();
	assert_success();
	assert_false(sandbox_has(CACHE_FILE));
}

static void failed_add_keeps_older(void **state)
{
	char before[FILE_SIZE];

	ADD();
	snprintf(before, sizeof(before), "%s", sandbox_read(CACHE_FILE));
	assert_calls("ADD a\nADD b\nADD c\n");
	instruct("a.ADD", "echo '{\"code\":7,\"msg\":\"exists\"}'; exit 1\n");
	ADD();
	assert_failure("exists");
	assert_calls("ADD a\n");
	assert_string_equal(sandbox_read(CACHE_FILE), before);
}

/* Its container may live: the file was whole when it was written. */
static void failed_add_keeps_unreadable(void **state)
{
	ADD();
	assert_calls("ADD a\nADD b\nADD c\n");
	sandbox_write(CACHE_FILE, "broken");
	instruct("a.ADD", "echo '{\"code\":7,\"msg\":\"exists\"}'; exit 1\n");
	ADD();
	assert_failure("exists");
	assert_non_null(strstr(last_errors, "was added before"));
	assert_calls("ADD a\n");
}

static void failed_del_keeps_cache(void **state)
{
	ADD();
	assert_calls("ADD a\nADD b\nADD c\n");
	instruct("b.DEL", "echo '{\"code\":5,\"msg\":\"busy\"}'; exit 1\n");
	DEL();
	assert_failure("plugin type=\"b\" name=\"n\" failed (delete): busy\n");
	assert_calls("DEL c\nDEL b\n");
	assert_true(sandbox_has(CACHE_FILE));
}

static void missing_plugin(void **state)
{
	unlink(sandbox_path("bin/c"));
	ADD();
	assert_failure("plugin type=\"c\" name=\"n\" failed (add): failed to find plugin \"c\"");
	assert_calls("");
}

static void missing_plugin_of_del(void **state)
{
	ADD();
	assert_calls("ADD a\nADD b\nADD c\n");
	unlink(sandbox_path("bin/b"));
	DEL();
	assert_failure("(delete): failed to find plugin \"b\"");
	assert_calls("DEL c\n");
}

static void first_file_wins(void **state)
{
	char path[PATH_SIZE * 8];

	write_list("1.1.0", "", "{\"type\":\"a\"}");
	sandbox_make_directory("1");
	sandbox_make_directory("1/a");
	snprintf(path, sizeof(path), "%s:/nonexistent::%s", sandbox_path("1"), sandbox_path("bin"));
	ADD("--cni-path", path);
	assert_success();
	sandbox_make_directory("2");
	sandbox_write("2/a", "not executable");
	snprintf(path, sizeof(path), "%s:%s", sandbox_path("2"), sandbox_path("bin"));
	ADD("--cni-path", path);
	assert_failure("2/a: Permission denied");
}

static void slash_in_type(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"../bin/a\"}");
	ADD();
	assert_failure("invalid plugin type \"../bin/a\"");
	assert_calls("");
}

struct answer_row {
	const char *name;
	const char *commands; /* of a, the only plugin, at ADD */
	const char *failure;  /* NULL: success */
	const char *expected; /* the result, then */
};

static const struct answer_row answer_rows[] = {
	{"[s128] a result without version takes the list's", "echo '{\"x\":1}'; exit 0", NULL,
	 "{\"x\":1,\"cniVersion\":\"1.1.0\"}"},
	{"[s128] a result with an empty version, too", "echo '{\"cniVersion\":\"\"}'; exit 0", NULL,
	 "{\"cniVersion\":\"1.1.0\"}"},
	{"[s128] null is an empty result", "echo null; exit 0", NULL, "{\"cniVersion\":\"1.1.0\"}"},
	{"[s128] another supported version is taken", "echo '{\"cniVersion\":\"0.3.1\"}'; exit 0",
	 NULL, "{\"cniVersion\":\"0.3.1\"}"},
	{"[s124] a result's keys, order and integers stay",
	 "echo '{\"z\":9007199254740993,\"cniVersion\":\"1.1.0\",\"a\":[]}'; exit 0", NULL,
	 "{\"z\":9007199254740993,\"cniVersion\":\"1.1.0\",\"a\":[]}"},
	{"[s121] a result of an unknown version", "echo '{\"cniVersion\":\"2.0.0\"}'; exit 0",
	 "failed (add): its result is of version \"2.0.0\"", NULL},
	{"[s128] an address that is none",
	 "echo '{\"ips\":[{\"address\":\"10.0.0.300/24\"}]}'; exit 0",
	 "cnirun: plugin type=\"a\" name=\"n\" failed (add): its result on stdout: ips[0]: "
	 "\"address\" is \"10.0.0.300/24\"",
	 NULL},
	{"[s128] addresses that are no array", "echo '{\"ips\":{}}'; exit 0",
	 "failed (add): its result on stdout: \"ips\" must be an array, found an object", NULL},
	{"[s128] empty stdout", "exit 0", "failed (add): succeeded, but with no result", NULL},
	{"[s128] stdout that is no JSON", "echo hello; exit 0", "failed (add): ", NULL},
	{"[s128] stdout that is an array", "echo '[]'; exit 0", "is not an object", NULL},
	{"[s128] two results", "echo '{}{}'; exit 0", "failed (add): ", NULL},
	{"[s129] failure without a word", "exit 3", "failed (add): exit status 3 with no error",
	 NULL},
	{"[s129] failure without JSON", "echo oops; exit 1", "no CNI error: \"oops", NULL},
	{"[s129] failure with an empty message", "echo '{\"code\":7,\"msg\":\"\"}'; exit 1",
	 "no CNI error: \"{\"code\":7,", NULL},
	{"[s129] failure with other JSON", "echo '{\"msg\":1}'; exit 1", "no CNI error: ", NULL},
	{"[s129] killed by a signal", "kill -9 $$", "failed (add): killed by signal 9", NULL},
	{"[s16] stderr is passed through", "echo why >&2; exit 1", "why\ncnirun: plugin", NULL},
	{"a plugin that writes without end", "exec cat /dev/zero", "wrote more than", NULL},
};

static void answer(void **state)
{
	const struct answer_row *row = *state;

	write_list("1.1.0", "", "{\"type\":\"a\"}");
	instruct("a.ADD", row->commands);
	ADD();
	if (row->failure) {
		assert_failure(row->failure);
		assert_calls("ADD a\nDEL a\n");
	} else {
		assert_success();
		assert_output_json(row->expected);
	}
}

/* Whose number a plugin wrote into the file; a process that is gone may be a zombie of
 * init's, where nobody reaps. */
static bool is_running(const char *name)
{
	char path[64];
	char state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", atoi(sandbox_read(name)));
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	fclose(file);
	return state != 'Z';
}

static void end_process(const char *name)
{
	assert_true(is_running(name));
	kill(atoi(sandbox_read(name)), SIGKILL);
}

struct hanging_row {
	const char *name;
	const char *commands;
	const char *ended; /* files with the numbers of processes that are gone after it */
};

static const struct hanging_row hanging_rows[] = {
	{"a plugin that hangs", "echo $$ >$FAKE/me; exec sleep 1000", "me"},
	{"a plugin that closes its stdout and hangs", "echo $$ >$FAKE/me; exec sleep 1000 >&-",
	 "me"},
	{"a plugin that is stopped", "echo $$ >$FAKE/me; kill -STOP $$; sleep 1000", "me"},
	{"a plugin that waits for a child in a session of its own",
	 "setsid sh -c 'echo $$ >$FAKE/child; exec sleep 1000' & wait", "child"},
	{"a plugin that waits for a grandchild",
	 "sh -c 'sleep 1000 & echo $! >$FAKE/child; wait; true'; true", "child"},
	{"a plugin that writes slowly without end",
	 "echo $$ >$FAKE/me; while echo '{}'; do sleep 0.1; done", "me"},
};

static void hanging(void **state)
{
	const struct hanging_row *row = *state;

	write_list("1.1.0", "", "{\"type\":\"a\"}");
	instruct("a.ADD", row->commands);
	ADD("--timeout", "1");
	assert_failure("cnirun: plugin type=\"a\" name=\"n\" failed (add): did not end within 1 "
		       "second and was killed, with the processes that it had started; --timeout "
		       "SECONDS gives it more time\n");
	assert_calls("ADD a\nDEL a\n");
	assert_false(is_running(row->ended));
	assert_false(sandbox_has(CACHE_FILE));
}

/* One that ended in time may leave what it wants, and nobody waits for that. */
static void child_left_behind(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"a\"}");
	instruct("a.ADD", "sleep 1000 & echo $! >$FAKE/child\n");
	ADD();
	assert_success();
	assert_output_json(RESULT_OF_A);
	assert_non_null(strstr(last_errors, "bin/a has left a process that keeps its stdout open"));
	end_process("child");
}

static void helper_of_another_plugin(void **state)
{
	instruct("a.ADD", "sleep 1000 >&- & echo $! >$FAKE/helper\n");
	instruct("b.ADD", "echo $$ >$FAKE/me; exec sleep 1000\n");
	ADD("--timeout", "1");
	assert_failure("plugin type=\"b\" name=\"n\" failed (add): did not end within 1 second");
	assert_calls("ADD a\nADD b\nDEL c\nDEL b\nDEL a\n");
	assert_false(is_running("me"));
	end_process("helper");
}

/* "daemon & exec cnirun ...": a child that cnirun has not started. */
static void child_of_before(void **state)
{
	pid_t before;
	char number[16];

	instruct("a.ADD", "echo $$ >$FAKE/me; exec sleep 1000\n");
	before = fork();
	if (!before) {
		char *arguments[] = {(char *)"cnirun",
				     (char *)"add",
				     strdup(sandbox_path("n.conflist")),
				     (char *)NETNS,
				     (char *)"--timeout",
				     (char *)"1",
				     NULL};
		pid_t child = fork();

		if (!child) {
			pause();
			_exit(0);
		}
		snprintf(number, sizeof(number), "%d", (int)child);
		sandbox_write("before", number);
		run_in_child(arguments);
	}
	assert_int_equal(waitpid(before, &exit_status, 0), before);
	assert_non_null(strstr(sandbox_read("stderr"), "did not end within 1 second"));
	assert_false(is_running("me"));
	end_process("before");
}

static void no_timeout(void **state)
{
	instruct("a.ADD", "sleep 1.2\n");
	ADD("--timeout", "0");
	assert_success();
}

/* cnirun inherits that: the kernel would tell nobody how a plugin ended. */
static void children_ignored(void **state)
{
	ignore_children = true;
	ADD();
	ignore_children = false;
	assert_success();
}

/* More than a pipe holds, both ways at once: the plugin writes first and then reads. */
static void large_streams(void **state)
{
	enum { SIZE = 300000 };
	static char capability[SIZE + 64];
	struct stat status;

	snprintf(capability, sizeof(capability), "big=\"%0*d\"", SIZE, 0);
	write_list("1.1.0", "", "{\"type\":\"a\",\"capabilities\":{\"big\":true}}");
	sandbox_write("bin/a", "#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' ' '\n"
			       "cat >\"$FAKE/stdin.a.ADD\"\necho '{}'\n");
	ADD("--capability", capability);
	assert_success();
	assert_output_json("{\"cniVersion\":\"1.1.0\"}");
	assert_int_equal(stat(sandbox_path("stdin.a.ADD"), &status), 0);
	assert_true(status.st_size > SIZE);
}

static void stdin_unread(void **state)
{
	enum { SIZE = 300000 };
	static char capability[SIZE + 64];

	snprintf(capability, sizeof(capability), "big=\"%0*d\"", SIZE, 0);
	write_list("1.1.0", "", "{\"type\":\"a\",\"capabilities\":{\"big\":true}}");
	sandbox_write("bin/a", "#!/bin/sh\nexec <&-\necho '{}'\n");
	ADD("--capability", capability);
	assert_success();
}

static void capabilities_given(void **state)
{
	write_list("1.1.0", "",
		   "{\"type\":\"a\"},{\"type\":\"b\",\"capabilities\":{\"portMappings\":true}}");
	ADD("-p", "8080:80", "-p", "[::1]:53:53/udp");
	assert_success();
	assert_stdin("a.ADD", "runtimeConfig", "");
	assert_stdin(
		"b.ADD", "runtimeConfig",
		"{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"},"
		"{\"hostPort\":53,\"containerPort\":53,\"protocol\":\"udp\",\"hostIP\":\"::1\"}]}");
}

static void capability_undeclared(void **state)
{
	ADD("-p", "8080:80");
	assert_failure("declares the capability \"portMappings\"");
	assert_calls("");
}

static void capabilities_of_cnitool(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"a\",\"capabilities\":{\"mac\":true,\"ips\":true}}");
	setenv("CAP_ARGS", "{\"mac\":\"00:11\",\"ips\":[1],\"undeclared\":1}", 1);
	setenv("CNI_ARGS", "K=V", 1);
	setenv("CNI_IFNAME", "net0", 1);
	ADD("--capability", "ips=[2]");
	unsetenv("CAP_ARGS");
	unsetenv("CNI_ARGS");
	unsetenv("CNI_IFNAME");
	assert_success();
	assert_stdin("a.ADD", "runtimeConfig", "{\"mac\":\"00:11\",\"ips\":[2]}");
	assert_non_null(strstr(sandbox_read("env.a.ADD"), "CNI_ARGS=K=V\n"));
	assert_non_null(strstr(sandbox_read("env.a.ADD"), "CNI_IFNAME=net0\n"));
}

static void from_cache_when_not_given(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"a\",\"capabilities\":{\"portMappings\":true}}");
	ADD("-p", "8080:80", "--args", "A=1");
	assert_success();
	CHECK();
	assert_success();
	assert_non_null(strstr(sandbox_read("env.a.CHECK"), "CNI_ARGS=A=1\n"));
	DEL();
	assert_success();
	assert_stdin("a.DEL", "runtimeConfig",
		     "{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":"
		     "\"tcp\"}]}");
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_ARGS=A=1\n"));
}

static void given_beats_cache(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"a\",\"capabilities\":{\"portMappings\":true}}");
	ADD("-p", "8080:80", "--args", "A=1");
	DEL("--capability", "portMappings=[]", "--args", "B=2");
	assert_success();
	assert_stdin("a.DEL", "runtimeConfig", "{\"portMappings\":[]}");
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_ARGS=B=2\n"));
}

static void del_without_netns(void **state)
{
	ADD();
	run_cnirun("del", "LIST", "", "--id", ID, NULL);
	assert_success();
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_NETNS=" NETNS "\n"));
	run_cnirun("del", "LIST", "", NULL);
	assert_failure("--id");
}

static void add_without_netns(void **state)
{
	run_cnirun("add", "LIST", "no-such-netns", NULL);
	assert_failure("no network namespace /run/netns/no-such-netns");
	run_cnirun("add", "LIST", "", "--id", ID, NULL);
	assert_failure("NETNS is empty");
	assert_calls("");
}

static void corrupt_cache(void **state)
{
	ADD();
	sandbox_write(CACHE_FILE, "{\"kind\":\"cniCacheV1\"");
	CHECK();
	assert_failure(CACHE_FILE);
	DEL();
	assert_success();
	assert_stdin("a.DEL", "prevResult", "");
	assert_false(sandbox_has(CACHE_FILE));
}

/* libcni reads it into its types, and goes on without what does not fit. */
static void invalid_cached_result(void **state)
{
	ADD();
	sandbox_write(CACHE_FILE,
		      "{\"cniVersion\":\"1.1.0\",\"ips\":[{\"address\":\"10.0.0.2\"}]}");
	CHECK();
	assert_failure(CACHE_FILE ": ips[0]: \"address\" is \"10.0.0.2\"");
	DEL();
	assert_success();
	assert_non_null(strstr(last_errors, "going on without the cached result: "));
	assert_stdin("a.DEL", "prevResult", "");
}

/* A plugin's words are shown, but a terminal is not driven by them. */
static void terminal_not_driven(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"a\"}");
	instruct("a.ADD", "printf '%s' '{\"code\":7,\"msg\":\"red\\u001b[31m\\nline\",\"details\":"
			  "\"\\u009b2J\"}'; exit 1\n");
	ADD();
	assert_failure("failed (add): red?[31m\nline; ??2J\n");
	instruct("a.ADD", "printf 'oops \\033]0;title\\007'; exit 1\n");
	ADD();
	assert_failure("no CNI error: \"oops ?]0;title?\"");
	instruct("a.VERSION", "printf '%s' '{\"supportedVersions\":[\"\\u001b[2J\"]}'; exit 0\n");
	run_cnirun("version", "LIST", NULL);
	assert_success();
	assert_non_null(strstr(last_output, " ?[2J\n"));
	instruct("a.ADD", "printf '%s' '{\"interfaces\":[{\"name\":\"\\u009b2J\"}],\"ips\":[]}'; "
			  "exit 0\n");
	ADD();
	assert_success();
	assert_non_null(strstr(last_output, "\"name\": \"\\u009B2J\""));
}

/* What a file of the cache says is shown as one row. */
static void list_is_clean(void **state)
{
	ADD();
	sandbox_write(CACHE_FILE, "{\"kind\":\"cniCacheV1\",\"networkName\":\"n\",\"containerId\":"
				  "\"" ID "\",\"ifName\":\"eth0\",\"netns\":\"/a\\n\\u001b[2Jb\"}");
	run_cnirun("list", "LIST", NULL);
	assert_success();
	assert_non_null(strstr(last_output, " /a??[2Jb(gone) "));
}

/* Reading them would wait, or never end. */
static void cache_of_special_files(void **state)
{
	ADD();
	assert_int_equal(mkfifo(sandbox_path("cni/results/n-pipe-eth0"), 0600), 0);
	assert_int_equal(symlink("/dev/zero", sandbox_path("cni/results/n-zero-eth0")), 0);
	run_cnirun("list", "LIST", NULL);
	assert_success();
	assert_non_null(strstr(last_output, "\n" ID " "));
	assert_non_null(strstr(last_errors, "n-pipe-eth0 is no regular file"));
	assert_non_null(strstr(last_errors, "n-zero-eth0 is no regular file"));
	run_cnirun("check", "LIST", NETNS, "--id", "pipe", NULL);
	assert_failure("n-pipe-eth0 is no regular file");
	run_cnirun("add", "LIST", NETNS, "--id", "zero", NULL);
	assert_success();
	run_cnirun("del", "LIST", NETNS, "--id", "pipe", NULL);
	assert_success();
	assert_false(sandbox_has("cni/results/n-pipe-eth0"));
}

/* "cnirun status <(jq ... some.conflist)": what the command line names need be no file. */
static void list_from_pipe(void **state)
{
	int ends[2];
	char path[32];
	static const char text[] =
		"{\"name\":\"n\",\"cniVersion\":\"1.1.0\",\"plugins\":[" THREE "]}";

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	close(ends[1]);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	run_cnirun("status", path, NULL);
	close(ends[0]);
	assert_success();
	assert_calls("STATUS a\nSTATUS b\nSTATUS c\n");
}

static void pipe_among_lists(void **state)
{
	assert_int_equal(mkfifo(sandbox_path("a.conflist"), 0600), 0);
	setenv("NETCONFPATH", sandbox, 1);
	run_cnirun("status", "n", NULL);
	unsetenv("NETCONFPATH");
	assert_failure("a.conflist is no regular file");
}

static void old_cache(void **state)
{
	ADD();
	sandbox_write(CACHE_FILE, "{\"cniVersion\":\"1.1.0\",\"old\":true}");
	DEL();
	assert_success();
	assert_stdin("a.DEL", "prevResult", "{\"cniVersion\":\"1.1.0\",\"old\":true}");
}

/* The list was rewritten since: the cached result is given as one of its new version. */
static void cache_of_another_version(void **state)
{
	write_list("0.4.0", "", "{\"type\":\"a\"}");
	instruct("a.ADD", "echo '{\"cniVersion\":\"0.4.0\",\"ips\":[{\"version\":\"4\",\"address\":"
			  "\"10.0.0.2/24\"}]}'; exit 0\n");
	ADD();
	assert_success();
	write_list("1.0.0", "", "{\"type\":\"a\"}");
	DEL();
	assert_success();
	assert_stdin("a.DEL", "prevResult",
		     "{\"cniVersion\":\"1.0.0\",\"ips\":[{\"version\":\"4\",\"address\":"
		     "\"10.0.0.2/24\"}]}");
}

/* Of a version before 0.3.0, whose results have another shape. */
static void cache_of_another_shape(void **state)
{
	write_list("0.2.0", "", "{\"type\":\"a\"}");
	instruct("a.ADD", "echo '{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.0.0.2/24\"}}'; "
			  "exit 0\n");
	ADD();
	assert_success();
	write_list("1.0.0", "", "{\"type\":\"a\"}");
	CHECK();
	assert_failure(CACHE_FILE
		       ": the result is of version \"0.2.0\", and the list of \"1.0.0\"");
	DEL();
	assert_success();
	assert_non_null(strstr(last_errors, "going on without the cached result: "));
	assert_stdin("a.DEL", "prevResult", "");
}

static void cache_of_another_attachment(void **state)
{
	ADD();
	assert_calls("ADD a\nADD b\nADD c\n");
	sandbox_write("n.conflist",
		      "{\"name\":\"n-c1\",\"cniVersion\":\"1.1.0\",\"plugins\":[" THREE "]}");
	run_cnirun("add", "LIST", NETNS, "--id", "eth0", "--ifname", "x", NULL);
	assert_success();
	rename(sandbox_path(CACHE_FILE), sandbox_path("cni/results/n-c1-d-eth0"));
	unlink(sandbox_path("calls"));
	run_cnirun("add", "LIST", NETNS, "--id", "d", NULL);
	assert_failure("choose another container ID");
	assert_calls("");
	run_cnirun("del", "LIST", NETNS, "--id", "d", NULL);
	assert_success();
	assert_true(sandbox_has("cni/results/n-c1-d-eth0"));
}

static void check_in_order(void **state)
{
	ADD();
	assert_calls("ADD a\nADD b\nADD c\n");
	CHECK();
	assert_success();
	assert_string_equal(last_output, "");
	assert_calls("CHECK a\nCHECK b\nCHECK c\n");
	assert_stdin("a.CHECK", "prevResult", RESULT_OF_C);
	instruct("b.CHECK", "echo '{\"code\":7,\"msg\":\"gone\"}'; exit 1\n");
	CHECK();
	assert_failure("plugin type=\"b\" name=\"n\" failed (check): gone\n");
	assert_calls("CHECK a\nCHECK b\n");
}

static void check_too_old(void **state)
{
	write_list("0.3.1", "", THREE);
	CHECK();
	assert_failure("does not support the CHECK command");
}

static void check_disabled(void **state)
{
	write_list("1.1.0", "\"disableCheck\":true,", THREE);
	CHECK();
	assert_success();
	assert_calls("");
}

static void check_never_added(void **state)
{
	instruct("b.CHECK", "echo '{\"code\":7,\"msg\":\"no prevResult\"}'; exit 1\n");
	CHECK();
	assert_failure("plugin type=\"b\" name=\"n\" failed (check): no prevResult\n");
	assert_calls("CHECK a\nCHECK b\n");
	assert_stdin("a.CHECK", "prevResult", "");
}

/* An attachment whose netns is a link of ours, which can be removed. */
static void add_with_netns(const char *id)
{
	assert_int_equal(symlink(NETNS, sandbox_path(id)), 0);
	run_cnirun("add", "LIST", sandbox_path(id), "--id", id, "--args", "A=1", NULL);
	assert_success();
}

static void gc_deletes_stale(void **state)
{
	add_with_netns("live");
	add_with_netns("stale");
	unlink(sandbox_path("stale"));
	unlink(sandbox_path("calls"));
	GC();
	assert_success();
	assert_string_equal(last_output, "");
	assert_calls("DEL c\nDEL b\nDEL a\nGC a\nGC b\nGC c\n");
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_CONTAINERID=stale\n"));
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_ARGS=A=1\n"));
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "/stale\n"));
	assert_stdin("a.DEL", "prevResult", RESULT_OF_C);
	assert_stdin("c.GC", "cni.dev/valid-attachments",
		     "[{\"containerID\":\"live\",\"ifname\":\"eth0\"}]");
	assert_stdin("c.GC", "cni.dev/attachments",
		     "[{\"containerID\":\"live\",\"ifname\":\"eth0\"}]");
	assert_false(sandbox_has("cni/results/n-stale-eth0"));
	assert_true(sandbox_has("cni/results/n-live-eth0"));
}

/* `umount` leaves the file that the namespace was mounted at. */
static void gc_of_plain_file(void **state)
{
	add_with_netns("live");
	add_with_netns("stale");
	unlink(sandbox_path("stale"));
	sandbox_write("stale", "");
	unlink(sandbox_path("calls"));
	GC();
	assert_success();
	assert_calls("DEL c\nDEL b\nDEL a\nGC a\nGC b\nGC c\n");
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_CONTAINERID=stale\n"));
	assert_non_null(strstr(sandbox_read("env.a.DEL"), "CNI_NETNS=\n"));
	assert_false(sandbox_has("cni/results/n-stale-eth0"));
	assert_true(sandbox_has("cni/results/n-live-eth0"));
}

static void gc_before_110(void **state)
{
	write_list("1.0.0", "", "{\"type\":\"a\"}");
	add_with_netns("stale");
	unlink(sandbox_path("stale"));
	unlink(sandbox_path("calls"));
	GC();
	assert_success();
	assert_calls("DEL a\n");
}

static void gc_disabled(void **state)
{
	write_list("1.1.0", "\"disableGC\":true,", THREE);
	GC();
	assert_success();
	assert_calls("");
}

static void gc_goes_on(void **state)
{
	instruct("c.DEL", "echo '{\"code\":5,\"msg\":\"first\"}'; exit 1\n");
	instruct("a.GC", "echo '{\"code\":5,\"msg\":\"second\"}'; exit 1\n");
	add_with_netns("stale");
	unlink(sandbox_path("stale"));
	unlink(sandbox_path("calls"));
	GC();
	assert_failure("failed (delete): first\n");
	assert_failure("failed (gc): second\n");
	assert_calls("DEL c\nGC a\nGC b\nGC c\n");
}

/* Of whom such files are is not known: the plugins are told to keep all that they may be of. */
static void gc_beside_unreadable(void **state)
{
	add_with_netns("live");
	add_with_netns("stale");
	unlink(sandbox_path("stale"));
	unlink(sandbox_path("calls"));
	sandbox_write("cni/results/n-a-b-eth0", "broken");
	sandbox_write("cni/results/n-old-eth0", "{\"cniVersion\":\"1.1.0\"}");
	sandbox_write("cni/results/n-..-eth0", "no container has this ID");
	assert_int_equal(mkfifo(sandbox_path("cni/results/n-pipe-eth0"), 0600), 0);
	GC();
	assert_success();
	assert_calls("DEL c\nDEL b\nDEL a\nGC a\nGC b\nGC c\n");
	assert_false(sandbox_has("cni/results/n-stale-eth0"));
	assert_stdin("a.GC", "cni.dev/valid-attachments",
		     "[{\"containerID\":\"live\",\"ifname\":\"eth0\"},"
		     "{\"containerID\":\"a\",\"ifname\":\"b-eth0\"},"
		     "{\"containerID\":\"a-b\",\"ifname\":\"eth0\"},"
		     "{\"containerID\":\"old\",\"ifname\":\"eth0\"},"
		     "{\"containerID\":\"pipe\",\"ifname\":\"eth0\"}]");
	assert_non_null(strstr(last_errors, "n-a-b-eth0 cannot be used: "));
	assert_non_null(strstr(last_errors, "n-old-eth0 cannot be used: "));
	assert_non_null(strstr(last_errors, "n-pipe-eth0 is no regular file"));
}

/* Such a path is gone or not by where cnirun was called. */
static void gc_of_relative_netns(void **state)
{
	add_with_netns("live");
	unlink(sandbox_path("calls"));
	sandbox_write("cni/results/n-live-eth0",
		      "{\"kind\":\"cniCacheV1\",\"networkName\":\"n\",\"containerId\":\"live\","
		      "\"ifName\":\"eth0\",\"netns\":\"run/netns/live\"}");
	GC();
	assert_success();
	assert_calls("GC a\nGC b\nGC c\n");
	assert_stdin("a.GC", "cni.dev/attachments",
		     "[{\"containerID\":\"live\",\"ifname\":\"eth0\"}]");
}

/* A file that tells of another container than its name would have that one deleted. */
static void gc_of_wrong_name(void **state)
{
	add_with_netns("live");
	unlink(sandbox_path("calls"));
	sandbox_write("cni/results/n-liar-eth0",
		      "{\"kind\":\"cniCacheV1\",\"networkName\":\"n\",\"containerId\":\"live\","
		      "\"ifName\":\"eth0\",\"netns\":\"/nonexistent\"}");
	GC();
	assert_success();
	assert_calls("GC a\nGC b\nGC c\n");
	assert_true(sandbox_has("cni/results/n-live-eth0"));
	assert_non_null(strstr(last_errors, "n-liar-eth0 cannot be used: "));
}

static void status_asks_all(void **state)
{
	run_cnirun("status", "LIST", NULL);
	assert_success();
	assert_calls("STATUS a\nSTATUS b\nSTATUS c\n");
	instruct("b.STATUS", "echo '{\"code\":50,\"msg\":\"no BPF\"}'; exit 1\n");
	run_cnirun("status", "LIST", NULL);
	assert_failure("plugin type=\"b\" name=\"n\" failed (status): no BPF\n");
	assert_calls("STATUS a\nSTATUS b\n");
}

static void status_before_110(void **state)
{
	write_list("1.0.0", "", THREE);
	run_cnirun("status", "LIST", NULL);
	assert_success();
	assert_calls("");
	assert_string_equal(last_errors, "cnirun: warning: conflist \"n\" has cniVersion 1.0.0: "
					 "plugins cannot be asked (1.1.0 needed)\n");
	sandbox_write("n.conflist", "{\"name\":\"n\",\"plugins\":[" THREE "]}");
	run_cnirun("status", "LIST", NULL);
	assert_success();
	assert_non_null(strstr(last_errors, "conflist \"n\" has no cniVersion: "));
}

static void version_table(void **state)
{
	write_list("0.4.0", "", "{\"type\":\"a\"},{\"type\":\"b\"}");
	instruct("b.VERSION", "echo '{\"supportedVersions\":[\"0.1.0\"]}'; exit 0\n");
	run_cnirun("version", "LIST", NULL);
	assert_success();
	assert_string_equal(last_output, "PLUGIN               0.4.0   VERSIONS\n"
					 "a                    yes     0.4.0 1.0.0\n"
					 "b                    no      0.1.0\n");
	assert_non_null(strstr(sandbox_read("env.a.VERSION"), "CNI_NETNS=dummy\n"));
	assert_stdin("a.VERSION", "cniVersion", "\"1.1.0\"");
}

static void version_goes_on(void **state)
{
	instruct("a.VERSION", "echo hello; exit 0\n");
	instruct("b.VERSION", "echo '{\"supportedVersions\":\"1.0.0\"}'; exit 0\n");
	run_cnirun("version", "LIST", NULL);
	assert_int_equal(exit_status, 1);
	assert_string_equal(last_output, "PLUGIN               1.1.0   VERSIONS\n"
					 "a                    ?\n"
					 "b                    ?\n"
					 "c                    no      0.4.0 1.0.0\n");
	assert_non_null(strstr(last_errors, "cnirun: plugin type=\"a\" name=\"n\" failed "
					    "(version): its answer on stdout is not valid JSON"));
	assert_non_null(strstr(last_errors, "\nplugin type=\"b\" name=\"n\" failed (version): "
					    "\"supportedVersions\" must be an array"));
}

/* How far into its line the text stands. */
static long column_of(const char *text)
{
	const char *found = strstr(last_output, text), *line = found;

	assert_non_null(found);
	while (line > last_output && line[-1] != '\n')
		line--;
	return found - line;
}

static void list_of_cache(void **state)
{
	write_list("1.1.0", "", "{\"type\":\"a\",\"capabilities\":{\"portMappings\":true}}");
	instruct("a.ADD", "echo '{\"ips\":[{\"address\":\"10.0.0.2/24\"}]}'; exit 0\n");
	ADD("-p", "127.0.0.1:8080:80", "-p", "[::1]:9:9/udp");
	run_cnirun("list", "LIST", NULL);
	assert_success();
	assert_non_null(
		strstr(last_output, NETNS " 10.0.0.2/24 127.0.0.1:8080->80/tcp,[::1]:9->9/udp\n"));
	assert_int_equal(column_of("ADDRESSES"), column_of("10.0.0.2/24"));
	assert_int_equal(column_of("PORTS"), column_of("127.0.0.1:8080"));
	run_cnirun("list", "LIST", "--json", NULL);
	assert_success();
	assert_non_null(strstr(last_output, "\"containerId\": \"" ID "\""));
}

struct usage_row {
	const char *name;
	const char *arguments[7];
	const char *message;
};

static const struct usage_row usage_rows[] = {
	{"[s139] an unknown verb", {"ad", NULL}, "unknown verb \"ad\""},
	{"[s139] a verb in capitals", {"ADD", "LIST", NETNS, NULL}, "unknown verb \"ADD\""},
	{"no list", {"add", NULL}, "missing operand: CONFLIST"},
	{"no netns", {"add", "LIST", NULL}, "missing operand: NETNS"},
	{"too many operands", {"gc", "LIST", NETNS, NULL}, "one operand too many"},
	{"an unknown option", {"add", "LIST", NETNS, "--foo", NULL}, "unknown option --foo"},
	{"an unknown letter", {"add", "LIST", NETNS, "-x", NULL}, "unknown option -x;"},
	{"an unknown letter among others", {"add", "-xp", NULL}, "unknown option -x;"},
	{"a byte that is no letter", {"add", "-\xff", NULL}, "unknown option -?;"},
	{"another verb's option", {"gc", "LIST", "-p", "80:80", NULL}, "unknown option -p;"},
	{"another verb's long option",
	 {"gc", "LIST", "--publish", "80:80", NULL},
	 "unknown option --publish;"},
	{"an option without value", {"add", "LIST", NETNS, "--id", NULL}, "no value after --id"},
	{"a letter without value", {"add", "LIST", NETNS, "-p", NULL}, "no value after -p;"},
	{"a bad -p", {"add", "LIST", NETNS, "-p", "0:80", NULL}, "invalid -p \"0:80\""},
	{"[s139] a bad --args", {"add", "LIST", NETNS, "--args", "A", NULL}, "CNI_ARGS pair \"A\""},
	{"a --capability without value",
	 {"add", "LIST", NETNS, "--capability", "x", NULL},
	 "NAME=JSON"},
	{"a --capability that is no JSON",
	 {"add", "LIST", NETNS, "--capability", "x={", NULL},
	 "invalid --capability"},
	{"a --timeout that is no number",
	 {"add", "LIST", NETNS, "--timeout", "1s", NULL},
	 "invalid --timeout \"1s\""},
	{"a --timeout below 0",
	 {"add", "LIST", NETNS, "--timeout", "-1", NULL},
	 "invalid --timeout \"-1\""},
	{"an empty --timeout", {"gc", "LIST", "--timeout", "", NULL}, "invalid --timeout \"\""},
	{"a --timeout of seven digits",
	 {"gc", "LIST", "--timeout", "1000000", NULL},
	 "invalid --timeout \"1000000\""},
	{"a list that does not exist",
	 {"gc", "/nonexistent.conflist", NULL},
	 "/nonexistent.conflist"},
};

static void usage_refused(void **state)
{
	const struct usage_row *row = *state;
	const char *const *words = row->arguments;

	run_cnirun(words[0], words[1], words[2], words[3], words[4], words[5], words[6], NULL);
	assert_failure(row->message);
	assert_calls("");
}

static void both_ways_of_ports(void **state)
{
	ADD("-p", "80:80", "--capability", "portMappings=[]");
	assert_failure("both -p and --capability portMappings");
}

static void help_of_verbs(void **state)
{
	run_cnirun("--help", NULL);
	assert_success();
	for (size_t i = 0; i < VERB_COUNT; i++) {
		assert_non_null(strstr(last_output, verbs[i].summary));
		run_cnirun(verbs[i].name, "--help", NULL);
		assert_success();
		assert_non_null(strstr(last_output, verbs[i].summary));
		assert_true(!strstr(last_output, "--publish") ==
			    !(verbs[i].options & OPTIONS_ATTACHMENT));
		run_cnirun("--help", NULL);
	}
}

/* A file that is being written cannot be executed; here it stays so for 1.5 seconds. */
static void busy_file(void **state)
{
	pid_t writer;
	int status;

	write_list("1.1.0", "", "{\"type\":\"a\"}");
	writer = fork();
	if (!writer) {
		int fd = open(sandbox_path("bin/a"), O_WRONLY | O_CLOEXEC);

		sandbox_write("busy", "");
		usleep(1500000);
		close(fd);
		_exit(0);
	}
	for (int i = 0; i < 1000 && !sandbox_has("busy"); i++)
		usleep(1000);
	ADD();
	assert_int_equal(waitpid(writer, &status, 0), writer);
	assert_success();
	assert_calls("ADD a\n");
}

static void still_busy_file(void **state)
{
	int fd;

	write_list("1.1.0", "", "{\"type\":\"a\"}");
	fd = open(sandbox_path("bin/a"), O_WRONLY | O_CLOEXEC);
	ADD();
	close(fd);
	assert_failure("bin/a: Text file busy");
}

struct case_row {
	const char *name;
	CMUnitTestFunction function;
};

static const struct case_row cases[] = {
	{"[s127] ADD in order, each result the next one's prevResult", add_in_order},
	{"[s132] DEL in reverse order, with the cached result", del_in_reverse},
	{"[s132] DEL below 0.4.0 has no prevResult", del_before_040},
	{"[s125] the CNI_ variables of ADD", environment_passed},
	{"[s125] the CNI_ variables of STATUS", environment_of_status},
	{"[s140] after a failed ADD the whole list gets a DEL", failed_add_is_undone},
	{"[s140] which goes on after an error", undoing_goes_on},
	{"[s131] a failed ADD leaves an older one as it was", failed_add_keeps_older},
	{"[s131] also where the cache of that one is broken", failed_add_keeps_unreadable},
	{"an ADD that cannot print its result is undone", unprinted_add_is_undone},
	{"[s131] a failed DEL keeps the cache", failed_del_keeps_cache},
	{"[s122] a plugin that is missing fails ADD before anything ran", missing_plugin},
	{"[s132] a plugin that is missing stops DEL", missing_plugin_of_del},
	{"[s122] the first regular file along CNI_PATH", first_file_wins},
	{"[s122] a slash in the type", slash_in_type},
	{"streams larger than a pipe", large_streams},
	{"a large stdin that is not read", stdin_unread},
	{"a process that a plugin leaves behind", child_left_behind},
	{"a plugin that hangs, after one that left a helper", helper_of_another_plugin},
	{"a plugin that hangs, beside a process that is not cnirun's", child_of_before},
	{"--timeout 0", no_timeout},
	{"SIGCHLD is ignored", children_ignored},
	{"[s123] -p goes to who declares it", capabilities_given},
	{"-p that nobody declares", capability_undeclared},
	{"[s138] cnitool's variables", capabilities_of_cnitool},
	{"[s132] arguments from the cache when not given", from_cache_when_not_given},
	{"[s132] given arguments beat the cache", given_beats_cache},
	{"[s140] DEL without netns", del_without_netns},
	{"[s140] ADD without netns", add_without_netns},
	{"[s133] a corrupt cache: DEL goes on, CHECK fails", corrupt_cache},
	{"[s133] a cache of the old format", old_cache},
	{"[s133] a result that is none: DEL goes on, CHECK fails", invalid_cached_result},
	{"a terminal does not obey what plugins say", terminal_not_driven},
	{"a terminal does not obey what the cache says", list_is_clean},
	{"a cache of another version", cache_of_another_version},
	{"a cache of a version before 0.3.0", cache_of_another_shape},
	{"a cache of another attachment", cache_of_another_attachment},
	{"[s134] CHECK in ADD's order with the final result", check_in_order},
	{"[s134] CHECK below 0.4.0", check_too_old},
	{"[s134] disableCheck", check_disabled},
	{"[s134] CHECK of what was never added", check_never_added},
	{"[s135] GC: stale ones get a DEL, then plugins a GC", gc_deletes_stale},
	{"gc of a file that was a namespace", gc_of_plain_file},
	{"[s135] GC below 1.1.0: only DEL", gc_before_110},
	{"[s135] disableGC", gc_disabled},
	{"[s135] GC goes on and reports all", gc_goes_on},
	{"[s135] GC beside files that cannot be read", gc_beside_unreadable},
	{"[s135] GC of a netns whose path is relative", gc_of_relative_netns},
	{"[s135] GC beside a file that tells of another container", gc_of_wrong_name},
	{"pipes and devices in the cache", cache_of_special_files},
	{"a list from a pipe", list_from_pipe},
	{"pipes among the lists", pipe_among_lists},
	{"[s136] STATUS stops at the first error", status_asks_all},
	{"[s136] STATUS below 1.1.0 asks nobody", status_before_110},
	{"[s22] VERSION of each plugin", version_table},
	{"[s22] VERSION goes on after a bad answer", version_goes_on},
	{"list", list_of_cache},
	{"-p beside --capability portMappings", both_ways_of_ports},
	{"--help of each verb", help_of_verbs},
	{"[s129] a busy file is tried again", busy_file},
	{"[s129] a file that stays busy is an error", still_busy_file},
};

int main(void)
{
	static struct test_list list;

	for (size_t i = 0; i < COUNT(cases); i++)
		test_list_add(&list, cases[i].name, cases[i].function, NULL);
	ADD_ROWS(&list, name_rows, bad_name);
	ADD_ROWS(&list, answer_rows, answer);
	ADD_ROWS(&list, hanging_rows, hanging);
	ADD_ROWS(&list, usage_rows, usage_refused);
	test_list_set_fixture(&list, 0, setup);
	return test_list_run(&list, "cnirun_run");
}
