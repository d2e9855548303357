/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* namespaces.c - the network namespaces that veths of this host lead to. */
#include "operator/kernel/namespaces.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/openat2.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/run.h"
#include "net/netlink.h"
#include "net/netns.h"

#define NAMESPACE_LIMIT 65536

struct reading {
	struct namespaces *namespaces;
	struct netlink *socket;
	ino_t *seen; /* a container has many processes */
	size_t seen_count;
};

static bool is_new(struct reading *reading, const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return false;
	for (size_t i = 0; i < reading->seen_count; i++)
		if (reading->seen[i] == status.st_ino)
			return false;
	if (reading->seen_count == NAMESPACE_LIMIT)
		return false;
	*ARRAY_ADD(reading->seen, reading->seen_count) = status.st_ino;
	return true;
}

static void take_namespace(struct reading *reading, const char *path)
{
	struct namespaces *namespaces = reading->namespaces;
	struct namespace *added;
	int fd, number;

	if (!is_new(reading, path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	number = fd < 0 ? -1 : netlink_netns_id(reading->socket, fd);
	if (number < 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	added = ARRAY_ADD(namespaces->list, namespaces->count);
	*added = (struct namespace){.number = number, .fd = fd};
	snprintf(added->path, sizeof(added->path), "%s", path);
}

static void take_directory(struct reading *reading, const char *directory, bool processes)
{
	char path[NAMESPACE_PATH_SIZE];
	const struct dirent *entry;
	DIR *stream = opendir(directory);

	while (stream && (entry = readdir(stream))) {
		if (processes ? !isdigit((unsigned char)*entry->d_name) : *entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", directory, entry->d_name,
			 processes ? "/ns/net" : "");
		take_namespace(reading, path);
	}
	if (stream)
		closedir(stream);
}

/* One for each namespace, and 1024 is the usual limit. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

void namespaces_read(struct namespaces *namespaces, struct netlink *socket)
{
	struct reading reading = {.namespaces = namespaces, .socket = socket};

	allow_descriptors();
	take_directory(&reading, "/run/netns", false);
	take_directory(&reading, "/proc", true);
	free(reading.seen);
}

void namespaces_release(struct namespaces *namespaces)
{
	for (size_t i = 0; i < namespaces->count; i++)
		close(namespaces->list[i].fd);
	free(namespaces->list);
	*namespaces = (struct namespaces){0};
}

const struct namespace *namespaces_find(const struct namespaces *namespaces, int number)
{
	for (size_t i = 0; i < namespaces->count; i++)
		if (namespaces->list[i].number == number)
			return &namespaces->list[i];
	return NULL;
}

static int run_here(void *context, struct cni_error *err)
{
	return command_run(context) ? 0 : -1;
}

bool namespace_run(const struct namespace *inside, struct command_run *run)
{
	cleanup_error struct cni_error ignored = {0};

	return !(inside ? netns_call(inside->fd, run_here, run, &ignored)
			: run_here(run, &ignored));
}

/* --- the addresses of containers ------------------------------------------------------------ */

#define TRIES 10

struct address_reading {
	struct container_addresses *addresses;
	int *namespaces;
	size_t namespace_count;
	int asked;  /* the namespace that is read */
	bool other; /* the kernel told of another one */
};

static void take_link(struct nlmsghdr *message, void *context)
{
	const struct nlattr *attribute =
		nlmsg_find_attr(message, sizeof(struct ifinfomsg), IFLA_LINK_NETNSID);
	struct address_reading *reading = context;
	int namespace;

	if (!attribute)
		return;
	namespace = nla_get_s32(attribute);
	for (size_t i = 0; i < reading->namespace_count; i++)
		if (reading->namespaces[i] == namespace)
			return;
	*ARRAY_ADD(reading->namespaces, reading->namespace_count) = namespace;
}

static void take_address(struct nlmsghdr *message, void *context)
{
	const struct ifaddrmsg *header = nlmsg_data(message);
	struct nlattr *attributes[IFA_MAX + 1], *address;
	bool ipv4 = header->ifa_family == AF_INET;
	struct container_address *added;
	struct address_reading *reading = context;
	int size = ipv4 ? 4 : CNI_ADDRESS_SIZE;

	if (nlmsg_parse(message, sizeof(*header), attributes, IFA_MAX, NULL))
		return;
	if (!attributes[IFA_TARGET_NETNSID] ||
	    nla_get_s32(attributes[IFA_TARGET_NETNSID]) != reading->asked)
		reading->other = true;
	address = attributes[attributes[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS];
	if (!address || nla_len(address) != size)
		return;
	added = ARRAY_ADD(reading->addresses->list, reading->addresses->count);
	added->namespace = reading->asked;
	memcpy(added->address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	nla_memcpy(added->address + CNI_ADDRESS_SIZE - size, address, size);
}

/* Asks once more where the list changed meanwhile. */
static int ask(struct netlink *socket, struct nl_msg *request, netlink_take take,
	       struct address_reading *reading)
{
	size_t count = reading->addresses->count;
	int result = -1;

	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		reading->addresses->count = count;
		result = netlink_ask(socket, request, take, reading);
	}
	return result;
}

static int read_family(struct netlink *socket, struct address_reading *reading, uint8_t family)
{
	struct ifaddrmsg header = {.ifa_family = family};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETADDR, NLM_F_DUMP, &header, sizeof(header));

	nla_put_s32(request, IFA_TARGET_NETNSID, reading->asked);
	if (ask(socket, request, take_address, reading))
		return -1;
	errno = EOPNOTSUPP;
	return reading->other ? -1 : 0;
}

/* Whether there is one behind that number of addresses, besides loopback. */
static bool has_ipv4(const struct container_addresses *addresses, size_t before)
{
	for (size_t i = before; i < addresses->count; i++)
		if (addresses->list[i].address[12] != 127)
			return true;
	return false;
}

static int read_all(struct netlink *socket, struct address_reading *reading)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETLINK, NLM_F_DUMP, &header, sizeof(header));
	int on = 1;
	size_t before;

	/* Without it the kernel does not look at what a dump is asked for. */
	if (setsockopt(socket->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on)) ||
	    ask(socket, request, take_link, reading))
		return -1;
	for (size_t i = 0; i < reading->namespace_count; i++) {
		reading->asked = reading->namespaces[i];
		before = reading->addresses->count;
		/* One that is just being removed has no number any more. */
		if (reading->asked < 0)
			continue;
		if (read_family(socket, reading, AF_INET))
			return -1;
		reading->addresses->hidden |= !has_ipv4(reading->addresses, before);
		if (read_family(socket, reading, AF_INET6))
			return -1;
	}
	return 0;
}

