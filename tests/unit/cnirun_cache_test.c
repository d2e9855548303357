/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cnirun_cache_test.c - the cache: libcni's format, old and broken files, locks.
 */
#include "cnirun_testing.h"

#include <signal.h>
#include <sys/file.h>

#include "runtimes/cnirun/cache.h"

#define FILE_NAME "results/n-c-eth0"

/* As libcni 1.3.0 writes it. */
static const char libcni_file[] =
	"{\"kind\":\"cniCacheV1\",\"containerId\":\"c\",\"config\":\"e30=\",\"ifName\":\"eth0\","
	"\"networkName\":\"n\",\"netns\":\"/run/netns/c\",\"cniArgs\":[[\"A\",\"1\"]],"
	"\"capabilityArgs\":{\"mac\":\"00:11\"},\"result\":{\"cniVersion\":\"1.0.0\",\"dns\":{}}}";

static struct conflist list = {
	.name = (char *)"n",
	.version = (char *)"1.0.0",
	.text = (char *)"{\"name\": \"n\"}\n",
	.length = 14,
};

FIXTURE(sandbox_setup, sandbox_teardown)

static void write_file(const char *text)
{
	sandbox_make_directory("results");
	sandbox_write(FILE_NAME, text);
}

static struct runtime_conf conf_of(const char *container_id, const char *ifname)
{
	return (struct runtime_conf){
		.container_id = container_id,
		.ifname = ifname,
		.netns = "/run/netns/c",
		.cache_directory = sandbox,
	};
}

static int write_entry(json_t *args, json_t *capability_args, json_t *result)
{
	struct runtime_conf conf = conf_of("c", "eth0");

	conf.args = args;
	conf.capability_args = capability_args;
	return cache_write(&list, &conf, result, &fault);
}

static int read_entry(struct cache_entry *entry, const char *network, const char *container_id)
{
	const struct runtime_conf conf = conf_of(container_id, "eth0");

	return cache_read(entry, network, &conf, &fault);
}

TEST(all_fields_written, "all fields, in libcni's order")
{
	json_t *args = json_of("[[\"A\",\"1\"]]");
	json_t *capability_args = json_of("{\"mac\":\"00:11\"}");
	json_t *result = json_of("{\"cniVersion\":\"1.0.0\",\"x\":9007199254740993}");

	assert_int_equal(write_entry(args, capability_args, result), 0);
	assert_string_equal(sandbox_read(FILE_NAME),
			    "{\"kind\":\"cniCacheV1\",\"containerId\":\"c\",\"config\":"
			    "\"eyJuYW1lIjogIm4ifQo=\","
			    "\"ifName\":\"eth0\",\"networkName\":\"n\",\"netns\":\"/run/netns/c\","
			    "\"cniArgs\":[[\"A\",\"1\"]],\"capabilityArgs\":{\"mac\":\"00:11\"},"
			    "\"result\":{\"cniVersion\":\"1.0.0\",\"x\":9007199254740993}}");
	json_decref(result);
	json_decref(capability_args);
	json_decref(args);
}

