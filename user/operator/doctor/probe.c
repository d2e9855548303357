/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe.c - sends one packet as a client would, and follows it. */
#include "operator/doctor/probe.h"

#include <errno.h>
#include <linux/pkt_cls.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "datapath/attach/hooks.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/netns.h"
#include "operator/kernel/tracing.h"

/* Of a probe that was killed a container sends its SYN-ACK again for 63 s (tcp_synack_retries), and
 * the client who was named gets none. */
#define TOLD_SECONDS 64
#define SEEN_MS 2000  /* on a busy machine the packet waits until it is ksoftirqd's turn */
#define ANSWER_MS 600 /* a container of this host answers within that, also one that was asleep */
#define POLL_MS 20
#define LOCK_SECONDS 5
#define LIMIT_PAUSE_US 1100000
#define PORT_FIRST 49152 /* of the ports for a client's own use (RFC 6335) */
#define PORT_COUNT 16384
#define TCP_RESET 0x04
#define ROUNDS 16
#define ANSWER_AMONG_MANY_MS 200
#define LOOPBACK 1 /* its ifindex in every network namespace */

const uint8_t *probe_far_address(bool ipv4)
{
	static const uint8_t far4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 203, 0, 113, 1};
	static const uint8_t far6[] = {0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff, 0, 0,
				       0,    0,    0,    0,    0,    0,    0, 1};

	return ipv4 ? far4 : far6;
}

uint16_t probe_random_port(void)
{
	uint16_t random = 0;

	/* Just after boot there may be none yet: any port will do. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = 0;
	return (uint16_t)(PORT_FIRST + random % PORT_COUNT);
}

bool probe_has_programs(const struct interface_look *uplink)
{
	const struct hook_look *egress = &uplink->hooks.hooks[HOOK_EGRESS];
	bool found = false;

	for (size_t i = 0; i < egress->count; i++)
		found |= egress->list[i].program != PROGRAM_COUNT;
	return found;
}

static int open_prober(struct prober *prober, const struct datapath *datapath,
		       struct cni_error *err)
{
	static const struct trace_filter any;
	cleanup_error struct cni_error ignored = {0};
	bool has_reason;

	prober->locked = tracing_lock(datapath->directory, LOCK_SECONDS, err);
	if (prober->locked < 0 || tracing_open(&prober->tracing, &datapath->objects, err))
		return -1;
	/* Without it we know less. */
	prober->drops = programs_attach_drops(&datapath->objects, &prober->tracing, &any,
					      &has_reason, &ignored);
	return 0;
}

const char *probe_begin(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};
	struct prober *prober = doctor->prober;

	if (prober)
		return prober->why_not;
	doctor->prober = prober = or_exit(calloc(1, sizeof(*prober)));
	prober->locked = prober->drops = -1;
	tracing_clear(&prober->tracing);
	if (open_prober(prober, &doctor->host.datapath, &err))
		prober->why_not = cni_format("%s", cni_error_message(&err));
	return prober->why_not;
}

void probe_end(struct doctor *doctor)
{
	struct prober *prober = doctor->prober;

	if (!prober)
		return;
	if (prober->drops >= 0)
		close(prober->drops);
	tracing_close(&prober->tracing);
	kernel_names_release(&prober->names);
	for (int ipv4 = 0; ipv4 < 2; ipv4++)
		for (int udp = 0; udp < 2; udp++)
			free(prober->seen.clients[ipv4][udp]);
	if (prober->locked >= 0)
		close(prober->locked);
	free(prober->why_not);
	free(prober);
	doctor->prober = NULL;
}

/* One probe on its way. */
struct journey {
	struct prober *prober;
	const struct objects *objects;
	const struct subject *subject;
	const struct probe_way *way;
	const struct link *inside_link; /* the container's end of its veth */
	struct probe_result *result;
	struct nft_trace host, inside;
};

