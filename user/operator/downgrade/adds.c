/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* adds.c - the ADDs by which the containers that run were made, to be made once more. */
#include "operator/downgrade/adds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cni/json.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "datapath/records/owners.h"
#include "host/host.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"
#include "net/link.h"
#include "net/namespaces.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "operator/add_cache.h"
#include "operator/run_command.h"

#define FOLDER "/run"
#define LIMIT ((size_t)256 << 20)
#define SECONDS 60 /* the first ADD has programs verified */

static int refuse(const struct adds *adds, const char *what, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "cannot %s %s: %s", what, adds->path,
			     strerror(errno));
}

static int refuse_other(const struct adds *adds, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "another run of `bpf-portmap downgrade` or `upgrade` has %s: try again"
			     " when it has ended",
			     adds->path);
}

void adds_path(char path[ADDS_PATH_SIZE], uint64_t netns_cookie)
{
	snprintf(path, ADDS_PATH_SIZE, FOLDER "/bpf-portmap-downgrade-%llu",
		 (unsigned long long)netns_cookie);
}

int adds_open(struct adds *adds, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	uint64_t netns_cookie;
	struct stat status;
	size_t length;

	if (netns_get_cookie(&netns_cookie, err))
		return -1;
	adds_path(adds->path, netns_cookie);
	adds->file = open(adds->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (adds->file < 0)
		return errno == ENOENT ? 0 : refuse(adds, "open", err);
	if (fstat(adds->file, &status))
		return refuse(adds, "read", err);
	if (!S_ISREG(status.st_mode) || status.st_uid || status.st_mode & 077)
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s is not a file that bpf-portmap has written: remove it",
				     adds->path);
	/* One without a name is of a run that has just ended. */
	if (flock(adds->file, LOCK_EX | LOCK_NB) || fstat(adds->file, &status) || !status.st_nlink)
		return refuse_other(adds, err);
	text = cni_read_all(adds->file, LIMIT, adds->path, &length, err);
	if (!text)
		return -1;
	adds->list = cni_json_parse(text, length, adds->path, err);
	return adds->list ? 0 : -1;
}

/* It has its name only when it is whole, and locked. */
static int write_file(struct adds *adds, const char *text, struct cni_error *err)
{
	char link_of_it[32];

	adds->file = open(FOLDER, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (adds->file < 0 || flock(adds->file, LOCK_EX | LOCK_NB) ||
	    cni_write_all(adds->file, text, strlen(text)))
		return refuse(adds, "write", err);
	snprintf(link_of_it, sizeof(link_of_it), "/proc/self/fd/%d", adds->file);
	if (!linkat(AT_FDCWD, link_of_it, AT_FDCWD, adds->path, AT_SYMLINK_FOLLOW))
		return 0;
	return errno == EEXIST ? refuse_other(adds, err) : refuse(adds, "make", err);
}

int adds_save(struct adds *adds, json_t *list, struct cni_error *err)
{
	cleanup_free char *text = json_dumps(list, JSON_COMPACT);

	adds->list = list;
	return write_file(adds, text, err);
}

void adds_finish(struct adds *adds)
{
	if (adds->file >= 0)
		unlink(adds->path);
	adds_close(adds);
}

void adds_close(struct adds *adds)
{
	cleanup_close_pointer(&adds->file);
	adds->file = -1;
	json_decref(adds->list);
	adds->list = NULL;
}

/* The plugin prints an error object. */
static int refuse_add(const json_t *add, const struct command_run *run, struct cni_error *err)
{
	cleanup_json json_t *said = run->output ? json_loads(run->output, 0, NULL) : NULL;
	const char *details = add_cache_text(said, "details");
	const char *message = add_cache_text(said, "msg");

	if (!*message)
		message = *run->errors ? run->errors : "it ended without a word";
	return cni_error_set(
		err, CNI_ERROR_IO, "%s fails with %s of container %s, network %s: %s%s%s",
		run->arguments[6], run->arguments[1], add_cache_text(add, "container_id"),
		add_cache_text(add, "network"), message, *details ? "; " : "", details);
}

int add_make(const json_t *add, const char *command, const char *netns, const char *binary,
	     struct cni_error *err)
{
	cleanup_free char *config = json_dumps(json_object_get(add, "config"), JSON_COMPACT);
	cleanup_free char *verb = cni_format("CNI_COMMAND=%s", command);
	cleanup_free char *id =
		cni_format("CNI_CONTAINERID=%s", add_cache_text(add, "container_id"));
	cleanup_free char *ifname = cni_format("CNI_IFNAME=%s", add_cache_text(add, "ifname"));
	cleanup_free char *where = cni_format("CNI_NETNS=%s", netns);
	cleanup_free char *arguments = cni_format("CNI_ARGS=%s", add_cache_text(add, "args"));
	const char *const words[] = {"env", verb, id, ifname, where, arguments, binary, NULL};
	cleanup_command struct command_run run = {
		.arguments = words, .input = config, .seconds = SECONDS};

	return command_run(&run) ? 0 : refuse_add(add, &run, err);
}

/* By a descriptor of ours, which cannot become that of another process meanwhile. */
static int make_in(const json_t *add, const struct namespace *namespace, const char *binary,
		   struct cni_error *err)
{
	char netns[64];

	snprintf(netns, sizeof(netns), "/proc/%d/fd/%d", getpid(), namespace->fd);
	return add_make(add, "ADD", netns, binary, err);
}

/* The namespace that the veth leads to; *found is NULL where the container is gone. -1: there is a
 * veth, and its namespace is not seen. */
static int find_namespace(const json_t *add, const struct namespaces *namespaces,
			  struct nl_sock *socket, const struct namespace **found,
			  struct cni_error *err)
{
	uint32_t index = (uint32_t)json_integer_value(json_object_get(add, "veth_index"));
	const char *name = add_cache_text(add, "veth");
	struct link veth;

	*found = NULL;
	if (link_get(socket, index, NULL, &veth, err))
		return -1;
	if (!veth.ifindex || strcmp(veth.name, name) != 0)
		return 0;
	*found = namespaces_find(namespaces, veth.peer_netns_id);
	if (*found)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "cannot find the network namespace that %s leads to, of container %s,"
			     " network %s",
			     name, add_cache_text(add, "container_id"),
			     add_cache_text(add, "network"));
}

