/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_way.c - checks of the way into a container where no packet was sent, and of what a packet
 * does not tell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "net/host_settings.h"
#include "lib/io.h"
#include "operator/doctor/probe.h"
#include "operator/print/format.h"
#include "operator/doctor/way.h"
#include "operator/kernel/drops.h"
#include "operator/kernel/route.h"

#define DROPS_LEAST 5  /* fewer packets are not told */
#define DROPS_PART 10  /* of all packets */
#define MTU_LEAST 1280 /* below it the kernel switches IPv6 off */

/* The client that is asked about, or somebody far away. */
static const uint8_t *client_of(const struct doctor *doctor, bool ipv4)
{
	const struct range_option *from = &doctor->options->from;

	return from->is_set && cni_address_is_ipv4(from->address) == ipv4 ? from->address
									  : probe_far_address(ipv4);
}

static void report(struct doctor *doctor, struct diagnosis *diagnosis,
		   const struct subject *subject)
{
	if (diagnosis->text)
		doctor_found_at(doctor,
				diagnosis->is_not_looked_at ? VERDICT_COULD_NOT_LOOK : VERDICT_FAIL,
				&diagnosis->remedy, diagnosis->text, subject->port);
}

void check_way(struct doctor *doctor, const struct subject *subject)
{
	const struct interface_look *uplink = doctor_usual_uplink(doctor, subject->ipv4);
	bool of_host = cni_address_is_loopback(subject->mapping->key.host_address);
	cleanup_diagnosis struct diagnosis diagnosis = {0};

	if (doctor_inside(doctor, subject)->was_probed[subject->ipv4])
		return;
	way_diagnose(doctor, subject, of_host || !uplink ? NULL : &uplink->link,
		     client_of(doctor, subject->ipv4), &diagnosis);
	report(doctor, &diagnosis, subject);
}

void check_listener(struct doctor *doctor, const struct subject *subject)
{
	cleanup_diagnosis struct diagnosis diagnosis = {0};

	if (doctor->was_probed[subject->mapping - doctor->mappings.list])
		return;
	way_diagnose_listener(doctor, subject, &diagnosis);
	report(doctor, &diagnosis, subject);
}

void check_conntrack(struct doctor *doctor)
{
	char count[16], most[16];
	long used, limit;

	text_file_read("/proc/sys/net/netfilter/nf_conntrack_count", count, sizeof(count));
	text_file_read("/proc/sys/net/netfilter/nf_conntrack_max", most, sizeof(most));
	used = atol(count);
	limit = atol(most);
	if (limit > 0 && used * 10 >= limit * 9)
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("sysctl -w net.netfilter.nf_conntrack_max=%ld", limit * 2),
			     "nf_conntrack has %ld entries of %ld: new connections are dropped when"
			     " it is full",
			     used, limit);
}

void check_ipsec(struct doctor *doctor)
{
	if (forwarding_has_ipsec_policies())
		doctor_found(doctor, VERDICT_WARN, NULL,
			     "the host has IPsec policies (ip xfrm policy): what is masqueraded "
			     "meets only those for"
			     " containers' own addresses");
}

/* Our program at egress, where a probe ends, comes before the queue. */
static void look_at_queue(void *context, const struct queue_use *use)
{
	struct doctor *doctor = context;
	const struct interface_look *at = doctor_interface(doctor, use->ifindex);

	if (at && (interface_has_role(at, ROLE_UPLINK) || interface_is_containers(&at->entry)) &&
	    use->dropped >= DROPS_LEAST && use->dropped >= (use->dropped + use->sent) / DROPS_PART)
		doctor_found(doctor, VERDICT_WARN, NULL,
			     "the queue at %s (%s; tc -s qdisc) has dropped %u packets, and sent"
			     " %u, since it was made",
			     at->link.name, use->kind, use->dropped, use->sent);
}

void check_queues(struct doctor *doctor)
{
	queues_visit(doctor->host.socket, look_at_queue, doctor);
}

/* Switches flood frames now and then: only where somebody's packets are said to be lost. */
static void note_frames_for_others(struct doctor *doctor, const struct interface_look *at,
				   uint64_t count)
{
	const struct range_option *from = &doctor->options->from;
	char client[CNI_ADDRESS_TEXT_SIZE];

	if (count && from->is_set && interface_has_role(at, ROLE_UPLINK) &&
	    route_to(doctor->host.socket, from->address).ifindex == at->link.ifindex)
		doctor_found(doctor, VERDICT_NOTE, NULL,
			     "%llu packets came in by %s for another MAC than its own: %s, or a"
			     " router before it, may have an old one of this host",
			     (unsigned long long)count, at->link.name,
			     cni_address_format(from->address, client));
}

