/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* words.c - what an event says, for people. */
#include "operator/trace/words.h"

#include <linux/pkt_cls.h>
#include <stddef.h>
#include <string.h>

#include "lib/ports.h"
#include "operator/print/output.h"
#include "operator/print/format.h"
#include "operator/view/statistics.h"

#define LOOPBACK 1 /* its ifindex in every network namespace */

#define BIT(counter) (1ULL << (offsetof(struct counters, counter) / sizeof(__u64)))

static const struct {
	__u64 bit;
	const char *kind;
} begun[] = {
	{BIT(flow_mapping), "mapping"},
	{BIT(flow_masquerade), "masquerade"},
	{BIT(flow_direct), "direct"},
	{BIT(flow_host), "host"},
};

/* In JSON, and for people; where that is NULL there is more to say. */
static const struct {
	const char *word, *sentence;
} outcomes[] = {
	[OUTCOME_PASSED] = {"passed", "unchanged"},
	[OUTCOME_TRANSLATED] = {"translated", "translated"},
	[OUTCOME_DROPPED] = {"dropped", NULL},
	[OUTCOME_FAST_PATH] = {"fast_path", NULL},
	[OUTCOME_REROUTED] = {"rerouted",
			      "sent by the interface that routing wants for its new source"},
	[OUTCOME_LIFTED] = {"lifted", "into the IP stack rather than across the bridge"},
	[OUTCOME_HELD] = {"held_fragment", "held until its datagram's first fragment comes"},
	[OUTCOME_RELEASED] = {"sent_again",
			      "sent in again, ahead of the fragments that were held for it"},
};

const char *trace_program_name(enum trace_hook hook)
{
	return hook < TRACE_KERNEL ? program_name((enum program_number)hook) : "kernel";
}

bool trace_is_ingress(enum trace_hook hook)
{
	return hook == TRACE_FROM_UPLINK || hook == TRACE_FROM_UPLINK_RAW ||
	       hook == TRACE_FROM_BRIDGE || hook == TRACE_FROM_CONTAINER ||
	       hook == TRACE_FROM_LOOPBACK;
}

bool trace_find_connection(const struct view *view, enum protocol protocol,
			   const struct trace_tuple *tuple, enum way way,
			   struct trace_connection *found)
{
	struct connection_key *key = &found->key;
	bool inwards = way == INWARDS;

	*key = (struct connection_key){
		.inside_port = inwards ? tuple->destination_port : tuple->source_port,
		.outside_port = inwards ? tuple->source_port : tuple->destination_port,
		.protocol = protocol,
	};
	memcpy(key->inside, inwards ? tuple->destination : tuple->source, CNI_ADDRESS_SIZE);
	memcpy(key->outside, inwards ? tuple->source : tuple->destination, CNI_ADDRESS_SIZE);
	return connection_read(&view->datapath.objects, key, &found->value);
}

static bool is_changed(const struct trace_event *event)
{
	return memcmp(&event->before, &event->after, sizeof(event->before)) != 0;
}

/* A drop's counter. A fragment's fate may have been decided with the first one, which counted. */
static void find_reason(const struct trace_event *event, struct trace_words *words)
{
	for (size_t i = 0; i < counter_word_count; i++)
		if (event->counted >> i & 1 && !strncmp(counter_words[i].name, "drop_", 5)) {
			words->reason = counter_words[i].name + 5;
			words->meaning = counter_words[i].meaning;
			return;
		}
	if (event->fragment)
		words->meaning = "a fragment, as its datagram's first one was";
}

static enum trace_outcome outcome_of(const struct trace_event *event)
{
	bool shot = event->action == TC_ACT_SHOT;

	if (shot && event->counted & BIT(fragment_held))
		return OUTCOME_HELD;
	if (shot && event->counted & BIT(fragment_released))
		return OUTCOME_RELEASED;
	if (shot)
		return OUTCOME_DROPPED;
	if (event->action == TC_ACT_REDIRECT)
		return event->counted & BIT(rerouted) ? OUTCOME_REROUTED : OUTCOME_FAST_PATH;
	if (event->counted & BIT(lifted_reply))
		return OUTCOME_LIFTED;
	return is_changed(event) ? OUTCOME_TRANSLATED : OUTCOME_PASSED;
}

static bool find_connection(const struct view *view, const struct trace_event *event,
			    struct trace_words *words)
{
	words->is_outwards = true;
	if (trace_find_connection(view, event->protocol, &event->before, OUTWARDS, &words->found))
		return true;
	words->is_outwards = false;
	return trace_find_connection(view, event->protocol, &event->after, INWARDS, &words->found);
}

