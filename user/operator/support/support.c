/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* support.c - `bpf-portmap support`: one tar file of what somebody needs who is to find a fault. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cni/json.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/text_file.h"
#include "operator/support/archive.h"
#include "operator/support/redact.h"
#include "operator/verbs.h"

#define MAX_WORDS 9
#define ENTRY_LIMIT 256
#define FILE_LIMIT ((size_t)4 << 20)

static const char preface[] =
	"What `bpf-portmap support` has looked at, on one host, and what failed.\n"
	"\n"
	"In it: the mappings, connections and counters of bpf-portmap; BPF programs, maps and "
	"links\n"
	"of everybody; tc, nftables and iptables rules; some sysctls; interfaces, addresses and\n"
	"routes; conflists; versions; lines of the kernel's log about BPF. IP and MAC addresses,\n"
	"names of pods, containers and interfaces, and comments of firewall rules, are as they\n"
	"are.\n"
	"\n"
	"Not in it: environments; CNI_ARGS but the names of pods and containers; contents of\n"
	"packets; the kernel's command line. Values of conflists' keys that are not CNI's own are "
	"\"" REDACTED "\".\n"
	"\n";

/* What is run. "@" stands for this program. */
static const struct {
	const char *name;
	const char *words[MAX_WORDS];
} commands[] = {
	{"bpf-portmap/list.json", {"@", "list", "--json"}},
	{"bpf-portmap/flows.json", {"@", "flows", "--json"}},
	{"bpf-portmap/stats.json", {"@", "stats", "--all", "--json"}},
	{"bpf-portmap/doctor.json", {"@", "doctor", "--all", "--json"}},
	{"bpf-portmap/doctor.txt", {"@", "doctor", "--all"}},
	{"bpf-portmap/pins", {"ls", "-lanR", "/sys/fs/bpf/bpf-portmap"}},
	{"bpf/programs.json", {"bpftool", "-j", "prog", "show"}},
	{"bpf/maps.json", {"bpftool", "-j", "map", "show"}},
	{"bpf/links.json", {"bpftool", "-j", "link", "show"}},
	{"bpf/net.json", {"bpftool", "-j", "net", "show"}},
	{"bpf/cgroups", {"bpftool", "cgroup", "tree"}},
	{"tc/qdiscs", {"tc", "-s", "qdisc", "show"}},
	{"rules/nftables", {"nft", "-a", "list", "ruleset"}},
	{"rules/iptables", {"iptables-save", "-c"}},
	{"rules/ip6tables", {"ip6tables-save", "-c"}},
	{"network/links.json", {"ip", "-d", "-s", "-j", "link", "show"}},
	{"network/addresses.json", {"ip", "-j", "address", "show"}},
	{"network/routes4.json", {"ip", "-4", "-j", "route", "show", "table", "all"}},
	{"network/routes6.json", {"ip", "-6", "-j", "route", "show", "table", "all"}},
	{"network/rules4.json", {"ip", "-4", "-j", "rule", "show"}},
	{"network/rules6.json", {"ip", "-6", "-j", "rule", "show"}},
	{"network/neighbours.json", {"ip", "-j", "neighbour", "show"}},
	{"network/bridge.json", {"bridge", "-d", "-j", "link", "show"}},
	{"network/namespaces.json", {"ip", "-j", "netns", "list-id"}},
};

static const char *const sysctls[] = {
	"kernel/unprivileged_bpf_disabled",
	"net/core/bpf_jit_enable",
	"net/core/bpf_jit_harden",
	"net/ipv4/ip_forward",
	"net/ipv4/ip_local_port_range",
	"net/ipv4/ip_local_reserved_ports",
	"net/ipv4/conf/all/forwarding",
	"net/ipv4/conf/all/rp_filter",
	"net/ipv4/conf/default/rp_filter",
	"net/ipv4/conf/all/route_localnet",
	"net/ipv6/conf/all/forwarding",
	"net/ipv6/conf/all/disable_ipv6",
	"net/bridge/bridge-nf-call-iptables",
	"net/bridge/bridge-nf-call-ip6tables",
	"net/netfilter/nf_conntrack_max",
	"net/netfilter/nf_conntrack_count",
	"net/netfilter/nf_conntrack_tcp_loose",
	"net/netfilter/nf_conntrack_udp_timeout",
	"net/netfilter/nf_conntrack_udp_timeout_stream",
};

static const char *const interface_sysctls[] = {"ipv4", "rp_filter",  "ipv4", "forwarding",
						"ipv6", "forwarding", "ipv6", "accept_ra"};

static const char *const conflist_directories[] = {"/etc/cni/net.d",
						   "/var/lib/rancher/k3s/agent/etc/cni/net.d"};
