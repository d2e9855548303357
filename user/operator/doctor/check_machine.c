/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_machine.c - checks of what surrounds bpf-portmap: rights, modules, services, udev. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "datapath/attach/cgroup_root.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/lock.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/text_file.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "operator/doctor/tc_modules.h"
#include "operator/view/statistics.h"

#define LISTING_SIZE ((size_t)4 << 20)
#define PATH_SIZE 512
#define LOCK_LOOKS 10 /* an ADD holds it for a few milliseconds */
#define LOCK_PAUSE_US 20000

void check_rights(struct doctor *doctor)
{
	bool said = doctor->finding_count &&
		    doctor->findings[doctor->finding_count - 1].verdict == VERDICT_FAIL;

	/* The file system, which was looked at just before, may be the reason. */
	if (doctor->blind && !said)
		doctor_found(doctor, bpf_error_obstacle() ? VERDICT_FAIL : VERDICT_COULD_NOT_LOOK,
			     geteuid() ? cni_format("sudo bpf-portmap doctor") : NULL, "%s",
			     doctor->blind);
}

void check_tc(struct doctor *doctor)
{
	static const char *const lists[] = {"/proc/modules", "/lib/modules/%s/modules.builtin",
					    "/lib/modules/%s/modules.dep"};
	cleanup_free char *listing = NULL;
	const char *missing;
	size_t length = 0, loaded = 0;
	struct utsname host;
	char path[PATH_SIZE];

	if (tcx_is_supported(link_index("lo"))) {
		doctor_found(doctor, VERDICT_OK, NULL, "the kernel has TCX");
		return;
	}
	if (uname(&host))
		return;
	listing = need(calloc(1, LISTING_SIZE));
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		snprintf(path, sizeof(path), lists[i], host.release);
		length += text_file_read(path, listing + length, LISTING_SIZE - length);
		loaded = i ? loaded : length;
	}
	missing = tc_module_missing(listing);
	/* The kernel loads what the host has, also for a container that does not see it. */
	if (missing && length == loaded)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "%s is not loaded, and /lib/modules/%s is not to be seen here",
			     missing, host.release);
	else if (missing)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("apt-get install linux-modules-extra-%s\n"
					"modprobe -a sch_ingress cls_bpf",
					remedy_word(host.release).text),
			     "the kernel has neither TCX nor %s, one of which programs at"
			     " interfaces need",
			     missing);
}

/* The limit of a process's cgroup, of either version; 0: it has none. */
static unsigned long long memory_limit(const char *pid, char cgroup[PATH_SIZE])
{
	cleanup_error struct cni_error ignored = {0};
	char text[4096], path[2 * PATH_SIZE + sizeof("memory.limit_in_bytes")], *line, *next;
	struct cgroup_root root;
	unsigned long long bytes = 0;

	snprintf(path, sizeof(path), "/proc/%s/cgroup", pid);
	text_file_read(path, text, sizeof(text));
	for (line = text; (next = strchr(line, '\n')) && !bytes; line = next + 1) {
		const char *version1 = strstr(line, ":memory:");

		*next = '\0';
		if (version1) {
			snprintf(cgroup, PATH_SIZE, "%s", version1 + strlen(":memory:"));
			snprintf(path, sizeof(path),
				 "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", cgroup);
		} else if (!strncmp(line, "0::", 3) && !cgroup_root_open(&root, &ignored)) {
			close(root.fd);
			snprintf(cgroup, PATH_SIZE, "%s", line + 3);
			snprintf(path, sizeof(path), "%.*s%s/memory.max", PATH_SIZE - 1, root.path,
				 cgroup);
		} else {
			continue;
		}
		text_file_read(path, path, sizeof(path));
		bytes = strtoull(path, NULL, 10); /* "max": none */
	}
	return bytes;
}

static bool runs_plugins(const char *pid)
{
	static const char *const services[] = {"containerd\n", "dockerd\n", "crio\n", "kubelet\n",
					       "k3s-server\n"};
	char path[PATH_SIZE], name[32];

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	text_file_read(path, name, sizeof(name));
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++)
		if (!strcmp(name, services[i]))
			return true;
	return false;
}

/* Anybody may call a process as a service is called: root's alone are believed, and none of a
 * container, which has process ids of its own. */
