/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* support.c - `bpf-portmap support`: one tar file of diagnostics for a bug report. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <regex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "lib/run.h"
#include "lib/text.h"
#include "conf/option_table.h"
#include "operator/conflists.h"
#include "operator/verbs.h"

#define MAX_WORDS 9
#define ENTRY_LIMIT 256
#define FILE_LIMIT ((size_t)4 << 20)
#define REDACTED "(left out)"
#define MAX_DEPTH 16
#define DIRECTORY_SIZE 64
#define SECONDS 10
#define BLOCK 512

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

struct archive {
	int fd;
	int error;                      /* errno of the first write that failed; 0: none */
	char directory[DIRECTORY_SIZE]; /* in which all files are */
	FILE *manifest;
	char *manifest_text;
	size_t manifest_size;
	unsigned int count, failed;
};

/* Of POSIX ustar. All texts; numbers are octal and end with a NUL. */
struct header {
	char name[100];
	char mode[8], owner[8], group[8];
	char size[12], modified[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char owner_name[32], group_name[32];
	char major[8], minor[8];
	char prefix[155];
	char reserved[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* With mode 0600. The directory's name and its own are cut to what a header holds. */
static void add_file(struct archive *archive, const char *name, const char *text, size_t size)
{
	static const char zeros[BLOCK];
	struct header header = {.mode = "0000600",
				.owner = "0000000",
				.group = "0000000",
				.type = '0',
				.magic = "ustar",
				.version = {'0', '0'}};
	unsigned int sum = 0;

	snprintf(header.prefix, sizeof(header.prefix), "%s", archive->directory);
	snprintf(header.name, sizeof(header.name), "%s", name);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)size);
	snprintf(header.modified, sizeof(header.modified), "%011llo",
		 (unsigned long long)time(NULL) & 077777777777);
	/* The sum of the bytes of the header, with blanks in the place of the sum. */
	memset(header.checksum, ' ', sizeof(header.checksum));
	for (size_t i = 0; i < sizeof(header); i++)
		sum += ((const uint8_t *)&header)[i];
	snprintf(header.checksum, sizeof(header.checksum), "%06o", sum & 0777777);
	if (!archive->error && (cni_write_all(archive->fd, (const char *)&header, sizeof(header)) ||
				cni_write_all(archive->fd, text, size) ||
				cni_write_all(archive->fd, zeros, (BLOCK - size % BLOCK) % BLOCK)))
		archive->error = errno;
}

/* Begins a tar; its manifest begins with the preface. */
static void archive_begin(struct archive *archive, int fd, const char *directory,
			  const char *preface)
{
	*archive = (struct archive){.fd = fd};
	snprintf(archive->directory, sizeof(archive->directory), "%s", directory);
	archive->manifest =
		or_exit(open_memstream(&archive->manifest_text, &archive->manifest_size));
	fputs(preface, archive->manifest);
}

/* Adds only a line that says why there is no such file. */
static void archive_note_failure(struct archive *archive, const char *name, const char *from,
				 const char *why)
{
	archive->failed++;
	fprintf(archive->manifest, "failed  %-32s %s: %s\n", name, from, why);
}

static char *join(const char *const *words)
{
	char *joined = NULL;
	size_t size;
	FILE *stream = or_exit(open_memstream(&joined, &size));

	for (size_t i = 0; words[i]; i++)
		fprintf(stream, "%s%s", i ? " " : "", words[i]);
	or_exit(fclose(stream) ? NULL : joined);
	cni_printable(joined, "");
	return joined;
}

/* Takes out the lines that have none of the words. The kernel's command line may have secrets. */
static void filter(struct command_run *run, const char *words)
{
	char *left = run->output, *kept = NULL, *line;
	FILE *stream = or_exit(open_memstream(&kept, &run->length));
	regex_t wanted;

	or_exit(regcomp(&wanted, words, REG_EXTENDED | REG_ICASE | REG_NOSUB) ? NULL : &wanted);
	while ((line = strsep(&left, "\n")))
		if (!regexec(&wanted, line, 0, NULL, 0) && !strstr(line, "ommand line:"))
			fprintf(stream, "%s\n", line);
	regfree(&wanted);
	or_exit(fclose(stream) ? NULL : kept);
	free(run->output);
	run->output = kept;
}

/* What it printed is worth having whatever its status: doctor's says what it found. */
static void take_output(struct archive *archive, const char *name, struct command_run *run,
			const char *from)
{
	char why[sizeof(run->errors) + 32];

	if (run->length)
		add_file(archive, name, run->output, run->length);
	if (run->status == 0 || (run->status > 0 && run->length && !*run->errors)) {
		archive->count++;
		fprintf(archive->manifest, "ok      %-32s %s\n", name, from);
		return;
	}
	snprintf(why, sizeof(why), "status %d%s%s", run->status, *run->errors ? ", " : "",
		 run->errors);
	archive_note_failure(archive, name, from,
			     run->missing      ? "is not installed"
			     : run->status < 0 ? run->errors
					       : why);
}

/* Runs the program and adds what it prints, or of that only the lines with one of the `words`
 * ("bpf|conntrack"; NULL: all). What ends with a failure is added, too. False: it took too long. */
static bool archive_run(struct archive *archive, const char *name, const char *const *arguments,
			const char *words)
{
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	char *from = join(arguments);

	command_run(&run);
	if (words)
		filter(&run, words);
	take_output(archive, name, &run, from);
	free(from);
	return !run.timed_out;
}

/* Adds the manifest, and ends the tar. False: something could not be written; errno says why. */
static bool archive_end(struct archive *archive)
{
	static const char zeros[2 * BLOCK];

	or_exit(fclose(archive->manifest) ? NULL : archive->manifest_text);
	add_file(archive, "MANIFEST", archive->manifest_text, archive->manifest_size);
	free(archive->manifest_text);
	if (!archive->error && cni_write_all(archive->fd, zeros, sizeof(zeros)))
		archive->error = errno;
	errno = archive->error;
	return !archive->error;
}

/* clang-format off */
static const char *const known_keys[] = {
	/* the specification */
	"cniVersion", "cniVersions", "name", "plugins", "type", "disableCheck", "disableGC",
	"loadOnlyInlinedPlugins", "capabilities", "ipMasq", "ipam", "dns", "nameservers", "domain",
	"search", "options",
	/* host-local, static, dhcp */
	"ranges", "subnet", "rangeStart", "rangeEnd", "gateway", "routes", "dst", "gw", "mtu",
	"advmss", "priority", "table", "scope", "dataDir", "resolvConf", "addresses", "address",
	/* bridge, ptp, macvlan, ipvlan, vlan */
	"bridge", "isGateway", "isDefaultGateway", "forceAddress", "ipMasqBackend", "hairpinMode",
	"promiscMode", "vlan", "vlanId", "vlanTrunk", "id", "minID", "maxID",
	"preserveDefaultVlan", "macspoofchk", "portIsolation", "disableContainerInterface",
	"master", "mode", "linkInContainer", "enabledad",
	/* portmap, bandwidth, tuning, firewall */
	"portMappings", "snat", "masqAll", "markMasqBit", "externalSetMarkChain", "conditionsV4",
	"conditionsV6", "backend", "ingressRate", "ingressBurst", "egressRate", "egressBurst",
	"shapedSubnets", "unshapedSubnets", "sysctl", "mac", "promisc", "txQLen", "allmulti",
	"firewalldZone", "iptablesAdminChainName", "ingressPolicy",
	/* flannel's conflist */
	"delegate",
};
/* clang-format on */

/* As plugins do, without regard to case. */
static bool is_known(const char *key)
{
	for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++)
		if (!strcasecmp(known_keys[i], key))
			return true;
	for (const struct option *option = conf_options; option->name; option++)
		if (!strcasecmp(option->name, key))
			return true;
	return false;
}

