/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_cause.c - what a probe's fate means. */
#include "operator/doctor/probe_cause.h"

#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "operator/kernel/route.h"
#include "net/sockets.h"
#include "operator/doctor/probe_remedy.h"
#include "operator/print/format.h"
#include "operator/run_command.h"
#include "operator/trace/words.h"

#define COMMAND_SECONDS 5

/* What is told about. */
struct cause {
	struct doctor *doctor;
	const struct subject *subject;
	const struct probe_way *way;
	const struct probe_result *result;
	struct prober *prober;
	const char *uplink;
	char target[ENDPOINT_TEXT_SIZE]; /* the container's */
	char *rule;                      /* the rule that drops it, if nft tells; NULL */
};

/* The rule as nft prints it; NULL: nft is not installed, or it is no rule of the host's. */
static char *rule_text(const struct probe_result *result)
{
	const struct nft_drop *drop = &result->rule_drop;
	const char *const arguments[] = {
		"nft",       "-a",        "list", "chain", nft_family_word(drop->family),
		drop->table, drop->chain, NULL};
	cleanup_command struct command_run run = {.arguments = arguments,
						  .seconds = COMMAND_SECONDS};
	char mark[40];
	const char *end, *begin;

	snprintf(mark, sizeof(mark), " # handle %llu\n", (unsigned long long)drop->handle);
	if (!result->rule_dropped || result->rule_is_inside || !drop->handle ||
	    !command_run(&run) || !(end = strstr(run.output, mark)))
		return NULL;
	for (begin = end; begin > run.output && begin[-1] != '\n';)
		begin--;
	begin += strspn(begin, " \t");
	return cni_format("%.*s", (int)(end - begin), begin);
}

/* A policy, or what stands in the place of one: firewalld's last rules reject all. A rule of an
 * administrator is his decision. */
static bool is_catch_all(const struct cause *cause)
{
	const struct probe_result *result = cause->result;

	if (!result->rule_dropped || result->rule_is_inside)
		return false;
	return !result->rule_drop.handle ||
	       (!strcmp(result->rule_drop.table, "firewalld") && cause->rule &&
		!strncmp(cause->rule, "reject", strlen("reject")));
}

static char *find_remedy(const struct cause *cause)
{
	const struct trace_packet *packet = &cause->way->packet;
	bool outwards = cause->way->is_outwards;
	const char *inner = cause->subject->gateway->link.name, *outer = cause->uplink;
	char word[PROTOCOL_WORD_SIZE];
	struct opening opening = {
		.drop = &cause->result->rule_drop,
		.ipv4 = cause->subject->ipv4,
		.is_answer = cause->result->rule_drop.is_answer && !outwards,
		.is_outwards = outwards,
		.in = outwards ? inner : outer,
		.out = outwards ? outer : inner,
		.container_side = inner,
		.protocol = protocol_word(packet->protocol, word),
	};

	if (!is_catch_all(cause))
		return NULL;
	if (!outwards) {
		const struct portmap *portmap = &cause->subject->mapping->portmap;

		memcpy(opening.address, portmap->container_address, CNI_ADDRESS_SIZE);
		opening.port = portmap->container_port;
	}
	return probe_remedy(&opening);
}

static char *rule_cause(const struct cause *cause)
{
	const struct nft_drop *drop = &cause->result->rule_drop;
	bool inside = cause->result->rule_is_inside;
	const char *what =
		drop->is_answer && !cause->way->is_outwards ? "the answer is dropped" : "dropped";
	const char *where = inside ? "in the container's own firewall" : "by the host";
	const char *family = nft_family_word(drop->family);

	if (!drop->handle)
		return cni_format("%s %s: nft %s %s, chain %s, policy drop", what, where, family,
				  drop->table, drop->chain);
	return cni_format("%s %s: nft %s %s, chain %s, rule handle %llu%s%s%s", what, where, family,
			  drop->table, drop->chain, (unsigned long long)drop->handle,
			  cause->rule ? " (" : "", cause->rule ? cause->rule : "",
			  cause->rule ? ")" : "");
}

static char *program_cause(const struct cause *cause)
{
	const struct trace_event *event = &cause->result->program_drop;
	struct trace_words words;

	trace_words_of(&cause->doctor->view, event, &words);
	return cni_format("dropped by bpf-portmap (%s): %s%s%s", trace_program_name(event->hook),
			  words.reason ? words.reason : "", words.reason ? ": " : "",
			  words.meaning ? words.meaning : "no reason is counted");
}