void trace_words_of(struct view *view, const struct trace_event *event, struct trace_words *words)
{
	*words = (struct trace_words){.outcome = outcome_of(event)};
	if (words->outcome == OUTCOME_DROPPED)
		find_reason(event, words);
	for (size_t i = 0; i < sizeof(begun) / sizeof(begun[0]); i++)
		if (event->counted & begun[i].bit) {
			words->kind = begun[i].kind;
			words->is_new = true;
		}
	if (!find_connection(view, event, words) || !words->found.value.id)
		return;
	if (!words->kind)
		words->kind = flow_kind_word(words->found.value.kind);
	words->container = view_container(view, words->found.value.owner);
	if (words->outcome == OUTCOME_FAST_PATH)
		view_interface(view,
			       words->found.value.next_hop[words->is_outwards ? OUTWARDS : INWARDS]
				       .ifindex,
			       words->out);
}

static bool has_ports(enum protocol protocol, const struct trace_tuple *tuple)
{
	return protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP || protocol == PROTOCOL_SCTP ||
	       protocol == PROTOCOL_UDPLITE || tuple->source_port || tuple->destination_port;
}

static void print_end(FILE *file, bool with_port, const uint8_t *address, uint16_t port)
{
	char endpoint[ENDPOINT_TEXT_SIZE], bare[CNI_ADDRESS_TEXT_SIZE];

	fputs(with_port ? format_endpoint(address, port, endpoint)
			: cni_address_format(address, bare),
	      file);
}

/* "192.0.2.10:51514 > 192.0.2.1:8080"; without ports where the protocol has none */
static void print_tuple(FILE *file, enum protocol protocol, const struct trace_tuple *tuple)
{
	bool with_ports = has_ports(protocol, tuple);

	print_end(file, with_ports, tuple->source, tuple->source_port);
	fputs(" > ", file);
	print_end(file, with_ports, tuple->destination, tuple->destination_port);
}

/* In tcpdump's letters */
static void print_flags(FILE *file, __u8 flags)
{
	static const char letters[] = "FSRP.UEW";

	for (int i = 0; letters[i]; i++)
		if (flags >> i & 1)
			fputc(letters[i], file);
	if (flags)
		fputc(' ', file);
}

/* Of an ICMP error the packet that it quotes, to which the event's tuple would reply. */
static struct trace_tuple shown_tuple(const struct trace_event *event,
				      const struct trace_tuple *tuple)
{
	struct trace_tuple quoted = {.source_port = tuple->destination_port,
				     .destination_port = tuple->source_port};

	if (!event->error)
		return *tuple;
	memcpy(quoted.source, tuple->destination, CNI_ADDRESS_SIZE);
	memcpy(quoted.destination, tuple->source, CNI_ADDRESS_SIZE);
	return quoted;
}

void trace_print_packet(FILE *file, const struct trace_event *event)
{
	struct trace_tuple before = shown_tuple(event, &event->before);
	struct trace_tuple after = shown_tuple(event, &event->after);

	fprintf(file, "%s%s ", event->error ? "icmp error about " : "",
		event->protocol ? protocol_word(event->protocol) : "ip");
	print_flags(file, event->tcp_flags);
	if (event->fragment)
		fputs(event->fragment == 1 ? "first fragment " : "fragment ", file);
	print_tuple(file, event->protocol, &before);
	if (!is_changed(event) || event->action == TC_ACT_SHOT)
		return;
	fputs(" => ", file);
	if (!memcmp(before.source, after.source, CNI_ADDRESS_SIZE) &&
	    before.source_port == after.source_port)
		print_end(file, has_ports(event->protocol, &after), after.destination,
			  after.destination_port);
	else
		print_tuple(file, event->protocol, &after);
}

static void print_outcome(FILE *file, const struct trace_words *words)
{
	enum way way = words->is_outwards ? OUTWARDS : INWARDS;

	if (words->outcome == OUTCOME_DROPPED)
		fprintf(file, "DROPPED%s%s%s%s", words->reason ? ": " : "",
			words->reason ? words->reason : "", words->meaning ? ": " : "",
			words->meaning ? words->meaning : "");
	else if (words->outcome == OUTCOME_FAST_PATH)
		fprintf(file, "fast path%s%s",
			!*words->out                               ? ""
			: words->found.value.path[way] == PATH_OUT ? " out of "
								   : " into ",
			words->out);
	else
		fputs(outcomes[words->outcome].sentence, file);
}

