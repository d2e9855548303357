/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_conflist.c - checks of the conflists that runtimes read, and of the binaries they run. */
#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cni/json.h"
#include "conf/conf.h"
#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"

#define OURS "bpf-portmap"
#define EDIT_OURS "(.plugins[] | select(.type == \"" OURS "\"))"

/* Of containerd, CRI-O and Podman; of K3s and RKE2; of k0s; of MicroK8s. */
static const char *const directories[] = {
	"/etc/cni/net.d", "/var/lib/rancher/k3s/agent/etc/cni/net.d",
	"/var/lib/rancher/rke2/agent/etc/cni/net.d", "/var/snap/microk8s/current/args/cni-network"};
static const char *const binary_directories[] = {"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni",
						 "/usr/local/lib/cni"};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const json_t *find_plugin(const json_t *list, const char *type)
{
	const json_t *plugin;
	size_t i;

	json_array_foreach (json_object_get(list, "plugins"), i, plugin)
		if (!strcmp(text_of(plugin, "type"), type))
			return plugin;
	return NULL;
}

/* What is done with one conflist. `hides`: it is the one that a runtime takes that looks for one,
 * and another one has our plugin. */
typedef void visit_conflist(struct doctor *doctor, const char *path, const json_t *list,
			    bool hides);

/* What containerd, CRI-O and kubelet take for one; one plugin alone stands in the others. */
static int is_configuration(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && (!strcmp(dot, ".conflist") || !strcmp(dot, ".conf") || !strcmp(dot, ".json"));
}

static bool is_conflist(const char *path)
{
	return !strcmp(strrchr(path, '.'), ".conflist");
}

static int by_bytes(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static void visit_directory(struct doctor *doctor, const char *directory, visit_conflist *visit)
{
	struct dirent **entries = NULL;
	int count = scandir(directory, &entries, is_configuration, by_bytes);
	cleanup_json json_t *lists = json_array();
	bool has_ours = false;
	char path[512];

	for (int i = 0; i < count; i++) {
		json_t *list;

		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		list = json_load_file(path, 0, NULL);
		has_ours |= find_plugin(list, OURS) != NULL;
		json_array_append_new(lists, list ? list : json_null());
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		visit(doctor, path, json_array_get(lists, (size_t)i), i == 0 && has_ours);
		free(entries[i]);
	}
	free(entries);
}

static void visit_all(struct doctor *doctor, visit_conflist *visit)
{
	cni_json_begin();
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		visit_directory(doctor, directories[i], visit);
}

static void look_at_syntax(struct doctor *doctor, const char *path, const json_t *list, bool hides)
{
	if (is_conflist(path) ? !json_is_array(json_object_get(list, "plugins"))
			      : !json_is_object(list))
		doctor_found(doctor, VERDICT_FAIL, cni_format("jq . %s", remedy_word(path).text),
			     "%s is no conflist: it is no JSON, or has no \"plugins\"", path);
}

void check_conflist_syntax(struct doctor *doctor)
{
	visit_all(doctor, look_at_syntax);
}

static void look_at_first(struct doctor *doctor, const char *path, const json_t *list, bool hides)
{
	bool is_missed = doctor->options->port.port && !doctor->mappings.count;

	/* Other engines choose a list by its name, where many without ours are as they should be.
	 */
	if (!hides || find_plugin(list, OURS) || (!is_missed && !find_plugin(list, "portmap")))
		return;
	doctor_found(doctor, is_missed ? VERDICT_FAIL : VERDICT_WARN,
		     cni_format("# put " OURS " into %s, or give that file a later"
				" name; then add the containers again",
				remedy_word(path).text),
		     "runtimes take %s, the first one of its directory, which does not have " OURS
		     "; a later one has%s",
		     path, is_missed ? ", so the port is not mapped" : "");
}

void check_conflist_first(struct doctor *doctor)
{
	visit_all(doctor, look_at_first);
}

/* A filter of jq(1) on the file. */
static char *remedy_by_jq(const char *filter, const char *path)
{
	struct remedy_word file = remedy_word(path);

	return cni_format("jq %s %s >/run/conflist && cat /run/conflist >%s",
			  remedy_word(filter).text, file.text, file.text);
}

static void look_for_portmap(struct doctor *doctor, const char *path, const json_t *list,
			     bool hides)
{
	if (find_plugin(list, OURS) && find_plugin(list, "portmap"))
		doctor_found(doctor, VERDICT_FAIL,
			     remedy_by_jq("del(.plugins[] | select(.type == \"portmap\"))", path),
			     "%s has portmap as well: both map the same ports", path);
}

void check_conflist_portmap(struct doctor *doctor)
{
	visit_all(doctor, look_for_portmap);
}

static void look_at_capability(struct doctor *doctor, const char *path, const json_t *list,
			       bool hides)
{
	const json_t *ours = find_plugin(list, OURS);

	if (!ours ||
	    json_is_true(json_object_get(json_object_get(ours, "capabilities"), "portMappings")))
		return;
	doctor_found(doctor, VERDICT_FAIL,
		     remedy_by_jq(EDIT_OURS ".capabilities.portMappings = true", path),
		     "%s: " OURS " has no \"capabilities\": {\"portMappings\": true}, so runtimes"
		     " tell it no ports",
		     path);
}

void check_conflist_capability(struct doctor *doctor)
{
	visit_all(doctor, look_at_capability);
}

static void look_at_masquerade(struct doctor *doctor, const char *path, const json_t *list,
			       bool hides)
{
	static const char *const with_own[] = {"flannel", "calico", "kindnet", "cilium-cni"};
	const json_t *ours = find_plugin(list, OURS), *plugin;
	const char *other = NULL;
	size_t i;

	if (!json_is_true(json_object_get(ours, "ipMasq")))
		return;
	json_array_foreach (json_object_get(list, "plugins"), i, plugin)
		if (plugin != ours && json_is_true(json_object_get(plugin, "ipMasq")))
			other = text_of(plugin, "type");
	for (i = 0; i < sizeof(with_own) / sizeof(with_own[0]); i++)
		other = find_plugin(list, with_own[i]) ? with_own[i] : other;
	if (other)
		doctor_found(doctor, VERDICT_WARN, remedy_by_jq(EDIT_OURS ".ipMasq = false", path),
			     "%s: %s masquerades, and " OURS " too", path, other);
}

/* No probe tells it: packets to Pods of other nodes arrive, with the node's address. */
void check_conflist_masquerade(struct doctor *doctor)
{
	visit_all(doctor, look_at_masquerade);
}

static void look_at_options(struct doctor *doctor, const char *path, const json_t *list, bool hides)
{
	cleanup_error struct cni_error err = {0};
	const json_t *ours = find_plugin(list, OURS), *warning;
	struct conf conf = {0};
	size_t i;

	if (!ours)
		return;
	if (conf_parse_options(&conf, ours, &err))
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# correct it in %s", remedy_word(path).text), "%s: %s",
			     path, cni_error_message(&err));
	json_array_foreach (conf.warnings, i, warning)
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("# correct it in %s", remedy_word(path).text), "%s: %s",
			     path, json_string_value(warning));
	conf_release(&conf);
}