/* The hook is not told, but how far the packet has come. */
static const char *netfilter_hook(const struct trace_drop *drop)
{
	if (drop->in_container)
		return "INPUT, or one before";
	return drop->out_ifindex ? "FORWARD, or one behind" : "PREROUTING";
}

static char *kernel_cause(const struct cause *cause)
{
	const struct trace_drop *drop = &cause->result->kernel_drop;
	const char *reason = kernel_reason(&cause->prober->names, drop->reason);
	const char *where = kernel_function(&cause->prober->names, drop->location);
	const char *answer =
		cause->way->is_outwards || drop->tuple.source_port == cause->way->packet.source_port
			? ""
			: "the answer is ";

	if (!reason)
		reason = "no reason is told";
	if (!strcmp(reason, "NETFILTER_DROP"))
		return cni_format("%sdropped %s: by iptables-legacy or another user of netfilter,"
				  " at %s",
				  answer,
				  drop->in_container ? "in the container's own firewall"
						     : "by the host",
				  netfilter_hook(drop));
	if (strstr(reason, "RPFILTER"))
		return cni_format("%sdropped %s: the reverse path filter at %s, as routing"
				  " reaches the sender by another interface",
				  answer, drop->in_container ? "in the container" : "by the host",
				  drop->in_container ? "its interface" : cause->way->entry->name);
	return cni_format("%sdropped by the kernel%s: %s at %s", answer,
			  drop->in_container ? " in the container" : "", reason, where);
}

/* --- no answer, and nobody has dropped it ------------------------------------------------- */

struct listeners {
	enum protocol protocol;
	struct socket_list sockets;
};

static int find_listeners(void *context, struct cni_error *err)
{
	struct listeners *listeners = context;
	cleanup_netlink struct nl_sock *socket = netlink_open(NETLINK_SOCK_DIAG, err);

	return socket ? sockets_find(&listeners->sockets, socket, listeners->protocol, SOCKET_BOUND,
				     err)
		      : -1;
}

/* The socket that has the most waiting: several may share a port. */
static char *backlog_cause(const struct cause *cause)
{
	const struct portmap *portmap = &cause->subject->mapping->portmap;
	struct listeners listeners = {.protocol = cause->way->packet.protocol};
	cleanup_error struct cni_error ignored = {0};
	const struct host_socket *full = NULL;
	char *text = NULL;

	if (cause->way->inside)
		netns_call(cause->way->inside->fd, find_listeners, &listeners, &ignored);
	for (size_t i = 0; i < listeners.sockets.count; i++) {
		const struct host_socket *socket = &listeners.sockets.sockets[i];

		if (socket->port == portmap->container_port && socket->backlog &&
		    socket->waiting > socket->backlog && (!full || socket->waiting > full->waiting))
			full = socket;
	}
	if (full)
		text = cni_format("delivered, no answer: the accept queue of %s is full (%u of"
				  " %u): its program accepts no connections",
				  cause->subject->container->text, full->waiting, full->backlog);
	sockets_release(&listeners.sockets);
	return text;
}

static char *neighbour_cause(const struct cause *cause, uint32_t ifindex, const uint8_t *address,
			     const char *before)
{
	struct neighbour neighbour = neighbour_of(cause->doctor->host.socket, ifindex, address);
	char text[CNI_ADDRESS_TEXT_SIZE], name[IF_NAMESIZE] = "?";

	if (!neighbour.exists || !(neighbour.state & (NUD_INCOMPLETE | NUD_FAILED)))
		return NULL;
	link_name(cause->doctor->host.socket, ifindex, name);
	return cni_format("%snobody at %s answers for %s", before, name,
			  cni_address_format(address, text));
}

static char *silence_cause(const struct cause *cause)
{
	const struct probe_result *result = cause->result;
	const uint8_t *container = cause->subject->mapping->portmap.container_address;
	const char *uplink = cause->way->entry->name;
	char *text = NULL;

	if (!result->was_seen)
		return cni_format("it does not come to bpf-portmap's programs: something at %s"
				  " takes it before (a tc program of others, or nftables at"
				  " ingress)",
				  uplink);
	if (result->has_left) {
		text = neighbour_cause(cause, cause->way->entry->ifindex, cause->way->packet.source,
				       "answered, but ");
		return text ? text
			    : cni_format("answered, but the answer does not come to %s, or nobody"
					 " there answers for its next hop",
					 uplink);
	}
	text = backlog_cause(cause);
	if (!text)
		text = neighbour_cause(cause, cause->subject->gateway->ifindex, container, "");
	if (!text && result->was_delivered)
		text = cni_format("delivered to %s, no answer: its program, or its own network"
				  " stack or firewall, is silent",
				  cause->subject->container->text);
	return text ? text
		    : cni_format("translated, but not delivered: it ends in the host's IP stack"
				 " without a word of the kernel's");
}

