/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reference.c - hands to the reference plugin portmap what is its own, and removes what it has
 * left. */
#include "plugin/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/error.h"
#include "cni/execute.h"
#include "lib/json.h"
#include "cni/reply.h"
#include "datapath/records/attachments.h"
#include "host/host.h"
#include "nat/portmap_rules.h"

#define OUR_NAME "portmap"
#define ITS_NAME "portmap.reference"
/* Set for the reference plugin. If we see it, that file is bpf-portmap again. */
#define HANDED_ON "BPF_PORTMAP_HANDED_ON"

/* Finds portmap.reference in the directory in which a runtime found us. That is the name which it
 * gave to the kernel: /proc/self/exe is what a link leads to, and anyone may choose argv[0]. */
static bool reference_find(char path[PATH_MAX])
{
	const char *called = (const char *)getauxval(AT_EXECFN);
	const char *slash = called ? strrchr(called, '/') : NULL;
	size_t length = slash ? (size_t)(slash + 1 - called) : 0;

	if (getenv(HANDED_ON)) {
		warning("%s is bpf-portmap itself, so nobody removes what portmap has mapped: put "
			"the reference plugin portmap in its place",
			ITS_NAME);
		return false;
	}
	if (!called || strcmp(called + length, OUR_NAME) != 0 ||
	    length + sizeof(ITS_NAME) > PATH_MAX)
		return false;
	memcpy(path, called, length);
	memcpy(path + length, ITS_NAME, sizeof(ITS_NAME));
	return !access(path, F_OK) || errno != ENOENT;
}

/* Only ADD prints a result. */
static int pass_result(const char *path, const char *text, size_t length, struct cni_error *err)
{
	const char *command = getenv("CNI_COMMAND");
	cleanup_json json_t *result = NULL;

	if (!length && command && !strcmp(command, "ADD"))
		return cni_error_set(err, CNI_ERROR_IO, "%s has ended without a result", path);
	if (!length)
		return 0;
	result = cni_json_parse_object(text, length, "its result", err);
	if (!result)
		return cni_error_wrap(err, "%s", path);
	return cni_reply_result(result, err);
}

static const char *const handed_on[][2] = {{HANDED_ON, "1"}, {0}};

/* Runs it with these variables beside those of our environment. What it answers is our answer. It
 * has no time limit but that of the runtime: if we are killed, it finishes its work. */
static int hand_on(const char *path, const struct execution *execution, struct cni_error *err)
{
	cleanup_execute_output struct execute_output output = {0};

	if (execute_run(path, execution, &output, err))
		return cni_error_set(err, err->code,
				     "%s; put the reference plugin portmap there, or remove the"
				     " file if it has mapped nothing",
				     cni_error_message(err));
	if (execute_check(&output, err))
		return cni_error_wrap(err, "%s", path);
	return pass_result(path, output.text, output.length, err);
}

/* One that is older than the list cannot have added a container of it, and none of today knows GC.
 * Then it has nothing to do, whereas an error would make the runtime call us again and again. */
static int hand_on_to_clean(const char *path, const struct execution *execution,
			    enum cni_command command, struct cni_error *err)
{
	struct cni_error failure = {0};

	if (!hand_on(path, execution, &failure))
		return 0;
	if (failure.code != CNI_ERROR_INCOMPATIBLE_VERSION &&
	    !(failure.code == CNI_ERROR_INVALID_ENVIRONMENT && command == CNI_GC))
		return cni_error_chain(err, &failure);
	cni_error_release(&failure);
	return 0;
}

static bool has_conditions(const struct cni_network_config *config)
{
	return json_array_size(cni_json_get(config->root, "conditionsV4")) ||
	       json_array_size(cni_json_get(config->root, "conditionsV6"));
}

/* The reference plugin starts sixteen iptables for a DEL, makes tables for that, and fails where
 * there is no iptables. A container that it has not mapped shall have none of it. Where that cannot
 * be known, it is asked. */
static bool has_rules(const struct cni_environment *environment,
		      const struct cni_network_config *config)
{
	cleanup_portmap_entries struct portmap_entries entries = {0};

	return has_conditions(config) ||
	       portmap_entries_read(&entries, environment->container_id, NULL) || entries.count;
}

/* --- under our own name ------------------------------------------------------------------ */

/* Behind CNI_PATH. */
static const char usual_directories[] =
	EXECUTE_DEFAULT_PATH ":/usr/local/libexec/cni:/usr/local/lib/cni:" K3S_PLUGINS;

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

static bool is_ours(const char *path)
{
	struct stat its, own;

	return !stat(path, &its) && !stat("/proc/self/exe", &own) && its.st_dev == own.st_dev &&
	       its.st_ino == own.st_ino;
}

/* Beside the alias it has the longer name. */
static bool find_in(const char *directories, char path[PATH_MAX])
{
	static const char *const names[] = {ITS_NAME, OUR_NAME};
	size_t length;

	for (; *directories; directories += length + (directories[length] == ':')) {
		length = strcspn(directories, ":");
		for (size_t i = 0; length && i < 2; i++) {
			snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directories, names[i]);
			if (!access(path, X_OK) && !is_ours(path))
				return true;
		}
	}
	return false;
}

