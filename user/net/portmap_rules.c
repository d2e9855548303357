/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portmap_rules.c - the rules by which the reference plugin portmap sends packets to containers. */
#include "net/portmap_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "net/netlink.h"
#include "net/nft_rule.h"
#include "net/nftables.h"
#include "net/text_file.h"

#define TABLE_OF_IPTABLES "nat"
#define TABLE_OF_NFTABLES "cni_hostport"
#define CHAIN_OF_IPTABLES "CNI-HOSTPORT-DNAT"
#define CHAIN_OF_CONTAINER "CNI-DN-"
#define TRIES 3
#define ANSWER_SECONDS 5

static const struct {
	const char *table, *chain;
} places[] = {
	{TABLE_OF_IPTABLES, CHAIN_OF_IPTABLES},
	{TABLE_OF_NFTABLES, "hostports"},
	{TABLE_OF_NFTABLES, "hostip_hostports"},
	{TABLE_OF_NFTABLES, "masquerading"},
};

/* One run. */
struct reading {
	struct portmap_entries *entries;
	const char *id; /* that is wanted; NULL: any */
	struct nl_sock *socket;
	struct portmap_entry entry; /* as far as it is known before its rule is read */
};

/* From: dnat name: "NETWORK" id: "ID". False: it is not there whole. */
static bool take_quoted(const char *comment, const char *before, char name[NAT_COMMENT_SIZE])
{
	const char *begin = strstr(comment, before), *end;

	if (!begin)
		return false;
	begin += strlen(before);
	end = strchr(begin, '"');
	if (!end)
		return false;
	snprintf(name, NAT_COMMENT_SIZE, "%.*s", (int)(end - begin), begin);
	return true;
}

/* In iptables a rule that jumps to the container's chain, in nftables any has its ID. */
static bool take_names(struct portmap_entry *entry, const struct nat_rule *rule)
{
	if (strcmp(entry->table, TABLE_OF_IPTABLES) != 0)
		snprintf(entry->id, sizeof(entry->id), "%s", rule->comment);
	else if (!rule->jumps || !take_quoted(rule->comment, "name: \"", entry->network) ||
		 !take_quoted(rule->comment, "id: \"", entry->id))
		return false;
	return *entry->id;
}

static void take_address(struct portmap_entry *entry, const struct nat_rule *rule)
{
	static const uint8_t none[CNI_ADDRESS_SIZE];

	if (!rule->translates || !memcmp(rule->new_address, none, sizeof(none)))
		return;
	entry->is_address = true;
	memcpy(entry->address, rule->new_address, sizeof(entry->address));
}

static void take_rule(struct reading *reading, const struct nat_rule *rule, uint64_t handle)
{
	struct portmap_entry entry = reading->entry;

	if (!take_names(&entry, rule) || (reading->id && strcmp(reading->id, entry.id) != 0))
		return;
	entry.handle = handle;
	entry.own_offset = rule->target_offset;
	memcpy(entry.own_chain, rule->target, sizeof(entry.own_chain));
	take_address(&entry, rule);
	*ARRAY_ADD(reading->entries->list, reading->entries->count) = entry;
}

/* --- nftables, and iptables in it --------------------------------------------------------- */

static void parse(struct nlmsghdr *message, const struct reading *reading, struct nat_rule *rule)
{
	nft_rule_parse(reading->entry.family, nftables_attributes(message), rule);
}

static void take_nft_rule(struct nlmsghdr *message, void *context)
{
	const struct nlattr *handle =
		nlmsg_find_attr(message, sizeof(struct nfgenmsg), NFTA_RULE_HANDLE);
	struct reading *reading = context;
	struct nat_rule rule;

	parse(message, reading, &rule);
	if (handle)
		take_rule(reading, &rule, be64toh(nla_get_u64(handle)));
}

/* The chain of a container that was read last. */
static void take_nft_target(struct nlmsghdr *message, void *context)
{
	struct reading *reading = context;
	struct nat_rule rule;

	parse(message, reading, &rule);
	take_address(&reading->entry, &rule);
}

/* One that does not exist is empty. */
static int read_nft_chain(struct reading *reading, const char *chain, netlink_take take)
{
	const struct portmap_entry *entry = &reading->entry;
	cleanup_request struct nl_msg *request =
		nftables_begin(NFT_MSG_GETRULE, entry->family, NLM_F_DUMP);
	size_t count = reading->entries->count;
	int result = -1;

	nla_put_string(request, NFTA_RULE_TABLE, entry->table);
	nla_put_string(request, NFTA_RULE_CHAIN, chain);
	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		reading->entries->count = count;
		result = netlink_ask(reading->socket, request, take, reading);
	}
	return result && errno != ENOENT ? -1 : 0;
}