/* The other end: the packet's source, or of one that goes out its destination. */
static const uint8_t *peer_of(const struct probe_way *way, uint16_t *port)
{
	const struct probe_packet *packet = &way->packet;

	*port = way->is_outwards ? packet->destination_port : packet->source_port;
	return way->is_outwards ? packet->destination : packet->source;
}

/* *is_answer: it goes to the peer. */
static bool is_ours(const struct journey *journey, const struct trace_tuple *tuple, bool *is_answer)
{
	uint16_t port;
	const uint8_t *peer = peer_of(journey->way, &port);

	*is_answer = tuple->destination_port == port &&
		     !memcmp(tuple->destination, peer, CNI_ADDRESS_SIZE);
	return *is_answer ||
	       (tuple->source_port == port && !memcmp(tuple->source, peer, CNI_ADDRESS_SIZE));
}

static bool goes_to(const struct trace_tuple *tuple, const uint8_t *address, uint16_t port)
{
	return tuple->destination_port == port &&
	       !memcmp(tuple->destination, address, CNI_ADDRESS_SIZE);
}

/* Where the packet goes to: our program at the uplink gives it the container's address, and nobody
 * should give it another one. */
static void take_destination(struct journey *journey, const struct trace_event *event)
{
	const struct probe_packet *packet = &journey->way->packet;
	struct probe_result *result = journey->result;
	const struct portmap *portmap;

	if (journey->way->is_outwards)
		return;
	portmap = &journey->subject->mapping->portmap;
	result->was_translated |=
		goes_to(&event->after, portmap->container_address, portmap->container_port);
	if (goes_to(&event->before, packet->destination, packet->destination_port) ||
	    goes_to(&event->before, portmap->container_address, portmap->container_port))
		return;
	result->was_diverted = true;
	result->diverted_port = event->before.destination_port;
	memcpy(result->diverted_to, event->before.destination, CNI_ADDRESS_SIZE);
}

static void take_event(struct journey *journey, const struct trace_event *event)
{
	struct probe_result *result = journey->result;
	bool is_answer;

	if (!is_ours(journey, &event->before, &is_answer) &&
	    !is_ours(journey, &event->after, &is_answer))
		return;
	if (event->action == TC_ACT_SHOT) {
		if (!result->program_dropped)
			result->program_drop = *event;
		result->program_dropped = true;
	} else if (is_answer &&
		   (event->hook == TRACE_TO_UPLINK || event->hook == TRACE_TO_UPLINK_RAW)) {
		result->answer = event->error                   ? ANSWER_ERROR
				 : event->tcp_flags & TCP_RESET ? ANSWER_RESET
								: ANSWER_ACCEPTED;
		memcpy(result->sender, event->sender, CNI_ADDRESS_SIZE);
		result->took_ns = event->time - result->seen_ns;
		result->is_masqueraded_before =
			journey->way->is_outwards &&
			memcmp(event->before.source, journey->way->packet.source,
			       CNI_ADDRESS_SIZE) != 0;
		result->keeps_source =
			!memcmp(event->after.source, journey->way->packet.source, CNI_ADDRESS_SIZE);
	} else if (is_answer) {
		result->has_left = true;
	} else {
		if (!result->was_seen)
			result->seen_ns = event->time;
		result->was_seen = true;
		take_destination(journey, event);
		result->was_delivered |=
			event->hook == TRACE_TO_CONTAINER || event->action == TC_ACT_REDIRECT;
	}
}

/* A container's kernel lets go of data that it has had, once it has answered it; or it is dropped
 * there, of which the reason tells. */
static bool may_be_let_go(const struct journey *journey, const struct trace_drop *drop)
{
	bool is_answer;

	return journey->result->is_connected && drop->in_container &&
	       is_ours(journey, &drop->tuple, &is_answer) && !is_answer;
}

