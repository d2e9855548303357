/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_neighbours.c - asks at the interfaces by which a client's packets pass who has the
 * addresses that they need, while the port is probed, and reads the answers later. */
#include <linux/neighbour.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/kernel/inject.h"
#include "operator/kernel/route.h"
#include "operator/print/format.h"

#define ASKED_MOST 16
#define ANSWERS_MOST 4

static void ask(struct doctor *doctor, const struct asked *question)
{
	struct asked *asked;

	for (size_t i = 0; i < doctor->asked_count; i++)
		if (doctor->asked[i].at == question->at &&
		    !memcmp(doctor->asked[i].address, question->address, CNI_ADDRESS_SIZE))
			return;
	if (doctor->asked_count == ASKED_MOST || question->at->header != LINK_HEADER_ETHERNET ||
	    question->at->flags & IFF_NOARP)
		return;
	asked = ARRAY_ADD(doctor->asked, doctor->asked_count);
	*asked = *question;
	asked->file = neighbour_ask(asked->at, asked->address);
	doctor->asked_ms = clock_ms();
}

/* Nobody is asked for a container's address: if there were two who have it, the host's kernel would
 * take the one who has answered. */
void neighbours_ask(struct doctor *doctor, const struct link *uplink, const uint8_t *client,
		    const uint8_t *destination)
{
	struct route route = route_to(doctor->host.socket, client);
	struct asked of_host = {.is_own = true, .at = uplink};
	struct asked of_hop = {.at = uplink};

	/* All ports of a host would be many questions to its network. */
	if (!doctor->options->port.port)
		return;
	memcpy(of_host.address, destination, CNI_ADDRESS_SIZE);
	ask(doctor, &of_host);
	memcpy(of_hop.address, cni_address_is_any(route.gateway) ? client : route.gateway,
	       CNI_ADDRESS_SIZE);
	if (route.exists && !route.is_local && route.ifindex == uplink->ifindex)
		ask(doctor, &of_hop);
}

void neighbours_release(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->asked_count; i++)
		if (doctor->asked[i].file >= 0)
			close(doctor->asked[i].file);
	free(doctor->asked);
}

/* Who has answered a question. */
struct answers {
	uint8_t macs[ANSWERS_MOST][LINK_MAC_SIZE];
	size_t count;
};

static void read_answers(const struct doctor *doctor, const struct asked *asked,
			 struct answers *answers)
{
	answers->count = 0;
	while (asked->file >= 0 && answers->count < ANSWERS_MOST) {
		int64_t left = doctor->asked_ms + NEIGHBOUR_ANSWER_MS - clock_ms();

		if (!neighbour_answer(asked->file, asked->address, left > 0 ? (int)left : 0,
				      answers->macs[answers->count]))
			return;
		answers->count++;
	}
}

/* Of two interfaces in one network the host answers by either. */
static bool is_of_host(struct doctor *doctor, const uint8_t *mac)
{
	cleanup_error struct cni_error ignored = {0};
	struct link_names names = {0};
	bool found = false;

	link_names_read(&names, &ignored);
	for (size_t i = 0; i < names.count && !found; i++) {
		struct link link;

		found = !link_get(doctor->host.socket, names.list[i].ifindex, NULL, &link,
				  &ignored) &&
			!memcmp(link.mac, mac, LINK_MAC_SIZE);
	}
	free(names.list);
	return found;
}

static void judge_host(struct doctor *doctor, const struct asked *asked,
		       const struct answers *answers)
{
	char address[CNI_ADDRESS_TEXT_SIZE], mac[MAC_TEXT_SIZE];

	for (size_t i = 0; i < answers->count; i++)
		if (!is_of_host(doctor, answers->macs[i]))
			doctor_found(doctor, VERDICT_FAIL, NULL,
				     "somebody else at %s, with the MAC %s, has the address %s of"
				     " this host, too: packets of some clients go there",
				     asked->at->name, format_mac(answers->macs[i], mac),
				     cni_address_format(asked->address, address));
}

/* A MAC that the kernel has learnt it forgets when it finds nobody there. */
static void judge_next_hop(struct doctor *doctor, const struct asked *asked,
			   const struct answers *answers)
{
	struct neighbour known =
		neighbour_of(doctor->host.socket, asked->at->ifindex, asked->address);
	char address[CNI_ADDRESS_TEXT_SIZE], set[MAC_TEXT_SIZE], mac[MAC_TEXT_SIZE];

	if (!answers->count || !known.exists || !(known.state & NUD_PERMANENT))
		return;
	for (size_t i = 0; i < answers->count; i++)
		if (!memcmp(answers->macs[i], known.mac, LINK_MAC_SIZE))
			return;
	cni_address_format(asked->address, address);
	doctor_found(doctor, VERDICT_FAIL,
		     cni_format("ip neighbour del %s dev %s", address,
				remedy_word(asked->at->name).text),
		     "at %s the MAC %s is set for %s, which answers with %s: what is sent there is"
		     " lost",
		     asked->at->name, format_mac(known.mac, set), address,
		     format_mac(answers->macs[0], mac));
}

void check_neighbours(struct doctor *doctor)
{
	doctor->has_looked = false;
	for_each (asked, doctor->asked, doctor->asked_count) {
		struct answers answers;

		doctor->has_looked |= asked->file >= 0;
		read_answers(doctor, asked, &answers);
		(asked->is_own ? judge_host : judge_next_hop)(doctor, asked, &answers);
	}
}