int container_addresses_read(struct container_addresses *addresses, struct cni_error *err)
{
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_ROUTE, err);
	struct address_reading reading = {.addresses = addresses};
	int result;

	if (!socket)
		return -1;
	result = read_all(socket, &reading);
	if (result)
		cni_error_set(err, CNI_ERROR_IO, "cannot read the addresses of containers: %s",
			      strerror(errno));
	free(reading.namespaces);
	return result;
}

void container_addresses_release(struct container_addresses *addresses)
{
	free(addresses->list);
	*addresses = (struct container_addresses){0};
}

size_t container_addresses_count(const struct container_addresses *addresses,
				 const uint8_t address[CNI_ADDRESS_SIZE])
{
	size_t count = 0;
	int last = -1;

	for_each (one, addresses->list, addresses->count) {
		if (one->namespace == last || memcmp(one->address, address, CNI_ADDRESS_SIZE) != 0)
			continue;
		last = one->namespace;
		count++;
	}
	return count;
}

/* --- files of containers, as their processes have them -------------------------------------- */

#define READ_MS 300
#define TRIES_MOST 3 /* processes of a container: one that has the file is enough */

/* Runs in a child, as the container chooses what stands at this path, and on what file system. */
static void __attribute__((noreturn)) copy_file(const char *root, const char *path, int out)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int directory = open(root, O_PATH | O_DIRECTORY);
	int file = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
	char text[CONTAINER_FILE_SIZE];
	ssize_t length = file < 0 ? 0 : read(file, text, sizeof(text) - 1);

	_exit(length > 0 && write(out, text, (size_t)length) == length ? 0 : 1);
}

/* Reads what there is after READ_MS. Returns the length. */
static size_t read_file(const char *root, const char *path, char text[CONTAINER_FILE_SIZE])
{
	struct pollfd copied = {.events = POLLIN};
	ssize_t length = 0;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return 0;
	child = fork();
	if (!child)
		copy_file(root, path, ends[1]);
	close(ends[1]);
	copied.fd = ends[0];
	if (child > 0 && poll(&copied, 1, READ_MS) == 1)
		length = read(ends[0], text, CONTAINER_FILE_SIZE - 1);
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

void container_files_read(const ino_t *netns, size_t count, const char *path,
			  void (*take)(void *context, size_t number, const char *text),
			  void *context)
{
	cleanup_free int *tries = or_exit(calloc(count + 1, sizeof(*tries)));
	cleanup_listing DIR *processes = opendir("/proc");
	char text[CONTAINER_FILE_SIZE], name[64];
	const struct dirent *entry;
	struct stat status;

	while (count && processes && (entry = readdir(processes))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		snprintf(name, sizeof(name), "/proc/%.16s/ns/net", entry->d_name);
		if (stat(name, &status))
			continue;
		snprintf(name, sizeof(name), "/proc/%.16s/root", entry->d_name);
		for (size_t i = 0; i < count; i++) {
			if (netns[i] != status.st_ino || tries[i] >= TRIES_MOST)
				continue;
			tries[i]++;
			if (!read_file(name, path, text))
				continue;
			tries[i] = TRIES_MOST;
			take(context, i, text);
		}
	}
}
