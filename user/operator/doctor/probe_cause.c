/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_cause.c - what a probe's fate means. */
#include "operator/doctor/probe_remedy.h"

#include <linux/if_bridge.h>
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "lib/io.h"
#include "operator/kernel/route.h"
#include "operator/doctor/way.h"
#include "operator/print/format.h"
#include "operator/trace/words.h"
#include "plan/hooks.h"

#define HOP_TEXT_SIZE (2 * CNI_ADDRESS_TEXT_SIZE + 32)

/* What stands there tells which rule it was, and whom others let in. */
static void read_rules(struct cause *cause)
{
	const struct nft_drop *drop = &cause->result->rule_drop;
	const struct namespace *inside = cause->result->rule_is_inside
						 ? doctor_namespace(cause->doctor, cause->subject)
						 : NULL;

	if (!cause->result->rule_dropped)
		return;
	ruleset_read(&cause->ruleset, drop, inside);
	cause->rule = ruleset_rule(&cause->ruleset, drop->chain, drop->handle);
	cause->lets_in = probe_lets_in(cause);
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
		return cni_format("%s %s: nft %s %s, chain %s, policy drop%s%s%s", what, where,
				  family, drop->table, drop->chain,
				  cause->lets_in ? "; others are let in (" : "",
				  cause->lets_in ? cause->lets_in : "", cause->lets_in ? ")" : "");
	return cni_format("%s %s: nft %s %s, chain %s, rule handle %llu%s%s%s", what, where, family,
			  drop->table, drop->chain, (unsigned long long)drop->handle,
			  cause->rule ? " (" : "", cause->rule ? cause->rule : "",
			  cause->rule ? ")" : "");
}

static char *program_cause(const struct cause *cause)
{
	const struct trace_event *event = &cause->result->program_drop;
	const struct container_info *sender =
		event->hook == TRACE_FROM_CONTAINER
			? way_container(cause->doctor, event->ifindex, NULL)
			: NULL;
	struct trace_words words;

	trace_words_of(&cause->doctor->view, event, &words);
	return cni_format("dropped by bpf-portmap (%s%s%s): %s%s%s",
			  trace_program_name(event->hook), sender ? ", sent by " : "",
			  sender ? sender->text : "", words.reason ? words.reason : "",
			  words.reason ? ": " : "",
			  words.meaning ? words.meaning : "no reason is counted");
}

/* To read all symbols of the kernel takes long: only where it is said. */
static const char *function_of(const struct cause *cause)
{
	return kernel_function(&cause->doctor->prober->names, cause->result->kernel_drop.location);
}

/* What the kernel's words mean to somebody who has not read its source. */
static const char *meaning_of(const struct cause *cause)
{
	static const struct {
		const char *word, *meaning;
	} meanings[] = {
		{"veth_xdp", "an XDP program of others at the veth"},
		{"generic_xdp", "an XDP program of others"},
		{"TC_", "a tc program of others"},
		{"SOCKET_FILTER", "a filter of the server's socket or cgroup (IPAddressDeny= of"
				  " systemd is one)"},
		{"CGROUP", "a filter of the server's cgroup (IPAddressDeny= of systemd is one)"},
		{"QDISC", "a queue has no room (tc qdisc)"},
		{"IPV6DISABLED", "IPv6 is off there"},
		{"NOROUTES", "no route leads on, or one that refuses (ip rule, ip route)"},
		{"PKT_TOO_BIG", "it is larger than an MTU on its way"},
		{"__dev_forward_skb", "it is larger than the MTU of the veth's other end"},
		{"XFRM", "an IPsec policy (ip xfrm policy)"},
		{"IP_INHDR", "its TTL has run out: somebody sets it, or it goes in a circle"},
		{"ip_forward", "routing does not forward it: its TTL has run out, or it is larger"
			       " than the MTU"},
		{"ip_error", "no route leads on, or one that refuses (ip rule, ip route)"},
		{"NEIGH", "nobody answers for the next hop (ARP, or ND of IPv6)"},
		{"neigh_", "nobody answers for the next hop (ARP, or ND of IPv6)"},
	};

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strstr(cause->reason, meanings[i].word))
			return meanings[i].meaning;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strstr(function_of(cause), meanings[i].word))
			return meanings[i].meaning;
	return "";
}

