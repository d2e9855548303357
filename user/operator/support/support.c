/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* support.c - `bpf-portmap support`: one tar file of diagnostics for a bug report. */
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
#include <time.h>
#include <unistd.h>

#include "lib/json.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"
#include "net/text_file.h"
#include "operator/conflists.h"
#include "operator/support/archive.h"
#include "operator/support/redact.h"
#include "operator/verbs.h"

#define MAX_WORDS 9
#define ENTRY_LIMIT 256
#define FILE_LIMIT ((size_t)4 << 20)

#define SYSCTLS \
	"^(kernel.unprivileged_bpf_disabled|net.core.bpf_jit_(enable|harden)|net.ipv4.ip_forward" \
	"|net.ipv4.ip_local_.*|net.ipv4.conf.*.(forwarding|rp_filter|route_localnet)" \
	"|net.ipv6.conf.*.(forwarding|disable_ipv6|accept_ra)|net.bridge.*" \
	"|net.netfilter.nf_conntrack_.*)$"
#define PLUGINS(directory) \
	{ \
		.name = "versions/plugins" directory, \
		.words = {"ls", "-la", "--time-style=full-iso", directory}, .only_if = directory \
	}
#define VERSION(program, directory) \
	{ \
		.name = "versions/" program, .words = {directory program, "--version"}, \
		.only_if = directory program \
	}

static const char preface[] =
	"What `bpf-portmap support` has looked at, on one host, and what failed.\n"
	"\n"
	"In it: the mappings, connections and counters of bpf-portmap; BPF programs, maps\n"
	"and links of everybody; tc, nftables and iptables rules; some sysctls; interfaces,\n"
	"addresses and routes; conflists; versions; lines of the kernel's log about BPF and\n"
	"netfilter. IP and MAC addresses, names of pods, containers and interfaces, and\n"
	"comments of firewall rules, are as they are.\n"
	"\n"
	"Not in it: environments; CNI_ARGS but the names of pods and containers; contents\n"
	"of packets; the kernel's command line. Values of conflists' keys that are not\n"
	"CNI's own are \"" REDACTED "\".\n"
	"\n";

/* What is run. "@" stands for this program. */
static const struct {
	const char *name;
	const char *words[MAX_WORDS];
	const char *only_if; /* a file that is to be there */
	const char *filter;  /* of the lines those with one of these words, in any case */
} commands[] = {
	{.name = "versions/bpf-portmap", .words = {"@", "--version"}},
	{.name = "versions/system", .words = {"uname", "-srvm"}},
	{.name = "versions/os-release", .words = {"cat", "/etc/os-release"}},
	{.name = "bpf-portmap/list.json", .words = {"@", "list", "--json"}},
	{.name = "bpf-portmap/flows.json", .words = {"@", "flows", "--json"}},
	{.name = "bpf-portmap/stats.json", .words = {"@", "stats", "--all", "--json"}},
	{.name = "bpf-portmap/doctor.json", .words = {"@", "doctor", "--all", "--json"}},
	{.name = "bpf-portmap/doctor.txt", .words = {"@", "doctor", "--all"}},
	{.name = "bpf-portmap/pins", .words = {"ls", "-lanR", "/sys/fs/bpf/bpf-portmap"}},
	{.name = "bpf/programs.json", .words = {"bpftool", "-j", "prog", "show"}},
	{.name = "bpf/maps.json", .words = {"bpftool", "-j", "map", "show"}},
	{.name = "bpf/links.json", .words = {"bpftool", "-j", "link", "show"}},
	{.name = "bpf/net.json", .words = {"bpftool", "-j", "net", "show"}},
	{.name = "bpf/cgroups", .words = {"bpftool", "cgroup", "tree"}},
	{.name = "tc/qdiscs", .words = {"tc", "-s", "qdisc", "show"}},
	{.name = "rules/nftables", .words = {"nft", "-a", "list", "ruleset"}},
	{.name = "rules/iptables", .words = {"iptables-save", "-c"}},
	{.name = "rules/ip6tables", .words = {"ip6tables-save", "-c"}},
	{.name = "network/links.json", .words = {"ip", "-d", "-s", "-j", "link", "show"}},
	{.name = "network/addresses.json", .words = {"ip", "-j", "address", "show"}},
	{.name = "network/routes4.json",
	 .words = {"ip", "-4", "-j", "route", "show", "table", "all"}},
	{.name = "network/routes6.json",
	 .words = {"ip", "-6", "-j", "route", "show", "table", "all"}},
	{.name = "network/rules4.json", .words = {"ip", "-4", "-j", "rule", "show"}},
	{.name = "network/rules6.json", .words = {"ip", "-6", "-j", "rule", "show"}},
	{.name = "network/neighbours.json", .words = {"ip", "-j", "neighbour", "show"}},
	{.name = "network/bridge.json", .words = {"bridge", "-d", "-j", "link", "show"}},
	{.name = "network/namespaces.json", .words = {"ip", "-j", "netns", "list-id"}},
	{.name = "rules/iptables-legacy",
	 .words = {"iptables-legacy-save", "-c"},
	 .only_if = "/proc/net/ip_tables_names"},
	{.name = "rules/ip6tables-legacy",
	 .words = {"ip6tables-legacy-save", "-c"},
	 .only_if = "/proc/net/ip6_tables_names"},
	{.name = "kernel.log",
	 .words = {"dmesg"},
	 .filter = "bpf|conntrack|netfilter|nf_tables|iptables|portmap"},
	{.name = "sysctls", .words = {"sysctl", "-a", "-r", SYSCTLS}},
	PLUGINS("/opt/cni/bin"),
	PLUGINS("/usr/lib/cni"),
	PLUGINS("/usr/libexec/cni"),
	PLUGINS("/usr/local/lib/cni"),
	VERSION("containerd", "/usr/bin/"),
	VERSION("containerd", "/usr/local/bin/"),
	VERSION("podman", "/usr/bin/"),
	VERSION("crio", "/usr/bin/"),
	VERSION("k3s", "/usr/local/bin/"),
	VERSION("nerdctl", "/usr/bin/"),
	VERSION("nerdctl", "/usr/local/bin/"),
	VERSION("nomad", "/usr/bin/"),
	VERSION("dockerd", "/usr/bin/"),
	VERSION("kubelet", "/usr/bin/"),
	VERSION("cnirun", "/usr/local/bin/"),
};