void check_conflist_options(struct doctor *doctor)
{
	visit_all(doctor, look_at_options);
}

void check_binaries(struct doctor *doctor)
{
	char path[64];
	struct stat status, ours;

	for (size_t i = 0; i < sizeof(binary_directories) / sizeof(binary_directories[0]); i++) {
		snprintf(path, sizeof(path), "%s/" OURS, binary_directories[i]);
		if (stat(path, &status) || stat("/proc/self/exe", &ours) ||
		    (status.st_dev == ours.st_dev && status.st_ino == ours.st_ino))
			continue;
		/* The same of another size is not built. */
		if (status.st_size != ours.st_size)
			doctor_found(
				doctor, VERDICT_WARN,
				cni_format("# keep one of them, or install the newer one there:\n%s"
					   " --version",
					   remedy_word(path).text),
				"%s, which runtimes run, is another one than this", path);
	}
}

/* Names and globs, each ended by a zero byte. */
static bool matches_one(const struct doctor *doctor, const char names[INTERFACE_NAMES_SIZE])
{
	const char *end = names + INTERFACE_NAMES_SIZE;

	for (const char *name = names; name < end && *name; name += strnlen(name, end - name) + 1) {
		if (!memchr(name, '\0', end - name))
			return false;
		for (size_t i = 0; i < doctor->interface_count; i++)
			if (doctor->interfaces[i].link.ifindex &&
			    doctor->interfaces[i].entry.role == ROLE_UPLINK &&
			    !fnmatch(name, doctor->interfaces[i].link.name, 0))
				return true;
	}
	return false;
}

void check_named_uplinks(struct doctor *doctor)
{
	const char *last = NULL;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		struct subject subject;
		struct network network;
		struct network_key key = {0};

		if (!doctor_subject(doctor, i, &subject))
			continue;
		snprintf(key.name, sizeof(key.name), "%s", subject.container->name.network);
		if ((last && !strcmp(last, subject.container->name.network)) ||
		    !network_read(&doctor->host.datapath.objects, &key, &network))
			continue;
		last = subject.container->name.network;
		if (!*network.uplinks || matches_one(doctor, network.uplinks))
			continue;
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# correct \"uplinks\" of network %s, then add a container;"
					" or attach to it by name:\nip -br link",
					remedy_word(last).text),
			     "\"uplinks\" of network %s matches no interface that can be one",
			     last);
	}
}