/* A healthy interface drops what it has no use for, such as frames of switches to one another; a
 * few while doctor runs say nothing. */
void check_drops(struct doctor *doctor)
{
	struct link_drops_list now = {0};

	link_drops_read(doctor->host.socket, &now);
	for (size_t i = 0; i < now.count; i++) {
		const struct interface_look *at = doctor_interface(doctor, now.list[i].ifindex);
		struct link_drops more = link_drops_since(&now.list[i], &doctor->drops);

		if (at)
			note_frames_for_others(doctor, at, now.list[i].for_others);
		if (at && at->entry.role != ROLE_LEFT_ALONE && more.in + more.out >= DROPS_LEAST)
			doctor_found(doctor, VERDICT_NOTE, NULL,
				     "%s has dropped %llu packets that came in, and %llu that were"
				     " to leave, while doctor ran; `ip -s -s link show dev %s` has"
				     " the kinds",
				     at->link.name, (unsigned long long)more.in,
				     (unsigned long long)more.out, remedy_word(at->link.name).text);
	}
	link_drops_release(&now);
}

/* What one end of a veth sends and the other does not take is lost without a word. */
static bool check_veth_mtu(struct doctor *doctor, const struct subject *subject)
{
	const struct link *veth = &subject->veth->link;
	const struct link *inside = &doctor_inside(doctor, subject)->link;
	const struct namespace *namespace = doctor_namespace(doctor, subject);
	char *remedy;

	if (!inside->ifindex || !namespace || inside->mtu == veth->mtu)
		return true;
	remedy = inside->mtu > veth->mtu ? cni_format("ip link set dev %s mtu %u",
						      remedy_word(veth->name).text, inside->mtu)
					 : cni_format("nsenter --net=%s ip link set dev %s mtu %u",
						      remedy_word(namespace->path).text,
						      remedy_word(inside->name).text, veth->mtu);
	doctor_found(doctor, VERDICT_FAIL, remedy,
		     "%s in %s has an MTU of %u, its end on the host, %s, of %u: larger packets"
		     " are lost",
		     inside->name, subject->container->text, inside->mtu, veth->name, veth->mtu);
	return false;
}

/* Containers are told of it only by those who send to them. */
static void check_bridge_mtu(struct doctor *doctor, const struct subject *subject)
{
	const struct link *bridge = &subject->gateway->link, *veth = &subject->veth->link;

	if (bridge->mtu < veth->mtu)
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("ip link set dev %s mtu %u", remedy_word(bridge->name).text,
					veth->mtu),
			     "%s has an MTU of %u, its port %s of %u: larger packets to %s are"
			     " refused",
			     bridge->name, bridge->mtu, veth->name, veth->mtu,
			     subject->container->text);
}

void check_mtu(struct doctor *doctor, const struct subject *subject)
{
	const struct interface_look *uplink = doctor_usual_uplink(doctor, subject->ipv4);
	const struct link *veth = &subject->veth->link;
	struct route route = route_to(doctor->host.socket, client_of(doctor, subject->ipv4));
	const struct namespace *namespace = doctor_namespace(doctor, subject);
	uint32_t most = uplink && *doctor->default_uplink[subject->ipv4] ? uplink->link.mtu : 0;
	const struct link *link = &doctor_inside(doctor, subject)->link;
	char *remedy;

	if (route.exists && route.locked_mtu && route.locked_mtu < most)
		most = route.locked_mtu;
	if (!check_veth_mtu(doctor, subject) || !namespace || !link->ifindex)
		return;
	if (veth->mtu <= most || !most) {
		check_bridge_mtu(doctor, subject);
		return;
	}
	remedy = most < MTU_LEAST
			 ? NULL
			 : cni_format(
				   "ip link set dev %s mtu %u\n"
				   "nsenter --net=%s ip link set dev %s mtu %u\n"
				   "# and for the next containers: \"mtu\": %u for the main plugin",
				   remedy_word(veth->name).text, most,
				   remedy_word(namespace->path).text, remedy_word(link->name).text,
				   most, most);
	doctor_found(doctor, VERDICT_WARN, remedy,
		     "%s: %s has an MTU of %u, %s%s of %u: large packets are fragmented or refused,"
		     " and no flow skips the IP stack",
		     subject->port, veth->name, veth->mtu, uplink->link.name,
		     route.locked_mtu == most ? ", where it is locked," : "", most);
}