static const char *const plugin_directories[] = {"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni",
						 "/usr/local/lib/cni"};
static const char *const runtimes[] = {
	"/usr/bin/containerd",    "/usr/local/bin/containerd",
	"/usr/bin/podman",        "/usr/bin/crio",
	"/usr/local/bin/k3s",     "/usr/bin/nerdctl",
	"/usr/local/bin/nerdctl", "/usr/bin/nomad",
	"/usr/bin/dockerd",       "/usr/bin/kubelet",
	"/usr/local/bin/cnirun",
};

static void run_commands(struct archive *archive, const char *self)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *words[MAX_WORDS + 1] = {NULL};

		memcpy(words, commands[i].words, sizeof(commands[i].words));
		if (!strcmp(words[0], "@"))
			words[0] = self;
		archive_run(archive, commands[i].name, words);
	}
	if (!access("/proc/net/ip_tables_names", R_OK))
		archive_run(archive, "rules/iptables-legacy",
			    (const char *[]){"iptables-legacy-save", "-c", NULL});
	if (!access("/proc/net/ip6_tables_names", R_OK))
		archive_run(archive, "rules/ip6tables-legacy",
			    (const char *[]){"ip6tables-legacy-save", "-c", NULL});
	archive_run_filtered(archive, "kernel.log", (const char *[]){"dmesg", NULL}, "bpf");
}

static void write_sysctl(FILE *stream, const char *name)
{
	char path[PATH_MAX], text[512] = "";

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	text_file_read(path, text, sizeof(text) - 1);
	text[strcspn(text, "\n")] = '\0';
	fprintf(stream, "%s = %s\n", name, *text ? text : "(not there)");
}

/* Calls visit with the name of each entry, in their order. */
static unsigned int each_entry(const char *directory,
			       void (*visit)(const char *name, void *context), void *context)
{
	struct dirent **entries = NULL;
	int count = scandir(directory, &entries, NULL, alphasort);
	unsigned int visited = 0;

	for (int i = 0; i < count; i++) {
		if (*entries[i]->d_name != '.' && visited < ENTRY_LIMIT) {
			visit(entries[i]->d_name, context);
			visited++;
		}
		free(entries[i]);
	}
	free(entries);
	return visited;
}

static void write_interface_sysctls(const char *interface, void *context)
{
	char name[PATH_MAX];

	for (size_t i = 0; i < sizeof(interface_sysctls) / sizeof(interface_sysctls[0]); i += 2) {
		snprintf(name, sizeof(name), "net/%s/conf/%s/%s", interface_sysctls[i], interface,
			 interface_sysctls[i + 1]);
		write_sysctl(context, name);
	}
}

static void add_stream(struct archive *archive, const char *name, const char *from,
		       void (*write)(FILE *stream))
{
	char *text = NULL;
	size_t size;
	FILE *stream = need(open_memstream(&text, &size));

	write(stream);
	need(fclose(stream) ? NULL : text);
	archive_add(archive, name, from, text, size);
	free(text);
}

static void write_sysctls(FILE *stream)
{
	for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++)
		write_sysctl(stream, sysctls[i]);
	each_entry("/sys/class/net", write_interface_sysctls, stream);
}

static void write_system(FILE *stream)
{
	char text[4096] = "";
	struct utsname system;

	if (!uname(&system))
		fprintf(stream, "%s %s %s %s\n", system.sysname, system.release, system.version,
			system.machine);
	fprintf(stream, "bpf-portmap " PROGRAM_VERSION "\n\n");
	text_file_read("/etc/os-release", text, sizeof(text) - 1);
	fputs(text, stream);
}

static void write_plugins(FILE *stream)
{
	for (size_t i = 0; i < sizeof(plugin_directories) / sizeof(plugin_directories[0]); i++) {
		struct dirent **entries = NULL;
		int count = scandir(plugin_directories[i], &entries, NULL, alphasort);

		for (int j = 0; j < count; j++) {
			char path[PATH_MAX];
			struct stat status;

			snprintf(path, sizeof(path), "%s/%s", plugin_directories[i],
				 entries[j]->d_name);
			if (*entries[j]->d_name != '.' && !stat(path, &status))
				fprintf(stream, "%s mode %o uid %u size %lld modified %lld\n", path,
					status.st_mode & 07777, status.st_uid,
					(long long)status.st_size, (long long)status.st_mtime);
			free(entries[j]);
		}
		free(entries);
	}
}

