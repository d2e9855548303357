/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* names.c - names of a network's containers, for aardvark-dns. */
#include "runtimes/netavark/names.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/run.h"
#include "lib/text.h"
#include "lib/json.h"
#include "cni/result.h"
#include "runtimes/cnirun/cache.h"
#include "runtimes/cnirun/directory.h"
#include "cni/execute.h"
#include "runtimes/cnirun/output.h"

#define SERVER "aardvark-dns"
/* Where Podman looks for its helpers. */
#define SERVER_PATH \
	"/usr/local/libexec/podman:/usr/local/lib/podman:/usr/libexec/podman:/usr/lib/podman"
/* Where Podman has netavark keep them, for root. The server reads every file of the folder, hence
 * the new one is written outside of it. */
#define RUN_DIRECTORY "/run/containers/networks"
#define FOLDER RUN_DIRECTORY "/" SERVER
#define PID_FILE FOLDER "/aardvark.pid"
#define LOCK RUN_DIRECTORY "/aardvark.lock"
#define TEMPORARY RUN_DIRECTORY "/aardvark.bpf-portmap"
/* Behind the name of a network whose server asks no other servers. */
#define INTERNAL "%int"
/* netavark's default. Containers ask no other port, unless a rule of netavark's changes it. */
#define PORT "53"
#define PORT_VARIABLE "NETAVARK_DNS_PORT"
#define START_SECONDS 60
#define WAIT_ROUNDS 300
#define WAIT_PAUSE_US 10000

int names_check(struct cni_error *err)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_free char *server = execute_find(SERVER, SERVER_PATH, &ignored);
	const char *port = getenv(PORT_VARIABLE);

	if (!server)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "there is no " SERVER " in " SERVER_PATH ": install it (the "
				     "package " SERVER
				     "), or create the network with --disable-dns");
	if (port && strcmp(port, PORT))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "dns_bind_port of containers.conf is %s, and containers ask "
				     "port " PORT ": remove it there",
				     port);
	return 0;
}

/* Nobody can listen at an IPv6 address before the kernel has found that no other host has it. */
static void wait_for_server(const char *server)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	cleanup_close int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || cni_address_parse(server, address.sin6_addr.s6_addr))
		return;
	for (int i = 0; i < WAIT_ROUNDS; i++) {
		if (!bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
		    errno != EADDRNOTAVAIL)
			return;
		usleep(WAIT_PAUSE_US);
	}
}

/* "A,B", malloc'ed, or NULL where an element is no address. */
static char *join(const json_t *addresses, const char *array, struct cni_error *err)
{
	cleanup_free char *text = cni_format("%s", "");
	uint8_t binary[CNI_ADDRESS_SIZE];
	const char *address = "";
	json_t *element;
	size_t index;

	json_array_foreach ((json_t *)addresses, index, element) {
		cleanup_free char *before = text;

		text = NULL;
		if (cni_json_get_string_element(element, array, index, &address, err))
			return NULL;
		if (cni_address_parse(address, binary))
			return cni_error_null(err, CNI_ERROR_INVALID_CONFIGURATION,
					      "%s: \"%s\" is no IP address", array, address);
		text = cni_format("%s%s%s", before, *before ? "," : "", address);
	}
	return TAKE(text);
}

/* The file's first line: where the server listens, and which servers it asks. */
static char *make_first_line(const struct network *network, const json_t *servers,
			     struct cni_error *err)
{
	cleanup_free char *listens = join(servers, "gateway", err);
	cleanup_free char *asks = join(network->dns_servers, "network_dns_servers", err);

	if (!listens || !asks)
		return NULL;
	if (*listens)
		return cni_format("%s%s%s", listens, *asks ? " " : "", asks);
	return cni_error_null(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"its subnets have no gateway, where the DNS server would listen: create it "
		"with a gateway, or with --disable-dns");
}

static void print_addresses(FILE *file, const struct cni_result *result, bool ipv4)
{
	char text[CNI_ADDRESS_TEXT_SIZE];
	const char *separator = " ";

	for (size_t i = 0; i < result->address_count; i++) {
		const uint8_t *address = result->addresses[i].address;

		if (cni_address_is_ipv4(address) != ipv4)
			continue;
		fprintf(file, "%s%s", separator, cni_address_format(address, text));
		separator = ",";
	}
	if (*separator == ' ')
		fputs(separator, file);
}

/* "ID 10.89.0.5 fd00:89::5 NAME,ALIAS" */
static void print_container(FILE *file, const struct cache_entry *entry)
{
	const json_t *names = cni_json_get(entry->capability_args, REQUEST_NAMES), *name;
	const char *version = json_string_value(cni_json_get(entry->result, "cniVersion"));
	cleanup_error struct cni_error ignored = {0};
	struct cni_result result = {0};
	const char *separator = " ";
	size_t index;

	if (!cni_result_read(&result, entry->result, version ? version : "", &ignored)) {
		fputs(entry->container_id, file);
		print_addresses(file, &result, true);
		print_addresses(file, &result, false);
		json_array_foreach (names, index, name) {
			fprintf(file, "%s%s", separator, json_string_value(name));
			separator = ",";
		}
		fputc('\n', file);
	}
	cni_result_release(&result);
}