static bool is_of_root(const char *pid)
{
	char path[PATH_SIZE], text[4096];
	unsigned int real, effective;
	struct stat own, its;
	const char *line;

	snprintf(path, sizeof(path), "/proc/%s/ns/pid", pid);
	if (stat("/proc/self/ns/pid", &own) || stat(path, &its) || own.st_ino != its.st_ino)
		return false;
	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	text_file_read(path, text, sizeof(text));
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u %u", &real, &effective) == 2 && real == 0 &&
	       effective == 0;
}

/* "containerd.service"; NULL: the cgroup is none of systemd's services, as a container's. */
static const char *service_of(const char *cgroup)
{
	static const char slice[] = "/system.slice/", end[] = ".service";
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789@_.:-";
	const char *name = cgroup + strlen(slice);
	size_t length;

	if (strncmp(cgroup, slice, strlen(slice)) != 0)
		return NULL;
	length = strlen(name);
	if (name[strspn(name, allowed)] || length <= strlen(end) ||
	    strcmp(name + length - strlen(end), end) != 0)
		return NULL;
	return name;
}

/* Who loads the maps is charged with them: the service that runs plugins. */
void check_memory(struct doctor *doctor)
{
	unsigned long long needed = statistics_memory(&doctor->host.datapath.objects), limit;
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	char cgroup[PATH_SIZE] = "";
	const char *service;

	while (processes && (entry = readdir(processes))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !runs_plugins(entry->d_name) || !is_of_root(entry->d_name))
			continue;
		limit = memory_limit(entry->d_name, cgroup);
		/* The service itself needs some. */
		service = limit && limit <= 2 * needed ? service_of(cgroup) : NULL;
		if (!service)
			continue;
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("systemctl set-property %s MemoryMax=infinity\n"
					"# or lower \"flowEntries\"",
					remedy_word(service).text),
			     "%s may have %llu MB of memory, and loading the maps takes %llu MB",
			     cgroup, limit >> 20, needed >> 20);
	}
	if (processes)
		closedir(processes);
}

static void report_udev_path(struct doctor *doctor, const char *file, const char *text)
{
	static const char call[] = "/bpf-portmap attach";
	const char *end = strstr(text, call), *begin = end;
	char program[PATH_SIZE], self[PATH_SIZE], edit[2 * PATH_SIZE + 8];
	ssize_t length;

	while (begin && begin > text && !strchr(" \"'=\n", begin[-1]))
		begin--;
	if (!end)
		return;
	snprintf(program, sizeof(program), "%.*s/bpf-portmap", (int)(end - begin), begin);
	if (!access(program, X_OK))
		return;
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length > 0 ? length : 0] = '\0';
	snprintf(edit, sizeof(edit), "s|%s|%s|", program, self);
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("sed -i %s %s", remedy_word(edit).text, remedy_word(file).text),
		     "%s runs %s, which is not there: interfaces that appear are attached to by the"
		     " next ADD only",
		     file, program);
}

void check_udev(struct doctor *doctor)
{
	static const char *const directories[] = {"/etc/udev/rules.d",
						  "/run/udev/rules.d",
						  "/usr/local/lib/udev/rules.d",
						  "/usr/lib/udev/rules.d",
						  "/lib/udev/rules.d",
						  "/etc/NetworkManager/dispatcher.d",
						  "/usr/lib/NetworkManager/dispatcher.d",
						  "/etc/networkd-dispatcher/routable.d",
						  "/usr/lib/networkd-dispatcher/routable.d",
						  "/etc/systemd/system",
						  "/usr/local/lib/systemd/system",
						  "/usr/lib/systemd/system"};
	char path[PATH_SIZE], text[8192];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		DIR *directory = opendir(directories[i]);
		const struct dirent *entry;

		while (directory && (entry = readdir(directory))) {
			if (!strstr(entry->d_name, "bpf-portmap"))
				continue;
			snprintf(path, sizeof(path), "%s/%s", directories[i], entry->d_name);
			text_file_read(path, text, sizeof(text));
			report_udev_path(doctor, path, text);
		}
		if (directory)
			closedir(directory);
	}
}

void check_lock(struct doctor *doctor)
{
	char holder[LOCK_HOLDER_SIZE];

	for (int i = 0; i < LOCK_LOOKS; i++) {
		if (!lock_is_held(holder))
			return;
		usleep(LOCK_PAUSE_US);
	}
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# if it hangs, end that process: the lock goes with it"),
		     "ADD and DEL wait for %s, which has had their lock for %d ms", holder,
		     LOCK_LOOKS * LOCK_PAUSE_US / 1000);
}