TEST(conflist_read_again, "the conflist is read again")
{
	static const struct {
		const char *config, *error;
	} rows[] = {
		{"eyJuYW1lIjoibiIsInBsdWdpbnMiOlt7InR5cGUiOiJ4In1dfQ==", NULL},
		{"e30=", "its config: "},
		{"eyJ", "its config is no base64"},
		{NULL, "its config"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct cache_entry entry = {.config = rows[i].config, .path = (char *)"P"};
		struct conflist read = {0};
		int failed = cache_read_conflist(&entry, &read, &fault);

		assert_int_equal(failed, rows[i].error ? -1 : 0);
		if (rows[i].error)
			assert_non_null(strstr(fault.message, rows[i].error));
		else
			assert_string_equal(plugin_type(json_array_get(read.plugins, 0)), "x");
		cni_error_release(&fault);
		conflist_release(&read);
	}
}

TEST(empty_fields_left_out, "empty fields are left out")
{
	json_t *empty = json_array();

	assert_int_equal(write_entry(empty, NULL, NULL), 0);
	assert_null(strstr(sandbox_read(FILE_NAME), "cniArgs"));
	assert_null(strstr(sandbox_read(FILE_NAME), "capabilityArgs"));
	assert_null(strstr(sandbox_read(FILE_NAME), "result"));
	json_decref(empty);
}

static unsigned int mode_of(const char *name)
{
	struct stat status;

	assert_int_equal(stat(sandbox_path(name), &status), 0);
	return status.st_mode & 07777;
}

TEST(modes, "directory 0700, file 0600")
{
	mode_t before = umask(0);

	assert_int_equal(write_entry(NULL, NULL, NULL), 0);
	umask(before);
	assert_int_equal(mode_of("results"), 0700);
	assert_int_equal(mode_of(FILE_NAME), 0600);
}

static int count_files(void)
{
	int count = 0;
	char command[PATH_SIZE * 2];
	FILE *files;

	snprintf(command, sizeof(command), "ls -A '%s'", sandbox_path("results"));
	files = popen(command, "r");
	assert_non_null(files);
	for (int byte = fgetc(files); byte != EOF; byte = fgetc(files))
		count += byte == '\n';
	pclose(files);
	return count;
}

/* A reader that opened the old file still has all of it. */
TEST(replaced_not_overwritten, "a file is replaced, not overwritten")
{
	struct stat old;
	struct stat new;

	assert_int_equal(write_entry(NULL, NULL, NULL), 0);
	assert_int_equal(stat(sandbox_path(FILE_NAME), &old), 0);
	assert_int_equal(link(sandbox_path(FILE_NAME), sandbox_path("old")), 0);
	assert_int_equal(write_entry(NULL, NULL, NULL), 0);
	assert_int_equal(stat(sandbox_path(FILE_NAME), &new), 0);
	assert_true(old.st_ino != new.st_ino);
	assert_int_equal(count_files(), 1);
}

TEST(no_place, "a cache that cannot be written")
{
	sandbox_write("results", "a file");
	assert_int_equal(write_entry(NULL, NULL, NULL), -1);
	assert_error(5, "results");
}

/* DEL could not read it, and would not know what was added. */
TEST(too_large_to_read, "more than could be read again")
{
	enum { SIZE = 16 << 20 };
	char *text = malloc(SIZE + 1);
	json_t *result;

	assert_non_null(text);
	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	result = json_pack("{s:s}", "x", text);
	assert_int_equal(write_entry(NULL, NULL, result), -1);
	assert_error(5, "too large for the cache");
	assert_false(sandbox_has(FILE_NAME));
	json_decref(result);
	free(text);
}

TEST(libcni_file_read, "a file of libcni is read")
{
	struct cache_entry entry = {0};

	write_file(libcni_file);
	assert_int_equal(read_entry(&entry, "n", "c"), 0);
	assert_string_equal(entry.network, "n");
	assert_string_equal(entry.container_id, "c");
	assert_string_equal(entry.ifname, "eth0");
	assert_string_equal(entry.netns, "/run/netns/c");
	assert_json_text(entry.args, "[[\"A\",\"1\"]]");
	assert_json_text(entry.capability_args, "{\"mac\":\"00:11\"}");
	assert_json_text(entry.result, "{\"cniVersion\":\"1.0.0\",\"dns\":{}}");
	cache_release(&entry);
}

TEST(old_format_read, "a file without kind is a bare result")
{
	struct cache_entry entry = {0};

	write_file("{\"cniVersion\":\"0.4.0\",\"ips\":[]}");
	assert_int_equal(read_entry(&entry, "n", "c"), 0);
	assert_json_text(entry.result, "{\"cniVersion\":\"0.4.0\",\"ips\":[]}");
	assert_null(entry.args);
	cache_release(&entry);
}

TEST(missing_file, "no file is no error")
{
	const struct runtime_conf conf = conf_of("c", "eth0");
	struct cache_entry entry = {0};

	assert_int_equal(read_entry(&entry, "n", "c"), 0);
	assert_null(entry.root);
	cache_release(&entry);
	assert_int_equal(cache_remove("n", &conf, &fault), 0);
}

#define KEYS \
	"\"kind\":\"cniCacheV1\",\"containerId\":\"c\",\"ifName\":\"eth0\",\"networkName\":\"n\""

static const struct {
	const char *name;
	const char *text;
} broken_rows[] = {
	{"an empty file", ""},
	{"a file cut short", "{\"kind\":\"cniCacheV1\",\"contai"},
	{"an array", "[]"},
	{"another kind", "{\"kind\":\"cniCacheV2\"}"},
	{"kind is a number", "{\"kind\":1}"},
	{"no container ID", "{\"kind\":\"cniCacheV1\",\"ifName\":\"e\",\"networkName\":\"n\"}"},
	{"result is a string", "{" KEYS ",\"result\":\"x\"}"},
	{"cniArgs is an object", "{" KEYS ",\"cniArgs\":{}}"},
	{"cniArgs holds a string", "{" KEYS ",\"cniArgs\":[\"A=1\"]}"},
	{"cniArgs holds three", "{" KEYS ",\"cniArgs\":[[\"A\",\"1\",\"2\"]]}"},
	{"cniArgs holds numbers", "{" KEYS ",\"cniArgs\":[[\"A\",1]]}"},
	{"capabilityArgs is an array", "{" KEYS ",\"capabilityArgs\":[]}"},
};

ROWS(broken_rows, broken_file)
{
	struct cache_entry entry = {0};

	write_file(row->text);
	assert_int_equal(read_entry(&entry, "n", "c"), -1);
	assert_false(entry.is_of_another);
	assert_error(6, FILE_NAME);
	cache_release(&entry);
}

/* a-b and c, a and b-c: one file name. */
TEST(file_of_another, "names with dashes do not meet")
{
	struct cache_entry entry = {0};

	sandbox_make_directory("results");
	sandbox_write("results/a-b-c-eth0",
		      "{\"kind\":\"cniCacheV1\",\"containerId\":\"c\",\"ifName\":\"eth0\","
		      "\"networkName\":\"a-b\"}");
	assert_int_equal(read_entry(&entry, "a", "b-c"), -1);
	assert_true(entry.is_of_another);
	assert_error(6, "\"a-b\"");
	cache_release(&entry);
	assert_int_equal(read_entry(&entry, "a-b", "c"), 0);
	assert_non_null(entry.root);
	cache_release(&entry);
}

TEST(all_of_a_network, "entries of one network")
{
	struct cache_entries entries = {0};

	write_file(libcni_file);
	sandbox_write("results/n-m-c-eth0",
		      "{\"kind\":\"cniCacheV1\",\"containerId\":\"c\",\"ifName\":\"eth0\","
		      "\"networkName\":\"n-m\"}");
	sandbox_write("results/other-c-eth0", "broken, but not ours");
	assert_int_equal(cache_read_all(&entries, "n", sandbox, &fault), 0);
	assert_int_equal(entries.count, 1);
	assert_string_equal(entries.entries[0].network, "n");
	assert_json_text(entries.possible, "[]");
	cache_release_all(&entries);
}

/* Whether another open file could take the network's lock. */
static bool is_free(const char *name)
{
	struct flock whole = {.l_type = F_WRLCK};
	int fd = open(sandbox_path(name), O_RDWR | O_CLOEXEC);
	int failed = fd < 0 ? 0 : fcntl(fd, F_OFD_SETLK, &whole);

	if (fd >= 0)
		close(fd);
	return !failed;
}

static int lock_attachment(int *lock, const char *network, const char *ifname)
{
	const struct runtime_conf conf = conf_of("c", ifname);

	return cache_lock_attachment(lock, network, &conf, &fault);
}

TEST(attachment_locked, "the lock of an attachment")
{
	int lock = CACHE_LOCK_NONE;
	int other = CACHE_LOCK_NONE;

	assert_int_equal(lock_attachment(&lock, "n", "eth0"), 0);
	assert_false(is_free("locks/n"));
	/* Would hang if attachments excluded one another. */
	assert_int_equal(lock_attachment(&other, "n", "eth1"), 0);
	cache_lock_release(&other);
	cache_lock_release(&lock);
	assert_true(is_free("locks/n"));
}

TEST(network_locked, "the lock of a network")
{
	const struct runtime_conf conf = conf_of("c", "eth0");
	int lock = CACHE_LOCK_NONE;
	int other = CACHE_LOCK_NONE;

	assert_int_equal(cache_lock_network(&lock, "n", &conf, &fault), 0);
	assert_false(is_free("locks/n"));
	assert_int_equal(lock_attachment(&other, "m", "eth0"), 0);
	cache_lock_release(&other);
	cache_lock_release(&lock);
	assert_true(is_free("locks/n"));
}

TEST(widened_by_the_last, "the last attachment's lock becomes the network's")
{
	int lock = CACHE_LOCK_NONE;
	int other = CACHE_LOCK_NONE;

	assert_int_equal(lock_attachment(&lock, "n", "eth0"), 0);
	assert_int_equal(lock_attachment(&other, "n", "eth1"), 0);
	assert_false(cache_lock_widen(lock));
	assert_true(cache_lock_widen(other));
	assert_false(is_free("locks/n"));
	cache_lock_release(&lock);
	assert_false(is_free("locks/n"));
	cache_lock_release(&other);
	assert_true(is_free("locks/n"));
}

TEST(swept, "what killed runs have left is swept")
{
	static const char *const files[] = {"results/n-c-eth0", "results/.cnirun-n,c,eth0",
					    "results/.cnirun-n-n,c,eth0"};

	sandbox_make_directory("results");
	for (size_t i = 0; i < COUNT(files); i++)
		sandbox_write(files[i], "");
	cache_sweep("n", sandbox);
	for (size_t i = 0; i < COUNT(files); i++)
		assert_int_equal(sandbox_has(files[i]), i != 1);
}

/* A child locks it and ends, as if killed; what it has started goes on for ever. Its process ID. */
static pid_t leave_plugin(void)
{
	int lock = CACHE_LOCK_NONE;
	pid_t child, plugin = 0;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		if (lock_attachment(&lock, "n", "eth0"))
			_exit(1);
		plugin = fork();
		if (!plugin)
			execlp("sleep", "sleep", "99", (char *)NULL);
		_exit(write(ends[1], &plugin, sizeof(plugin)) == sizeof(plugin) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(ends[0], &plugin, sizeof(plugin)), sizeof(plugin));
	close(ends[0]);
	close(ends[1]);
	return plugin;
}

TEST(held_by_plugin_of_killed_run, "a plugin that has outlived its runtime has the lock")
{
	struct runtime_conf conf = conf_of("c", "eth0");
	int lock = CACHE_LOCK_NONE;
	pid_t plugin = leave_plugin();

	conf.timeout = 1;
	assert_int_equal(cache_lock_attachment(&lock, "n", &conf, &fault), -1);
	assert_int_equal(fault.code, CNI_ERROR_TRY_AGAIN);
	assert_non_null(strstr(fault.message, "locks/n has been locked for over 1 second: "));
	cni_error_release(&fault);
	cache_lock_release(&lock);
	assert_int_equal(lock_attachment(&lock, "n", "eth1"), 0);
	cache_lock_release(&lock);
	kill(plugin, SIGKILL);
	assert_int_equal(lock_attachment(&lock, "n", "eth0"), 0);
	cache_lock_release(&lock);
}

/* Children that add one to a number in a file, slowly: none of them may be lost. */
static void count_up(void)
{
	int lock = CACHE_LOCK_NONE;
	char text[32];
	int number;

	if (lock_attachment(&lock, "n", "eth0"))
		_exit(1);
	number = atoi(sandbox_read("number"));
	usleep(2000);
	snprintf(text, sizeof(text), "%d", number + 1);
	sandbox_write("number", text);
	cache_lock_release(&lock);
	_exit(0);
}

TEST(contended, "30 processes at one attachment")
{
	enum { CHILDREN = 30 };
	pid_t children[CHILDREN];
	int status;

	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (!children[i])
			count_up();
	}
	for (int i = 0; i < CHILDREN; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(sandbox_read("number"), "30");
}
