/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_connect.c - connects as a process of this host, or of a container, would: to a mapped port
 * (--from), or to a server outside (--to). These are real connections, which are reset at once. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/address.h"
#include "lib/text.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/ruleset.h"
#include "operator/doctor/way.h"
#include "operator/kernel/route.h"
#include "operator/print/format.h"

#define CONNECT_MS 1500
#define CLOSED_MS 100 /* a server that closes at once does it within that */
#define ALL_MS 8000

/* One end, and what came of it. */
struct attempt {
	uint8_t address[CNI_ADDRESS_SIZE];
	uint16_t port;
	uint16_t source_port;             /* 0: any */
	int error;                        /* errno; 0: connected */
	uint8_t source[CNI_ADDRESS_SIZE]; /* from which it was tried */
	bool is_closed;                   /* by the server, without a word */
};

/* Once it is connected no more, the socket has forgotten it. */
static void read_source(int fd, uint8_t source[CNI_ADDRESS_SIZE])
{
	struct sockaddr_storage from = {0};
	socklen_t size = sizeof(from);

	if (!getsockname(fd, (struct sockaddr *)&from, &size))
		socket_address_read((struct sockaddr *)&from, source);
}

static int wait_for(int fd, short events, int milliseconds)
{
	struct pollfd waiting = {.fd = fd, .events = events};

	return poll(&waiting, 1, milliseconds);
}

static void bind_port(int fd, const struct attempt *attempt)
{
	struct sockaddr_storage from;
	socklen_t size = socket_address_make(
		&from,
		cni_address_is_ipv4(attempt->address) ? cni_address_any_ipv4 : cni_address_any_ipv6,
		attempt->source_port);

	bind(fd, (struct sockaddr *)&from, size);
}

static int attempt_connect(void *context, struct cni_error *err)
{
	const struct linger reset = {.l_onoff = 1};
	struct attempt *attempt = context;
	struct sockaddr_storage to;
	socklen_t length = socket_address_make(&to, attempt->address, attempt->port);
	socklen_t size = sizeof(attempt->error);
	cleanup_close int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	char byte;

	attempt->error = 0;
	if (fd < 0)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot make a socket: %s",
				     strerror(errno));
	if (attempt->source_port)
		bind_port(fd, attempt);
	if (connect(fd, (struct sockaddr *)&to, length) && errno != EINPROGRESS)
		attempt->error = errno;
	read_source(fd, attempt->source);
	if (!attempt->error && wait_for(fd, POLLOUT, CONNECT_MS) != 1)
		attempt->error = ETIMEDOUT;
	else if (!attempt->error)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &attempt->error, &size);
	if (!attempt->error)
		attempt->is_closed =
			wait_for(fd, POLLIN, CLOSED_MS) == 1 && recv(fd, &byte, 1, MSG_PEEK) <= 0;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return 0;
}

/* What came of all. */
struct outcome {
	uint32_t sent, failed;
	int error; /* errno of one that failed */
	bool is_closed;
};

/* Who connects: `netns` -1 is this host. */
struct connecting {
	struct doctor *doctor;
	const struct subject
		*subject; /* the container that connects; NULL: a process of the host */
	const char *who;
	int netns;
	struct attempt attempt;
	struct outcome outcome;
	const char *why_not;             /* no packet shows the way out; NULL: one does */
	const struct resolved *resolved; /* by whom the address was found for --to; NULL: no name */
};

#define TARGET_SIZE (ENDPOINT_TEXT_SIZE + sizeof(((struct resolved *)0)->said) + 256 + 16)

/* "192.0.2.7:443", "db:443 (192.0.2.7, as 10.96.0.10 says)" */
static const char *format_target(const struct connecting *connecting, char text[TARGET_SIZE])
{
	const struct options *options = connecting->doctor->options;
	char address[CNI_ADDRESS_TEXT_SIZE];

	if (!connecting->resolved)
		return format_endpoint(connecting->attempt.address, connecting->attempt.port, text);
	snprintf(text, TARGET_SIZE, "%s:%u (%s, as %s says)", options->to_name, options->to_port,
		 cni_address_format(connecting->attempt.address, address),
		 connecting->resolved->said);
	return text;
}

static bool connect_once(struct connecting *connecting, struct cni_error *err)
{
	struct attempt *attempt = &connecting->attempt;

	return !(connecting->netns < 0
			 ? attempt_connect(attempt, err)
			 : netns_call(connecting->netns, attempt_connect, attempt, err));
}