/* BPF_PROG_TEST_RUN lets go of the frame of which a copy has gone in, at the loopback interface.
 * What comes behind the answer is that it is swallowed, or that what was refused is let go of. */
static void take_drop(struct journey *journey, const struct trace_drop *drop)
{
	struct probe_result *result = journey->result;
	bool is_answer, is_original = drop->ifindex == LOOPBACK;

	if (is_original || result->program_dropped ||
	    (result->kernel_dropped && !may_be_let_go(journey, &result->kernel_drop)) ||
	    result->answer == ANSWER_ACCEPTED || !is_ours(journey, &drop->tuple, &is_answer) ||
	    (result->answer != ANSWER_NONE && is_answer))
		return;
	result->kernel_dropped = true;
	result->kernel_drop = *drop;
	result->kernel_drop_is_answer = is_answer;
}

static int read_told(struct journey *journey, int milliseconds, struct cni_error *err)
{
	struct tracing *tracing = &journey->prober->tracing;
	struct probe_result *result = journey->result;

	if (tracing_read(tracing, milliseconds, err))
		return -1;
	for (size_t i = 0; i < tracing->count; i++) {
		if (tracing->told[i].event.hook == TRACE_KERNEL)
			take_drop(journey, &tracing->told[i].drop);
		else
			take_event(journey, &tracing->told[i].event);
	}
	if (result->rule_dropped)
		return 0;
	result->rule_dropped = nft_trace_read(&journey->host, &result->rule_drop);
	if (result->rule_dropped)
		return 0;
	result->rule_dropped = result->rule_is_inside =
		nft_trace_read(&journey->inside, &result->rule_drop);
	return 0;
}

static bool is_over(const struct journey *journey)
{
	const struct probe_result *result = journey->result;

	return result->answer != ANSWER_NONE || result->program_dropped || result->rule_dropped ||
	       (result->kernel_dropped && !may_be_let_go(journey, &result->kernel_drop));
}

static int follow(struct journey *journey, struct cni_error *err)
{
	const struct probe_result *result = journey->result;
	bool is_one_of_many = journey->way->is_one_of_many;
	int64_t end = clock_ms() + SEEN_MS;
	bool seen = false;

	do {
		if (read_told(journey, POLL_MS, err))
			return -1;
		if (!seen && (result->was_seen || result->has_left)) {
			seen = true;
			end = clock_ms() + (is_one_of_many ? ANSWER_AMONG_MANY_MS : ANSWER_MS);
		}
	} while (!is_over(journey) && clock_ms() < end);
	/* Where the kernel drops is told by two or three, each in its own time. */
	return read_told(journey, 0, err);
}

static int inject(const struct journey *journey, const struct probe_packet *packet,
		  struct cni_error *err)
{
	const struct probe_way *way = journey->way;
	uint32_t ifindex = way->entry->ifindex;
	struct probe_result *result = journey->result;
	const struct link *to = way->is_outwards ? &journey->subject->gateway->link : way->entry;
	uint8_t frame[FRAME_MAX];
	uint32_t length = frame_make(frame, packet, to->mac);

	if (way->is_outwards)
		memcpy(frame + LINK_MAC_SIZE, journey->inside_link->mac, LINK_MAC_SIZE);
	result->xdp_dropped = inject_xdp_drops(ifindex, frame, length, result->xdp_name);
	if (result->xdp_dropped || !inject_frame(ifindex, frame, length))
		return 0;
	return bpf_error_set(err, errno, "cannot send a packet in by %s", way->entry->name);
}

/* For the container, and for all that keeps connections. */
static int end_connection(const struct journey *journey, struct cni_error *err)
{
	struct probe_packet packet = journey->way->packet;

	if (packet.protocol != PROTOCOL_TCP || journey->result->xdp_dropped)
		return 0;
	packet.step = STEP_END;
	return inject(journey, &packet, err);
}