static int read_nftables(struct reading *reading, uint8_t family)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		size_t first = reading->entries->count;

		reading->entry = (struct portmap_entry){
			.family = family, .table = places[i].table, .chain = places[i].chain};
		if (read_nft_chain(reading, places[i].chain, take_nft_rule))
			return -1;
		/* Whoever asks for one container knows where it is. */
		for (size_t j = first; !reading->id && !i && j < reading->entries->count; j++) {
			struct portmap_entry *entry = &reading->entries->list[j];

			reading->entry = *entry;
			if (read_nft_chain(reading, entry->own_chain, take_nft_target))
				return -1;
			*entry = reading->entry;
		}
	}
	return 0;
}

/* --- iptables-legacy ---------------------------------------------------------------------- */

static void take_legacy_rule(void *context, const struct nat_rule *rule)
{
	take_rule(context, rule, 0);
}

static void take_legacy_target(void *context, const struct nat_rule *rule)
{
	take_address(context, rule);
}

/* Its table is only told whole, which takes 20 ms with kube-proxy's 10,000 rules, and portmap's
 * rules match several ports. False: nobody's do, by the match's module. */
static bool may_have_legacy_rules(void)
{
	char users[16];

	if (text_file_read("/sys/module/xt_multiport/refcnt", users, sizeof(users)))
		return strcmp(users, "0\n") != 0;
	/* Not built in, and not loaded either. */
	return access("/sys/module/nf_conntrack/initstate", F_OK) != 0;
}

static int read_legacy(struct reading *reading, uint8_t family)
{
	size_t first = reading->entries->count, offset;
	struct legacy_table table;

	if (legacy_table_read(family == NFPROTO_IPV4, &table))
		return -1;
	reading->entry = (struct portmap_entry){.legacy = true,
						.family = family,
						.table = TABLE_OF_IPTABLES,
						.chain = CHAIN_OF_IPTABLES};
	if (table.entries && ipt_chain_find(&table, CHAIN_OF_IPTABLES, &offset))
		ipt_chain_parse(&table, offset, take_legacy_rule, reading);
	for (size_t i = first; i < reading->entries->count; i++)
		ipt_chain_parse(&table, reading->entries->list[i].own_offset, take_legacy_target,
				&reading->entries->list[i]);
	free((void *)table.entries);
	return 0;
}

/* ------------------------------------------------------------------------------------------ */

int portmap_entries_read(struct portmap_entries *entries, const char *id, struct cni_error *err)
{
	static const uint8_t families[] = {NFPROTO_IPV4, NFPROTO_IPV6};
	cleanup_error struct cni_error none = {0};
	cleanup_netlink struct nl_sock *socket = NULL;
	struct reading reading = {.entries = entries, .id = id};
	bool legacy = may_have_legacy_rules();

	/* A kernel without netfilter has no such sockets. */
	if (nftables_may_have_rules())
		socket = netlink_open(NETLINK_NETFILTER, &none);
	reading.socket = socket;
	for (size_t i = 0; i < sizeof(families); i++)
		if ((socket && read_nftables(&reading, families[i])) ||
		    (legacy && read_legacy(&reading, families[i])))
			return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
					     "cannot read the rules of portmap: %s",
					     strerror(errno));
	return 0;
}

void portmap_entries_release(struct portmap_entries *entries)
{
	free(entries->list);
	*entries = (struct portmap_entries){0};
}

bool portmap_entry_is_of(const struct portmap_entry *entry, const char *network, const char *id)
{
	return !strcmp(entry->id, id) && (!*entry->network || !strcmp(entry->network, network));
}

/* --- removal ------------------------------------------------------------------------------ */

/* Requests that the kernel carries out all or none. */
struct batch {
	char *text;
	size_t size;
	FILE *stream;
	uint32_t number; /* of its requests */
};

static void batch_put(struct batch *batch, struct nl_msg *request)
{
	static const char padding[NLMSG_ALIGNTO] = {0};
	struct nlmsghdr *header = nlmsg_hdr(request);

	header->nlmsg_seq = ++batch->number;
	header->nlmsg_pid = 0;
	fwrite(header, header->nlmsg_len, 1, batch->stream);
	fwrite(padding, 1, NLMSG_ALIGN(header->nlmsg_len) - header->nlmsg_len, batch->stream);
	nlmsg_free(request);
}