/* A program of others where the kernel says that one has dropped it: the first that is known there;
 * NULL: none is. */
static const char *program_of_others(const struct cause *cause)
{
	bool egress = strstr(cause->reason, "EGRESS");
	const struct trace_drop *drop = &cause->result->kernel_drop;
	const struct interface_look *at = doctor_interface(cause->doctor, drop->ifindex);
	const struct hook_look *hook =
		at ? &at->hooks.hooks[egress ? HOOK_EGRESS : HOOK_INGRESS] : NULL;

	for (size_t i = 0; hook && i < hook->count; i++)
		if (hook->list[i].program == PROGRAM_COUNT && !hook->list[i].is_announcement)
			return hook->list[i].name;
	return NULL;
}

/* A rule of policy routing that the packet may have met by its mark; NULL: there is none. */
static char *rule_by_mark(const struct cause *cause)
{
	const struct trace_tuple *tuple = &cause->result->kernel_drop.tuple;
	const struct link *gateway = &cause->subject->gateway->link;
	bool is_inwards =
		tuple->source_port == cause->way->packet.source_port && !cause->way->is_outwards;
	const struct forwarded packet = {
		.from = tuple->source,
		.to = tuple->destination,
		.interface = is_inwards ? cause->way->entry->name : gateway->name,
		.has_mark = true,
	};
	cleanup_free char *rule = rule_of_forwarded(cause->doctor->host.socket, &packet);

	return rule ? cni_format("ip rule %s", rule) : NULL;
}

static void read_reason(struct cause *cause)
{
	const char *reason =
		kernel_reason(&cause->doctor->prober->names, cause->result->kernel_drop.reason);

	if (!cause->result->kernel_dropped)
		return;
	cause->reason = reason ? reason : "no reason is told";
	cause->is_netfilter = !strcmp(cause->reason, "NETFILTER_DROP");
}

static char *kernel_cause(const struct cause *cause)
{
	const struct trace_drop *drop = &cause->result->kernel_drop;
	bool inside = drop->in_container;
	const char *what = cause->result->kernel_drop_is_answer && !cause->way->is_outwards
				   ? "the answer is dropped"
				   : "dropped";
	const char *meaning, *program, *suspect;
	cleanup_free char *rule = NULL;

	/* The hook is not told, but how far the packet has come. */
	if (cause->is_netfilter)
		return cni_format("%s %s: by iptables-legacy or another user of netfilter, at %s,"
				  " or one before",
				  what, inside ? "in the container's own firewall" : "by the host",
				  inside              ? "INPUT"
				  : drop->out_ifindex ? "FORWARD"
						      : "PREROUTING");
	if (strstr(cause->reason, "RPFILTER"))
		return cni_format("%s by %s: the reverse path filter at %s, as routing reaches the"
				  " sender by another interface",
				  what, inside ? "the container" : "the host",
				  inside ? "its interface" : cause->way->entry->name);
	meaning = meaning_of(cause);
	if (!*meaning)
		return cni_format("%s by the kernel%s: %s at %s", what,
				  inside ? " in the container" : "", cause->reason,
				  function_of(cause));
	program = !inside && !strncmp(cause->reason, "TC_", 3) ? program_of_others(cause) : NULL;
	rule = !inside && strstr(meaning, "no route") ? rule_by_mark(cause) : NULL;
	suspect = program ? program : rule;
	return cni_format("%s by the kernel%s: %s%s%s (%s)", what,
			  inside ? " in the container" : "", meaning, suspect ? ", perhaps " : "",
			  suspect ? suspect : "", cause->reason);
}

/* --- no answer, and nobody has dropped it ------------------------------------------------- */

static bool is_unanswered(const struct cause *cause, uint32_t ifindex, const uint8_t *address)
{
	struct neighbour neighbour = neighbour_of(cause->doctor->host.socket, ifindex, address);

	return neighbour.exists && neighbour.state & (NUD_INCOMPLETE | NUD_FAILED);
}

/* Whom the interface asks for to send to this address, and who does not answer: it, or its next
 * hop. Writes "192.0.2.77, the next hop towards 203.0.113.9"; false: somebody answers. */