/* What nftables traces of one connection, on the host and in the container that connects. */
struct traces {
	struct nft_traced traced;
	struct nft_trace host, inside;
};

static int open_inside(void *context, struct cni_error *err)
{
	struct traces *traces = context;
	struct nft_traced traced = traces->traced;

	traced.devices[0] = NULL;
	traced.with_bridges = false;
	return nft_trace_open(&traces->inside, &traced, err);
}

static void open_traces(const struct connecting *connecting, struct traces *traces)
{
	cleanup_error struct cni_error ignored = {0};

	nft_trace_open(&traces->host, &traces->traced, &ignored);
	cni_error_release(&ignored);
	if (connecting->subject)
		netns_call(connecting->netns, open_inside, traces, &ignored);
}

static char *describe_drop(const struct nft_drop *drop, const struct namespace *inside)
{
	cleanup_ruleset struct ruleset ruleset = {0};
	cleanup_free char *rule = NULL;

	ruleset_read(&ruleset, drop, inside);
	rule = ruleset_rule(&ruleset, drop->chain, drop->handle);
	return cni_format("dropped %s: nft %s %s, chain %s, %s",
			  inside ? "in the container's own firewall" : "by the host",
			  nft_family_word(drop->family), drop->table, drop->chain,
			  rule           ? rule
			  : drop->handle ? "a rule"
					 : "policy drop");
}

/* Connects once more, while nftables traces it. Returns the rule that drops it, on this host or in
 * the container that connects; NULL: none does. */
static char *find_rule(struct connecting *connecting)
{
	struct attempt *attempt = &connecting->attempt;
	const struct subject *subject = connecting->subject;
	struct traces traces = {.traced = {.protocol = PROTOCOL_TCP, .with_bridges = true}};
	cleanup_error struct cni_error ignored = {0};
	struct nft_drop drop;
	char *text = NULL;

	traces.traced.client_port = attempt->source_port = probe_random_port();
	traces.traced.devices[0] = subject ? subject->veth->link.name : NULL;
	memcpy(traces.traced.client, attempt->source, CNI_ADDRESS_SIZE);
	open_traces(connecting, &traces);
	if (connect_once(connecting, &ignored)) {
		if (nft_trace_read(&traces.host, &drop))
			text = describe_drop(&drop, NULL);
		else if (nft_trace_read(&traces.inside, &drop))
			text = describe_drop(&drop, doctor_namespace(connecting->doctor, subject));
	}
	nft_trace_close(&traces.host);
	nft_trace_close(&traces.inside);
	attempt->source_port = 0;
	return text;
}

/* Connects to the attempt's address, as often as --count says. False: it could not, which is
 * reported. */
static bool connect_all(struct connecting *connecting)
{
	struct doctor *doctor = connecting->doctor;
	struct outcome *outcome = &connecting->outcome;
	const struct attempt *attempt = &connecting->attempt;
	uint32_t count = doctor->options->limit ? doctor->options->limit : 1;
	cleanup_error struct cni_error err = {0};
	int64_t begun = clock_ms();

	*outcome = (struct outcome){0};
	for (; outcome->sent < count && clock_ms() < begun + ALL_MS; outcome->sent++) {
		if (!connect_once(connecting, &err)) {
			doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s",
				     cni_error_message(&err));
			return false;
		}
		outcome->failed += attempt->error != 0;
		outcome->error = attempt->error ? attempt->error : outcome->error;
		outcome->is_closed |= attempt->is_closed;
	}
	doctor->sent += outcome->sent;
	return true;
}

/* False: it failed, and no rule is known that has dropped it. */
static bool report(struct connecting *connecting)
{
	struct doctor *doctor = connecting->doctor;
	const struct outcome *outcome = &connecting->outcome;
	cleanup_free char *rule = outcome->failed ? find_rule(connecting) : NULL;
	const char *why = connecting->why_not ? connecting->why_not : "";
	char text[TARGET_SIZE];

	format_target(connecting, text);
	if (outcome->failed)
		doctor_found(doctor, VERDICT_FAIL, NULL,
			     "%u of %u connections of %s to %s fail: %s%s%s", outcome->failed,
			     outcome->sent, connecting->who, text,
			     rule ? rule : strerror(outcome->error), *why ? "; " : "", why);
	else if (outcome->is_closed)
		doctor_found(doctor, VERDICT_WARN, NULL,
			     "%s connects to %s, and the server closes at once without a word",
			     connecting->who, text);
	else
		doctor_found(doctor, VERDICT_NOTE, NULL, "%s connects to %s, %u times of %u",
			     connecting->who, text, outcome->sent, outcome->sent);
	return !outcome->failed || rule;
}