static void run_commands(struct archive *archive, const char *self)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const char *words[MAX_WORDS + 1] = {NULL};

		if (commands[i].only_if && access(commands[i].only_if, R_OK))
			continue;
		memcpy(words, commands[i].words, sizeof(commands[i].words));
		if (!strcmp(words[0], "@"))
			words[0] = self;
		archive_run(archive, commands[i].name, words, commands[i].filter);
	}
}

/* False: tc hangs, and would at each further interface. */
static bool add_filters_of(struct archive *archive, const char *interface)
{
	static const char *const hooks[] = {"ingress", "egress"};
	char name[64];

	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "tc/%.15s-%s", interface, hooks[i]);
		cni_printable(name, "");
		if (!archive_run(archive, name,
				 (const char *[]){"tc", "-s", "filter", "show", "dev", interface,
						  hooks[i], NULL},
				 NULL))
			return false;
	}
	return true;
}

static void add_filters(struct archive *archive)
{
	struct dirent **entries = NULL;
	int count = scandir("/sys/class/net", &entries, NULL, alphasort);
	bool goes_on = true;

	for (int i = 0; i < count; i++) {
		if (i < ENTRY_LIMIT && goes_on && *entries[i]->d_name != '.')
			goes_on = add_filters_of(archive, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

static void add_conflist(struct archive *archive, const char *path, const char *name)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	cleanup_error struct cni_error err = {0};
	cleanup_free char *text = NULL, *redacted = NULL, *from = cni_format("%s", path);
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
	cni_printable(from, "");
	if (redacted)
		archive_add(archive, name, from, redacted, strlen(redacted));
	else
		archive_note_failure(archive, name, from,
				     fd < 0 ? strerror(errno) : cni_error_message(&err));
}

static void take_conflist(void *context, const struct conflist_file *file)
{
	cleanup_free char *name = cni_format("conflists%s/%s", file->engine, file->name);

	cni_printable(name, "");
	add_conflist(context, file->path, name);
}

static void fill(struct archive *archive, const char *self)
{
	run_commands(archive, self);
	add_filters(archive);
	conflists_visit(take_conflist, archive);
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
	archive_begin(&archive, fd, name, preface);
	fill(&archive, self);
	if (!archive_end(&archive) || close(fd)) {
		cni_error_set(err, CNI_ERROR_IO, "cannot write %s: %s", output, strerror(errno));
		if (is_file)
			unlink(output);
		return -1;
	}
	if (is_file)
		printf("%s: %u files; %u could not be collected, see MANIFEST in it\n", output,
		       archive.count, archive.failed);
	return EXIT_SUCCESS;
}