static void batch_mark(struct batch *batch, int type)
{
	struct nfgenmsg fixed = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

	batch_put(batch, netlink_begin(type, 0, &fixed, sizeof(fixed)));
}

/* handle 0: all of the chain's. */
static void batch_delete_rule(struct batch *batch, const struct portmap_entry *entry,
			      const char *chain, uint64_t handle)
{
	struct nl_msg *request = nftables_begin(NFT_MSG_DELRULE, entry->family, NLM_F_ACK);

	nla_put_string(request, NFTA_RULE_TABLE, entry->table);
	nla_put_string(request, NFTA_RULE_CHAIN, chain);
	if (handle)
		nla_put_u64(request, NFTA_RULE_HANDLE, htobe64(handle));
	batch_put(batch, request);
}

static void batch_delete_chain(struct batch *batch, const struct portmap_entry *entry)
{
	struct nl_msg *request = nftables_begin(NFT_MSG_DELCHAIN, entry->family, NLM_F_ACK);

	batch_delete_rule(batch, entry, entry->own_chain, 0);
	nla_put_string(request, NFTA_CHAIN_TABLE, entry->table);
	nla_put_string(request, NFTA_CHAIN_NAME, entry->own_chain);
	batch_put(batch, request);
}

/* 0, or the errno of the first request that fails. Each deletion is answered, or the batch, by the
 * number of its first request. */
static int batch_answer(struct nl_sock *socket, uint32_t last)
{
	_Alignas(struct nlmsghdr) char text[8192];
	int error = 0;

	for (;;) {
		ssize_t got = recv(nl_socket_get_fd(socket), text, sizeof(text), 0);
		struct nlmsghdr *header = (struct nlmsghdr *)text;
		int left = (int)got;

		if (got < 0)
			return errno;
		for (; nlmsg_ok(header, left); header = nlmsg_next(header, &left)) {
			const struct nlmsgerr *said = nlmsg_data(header);

			if (header->nlmsg_type != NLMSG_ERROR)
				continue;
			if (!error)
				error = -said->error;
			if (header->nlmsg_seq == last || (header->nlmsg_seq == 1 && said->error))
				return error;
		}
	}
}

static int batch_send(struct batch *batch)
{
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	cleanup_error struct cni_error none = {0};
	cleanup_netlink struct nl_sock *socket = netlink_open(NETLINK_NETFILTER, &none);

	if (!socket)
		return EPROTONOSUPPORT;
	setsockopt(nl_socket_get_fd(socket), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (nl_sendto(socket, batch->text, batch->size) < 0)
		return EIO;
	return batch_answer(socket, batch->number - 1);
}

/* Of one container more than one rule may jump to its chain. */
static bool is_last_to_chain(const struct portmap_entries *entries, size_t number)
{
	const struct portmap_entry *entry = &entries->list[number];

	if (strncmp(entry->own_chain, CHAIN_OF_CONTAINER, strlen(CHAIN_OF_CONTAINER)) != 0)
		return false;
	for (size_t i = number + 1; i < entries->count; i++)
		if (!entries->list[i].legacy && entries->list[i].family == entry->family &&
		    !strcmp(entries->list[i].own_chain, entry->own_chain))
			return false;
	return true;
}

static bool write_batch(struct batch *batch, const struct portmap_entries *entries,
			const char *network, const char *id)
{
	bool any = false;

	batch_mark(batch, NFNL_MSG_BATCH_BEGIN);
	for (size_t i = 0; i < entries->count; i++) {
		const struct portmap_entry *entry = &entries->list[i];

		if (entry->legacy || !portmap_entry_is_of(entry, network, id))
			continue;
		any = true;
		batch_delete_rule(batch, entry, entry->chain, entry->handle);
		if (is_last_to_chain(entries, i))
			batch_delete_chain(batch, entry);
	}
	batch_mark(batch, NFNL_MSG_BATCH_END);
	return any;
}

int portmap_entries_remove(const struct portmap_entries *entries, const char *network,
			   const char *id, struct cni_error *err)
{
	struct batch batch = {0};
	int error = 0;

	batch.stream = need(open_memstream(&batch.text, &batch.size));
	if (write_batch(&batch, entries, network, id)) {
		need(fflush(batch.stream) ? NULL : batch.text);
		error = batch_send(&batch);
	}
	fclose(batch.stream);
	free(batch.text);
	return error ? cni_error_set(err,
				     error == ENOENT ? CNI_ERROR_TRY_AGAIN
						     : CNI_ERROR_KERNEL_REFUSED,
				     "cannot remove the rules of portmap: %s", strerror(error))
		     : 0;
}