/* --- to mapped ports -------------------------------------------------------------------------- */

/* Chooses an address of the host at which whoever connects reaches the port. */
static bool choose_address(const struct connecting *connecting, const struct mapping *mapping,
			   uint8_t address[CNI_ADDRESS_SIZE])
{
	const struct address_list *list = &connecting->doctor->host.addresses;
	bool ipv4 = cni_address_is_ipv4(mapping->portmap.container_address);

	memcpy(address, mapping->key.host_address, CNI_ADDRESS_SIZE);
	if (!cni_address_is_any(address))
		return connecting->netns < 0 || !cni_address_is_loopback(address);
	memcpy(address, ipv4 ? cni_address_loopback_ipv4 : cni_address_loopback_ipv6,
	       CNI_ADDRESS_SIZE);
	if (connecting->netns < 0)
		return mapping->portmap.localhost;
	for (size_t i = 0; i < list->address_count; i++) {
		const struct interface_look *interface = doctor_interface(
			connecting->doctor, list->interfaces[list->addresses[i].interface].ifindex);

		memcpy(address, list->addresses[i].address, CNI_ADDRESS_SIZE);
		if (cni_address_is_ipv4(address) == ipv4 && interface &&
		    interface_has_role(interface, ROLE_UPLINK) &&
		    host_maps_ports_at(&connecting->doctor->host, &list->addresses[i]))
			return true;
	}
	return false;
}

/* Where no rule has dropped the connection the way to the port's container may tell why it failed,
 * and the container's way back to the one that asks. */
static void look_at_way(struct connecting *connecting, size_t mapping)
{
	struct doctor *doctor = connecting->doctor;
	cleanup_diagnosis struct diagnosis diagnosis = {0};
	struct subject target;

	if (!doctor_subject(doctor, mapping, &target))
		return;
	if (connecting->subject)
		way_diagnose_isolation(&target, connecting->subject, &diagnosis);
	if (!diagnosis.text)
		way_diagnose(doctor, &target, NULL, connecting->attempt.source, &diagnosis);
	if (!diagnosis.text)
		way_diagnose_listener(doctor, &target, &diagnosis);
	if (diagnosis.text && !diagnosis.is_not_looked_at)
		doctor_found(doctor, VERDICT_FAIL, TAKE(diagnosis.remedy), "%s", diagnosis.text);
}

static void connect_to_ports(struct connecting *connecting)
{
	struct doctor *doctor = connecting->doctor;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct mapping *mapping = &doctor->mappings.list[i];

		if (mapping->key.protocol != PROTOCOL_TCP ||
		    !choose_address(connecting, mapping, connecting->attempt.address))
			continue;
		connecting->attempt.port = mapping->key.host_port;
		if (connect_all(connecting) && !report(connecting))
			look_at_way(connecting, i);
		doctor->ports_probed++;
		doctor->was_probed[i] = true;
	}
}

/* --- who -------------------------------------------------------------------------------------- */

/* The endpoint, of this family, of a container with this name, or of one that has the port that is
 * asked about. */
static bool is_meant(struct doctor *doctor, const struct subject *subject)
{
	const char *name = doctor->options->from_name;

	if (name)
		return container_matches(subject->container, name);
	return doctor->mappings.count &&
	       owner_is(doctor->mappings.list[0].portmap.owner, subject->container->record.owner);
}

/* Where the connection fails, what the packet has met is why. */
static void report_probe(const struct connecting *connecting, enum verdict verdict,
			 struct probe_finding *finding)
{
	struct doctor *doctor = connecting->doctor;

	if (verdict == VERDICT_OK)
		return;
	doctor->code = finding->code;
	doctor_found_at(doctor, connecting->outcome.failed ? VERDICT_FAIL : verdict,
			&finding->remedy, finding->cause, finding->place);
	doctor->code = NULL;
}

/* Sends a packet that ends at the uplink, which tells what becomes of it on this host, and
 * connects, which tells of the server. */