static bool next_hop_is_missing(const struct cause *cause, const uint8_t *address,
				char text[HOP_TEXT_SIZE])
{
	struct route route = route_to(cause->doctor->host.socket, address);
	const uint8_t *hop = cni_address_is_any(route.gateway) ? address : route.gateway;
	char of_hop[CNI_ADDRESS_TEXT_SIZE], of_address[CNI_ADDRESS_TEXT_SIZE];

	if (!route.exists || !is_unanswered(cause, route.ifindex, hop))
		return false;
	cni_address_format(hop, of_hop);
	cni_address_format(address, of_address);
	snprintf(text, HOP_TEXT_SIZE, "%s%s%s", of_hop,
		 hop == address ? "" : ", the next hop towards ", hop == address ? "" : of_address);
	return true;
}

/* The bridge's port to the container takes no frames: a loop was seen, or somebody switched it off.
 */
static bool port_forwards(const struct cause *cause)
{
	const struct subject *subject = cause->subject;
	char path[sizeof("/sys/class/net//brport/state") + IF_NAMESIZE], state[8];

	snprintf(path, sizeof(path), "/sys/class/net/%s/brport/state", subject->veth->link.name);
	text_file_read(path, state, sizeof(state));
	return !*state || atoi(state) == BR_STATE_FORWARDING;
}

struct arp_setting {
	const char *interface;
	char ignores[8];
};

static int read_arp_ignore(void *context, struct cni_error *err)
{
	struct arp_setting *setting = context;
	char path[sizeof("/proc/sys/net/ipv4/conf//arp_ignore") + IF_NAMESIZE];

	(void)err;
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/arp_ignore", setting->interface);
	text_file_read(path, setting->ignores, sizeof(setting->ignores));
	return 0;
}

/* Why the container, which has the address, tells nobody its MAC; NULL: that is not known. */
static char *why_silent_below_ip(const struct cause *cause)
{
	const struct link *inside = &doctor_inside(cause->doctor, cause->subject)->link;
	const struct namespace *namespace = doctor_namespace(cause->doctor, cause->subject);
	const char *who = cause->subject->container->text;
	struct arp_setting setting = {.interface = inside->name};
	cleanup_error struct cni_error ignored = {0};

	if (inside->flags & IFF_NOARP)
		return cni_format("%s in %s takes no part in ARP (NOARP)", inside->name, who);
	if (!cause->subject->ipv4 || !namespace || !inside->ifindex ||
	    netns_call(namespace->fd, read_arp_ignore, &setting, &ignored) ||
	    atoi(setting.ignores) == 0)
		return NULL;
	return cni_format("%s in %s ignores some that ask (net.ipv4.conf.%s.arp_ignore is %d)",
			  inside->name, who, inside->name, atoi(setting.ignores));
}