/* Under which our programs remember the packet's connection, but for the client's port. */
static struct connection_key connection_of(const struct subject *subject,
					   const struct probe_packet *packet)
{
	const struct portmap *portmap = &subject->mapping->portmap;
	struct connection_key key = {.protocol = packet->protocol,
				     .inside_port = portmap->container_port};

	memcpy(key.inside, portmap->container_address, CNI_ADDRESS_SIZE);
	memcpy(key.outside, packet->source, CNI_ADDRESS_SIZE);
	return key;
}

/* Reads what acknowledges the server's SYN-ACK. False: no server behind our programs has sent one.
 */
static bool read_acknowledgment(const struct journey *journey, uint32_t *acknowledgment)
{
	const struct probe_packet *packet = &journey->way->packet;
	struct connection_key key;
	struct connection connection;

	if (packet->protocol != PROTOCOL_TCP || journey->way->is_outwards ||
	    journey->result->answer != ANSWER_ACCEPTED || !journey->result->has_left)
		return false;
	key = connection_of(journey->subject, packet);
	key.outside_port = packet->source_port;
	if (!connection_read(journey->objects, &key, &connection) ||
	    !(connection.state & STATE_SEQUENCE_INSIDE) || (connection.state & STATE_ASSURED))
		return false; /* the probe has sent a SYN alone, so its connection is half-open */
	*acknowledgment = connection.tcp[OUTWARDS].sequence_end;
	return true;
}

/* To read the reasons' names takes longer than to send a packet. */
static bool is_dropped_by_kernel(const struct journey *journey)
{
	const struct probe_result *result = journey->result;
	const char *reason;

	if (!result->kernel_dropped || !may_be_let_go(journey, &result->kernel_drop))
		return result->kernel_dropped;
	reason = kernel_reason(&journey->prober->names, result->kernel_drop.reason);
	return reason && !strcmp(reason, "NETFILTER_DROP");
}

/* A network stack of the container's own may be silent about data that it has had. */
static bool has_data_arrived(const struct journey *journey)
{
	const struct probe_result *result = journey->result;

	return result->answer != ANSWER_NONE ||
	       (result->was_delivered && !result->has_left && !result->rule_dropped &&
		!result->program_dropped && !is_dropped_by_kernel(journey));
}

/* A firewall may let SYNs through alone. */
static int send_data(struct journey *journey, struct cni_error *err)
{
	struct probe_packet packet = journey->way->packet;
	const struct probe_result first = *journey->result;

	if (!read_acknowledgment(journey, &packet.acknowledgment))
		return 0;
	packet.step = STEP_DATA;
	*journey->result = (struct probe_result){.is_connected = true};
	if (inject(journey, &packet, err) || follow(journey, err))
		return -1;
	if (has_data_arrived(journey))
		*journey->result = first;
	return 0;
}

/* Ctrl-C waits until what the packet has begun is ended. */
static void block_signals(sigset_t *before)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, before);
}