static void connect_out(struct connecting *connecting, const uint8_t *source)
{
	struct doctor *doctor = connecting->doctor;
	const struct options *options = doctor->options;
	const uint8_t *server =
		connecting->resolved ? connecting->resolved->address : options->to.address;
	cleanup_netlink struct netlink *inside = doctor_enter(doctor, connecting->subject);
	struct probe_way way = {
		.is_outwards = true,
		.client = CLIENT_NAMED,
		.entry = &connecting->subject->veth->link,
		.packet = {.protocol = PROTOCOL_TCP, .destination_port = options->to_port}};
	struct probe_finding finding = {0};
	char text[TARGET_SIZE];
	enum verdict verdict = VERDICT_OK;

	memcpy(connecting->attempt.address, server, CNI_ADDRESS_SIZE);
	connecting->attempt.port = options->to_port;
	if (!inside || !route_to(inside, server).exists) {
		doctor_found(doctor, VERDICT_FAIL, NULL, "%s has no route to %s", connecting->who,
			     format_target(connecting, text));
		return;
	}
	memcpy(way.packet.source, source, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, server, CNI_ADDRESS_SIZE);
	connecting->why_not =
		outwards_why_not(doctor, &doctor_inside(doctor, connecting->subject)->link, server);
	if (!connecting->why_not)
		verdict = probe(doctor, connecting->subject, &way, &finding);
	if (connect_all(connecting)) {
		report_probe(connecting, verdict, &finding);
		report(connecting);
	}
	probe_finding_release(&finding);
}

/* To the server of --to, whose address the container itself finds where it has a name. */
static void connect_to_server(struct connecting *connecting, const uint8_t *source,
			      struct resolved *resolved)
{
	struct doctor *doctor = connecting->doctor;
	const char *name = doctor->options->to_name;

	if (*name) {
		resolve_name(doctor, connecting->subject, name, resolved);
		connecting->resolved = resolved;
	}
	if (!*name || resolved->is_found)
		connect_out(connecting, source);
}

static void connect_from(struct doctor *doctor, struct subject *subject, const uint8_t *source,
			 struct resolved *resolved)
{
	const struct namespace *inside = doctor_namespace(doctor, subject);
	struct connecting connecting = {.doctor = doctor,
					.subject = subject,
					.who = subject->container->text,
					.netns = inside ? inside->fd : -1};

	if (!inside)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "the network namespace of %s is not found", connecting.who);
	else if (doctor->options->to.is_set)
		connect_to_server(&connecting, source, resolved);
	else
		connect_to_ports(&connecting);
}

/* Of two families one is enough, unless that of the server is known. */
static bool has_family(const struct doctor *doctor, const struct subject *subject, bool found)
{
	const struct options *options = doctor->options;

	if (*options->to_name)
		return true;
	return options->to.is_set ? cni_address_is_ipv4(options->to.address) == subject->ipv4
				  : !found;
}

/* Connects from each address of the containers that are meant. */
static void connect_from_containers(struct doctor *doctor)
{
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_ENDPOINTS};
	const char *name = doctor->options->to_name, *who = NULL;
	struct resolved resolved = {0};
	bool is_found = false;

	while (map_next(&walk, NULL)) {
		const struct endpoint_key *address = walk.key;
		const struct endpoint *endpoint = walk.value;
		struct subject subject = {.container =
						  view_container(&doctor->view, endpoint->owner),
					  .ipv4 = cni_address_is_ipv4(address->address)};

		if (!doctor_locate(doctor, &subject) || !is_meant(doctor, &subject) ||
		    !has_family(doctor, &subject, who))
			continue;
		who = subject.container->text;
		connect_from(doctor, &subject, address->address, &resolved);
		is_found |= resolved.is_found;
	}
	if (!who)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "no container \"%.60s\", or none with the port and an address of that"
			     " family, is known",
			     doctor->options->from_name ? doctor->options->from_name : "");
	else if (*name && !is_found && *resolved.said)
		doctor_found(doctor, VERDICT_FAIL, NULL, "%s finds no address of %s: %s", who, name,
			     resolved.said);
}

void check_connect(struct doctor *doctor)
{
	struct connecting of_host = {
		.doctor = doctor, .who = "a process of this host", .netns = -1};
	const char *name = doctor->options->from_name, *obstacle;

	if (!name && !doctor->options->to.is_set) {
		doctor->has_looked = false;
		return;
	}
	fprintf(stderr, "bpf-portmap: connects, and resets at once: the server accepts a connection"
			" without data\n");
	obstacle = probe_begin(doctor);
	if (obstacle)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", obstacle);
	else if (name && !strcmp(name, "localhost"))
		connect_to_ports(&of_host);
	else
		connect_from_containers(doctor);
}