/* Returns 1 where it was made; 0: the container is gone, also meanwhile. */
static int run_one(const json_t *add, const char *binary, const struct namespaces *namespaces,
		   struct nl_sock *socket, struct cni_error *err)
{
	cleanup_error struct cni_error failure = {0};
	const struct namespace *namespace;

	if (find_namespace(add, namespaces, socket, &namespace, err))
		return -1;
	if (!namespace)
		return 0;
	if (!make_in(add, namespace, binary, &failure))
		return 1;
	if (!find_namespace(add, namespaces, socket, &namespace, err) && !namespace)
		return 0;
	return cni_error_chain(err, &failure);
}

enum after_failure {
	END,
	GO_ON,
};

static int run_all(const json_t *list, const char *binary, enum after_failure after_failure,
		   size_t *count, struct cni_error *err)
{
	cleanup_netlink struct nl_sock *socket = netlink_open(NETLINK_ROUTE, err);
	struct namespaces namespaces = {0};
	const json_t *add;
	int result = 0;
	size_t i;

	*count = 0;
	if (!socket)
		return -1;
	namespaces_read(&namespaces, socket);
	json_array_foreach (list, i, add) {
		struct cni_error failure = {0};
		int made = run_one(add, binary, &namespaces, socket, &failure);

		if (made < 0)
			result = cni_error_chain(err, &failure);
		else
			*count += (size_t)made;
		if (result && after_failure == END)
			break;
	}
	namespaces_release(&namespaces);
	return result;
}

int adds_run(const struct adds *adds, const char *binary, size_t *count, struct cni_error *err)
{
	return run_all(adds->list, binary, END, count, err);
}

/* One that is being removed is not live from the beginning. */
static bool has_attachment(const struct host *host, const json_t *add)
{
	cleanup_error struct cni_error ignored = {0};
	struct attachment_key key;
	struct attachment record;
	struct slot slot;

	return datapath_is_usable(&host->datapath) &&
	       !attachment_key_make(&key, add_cache_text(add, "network"),
				    add_cache_text(add, "container_id"),
				    add_cache_text(add, "ifname"), &ignored) &&
	       attachment_read(&host->datapath.objects, &key, &record) &&
	       record.state == ATTACHMENT_READY &&
	       owner_read(&host->datapath.objects, record.owner, &slot) && slot.live;
}

int adds_restore(const struct adds *adds, size_t *count, struct cni_error *err)
{
	cleanup_json json_t *missing = json_array();
	char own_binary[64];
	cleanup_host struct host host = {0};
	json_t *add;
	size_t i;

	*count = 0;
	if (host_open(&host, PINS_ALL, err))
		return -1;
	json_array_foreach (adds->list, i, add)
		if (!has_attachment(&host, add))
			json_array_append(missing, add);
	snprintf(own_binary, sizeof(own_binary), "/proc/%d/exe", getpid());
	return run_all(missing, own_binary, GO_ON, count, err);
}