static int travel(struct journey *journey, struct cni_error *err)
{
	const struct probe_packet *packet = &journey->way->packet;
	/* Of any protocol, as an answer may be an error. */
	struct trace_filter filter = {.swallow = 1};
	struct tracing *tracing = &journey->prober->tracing;
	sigset_t before;
	int result;

	memcpy(filter.address, peer_of(journey->way, &filter.port), CNI_ADDRESS_SIZE);
	if (tracing_ask(tracing, &filter, TOLD_SECONDS, err))
		return -1;
	block_signals(&before);
	result = inject(journey, packet, err);
	if (!result && !journey->result->xdp_dropped)
		result = follow(journey, err);
	if (!result)
		result = send_data(journey, err);
	if (!result)
		result = end_connection(journey, err);
	if (tracing_ask(tracing, &filter, 0, err))
		result = -1;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

static int open_inside(void *context, struct cni_error *err)
{
	struct journey *journey = context;
	struct nft_traced traced = journey->host.traced;

	traced.devices[0] = *journey->inside_link->name ? journey->inside_link->name : NULL;
	traced.devices[1] = NULL;
	traced.with_bridges = false;
	return nft_trace_open(&journey->inside, &traced, err);
}

/* Without them the kernel still says that netfilter has dropped it. */
static void trace_rules(struct doctor *doctor, struct journey *journey)
{
	const struct namespace *inside = doctor_namespace(doctor, journey->subject);
	const struct probe_way *way = journey->way;
	/* Where the packet, and the answer to it, come in. */
	struct nft_traced traced = {.protocol = way->packet.protocol,
				    .devices = {way->entry->name},
				    .with_bridges = true};
	cleanup_error struct cni_error ignored = {0};

	memcpy(traced.client, peer_of(way, &traced.client_port), CNI_ADDRESS_SIZE);
	if (!way->is_outwards)
		traced.devices[1] = journey->subject->veth->link.name;
	nft_trace_open(&journey->host, &traced, &ignored);
	if (inside && !way->is_outwards) {
		cni_error_release(&ignored);
		netns_call(inside->fd, open_inside, journey, &ignored);
	}
}

int probe_send(struct doctor *doctor, const struct subject *subject, const struct probe_way *way,
	       struct probe_result *result, struct cni_error *err)
{
	struct journey journey = {.prober = doctor->prober,
				  .objects = &doctor->host.datapath.objects,
				  .subject = subject,
				  .way = way,
				  .inside_link = &doctor_inside(doctor, subject)->link,
				  .result = result};
	int failed;

	*result = (struct probe_result){0};
	if (way->with_rules)
		trace_rules(doctor, &journey);
	failed = travel(&journey, err);
	nft_trace_close(&journey.host);
	nft_trace_close(&journey.inside);
	return failed;
}

void probe_finding_release(struct probe_finding *finding)
{
	free(finding->cause);
	free(finding->place);
	free(finding->remedy);
	*finding = (struct probe_finding){0};
}

uint16_t probe_free_port(const struct doctor *doctor, const struct subject *subject,
			 const struct probe_way *way)
{
	const struct objects *objects = &doctor->host.datapath.objects;
	struct connection_key key;
	struct connection connection;

	if (way->is_outwards)
		return probe_random_port();
	key = connection_of(subject, &way->packet);
	for (int round = 0; round < ROUNDS; round++) {
		key.outside_port = probe_random_port();
		if (!connection_read(objects, &key, &connection))
			break;
	}
	return key.outside_port;
}

static enum verdict probe_once(struct doctor *doctor, const struct subject *subject,
			       struct probe_way *way, struct probe_finding *finding)
{
	cleanup_error struct cni_error err = {0};
	struct probe_result result;

	probe_finding_release(finding);
	way->packet.source_port = probe_free_port(doctor, subject, way);
	if (!probe_send(doctor, subject, way, &result, &err))
		return probe_judge(doctor, subject, way, &result, finding);
	finding->cause = cni_format("%s", cni_error_message(&err));
	finding->place = cni_format("%s", subject->port);
	return VERDICT_COULD_NOT_LOOK;
}

/* To have nftables trace packets takes longer than to send one: only where it is lost. Of a
 * firewall that lets a few packets a second in ours may have been one too many. */
enum verdict probe(struct doctor *doctor, const struct subject *subject, struct probe_way *way,
		   struct probe_finding *finding)
{
	enum verdict verdict;

	way->with_rules = false;
	verdict = probe_once(doctor, subject, way, finding);
	if (verdict == VERDICT_OK || verdict == VERDICT_COULD_NOT_LOOK || finding->is_final)
		return verdict;
	way->with_rules = true;
	verdict = probe_once(doctor, subject, way, finding);
	if (!finding->has_limits || verdict == VERDICT_OK)
		return verdict;
	usleep(LIMIT_PAUSE_US);
	return probe_once(doctor, subject, way, finding);
}