static void add_filters_of(const char *interface, void *context)
{
	static const char *const hooks[] = {"ingress", "egress"};
	char name[64];

	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "tc/%.15s-%s", interface, hooks[i]);
		archive_run(context, name,
			    (const char *[]){"tc", "-s", "filter", "show", "dev", interface,
					     hooks[i], NULL});
	}
}

static void add_conflist(struct archive *archive, const char *path, const char *name)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_error struct cni_error err = {0};
	cleanup_free char *text = NULL, *redacted = NULL;
	cleanup_json json_t *list = NULL;
	size_t length;

	if (fd >= 0)
		text = cni_read_all(fd, FILE_LIMIT, "it", &length, &err);
	if (text)
		list = cni_json_parse(text, length, "it", &err);
	if (list) {
		redact_conflist(list);
		redacted = json_dumps(list, JSON_INDENT(2));
	}
	if (redacted)
		archive_add(archive, name, path, redacted, strlen(redacted));
	else
		archive_note_failure(archive, name, path,
				     fd < 0 ? strerror(errno) : cni_error_message(&err));
}

static int is_configuration(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && (!strcmp(dot, ".conflist") || !strcmp(dot, ".conf") || !strcmp(dot, ".json"));
}

static void add_conflists(struct archive *archive)
{
	char path[PATH_MAX], name[64];

	for (size_t i = 0; i < sizeof(conflist_directories) / sizeof(conflist_directories[0]);
	     i++) {
		struct dirent **entries = NULL;
		int count = scandir(conflist_directories[i], &entries, is_configuration, alphasort);

		for (int j = 0; j < count; j++) {
			snprintf(path, sizeof(path), "%s/%s", conflist_directories[i],
				 entries[j]->d_name);
			cni_printable(entries[j]->d_name, "");
			snprintf(name, sizeof(name), "conflists%s/%.34s", i ? "-k3s" : "",
				 entries[j]->d_name);
			add_conflist(archive, path, name);
			free(entries[j]);
		}
		free(entries);
	}
}

static void add_runtimes(struct archive *archive)
{
	char name[64];

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		if (access(runtimes[i], X_OK))
			continue;
		snprintf(name, sizeof(name), "versions/%s", strrchr(runtimes[i], '/') + 1);
		archive_run(archive, name, (const char *[]){runtimes[i], "--version", NULL});
	}
}

static void fill(struct archive *archive, const char *self)
{
	add_stream(archive, "versions/system", "uname, /etc/os-release", write_system);
	run_commands(archive, self);
	each_entry("/sys/class/net", add_filters_of, archive);
	add_stream(archive, "sysctls", "/proc/sys", write_sysctls);
	add_conflists(archive);
	add_stream(archive, "versions/plugins", "directories of plugins", write_plugins);
	add_runtimes(archive);
}

/* "bpf-portmap-support-web1-20261122T040107Z" */
static void make_name(char name[ARCHIVE_DIRECTORY_SIZE])
{
	char host[32] = "host", when[32] = "";
	time_t now = time(NULL);
	struct tm parts;

	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "host");
	host[strcspn(host, ".")] = '\0';
	for (char *c = host; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", *c))
			*c = '_';
	if (gmtime_r(&now, &parts))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &parts);
	snprintf(name, ARCHIVE_DIRECTORY_SIZE, "bpf-portmap-support-%.12s-%.16s", host, when);
}

static int open_output(const char *path, struct cni_error *err)
{
	int fd;

	if (!strcmp(path, "-")) {
		if (!isatty(STDOUT_FILENO))
			return dup(STDOUT_FILENO);
		return cni_error_set(err, CNI_ERROR_IO, "standard output is a terminal");
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	return cni_error_set(err, CNI_ERROR_IO, "cannot make %s: %s", path, strerror(errno));
}

int verb_support(const struct options *options, char *const *operands, struct cni_error *err)
{
	char name[ARCHIVE_DIRECTORY_SIZE], path[ARCHIVE_DIRECTORY_SIZE + 8], self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *output = operands[0];
	struct archive archive;
	bool is_file;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	make_name(name);
	snprintf(path, sizeof(path), "./%s.tar", name);
	output = output ? output : path;
	is_file = strcmp(output, "-") != 0;
	self[length > 0 ? length : 0] = '\0';
	fd = open_output(output, err);
	if (fd < 0)
		return -1;
	cni_json_begin();
	archive_begin(&archive, fd, name);
	fill(&archive, self);
	if (!archive_end(&archive, preface) || close(fd)) {
		cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", output, strerror(errno));
		if (is_file)
			unlink(output);
		return -1;
	}
	if (is_file)
		printf("%s: %u things; %u could not be had, see MANIFEST in it\n", output,
		       archive.count, archive.failed);
	return EXIT_SUCCESS;
}