/* Nobody takes the packet where the container should. */
static char *absence_cause(const struct cause *cause)
{
	const uint8_t *container = cause->subject->mapping->portmap.container_address;
	cleanup_netlink struct netlink *inside = doctor_enter(cause->doctor, cause->subject);
	bool is_gone = inside && !local_address_exists(inside, container);
	cleanup_free char *table = is_gone ? NULL : ruleset_table_below_ip();
	cleanup_free char *why = is_gone ? NULL : why_silent_below_ip(cause);
	char address[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(container, address);
	if (is_gone)
		return cni_format("nobody at %s answers for %s: %s does not have that address",
				  cause->subject->gateway->link.name, address,
				  cause->subject->container->text);
	if (!port_forwards(cause))
		return cni_format("nobody at %s answers for %s: its port %s does not forward"
				  " (bridge link show dev %s)",
				  cause->subject->gateway->link.name, address,
				  cause->subject->veth->link.name, cause->subject->veth->link.name);
	if (why)
		return cni_format("nobody at %s answers for %s: %s",
				  cause->subject->gateway->link.name, address, why);
	return cni_format("nobody at %s answers for %s%s%s%s", cause->subject->gateway->link.name,
			  address, table ? "; rules that see ARP are in nft's table " : "",
			  table ? table : "", table ? ", and no trace tells what they drop" : "");
}

/* A tc program of others that runs before ours; NULL: none. */
static const struct hung *program_ahead(const struct cause *cause)
{
	static const struct hook_changes unchanged;
	const struct hooks_look *hooks =
		&doctor_interface(cause->doctor, cause->way->entry->ifindex)->hooks;

	return others_ahead(hooks, HOOK_INGRESS, plan_mechanism(&unchanged, hooks, HOOK_INGRESS));
}

static char *silence_cause(const struct cause *cause)
{
	const struct probe_result *result = cause->result;
	const struct link *uplink = cause->way->entry;
	const struct hung *ahead = result->was_seen ? NULL : program_ahead(cause);
	char hop[HOP_TEXT_SIZE];

	if (!result->was_seen)
		return cni_format("it does not come to bpf-portmap's programs: %s at %s takes it"
				  " before",
				  ahead ? ahead->name : "something", uplink->name);
	if (result->has_left && next_hop_is_missing(cause, cause->way->packet.source, hop))
		return cni_format("answered, but nobody at %s answers for %s", uplink->name, hop);
	if (result->has_left)
		return cni_format("answered, but the answer does not come to %s", uplink->name);
	return result->was_delivered
		       ? cni_format("delivered to %s, no answer: its program, or its own network"
				    " stack or firewall, is silent",
				    cause->subject->container->text)
		       : cni_format("translated, but not delivered: it is lost in the host's IP"
				    " stack, and the kernel reports no drop");
}

/* What has dropped it by its name; NULL: nobody is named, and a look may tell more. */
static char *named_cause(const struct cause *cause)
{
	const struct probe_result *result = cause->result;

	if (result->xdp_dropped)
		return cni_format("dropped by the XDP program %s at %s", result->xdp_name,
				  cause->way->entry->name);
	if (result->rule_dropped)
		return rule_cause(cause);
	if (result->program_dropped)
		return program_cause(cause);
	return cause->is_netfilter ? kernel_cause(cause) : NULL;
}

/* Not by the container, from which nothing has come. */
static bool is_answered_by_host(const struct probe_result *result)
{
	return !result->has_left &&
	       (result->answer == ANSWER_ACCEPTED || result->answer == ANSWER_RESET);
}

/* A host without a route refuses as well as a server does. */
static char *unnamed_cause(const struct cause *cause)
{
	const struct probe_result *result = cause->result;
	const struct portmap *portmap = &cause->subject->mapping->portmap;
	bool is_error = result->answer == ANSWER_ERROR;
	char sender[CNI_ADDRESS_TEXT_SIZE], target[ENDPOINT_TEXT_SIZE];

	if (is_answered_by_host(result))
		return cni_format(
			"%s by the host itself, not by %s%s",
			result->answer == ANSWER_RESET ? "refused" : "answered",
			cause->subject->container->text,
			result->was_translated
				? ", to which the packet was translated, as by a SYN proxy"
				: ": the packet was not translated; does a conflist leave"
				  " its address out by \"excludeInterfaces\" or"
				  " \"excludeCIDRs\"?");
	if (result->answer == ANSWER_RESET)
		return cni_format("refused: %s answers with a reset: nobody listens at %s, or its"
				  " program refuses",
				  cause->subject->container->text,
				  format_endpoint(portmap->container_address,
						  portmap->container_port, target));
	if (is_unanswered(cause, cause->subject->gateway->link.ifindex, portmap->container_address))
		return absence_cause(cause);
	if (is_error && local_address_exists(cause->doctor->host.socket, result->sender))
		return result->kernel_dropped && !strstr(cause->reason, "NEIGH")
			       ? kernel_cause(cause)
			       : absence_cause(cause);
	if (is_error)
		return cni_format("refused: an ICMP error of %s comes back",
				  cni_address_format(result->sender, sender));
	return result->kernel_dropped ? kernel_cause(cause) : silence_cause(cause);
}

static void forget_what_was_not_looked_at(struct diagnosis *diagnosis)
{
	if (diagnosis->is_not_looked_at)
		diagnosis_release(diagnosis);
}

/* What the packet has met is the way as it is, and a look says why. */
static void look(const struct cause *cause, struct diagnosis *diagnosis)
{
	const struct probe_result *result = cause->result;
	bool is_silent = !result->kernel_dropped && result->answer == ANSWER_NONE;

	/* A datagram need not be answered, where somebody takes it. */
	if (cause->way->packet.protocol == PROTOCOL_UDP && result->was_delivered && is_silent) {
		way_diagnose_listener(cause->doctor, cause->subject, diagnosis);
		forget_what_was_not_looked_at(diagnosis);
		return;
	}
	if (result->was_seen)
		way_diagnose(cause->doctor, cause->subject, cause->way->entry,
			     cause->way->packet.source, diagnosis);
	forget_what_was_not_looked_at(diagnosis);
	if (!diagnosis->text &&
	    (is_silent ? result->was_delivered || result->has_left : result->answer != ANSWER_NONE))
		way_diagnose_listener(cause->doctor, cause->subject, diagnosis);
	forget_what_was_not_looked_at(diagnosis);
	if (!diagnosis->text && is_silent && result->was_delivered && !result->has_left)
		way_diagnose_gateway(cause->doctor, cause->subject, cause->way->packet.source,
				     diagnosis);
	diagnosis->by_look = diagnosis->text;
	if (!diagnosis->text)
		diagnosis->text = unnamed_cause(cause);
}

static void say_other_nat(const struct cause *cause, struct diagnosis *diagnosis)
{
	diagnosis->text = probe_nat_cause(cause);
	diagnosis->code = diagnosis->text ? "probe-nat" : NULL;
}

/* The SYN has had an answer. */
static void say_connected(const struct cause *cause, struct diagnosis *diagnosis)
{
	char *text = diagnosis->text;

	if (!text || !cause->result->is_connected)
		return;
	diagnosis->text = cni_format("the handshake passes, the data behind it does not: %s", text);
	free(text);
}

/* Who has dropped it knows more than what came back. */
static void find_cause(const struct cause *cause, struct diagnosis *diagnosis)
{
	if (cause->result->was_diverted) {
		say_other_nat(cause, diagnosis);
		return;
	}
	/* A process of the host may answer what was not translated. */
	if (cause->result->answer == ANSWER_ACCEPTED && cause->result->has_left) {
		if (cause->doctor->options->port.port)
			way_diagnose_program(cause->doctor, cause->subject, diagnosis);
		return;
	}
	diagnosis->text = named_cause(cause);
	if (diagnosis->text)
		diagnosis->remedy = probe_remedy(cause);
	else if (is_answered_by_host(cause->result) && cause->result->was_translated)
		say_other_nat(cause, diagnosis);
	if (!diagnosis->text)
		look(cause, diagnosis);
	say_connected(cause, diagnosis);
}

/* Others may masquerade what goes out before we do. */
static void find_cause_outwards(const struct cause *cause, struct diagnosis *diagnosis)
{
	const struct probe_result *result = cause->result;
	char hop[HOP_TEXT_SIZE];

	if (result->answer == ANSWER_ACCEPTED) {
		if (result->is_masqueraded_before)
			diagnosis->text = cni_format("masqueraded by a rule of others before"
						     " bpf-portmap's programs see it");
		else if (result->keeps_source && cause->way->client == CLIENT_NAMED)
			diagnosis->text = cni_format("it leaves with the container's own address:"
						     " nobody masquerades it (ipMasq)");
		return;
	}
	diagnosis->text = named_cause(cause);
	if (diagnosis->text)
		diagnosis->remedy = probe_remedy(cause);
	else if (next_hop_is_missing(cause, cause->way->packet.destination, hop))
		diagnosis->text = cni_format("nobody at %s answers for %s", cause->uplink, hop);
	else if (result->kernel_dropped)
		diagnosis->text = kernel_cause(cause);
	else if (!result->has_left)
		diagnosis->text = cni_format("it does not come to bpf-portmap's programs at %s",
					     cause->way->entry->name);
	else
		diagnosis->text = cni_format("it does not leave by %s: it ends in the host's IP"
					     " stack",
					     cause->uplink);
}

/* Whether the rule looks at the peer: who comes, or to whom it goes. */
static bool is_by_peer(const struct cause *cause)
{
	return rule_is_by_source(cause->rule) ||
	       (cause->way->is_outwards && strstr(cause->rule, "daddr"));
}

/* A firewall that looks at who comes has not said what it does with a real client, and neither has
 * the host's reverse path filter, unless a look tells what else it was. A rule that lets packets in
 * by their mark does not say who they are. */
static bool tells_of_clients(const struct cause *cause, const struct diagnosis *diagnosis)
{
	const struct probe_result *result = cause->result;

	if (cause->way->client == CLIENT_NAMED)
		return true;
	if (strstr(cause->reason, "RPFILTER"))
		return diagnosis->by_look;
	if (!result->rule_dropped)
		return true;
	return !(cause->lets_in && !strstr(cause->lets_in, "mark ")) &&
	       !(cause->rule && is_by_peer(cause));
}

/* A SYN proxy of the host lets clients through that go on where a probe does not. */
static bool is_proxied(const struct cause *cause, const struct diagnosis *diagnosis)
{
	const struct probe_result *result = cause->result;

	if (cause->rule)
		return strstr(cause->rule, "synproxy");
	return is_answered_by_host(result) && result->was_translated &&
	       result->answer == ANSWER_ACCEPTED && !diagnosis->code && !diagnosis->by_look;
}

/* "*:8080/tcp, from 203.0.113.1, made up, by eth0" */
static char *place_of(const struct cause *cause)
{
	static const char *const words[] = {
		[CLIENT_NAMED] = "",
		[CLIENT_SEEN] = ", seen lately,",
		[CLIENT_NEIGHBOUR] = ", a neighbour,",
		[CLIENT_INVENTED] = ", made up,",
	};
	const struct probe_way *way = cause->way;
	char source[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(way->packet.source, source);
	return way->is_outwards ? cni_format("what %s sends, %s to %s", source,
					     cause->subject->gateway->link.name, cause->uplink)
				: cni_format("%s, from %s%s by %s", cause->subject->port, source,
					     words[way->client], way->entry->name);
}

/* A look knows more than what became of the packet. */
static const char *code_of(const struct cause *cause, const struct diagnosis *diagnosis)
{
	const struct probe_result *result = cause->result;

	if (diagnosis->code)
		return diagnosis->code;

	if (result->xdp_dropped)
		return "probe-xdp";
	if (result->rule_dropped)
		return result->rule_drop.handle ? "probe-rule" : "probe-policy";
	if (result->program_dropped)
		return "probe-own";
	if (cause->is_netfilter)
		return "probe-netfilter";
	if (result->answer == ANSWER_RESET && result->has_left)
		return "probe-refused";
	if (diagnosis->by_look)
		return "probe-way";
	return result->kernel_dropped ? "probe-kernel" : "probe-silent";
}

enum verdict probe_judge(struct doctor *doctor, const struct subject *subject,
			 const struct probe_way *way, const struct probe_result *result,
			 struct probe_finding *finding)
{
	struct cause cause = {.doctor = doctor,
			      .subject = subject,
			      .way = way,
			      .result = result,
			      .uplink = "?",
			      .reason = ""};
	cleanup_diagnosis struct diagnosis diagnosis = {0};
	enum verdict verdict = VERDICT_OK;

	link_name(way->is_outwards ? route_to(doctor->host.socket, way->packet.destination).ifindex
				   : way->entry->ifindex,
		  cause.uplink);
	read_rules(&cause);
	read_reason(&cause);
	(way->is_outwards ? find_cause_outwards : find_cause)(&cause, &diagnosis);
	if (diagnosis.text) {
		verdict = is_proxied(&cause, &diagnosis) || !tells_of_clients(&cause, &diagnosis)
				  ? VERDICT_NOTE
			  : way->is_outwards ? VERDICT_WARN
					     : VERDICT_FAIL;
		finding->cause = TAKE(diagnosis.text);
		finding->remedy = TAKE(diagnosis.remedy);
		finding->place = place_of(&cause);
		finding->code = code_of(&cause, &diagnosis);
		finding->is_final = result->xdp_dropped || result->program_dropped ||
				    (result->kernel_dropped && !cause.is_netfilter);
		finding->is_firewall = result->rule_dropped || cause.is_netfilter;
		finding->has_limits = ruleset_has_limits(&cause.ruleset);
	}
	ruleset_release(&cause.ruleset);
	free(cause.rule);
	free(cause.lets_in);
	return verdict;
}
