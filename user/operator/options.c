/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options.c - the options of all verbs, in one table. */
#include "operator/options.h"

#include <stdlib.h>
#include <string.h>

#include "lib/ports.h"

#define MAX_SECONDS 86400

static int refuse(struct cni_error *err, const char *option, const char *value, const char *must)
{
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "invalid --%s \"%.60s\": must be %s", option, value, must);
}

static int set_protocol(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->protocol = protocol_parse(value);
	return options->protocol ? 0
				 : refuse(err, "protocol", value,
					  "tcp, udp, udplite, sctp, icmp, icmpv6, gre or esp");
}

bool options_parse_port(const char *text, struct port_option *port)
{
	const char *slash = strchrnul(text, '/');
	char digits[8] = "";
	uint32_t number;

	if ((size_t)(slash - text) < sizeof(digits))
		memcpy(digits, text, (size_t)(slash - text));
	port->protocol = *slash ? protocol_parse_of_port(slash + 1) : (enum protocol)0;
	if (!command_line_parse_number(digits, UINT16_MAX, &number) || (*slash && !port->protocol))
		return false;
	port->port = (uint16_t)number;
	return true;
}

static int set_port(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	if (options_parse_port(value, &options->port))
		return 0;
	return refuse(err, "port", value, "a port, such as 8080 or 53/udp");
}

static int set_from(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->from.is_set = !cni_address_parse(value, options->from.address);
	options->from_name = options->from.is_set ? NULL : value;
	return options->from.is_set || (*value && !strchr(value, ':'))
		       ? 0
		       : refuse(err, "from", value, "an IP address, a container, or localhost");
}

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

/* "192.0.2.7:443", "[2001:db8::7]:443", "db.example:5432" */
static int set_to(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;
	const char *colon = strrchr(value, ':'), *begin = value + (*value == '[');
	size_t length = colon && colon > value ? (size_t)(colon - begin) : 0;
	uint32_t port = 0;

	if (length && begin > value)
		length = begin[length - 1] == ']' ? length - 1 : 0;
	if (length && length < sizeof(options->to_name))
		memcpy(options->to_name, begin, length);
	options->to.is_set = true;
	if (!cni_address_parse(options->to_name, options->to.address))
		memset(options->to_name, 0, sizeof(options->to_name));
	else if (begin > value || !length ||
		 options->to_name[strspn(options->to_name, NAME_CHARACTERS)])
		colon = NULL;
	if (colon && command_line_parse_number(colon + 1, UINT16_MAX, &port) && port) {
		options->to_port = (uint16_t)port;
		return 0;
	}
	return refuse(err, "to", value,
		      "a server with a port, such as 192.0.2.7:443 or db.example:5432");
}

static int set_host(void *into, const char *value, struct cni_error *err)
{
	struct range_option *host = &((struct options *)into)->host;

	host->is_set = true;
	return cni_address_parse(value, host->address) ? refuse(err, "host", value, "an IP address")
						       : 0;
}

static int set_client(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;
	struct range_option *range = &options->client;

	range->is_set = true;
	if (!cni_address_parse_cidr(value, range->address, &range->prefix_length))
		return 0;
	if (cni_address_parse(value, range->address))
		return refuse(err, "client", value,
			      "an IP address, or a range such as 192.0.2.0/24");
	range->prefix_length = cni_address_is_ipv4(range->address) ? 32 : 128;
	return 0;
}

static int set_prometheus(void *into, const char *value, struct cni_error *err)
{
	struct options *options = into;

	options->prometheus = true;
	options->prometheus_file = value;
	return value && !*value ? refuse(err, "prometheus", value, "a file's name") : 0;
}

/* The member gets the argument, the number of its word, or true. */
#define OPTION(set, name, argument, help, member) \
	{ \
		set, 0, name, argument, help, NULL, offsetof(struct options, member), 0, 0 \
	}
