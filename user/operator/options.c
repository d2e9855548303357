/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options.c - the options of all verbs, in one table. */
#include "operator/options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SECONDS 86400

static int refuse(struct cni_error *err, const char *option, const char *value, const char *must)
{
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "invalid --%s \"%.60s\": must be %s", option, value, must);
}

/* Digits and nothing else, from 1 to `most`. */
static bool parse_number(const char *text, uint32_t most, uint32_t *number)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long value = strtoul(text, NULL, 10);

	if (!digits || digits > 10 || text[digits] || !value || value > most)
		return false;
	*number = (uint32_t)value;
	return true;
}

static int set_color(void *into, const char *value, struct cni_error *err)
{
	static const char *const words[] = {
		[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};
	struct options *options = into;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], value)) {
			options->color = (enum color)i;
			return 0;
		}
	return refuse(err, "color", value, "auto, always or never");
}

static int set_protocol(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->protocol = protocol_parse(value);
	return options->protocol
		       ? 0
		       : refuse(err, "protocol", value, "tcp, udp, udplite, sctp, icmp or icmpv6");
}

bool options_parse_port(const char *text, struct port_option *port)
{
	const char *slash = strchrnul(text, '/');
	char digits[8] = "";
	uint32_t number;

	if ((size_t)(slash - text) < sizeof(digits))
		memcpy(digits, text, (size_t)(slash - text));
	port->protocol = *slash ? protocol_parse(slash + 1) : (enum protocol)0;
	if (!parse_number(digits, UINT16_MAX, &number) || (*slash && !port->protocol))
		return false;
	port->port = (uint16_t)number;
	return true;
}

static int set_port(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	if (options_parse_port(value, &options->port))
		return 0;
	return refuse(err, "port", value, "a port, as 8080 or 53/udp");
}

static int set_from(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->from.is_set = true;
	if (!cni_address_parse(value, options->from.address))
		return 0;
	return refuse(err, "from", value, "an address");
}

static int set_client(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;
	struct range_option *range = &options->client;

	range->is_set = true;
	if (!cni_address_parse_cidr(value, range->address, &range->prefix_length))
		return 0;
	if (cni_address_parse(value, range->address))
		return refuse(err, "client", value, "an address, or a range as 192.0.2.0/24");
	range->prefix_length = cni_address_is_ipv4(range->address) ? 32 : 128;
	return 0;
}

static int set_state(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->state = flow_state_parse(value);
	if (options->state < FLOW_STATE_COUNT)
		return 0;
	return refuse(err, "state", value,
		      "syn, syn-recv, established, fin-wait, time-wait, close, unreplied, replied"
		      " or half-open");
}

static int set_path(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->path = flow_way_path_parse(value);
	if (options->path < WAY_PATH_COUNT)
		return 0;
	return refuse(err, "path", value, "stack, fast or deciding");
}

static int set_top(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	if (options->sort_by == SORT_NONE)
		options->sort_by = SORT_BYTES;
	return parse_number(value, UINT16_MAX, &options->top)
		       ? 0
		       : refuse(err, "top", value, "a number, 1 to 65535");
}

static int set_sort(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->sort_by = !strcmp(value, "packets")     ? SORT_PACKETS
			   : !strcmp(value, "bytes")     ? SORT_BYTES
			   : !strcmp(value, "client")    ? SORT_CLIENT
			   : !strcmp(value, "container") ? SORT_CONTAINER
							 : SORT_NONE;
	return options->sort_by ? 0
				: refuse(err, "by", value, "packets, bytes, client or container");
}

static int set_interval(struct options *options, const char *value, uint32_t otherwise,
			struct cni_error *err)
{
	options->watch = otherwise;
	if (!value || parse_number(value, MAX_SECONDS, &options->watch))
		return 0;
	return refuse(err, "watch", value, "seconds, 1 to 86400");
}

static int set_watch(void *into, const char *value, struct cni_error *err)
{
	return set_interval(into, value, 2, err);
}

static int set_chores(void *into, const char *value, struct cni_error *err)
{
	return set_interval(into, value, 60, err);
}

static int set_prometheus(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->prometheus = true;
	options->prometheus_file = value;
	return value && !*value ? refuse(err, "prometheus", value, "a file's name") : 0;
}