static char *error_cause(const struct cause *cause)
{
	char sender[CNI_ADDRESS_TEXT_SIZE];

	return cni_format("refused: an ICMP error of %s comes back",
			  cni_address_format(cause->result->sender, sender));
}

/* What has dropped it knows more than what came back. NULL: all is well. */
static char *find_cause(const struct cause *cause)
{
	const struct probe_result *result = cause->result;
	bool refused = result->answer == ANSWER_RESET || result->answer == ANSWER_ERROR;

	if (result->xdp_dropped)
		return cni_format("dropped by the XDP program %s at %s", result->xdp_name,
				  cause->way->entry->name);
	if (result->answer == ANSWER_ACCEPTED)
		return NULL;
	if (result->rule_dropped)
		return rule_cause(cause);
	if (result->program_dropped)
		return program_cause(cause);
	if (result->answer == ANSWER_RESET)
		return cni_format("refused: nobody listens at %s in %s", cause->target,
				  cause->subject->container->text);
	if (result->kernel_dropped && !refused)
		return kernel_cause(cause);
	return refused ? error_cause(cause) : silence_cause(cause);
}

/* A datagram need not be answered. */
static bool is_taken(const struct probe_way *way, const struct probe_result *result)
{
	return way->packet.protocol == PROTOCOL_UDP && result->answer == ANSWER_NONE &&
	       result->was_delivered && !result->rule_dropped && !result->program_dropped &&
	       !result->kernel_dropped;
}

void probe_report(struct doctor *doctor, const struct subject *subject, const struct probe_way *way,
		  struct prober *prober, const struct probe_result *result)
{
	struct cause cause = {doctor, subject, way, result, prober, way->entry->name, "", NULL};
	const struct portmap *portmap = &subject->mapping->portmap;
	char client[CNI_ADDRESS_TEXT_SIZE];
	cleanup_free char *text = NULL;

	format_endpoint(portmap->container_address, portmap->container_port, cause.target);
	cause.rule = rule_text(result);
	text = is_taken(way, result) ? NULL : find_cause(&cause);
	if (text)
		doctor_found(doctor, VERDICT_FAIL, find_remedy(&cause), "%s [%s, from %s by %s]",
			     text, subject->port, cni_address_format(way->packet.source, client),
			     way->entry->name);
	free(cause.rule);
}

/* Others may masquerade what goes out before we do. */
static char *find_cause_outwards(const struct cause *cause)
{
	const struct probe_result *result = cause->result;

	if (result->answer == ANSWER_ACCEPTED)
		return result->is_masqueraded_before
			       ? cni_format("masqueraded by a rule of others before bpf-portmap's"
					    " programs see it")
			       : NULL;
	if (result->rule_dropped)
		return rule_cause(cause);
	if (result->program_dropped)
		return program_cause(cause);
	if (result->kernel_dropped)
		return kernel_cause(cause);
	if (!result->has_left)
		return cni_format("it does not come to bpf-portmap's programs at %s",
				  cause->way->entry->name);
	return cni_format("it does not leave by %s: nobody there answers for its next hop, or it"
			  " ends in the host's IP stack",
			  cause->uplink);
}

void probe_report_outwards(struct doctor *doctor, const struct subject *subject,
			   const struct probe_way *way, struct prober *prober,
			   const struct probe_result *result)
{
	char uplink[IF_NAMESIZE] = "?", sender[CNI_ADDRESS_TEXT_SIZE];
	struct cause cause = {doctor, subject, way, result, prober, uplink, "", NULL};
	cleanup_free char *text = NULL;

	link_name(doctor->host.socket,
		  route_to(doctor->host.socket, way->packet.destination).ifindex, uplink);
	cause.rule = rule_text(result);
	text = find_cause_outwards(&cause);
	if (text)
		doctor_found(doctor, VERDICT_WARN, find_remedy(&cause),
			     "%s [what %s sends, %s to"
			     " %s]",
			     text, cni_address_format(way->packet.source, sender),
			     subject->gateway->link.name, uplink);
	free(cause.rule);
}