static bool find_anywhere(char path[PATH_MAX])
{
	const char *given = getenv("CNI_PATH"), *called = (const char *)getauxval(AT_EXECFN);
	const char *slash = called ? strrchr(called, '/') : NULL;
	char own[PATH_MAX];

	snprintf(own, sizeof(own), "%.*s", slash ? (int)(slash - called) : 0, called ? called : "");
	return (given && find_in(given, path)) || find_in(own, path) ||
	       find_in(usual_directories, path);
}

/* All that its DEL looks at: it removes whatever a container of this network and this ID has, if
 * the container has had a port. */
static int run_its_del(const char *network, const char *id, struct cni_error *err)
{
	cleanup_json json_t *config =
		json_pack("{s:s, s:s, s:s, s:s, s:{s:[{s:i, s:i, s:s}]}}", "cniVersion", "0.4.0",
			  "name", network, "type", OUR_NAME, "backend", "iptables", "runtimeConfig",
			  "portMappings", "hostPort", 1, "containerPort", 1, "protocol", "tcp");
	cleanup_free char *text = or_exit(json_dumps(config, 0));
	const char *const variables[][2] = {
		{HANDED_ON, "1"},
		{"CNI_COMMAND", "DEL"},
		{"CNI_CONTAINERID", id},
		{"CNI_NETNS", ""},
		{"CNI_IFNAME", variable("CNI_IFNAME", "eth0")},
		{"CNI_PATH", variable("CNI_PATH", usual_directories)},
		{0},
	};
	const struct execution execution = {.variables = variables, .input = text};
	char path[PATH_MAX];

	if (!find_anywhere(path))
		return cni_error_set(err, CNI_ERROR_IO,
				     "portmap has rules of iptables-legacy for container %s, and "
				     "is in no directory of plugins (CNI_PATH): install it there, "
				     "because only it removes them",
				     id);
	return hand_on(path, &execution, err);
}

static bool has_legacy(const struct portmap_entries *entries, const char *network, const char *id)
{
	for (size_t i = 0; i < entries->count; i++)
		if (entries->list[i].rule.legacy &&
		    portmap_entry_is_of(&entries->list[i], network, id))
			return true;
	return false;
}

int reference_remove_rules(const char *network, const char *id, struct cni_error *err)
{
	cleanup_portmap_entries struct portmap_entries entries = {0}, again = {0};
	cleanup_error struct cni_error unread = {0};

	if (portmap_entries_read(&entries, id, &unread)) {
		warning("%s", cni_error_message(&unread));
		return 0;
	}
	if (!entries.count)
		return 0;
	if (portmap_entries_remove(&entries, network, id, err)) {
		/* portmap itself has removed some since. */
		if (err->code != CNI_ERROR_TRY_AGAIN || portmap_entries_read(&again, id, err))
			return -1;
		cni_error_release(err);
		if (portmap_entries_remove(&again, network, id, err))
			return -1;
	}
	return has_legacy(&entries, network, id) ? run_its_del(network, id, err) : 0;
}

/* ----------------------------------------------------------------------------------------- */

/* Whether it asks for ports, and our maps do not know it. */
static bool is_unknown(const struct cni_environment *environment,
		       const struct cni_network_config *config)
{
	const json_t *runtime_config = cni_json_get(config->root, "runtimeConfig");
	cleanup_host struct host host = {0};
	struct attachment_key key;
	struct attachment record;

	if (!json_array_size(cni_json_get(runtime_config, "portMappings")) ||
	    attachment_key_make(&key, config->name, environment->container_id, environment->ifname,
				NULL) ||
	    host_open(&host, DATAPATH_WORK, NULL) || host_recover(&host, NULL))
		return false;
	return !datapath_is_usable(&host.datapath) ||
	       !attachment_read(&host.datapath.objects, &key, &record);
}

int command_with_reference(cni_command_function *ours, const struct cni_environment *environment,
			   const struct cni_network_config *config, struct cni_error *err)
{
	const struct execution execution = {.variables = handed_on, .input = config->text};
	enum cni_command command = environment->command;
	struct cni_error failure = {0};
	char path[PATH_MAX];
	int result;

	if (!reference_find(path)) {
		result = ours(environment, config, err);
		/* It may have added the container by the list that was there before. */
		if (command == CNI_DEL && !getenv(HANDED_ON) &&
		    reference_remove_rules(config->name, environment->container_id, &failure))
			result = cni_error_chain(err, &failure);
		return result;
	}
	if ((command == CNI_ADD && has_conditions(config)) ||
	    (command == CNI_CHECK && is_unknown(environment, config)))
		return hand_on(path, &execution, err);
	result = ours(environment, config, err);
	if ((command == CNI_DEL && has_rules(environment, config)) || command == CNI_GC)
		result |= hand_on_to_clean(path, &execution, command, err);
	return result;
}