/* Only a setup that has come to its end has interfaces in its result. */
static bool has_names(const struct cache_entry *entry, const struct runtime_conf *without)
{
	if (without && !strcmp(entry->container_id, without->container_id) &&
	    !strcmp(entry->ifname, without->ifname))
		return false;
	return json_array_size(cni_json_get(entry->capability_args, REQUEST_NAMES)) &&
	       cni_json_get(entry->result, "interfaces") && entry->netns &&
	       !netns_is_gone(entry->netns);
}

/* Replaces a network's file, or removes it if no container is left. */
static int write_file(const char *path, const char *first_line, const struct request *request,
		      const struct runtime_conf *without, struct cni_error *err)
{
	cleanup_cache_entries struct cache_entries all = {0};
	cleanup_free char *text = NULL;
	size_t count = 0, size;
	FILE *file;

	if (cache_read_all(&all, request->network_name, request->conf.cache_directory, err))
		return -1;
	file = or_exit(open_memstream(&text, &size));
	fprintf(file, "%s\n", first_line);
	for (size_t i = 0; i < all.count; i++)
		if (has_names(&all.entries[i], without)) {
			print_container(file, &all.entries[i]);
			count++;
		}
	or_exit(fclose(file) ? NULL : text);
	if (!directory_replace_file(path, TEMPORARY, count ? text : NULL, 0644, false))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

/* False: no server runs, as the number in its file may be that of any process by now. */
static bool signal_server(void)
{
	cleanup_error struct cni_error ignored = {0};
	size_t length;
	cleanup_free char *pid = directory_read_file(PID_FILE, &length, &ignored);
	cleanup_free char *path = cni_format("/proc/%ld/comm", pid ? strtol(pid, NULL, 10) : 0);
	cleanup_free char *name = pid ? directory_read_file(path, &length, &ignored) : NULL;

	return name && !strcmp(name, SERVER "\n") && !kill((pid_t)strtol(pid, NULL, 10), SIGHUP);
}

/* With systemd in a scope of its own, so that it does not end with the unit of the container. */
static int start_server(struct cni_error *err)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_free char *server = execute_find(SERVER, SERVER_PATH, &ignored);
	const char *const arguments[] = {"systemd-run", "-q", "--scope", server, "--config",
					 FOLDER,        "-p", PORT,      "run",  NULL};
	cleanup_command struct command_run run = {
		.arguments = access("/run/systemd/system", F_OK) ? arguments + 3 : arguments,
		.seconds = START_SECONDS,
		.discards = true,
	};

	if (command_run(&run))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO,
			     "%s cannot be started: `%s --config " FOLDER " -p " PORT
			     " run` says why",
			     server, server);
}

/* This is netavark's lock: netavark writes into the folder, too. */
static int lock_folder(struct cni_error *err)
{
	int fd;

	if (directory_create(FOLDER, err))
		return -1;
	fd = open(LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && !flock(fd, LOCK_EX))
		return fd;
	cni_error_set(err, CNI_ERROR_IO, "cannot lock " LOCK ": %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int names_add(const struct request *request, struct cni_error *err)
{
	cleanup_json json_t *servers = network_servers(&request->network);
	cleanup_free char *line =
		names_check(err) ? NULL : make_first_line(&request->network, servers, err);
	cleanup_free char *path = cni_format(FOLDER "/%s%s", request->network_name,
					     request->network.internal ? INTERNAL : "");
	cleanup_close int lock = -1;
	json_t *server;
	size_t index;

	if (!line)
		return -1;
	json_array_foreach (servers, index, server)
		wait_for_server(json_string_value(server));
	lock = lock_folder(err);
	if (lock < 0 || write_file(path, line, request, NULL, err))
		return -1;
	return signal_server() ? 0 : start_server(err);
}

static int remove_from(const char *path, const struct request *request, struct cni_error *err)
{
	size_t length;
	cleanup_free char *text =
		access(path, F_OK) ? NULL : directory_read_file(path, &length, err);

	if (!text)
		return cni_error_is_set(err) ? -1 : 0;
	/* The line as it is: `podman network update` may have changed it. */
	text[strcspn(text, "\n")] = '\0';
	return write_file(path, text, request, &request->conf, err);
}

/* No network is left, but the file of the server's process. */
static bool is_idle(void)
{
	cleanup_directory struct directory files = {0};
	cleanup_error struct cni_error ignored = {0};

	return !access(PID_FILE, F_OK) && !directory_list(&files, FOLDER, NULL, &ignored) &&
	       files.count == 1;
}

/* Returns when an idle server has ended, which removes its file: until then it would take a signal
 * that is for its successor. */
static void notify(void)
{
	if (!signal_server())
		return;
	for (int i = 0; is_idle() && i < WAIT_ROUNDS; i++)
		usleep(WAIT_PAUSE_US);
}

void names_remove(const struct request *request)
{
	cleanup_free char *path = cni_format(FOLDER "/%s", request->network_name);
	cleanup_free char *internal = cni_format("%s%s", path, INTERNAL);
	cleanup_error struct cni_error problem = {0};
	cleanup_close int lock = -1;

	/* A run that was killed may have left an idle server. */
	if (access(path, F_OK) && access(internal, F_OK) && !is_idle())
		return;
	lock = lock_folder(&problem);
	/* The network may have become internal, or no more so, since setup. */
	if (lock < 0 || remove_from(path, request, &problem) ||
	    remove_from(internal, request, &problem))
		output_warn("names of network \"%s\": %s", request->network_name,
			    cni_error_message(&problem));
	else
		notify();
}