/* "https://user:password@host/" */
static bool has_credentials(const json_t *value)
{
	const char *text = json_string_value(value), *address = text ? strstr(text, "://") : NULL;

	return address && strchr(address, '@');
}

/* Puts REDACTED in the place of every value whose key neither CNI's specification nor its reference
 * plugins nor bpf-portmap know: tokens and passwords of other plugins (Calico's etcd, kubeconfigs)
 * have such keys. */
static void redact(json_t *value, int depth, bool any_key);

static void redact_object(json_t *object, int depth, bool any_key)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe (object, next, key, value) {
		/* Capabilities and sysctls have names that nobody lists; those of the first are
		 * true or false. */
		bool keeps = is_known(key) || json_is_boolean(value) || any_key;

		if (!keeps || depth == MAX_DEPTH || has_credentials(value))
			json_object_set_new(object, key, json_string(REDACTED));
		else
			redact(value, depth + 1, !strcasecmp(key, "sysctl"));
	}
}

static void redact(json_t *value, int depth, bool any_key)
{
	json_t *element;
	size_t i;

	if (json_is_object(value))
		redact_object(value, depth, any_key);
	json_array_foreach (value, i, element) {
		if (has_credentials(element))
			json_array_set_new(value, i, json_string(REDACTED));
		else
			redact(element, depth, false);
	}
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
		redact(list, 0, false);
		redacted = json_dumps(list, JSON_INDENT(2));
	}
	cni_printable(from, "");
	if (redacted) {
		archive->count++;
		fprintf(archive->manifest, "ok      %-32s %s\n", name, from);
		add_file(archive, name, redacted, strlen(redacted));
	} else {
		archive_note_failure(archive, name, from,
				     fd < 0 ? strerror(errno) : cni_error_message(&err));
	}
}

static void take_conflist(void *context, const struct conflist_file *file)
{
	cleanup_free char *name = cni_format("conflists%s/%s", file->engine, file->name);

	cni_printable(name, "");
	add_conflist(context, file->path, name);
}

/* "bpf-portmap-support-web1-20261122T040107Z" */
static void make_name(char name[DIRECTORY_SIZE])
{
	char host[32] = "host", when[32] = "";
	time_t now = time(NULL);
	struct tm parts;

	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "host");
	host[strcspn(host, ".")] = '\0';
	for (char *c = host; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "-",
			    *c))
			*c = '_';
	if (gmtime_r(&now, &parts))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &parts);
	snprintf(name, DIRECTORY_SIZE, "bpf-portmap-support-%.12s-%.16s", host, when);
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
	char name[DIRECTORY_SIZE], path[DIRECTORY_SIZE + 8], self[PATH_MAX];
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
	run_commands(&archive, self);
	add_filters(&archive);
	conflists_visit(take_conflist, &archive);
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