static int set_host(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->host.is_set = true;
	if (!cni_address_parse(value, options->host.address))
		return 0;
	return refuse(err, "host", value, "an address");
}

static int set_seconds(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	if (parse_number(value, MAX_SECONDS, &options->seconds))
		return 0;
	return refuse(err, "seconds", value, "seconds, 1 to 86400");
}

static int set_limit(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	if (parse_number(value, UINT32_MAX, &options->limit))
		return 0;
	return refuse(err, "count", value, "a number from 1 on");
}

static const struct command_option table[] = {
	{OPTIONS_PORTS, 0, "container", "NAME",
	 "only of this container: the name of its pod or job, with or without the namespace,\n"
	 "or its ID or the beginning of that",
	 NULL, offsetof(struct options, container)},
	{OPTIONS_PORTS, 0, "port", "PORT[/PROTOCOL]", "only of this port of the host", set_port, 0},
	{OPTIONS_LIST, 0, "network", "NAME", "only of this network", NULL,
	 offsetof(struct options, network)},
	{OPTIONS_LIST, 0, "wide", NULL,
	 "also the network, the interface on the host and the container ID", NULL,
	 offsetof(struct options, wide)},
	{OPTIONS_FLOWS, 0, "client", "ADDRESS[/LENGTH]",
	 "only with this peer: the client of a mapping, the server of a masqueraded flow",
	 set_client, 0},
	{OPTIONS_FLOWS, 0, "protocol", "tcp|udp|udplite|sctp|icmp|icmpv6", "only of this protocol",
	 set_protocol, 0},
	{OPTIONS_FLOWS, 0, "state",
	 "syn|syn-recv|established|fin-wait|time-wait|close|unreplied|replied|half-open",
	 "only in this state; unreplied and replied are of other protocols than TCP; half-open\n"
	 "are all that are still in the handshake",
	 set_state, 0},
	{OPTIONS_FLOWS, 0, "path", "stack|fast|deciding",
	 "only where one way at least goes through the IP stack (stack), or past it (fast),\n"
	 "or may do so soon (deciding)",
	 set_path, 0},
	{OPTIONS_FLOWS, 0, "top", "N", "only the N flows with most bytes, the biggest first",
	 set_top, 0},
	{OPTIONS_FLOWS, 0, "by", "packets|bytes|client|container",
	 "what --top counts (default N: 10); with client or container: how many connections each\n"
	 "of them has, the most first: who floods",
	 set_sort, 0},
	{OPTIONS_FLOWS, 0, "count", NULL, "only how many there are", NULL,
	 offsetof(struct options, count)},
	{OPTIONS_STATS, 0, "watch", "[=SECONDS]",
	 "again and again, with what changed a second (default: every 2 seconds)", set_watch, 0},
	{OPTIONS_STATS, 0, "all", NULL, "also what is 0", NULL, offsetof(struct options, all)},
	{OPTIONS_STATS, 0, "prometheus", "[=FILE]",
	 "metrics as text for Prometheus; into a file, which is replaced as a whole, for the\n"
	 "textfile collector of node_exporter",
	 set_prometheus, 0},
	{OPTIONS_STATS, 0, "per-port", NULL,
	 "with --prometheus: also a counter for each mapping; with many ports, many series", NULL,
	 offsetof(struct options, per_port)},
	{OPTIONS_STATS, 0, "checks", NULL,
	 "with --prometheus: also what each check of `bpf-portmap doctor` says", NULL,
	 offsetof(struct options, checks)},
	{OPTIONS_DOCTOR, 0, "from", "ADDRESS", "as a client with this address would", set_from, 0},
	{OPTIONS_DOCTOR, 0, "all", NULL, "also what is right", NULL, offsetof(struct options, all)},
	{OPTIONS_DOCTOR, 0, "quick", NULL,
	 "only whether this host's programs are where they should be, for a probe that runs every\n"
	 "few seconds; exit status 1 after a failure, else 0",
	 NULL, offsetof(struct options, quick)},
	{OPTIONS_DOCTOR, 0, "no-probe", NULL, "sends nothing: only looks at the host", NULL,
	 offsetof(struct options, no_probe)},
	{OPTIONS_DOCTOR, 0, "send", NULL,
	 "to a UDP port, too: one empty datagram, which the container's program gets", NULL,
	 offsetof(struct options, send)},
	{OPTIONS_TRACE, 0, "in", "INTERFACE",
	 "where the packet arrives (default: where routing expects it)", NULL,
	 offsetof(struct options, interface)},
	{OPTIONS_TRACE, 0, "live", NULL, "real packets, as they come, an object a line with --json",
	 NULL, offsetof(struct options, live)},
	{OPTIONS_TRACE, 0, "host", "ADDRESS", "with --live: only from or to this address", set_host,
	 0},
	{OPTIONS_TRACE, 0, "port", "PORT[/PROTOCOL]",
	 "with --live: only from or to this port, as it is before or after the translation",
	 set_port, 0},
	{OPTIONS_TRACE, 0, "protocol", "tcp|udp|udplite|sctp|icmp|icmpv6",
	 "with --live: only of this protocol", set_protocol, 0},
	{OPTIONS_TRACE, 0, "drops", NULL, "with --live: only packets that are dropped", NULL,
	 offsetof(struct options, drops)},
	{OPTIONS_TRACE, 0, "seconds", "SECONDS", "with --live: for so long", set_seconds, 0},
	{OPTIONS_TRACE, 0, "count", "N", "with --live: until so many were shown", set_limit, 0},
	{OPTIONS_MIGRATE, 0, "from-portmap", NULL, "from the reference plugin portmap", NULL,
	 offsetof(struct options, from_portmap)},
	{OPTIONS_REPAIR | OPTIONS_MIGRATE | OPTIONS_UPGRADE, 0, "dry-run", NULL,
	 "says what it would do, and changes nothing", NULL, offsetof(struct options, dry_run)},
	{OPTIONS_REPAIR, 0, "load", NULL, "loads the programs where no container was ever added",
	 NULL, offsetof(struct options, load)},
	{OPTIONS_INSTALL | OPTIONS_UNINSTALL, 0, "bin-dir", "DIRECTORY",
	 "where the runtime looks for plugins (default /opt/cni/bin)", NULL,
	 offsetof(struct options, bin_dir)},
	{OPTIONS_INSTALL | OPTIONS_UNINSTALL, 0, "conf-dir", "DIRECTORY",
	 "where it looks for conflists (default /etc/cni/net.d)", NULL,
	 offsetof(struct options, conf_dir)},
	{OPTIONS_INSTALL | OPTIONS_UNINSTALL, 0, "list", "FILE",
	 "this conflist, rather than the one that is first by its name; with a directory, that\n"
	 "is --conf-dir; of uninstall: also one that install has not changed",
	 NULL, offsetof(struct options, list)},
	{OPTIONS_INSTALL, 0, "alias", NULL,
	 "puts the program in the place of the binary `portmap` and leaves lists as they are;\n"
	 "the reference plugin is portmap.reference then, for containers that it has added",
	 NULL, offsetof(struct options, alias)},
	{OPTIONS_INSTALL, 0, "watch", "[=SECONDS]",
	 "goes on until SIGTERM, and installs again what somebody replaces; runs repair every\n"
	 "so many seconds (default: 60)",
	 set_chores, 0},
	{OPTIONS_UNINSTALL, 0, "drop-ports", NULL,
	 "also while containers have ports or are masqueraded: they lose that at once", NULL,
	 offsetof(struct options, drop_ports)},
	{OPTIONS_UNINSTALL, 0, "purge", NULL,
	 "also maps of another layout, which cannot be read: nobody knows whose ports are lost",
	 NULL, offsetof(struct options, purge)},
	{OPTIONS_OUTPUT | OPTIONS_REPAIR | OPTIONS_UPGRADE, 0, "json", NULL,
	 "one JSON object, for programs", NULL, offsetof(struct options, json)},
	{OPTIONS_OUTPUT, 0, "color", "auto|always|never",
	 "colours (default auto: at a terminal, unless NO_COLOR is set)", set_color, 0},
	{0, 'h', "help", NULL, "this text", NULL, offsetof(struct options, help)},
};

struct command_line options_of(unsigned int set)
{
	return (struct command_line){"bpf-portmap", table, sizeof(table) / sizeof(table[0]), set};
}