#define NUMBER_OPTION(set, name, argument, help, member, most, otherwise) \
	{ \
		set, 0, name, argument, help, NULL, offsetof(struct options, member), most, \
			otherwise \
	}
#define READ_OPTION(set, name, argument, help, read) \
	{ \
		set, 0, name, argument, help, read, 0, 0, 0 \
	}

static const struct command_option table[] = {
	OPTION(OPTIONS_PORTS, "container", "NAME",
	       "shows only this container: the name of its pod or job, with or without the"
	       " namespace, or its ID or the beginning of that",
	       container),
	READ_OPTION(OPTIONS_PORTS, "port", "PORT[/PROTOCOL]", "shows only this port of the host",
		    set_port),
	OPTION(OPTIONS_LIST, "network", "NAME", "shows only this network", network),
	OPTION(OPTIONS_LIST, "wide", NULL,
	       "shows the network, the interface on the host and the container ID, too", wide),
	READ_OPTION(OPTIONS_FLOWS, "client", "ADDRESS[/LENGTH]",
		    "shows only connections with this peer: the client of a mapping, the server"
		    " of a masqueraded flow",
		    set_client),
	READ_OPTION(OPTIONS_FLOWS | OPTIONS_TRACE, "protocol",
		    "tcp|udp|udplite|sctp|icmp|icmpv6|gre|esp", "shows only this protocol",
		    set_protocol),
	OPTION(OPTIONS_FLOWS, "state",
	       "syn|syn-recv|established|fin-wait|time-wait|close|unreplied|replied|half-open",
	       "shows only connections in this state. TCP has neither unreplied nor replied;"
	       " half-open are all that are still in the handshake",
	       state),
	OPTION(OPTIONS_FLOWS, "path", "stack|fast|deciding",
	       "shows only connections of which one way at least goes through the IP stack (stack),"
	       " goes past it (fast), or may do so soon (deciding)",
	       path),
	NUMBER_OPTION(OPTIONS_FLOWS, "top", "N",
		      "shows only the N flows with most bytes, the biggest first", top, UINT16_MAX,
		      0),
	OPTION(OPTIONS_FLOWS, "by", "packets|bytes|client|container",
	       "says what --top counts (N is 10 by default). With client or container it counts"
	       " the connections of each, the most first: who floods",
	       sort_by),
	OPTION(OPTIONS_FLOWS, "count", NULL, "shows only how many there are", count),
	OPTION(OPTIONS_STATS, "all", NULL, "shows what is 0, too", all),
	READ_OPTION(OPTIONS_STATS, "prometheus", "[=FILE]",
		    "prints metrics for Prometheus; or writes them into a file, which is replaced"
		    " as a whole, for the textfile collector of node_exporter",
		    set_prometheus),
	OPTION(OPTIONS_STATS, "per-port", NULL,
	       "with --prometheus: adds a counter for each mapping, and so many series with many"
	       " ports",
	       per_port),
	OPTION(OPTIONS_STATS, "checks", NULL,
	       "with --prometheus: adds the result of each check of `bpf-portmap doctor`", checks),
	OPTION(OPTIONS_DOCTOR, "explain", "CODE",
	       "says what a code means, which is the second word of a line, and does nothing else",
	       explain),
	READ_OPTION(OPTIONS_DOCTOR, "from", "WHO",
		    "sends as a client with this address; or, of a container's name or localhost,"
		    " connects from there, and resets that connection at once",
		    set_from),
	READ_OPTION(OPTIONS_DOCTOR, "to", "SERVER:PORT",
		    "connects to a server outside, an address or a name, from within the container"
		    " that is named by --from or has the port",
		    set_to),
	OPTION(OPTIONS_DOCTOR, "in", "INTERFACE",
	       "sends by this uplink; otherwise by the one that leads to the client, or by each",
	       in),
	NUMBER_OPTION(
		OPTIONS_DOCTOR, "count", "N",
		"sends so many packets to the port, half of them as large as the uplink takes,"
		" and says how many are answered, for a few seconds at most",
		limit, 1000, 0),
	OPTION(OPTIONS_DOCTOR, "all", NULL, "shows the checks that passed, too", all),
	OPTION(OPTIONS_DOCTOR, "quick", NULL,
	       "checks only whether the programs are where they should be, for a probe that runs"
	       " every few seconds; exit status 1 after a failure, else 0",
	       quick),
	OPTION(OPTIONS_DOCTOR, "no-probe", NULL, "sends nothing: only looks at the host", no_probe),
	OPTION(OPTIONS_DOCTOR, "send", NULL,
	       "sends to a UDP port, too: one empty datagram, which the container's program gets",
	       send),
	READ_OPTION(OPTIONS_TRACE, "host", "ADDRESS", "shows only packets from or to this address",
		    set_host),
	READ_OPTION(OPTIONS_TRACE, "port", "PORT[/PROTOCOL]",
		    "shows only packets from or to this port, as it is before or after the"
		    " translation",
		    set_port),
	OPTION(OPTIONS_TRACE, "drops", NULL, "shows only packets that are dropped", drops),
	NUMBER_OPTION(OPTIONS_TRACE, "seconds", "SECONDS", "ends after this time", seconds,
		      MAX_SECONDS, 0),
	NUMBER_OPTION(OPTIONS_TRACE, "count", "N", "ends after so many packets", limit, UINT32_MAX,
		      0),
	OPTION(OPTIONS_MIGRATE, "from-portmap", NULL,
	       "takes over from the reference plugin portmap; there is no other source",
	       from_portmap),
	OPTION(OPTIONS_REPAIR | OPTIONS_MIGRATE | OPTIONS_UPGRADE, "dry-run", NULL,
	       "says what it would do, and changes nothing", dry_run),
	OPTION(OPTIONS_REPAIR, "load", NULL, "loads the programs where no container was ever added",
	       load),
	OPTION(OPTIONS_INSTALL | OPTIONS_UNINSTALL, "bin-dir", "DIRECTORY",
	       "says where the runtime looks for plugins (default: /opt/cni/bin)", bin_dir),
	OPTION(OPTIONS_INSTALL | OPTIONS_UNINSTALL, "conf-dir", "DIRECTORY",
	       "says where the runtime looks for conflists (default: /etc/cni/net.d)", conf_dir),
	OPTION(OPTIONS_INSTALL | OPTIONS_UNINSTALL, "list", "FILE",
	       "changes this conflist, rather than the one that is first by its name. A directory"
	       " before it stands for --conf-dir. uninstall also changes one that install has"
	       " not changed",
	       list),
	OPTION(OPTIONS_INSTALL, "alias", NULL,
	       "puts the program in the place of the binary `portmap` and leaves lists as they are;"
	       " the reference plugin is portmap.reference then, for containers that it has added",
	       alias),
	NUMBER_OPTION(OPTIONS_INSTALL, "watch", "[=SECONDS]",
		      "goes on until SIGTERM, and installs again what somebody replaces; runs"
		      " repair every so many seconds (default: 60)",
		      watch, MAX_SECONDS, 60),
	OPTION(OPTIONS_UNINSTALL, "drop-ports", NULL,
	       "goes on although containers have ports or are masqueraded: they lose both at once",
	       drop_ports),
	OPTION(OPTIONS_UNINSTALL, "purge", NULL,
	       "removes maps of another layout, too. They cannot be read, so it cannot say whose"
	       " ports are lost",
	       purge),
	OPTION(OPTIONS_OUTPUT, "json", NULL, "prints one JSON object, for programs", json),
	OPTION(OPTIONS_OUTPUT, "color", "auto|always|never",
	       "prints colours (auto, the default: at a terminal, unless NO_COLOR is set)", color),
	{0, 'h', "help", NULL, "prints this text", NULL, offsetof(struct options, help), 0, 0},
};

struct command_line options_of(unsigned int set)
{
	return (struct command_line){"bpf-portmap", table, sizeof(table) / sizeof(table[0]), set};
}