void trace_print_words(FILE *file, const struct trace_words *words)
{
	print_outcome(file, words);
	if (words->kind)
		fprintf(file, ", %s%s", words->is_new ? "new " : "", words->kind);
	if (words->container)
		fprintf(file, ", %s", words->container->text);
}

/* NULL: not certain. A packet in FORWARD still belongs to the device where it came in, and its
 * route leads to another one; in INPUT the route leads to the loopback device, in POSTROUTING the
 * packet belongs to the route's. */
static const char *netfilter_chain(const struct trace_drop *drop, const char *reason)
{
	if (!reason || strcmp(reason, "NETFILTER_DROP") != 0)
		return NULL;
	return drop->ifindex && drop->out_ifindex > LOOPBACK && drop->out_ifindex != drop->ifindex
		       ? "FORWARD"
		       : NULL;
}

void trace_print_drop(FILE *file, struct kernel_names *names, const struct trace_drop *drop)
{
	const char *reason = kernel_reason(names, drop->reason);
	const char *function = kernel_function(names, drop->location);
	const char *chain = netfilter_chain(drop, reason);

	fprintf(file, "%s ", protocol_word(drop->protocol));
	print_flags(file, drop->tcp_flags);
	print_tuple(file, drop->protocol, &drop->tuple);
	fputs("  DROPPED", file);
	if (reason)
		fprintf(file, ": %s", reason);
	else if (drop->reason)
		fprintf(file, ": reason %u", drop->reason);
	if (*function)
		fprintf(file, " at %s", function);
	if (chain)
		fprintf(file, " (%s)", chain);
	if (drop->in_container)
		fputs(", in the container", file);
}

static json_t *tuple_json(const struct trace_tuple *tuple)
{
	return json_pack("{s:o, s:o}", "source", json_endpoint(tuple->source, tuple->source_port),
			 "destination", json_endpoint(tuple->destination, tuple->destination_port));
}

static json_t *interface_json(const struct view *view, uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return view_interface(view, ifindex, name) ? json_string(name) : json_null();
}

json_t *trace_event_json(const struct view *view, const struct trace_event *event,
			 const struct trace_words *words)
{
	struct trace_tuple before = shown_tuple(event, &event->before);
	struct trace_tuple after = shown_tuple(event, &event->after);

	return json_pack("{s:s, s:s, s:o, s:s?, s:i, s:i, s:b, s:i, s:o, s:o, s:s, s:s?, s:s?,"
			 " s:s?, s:b, s:s?, s:o}",
			 "program", trace_program_name(event->hook), "direction",
			 trace_is_ingress(event->hook) ? "in" : "out", "interface",
			 interface_json(view, event->ifindex), "protocol",
			 event->protocol ? protocol_word(event->protocol) : NULL, "tcp_flags",
			 (int)event->tcp_flags, "length", (int)event->length, "error",
			 (int)event->error, "fragment", (int)event->fragment, "before",
			 tuple_json(&before), "after", tuple_json(&after), "outcome",
			 outcomes[words->outcome].word, "reason", words->reason, "meaning",
			 words->meaning, "kind", words->kind, "new", (int)words->is_new, "out",
			 *words->out ? words->out : NULL, "container",
			 json_container(view, words->container));
}

json_t *trace_drop_json(const struct view *view, struct kernel_names *names,
			const struct trace_drop *drop)
{
	const char *reason = kernel_reason(names, drop->reason);
	const char *function = kernel_function(names, drop->location);

	return json_pack("{s:s, s:o, s:o, s:s, s:i, s:i, s:o, s:s, s:s?, s:i, s:s?, s:s?, s:b}",
			 "program", "kernel", "interface",
			 drop->in_container ? json_null() : interface_json(view, drop->ifindex),
			 "out_interface",
			 drop->in_container ? json_null() : interface_json(view, drop->out_ifindex),
			 "protocol", protocol_word(drop->protocol), "tcp_flags",
			 (int)drop->tcp_flags, "length", (int)drop->length, "before",
			 tuple_json(&drop->tuple), "outcome", "dropped", "reason", reason,
			 "reason_number", (int)drop->reason, "function",
			 *function ? function : NULL, "chain", netfilter_chain(drop, reason),
			 "in_container", (int)drop->in_container);
}
