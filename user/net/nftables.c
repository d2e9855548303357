/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nftables.c - requests to nf_tables, and the table of iptables-legacy. */
#include "net/nftables.h"

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "net/netlink.h"
#include "net/text_file.h"

#define TRIES 3

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

/* nfnetlink loads nf_tables for anyone who asks. Where netfilter is made of modules, one that is
 * not there has no rules. (A kernel that has nf_conntrack built in shows its parameters.) */
bool nftables_may_have_rules(void)
{
	if (!is_there("/sys/module"))
		return true;
	if (!is_there("/sys/module/nf_conntrack"))
		return false;
	return !is_there("/sys/module/nf_conntrack/initstate") ||
	       is_there("/sys/module/nft_chain_nat");
}

struct nl_msg *nftables_begin(int type, uint8_t family, int flags)
{
	struct nfgenmsg fixed = {.nfgen_family = family, .version = NFNETLINK_V0};

	return netlink_begin(NFNL_SUBSYS_NFTABLES << 8 | type, flags, &fixed, sizeof(fixed));
}

struct bytes nftables_attributes(const struct nlmsghdr *message)
{
	return (struct bytes){(uint8_t *)nlmsg_attrdata(message, sizeof(struct nfgenmsg)),
			      (size_t)nlmsg_attrlen(message, sizeof(struct nfgenmsg))};
}

/* The structures and numbers of both families are the same. */
_Static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo), "getinfo");
_Static_assert(sizeof(struct ipt_get_entries) == sizeof(struct ip6t_get_entries), "get_entries");
_Static_assert(IPT_SO_GET_INFO == IP6T_SO_GET_INFO, "get info");
_Static_assert(IPT_SO_GET_ENTRIES == IP6T_SO_GET_ENTRIES, "get entries");

static int read_entries(struct legacy_table *table, int socket)
{
	struct ipt_getinfo info = {.name = "nat"};
	cleanup_free struct ipt_get_entries *entries = NULL;
	socklen_t length = sizeof(info);
	int level = table->ipv4 ? SOL_IP : SOL_IPV6;

	if (getsockopt(socket, level, IPT_SO_GET_INFO, &info, &length))
		return -1;
	length = (socklen_t)(sizeof(*entries) + info.size);
	entries = need(calloc(1, length));
	memcpy(entries->name, info.name, sizeof(entries->name));
	entries->size = info.size;
	if (getsockopt(socket, level, IPT_SO_GET_ENTRIES, entries, &length))
		return -1;
	memcpy(table->hooks.begin, info.hook_entry, sizeof(table->hooks.begin));
	table->hooks.valid = info.valid_hooks;
	table->size = info.size;
	memmove(entries, entries->entrytable, info.size);
	table->entries = (const uint8_t *)TAKE(entries);
	return 0;
}

int legacy_table_read(bool ipv4, struct legacy_table *table)
{
	cleanup_close int fd = -1;
	char names[256] = "\n"; /* one a line */
	int result = -1;

	*table = (struct legacy_table){.ipv4 = ipv4};
	text_file_read(ipv4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names", names + 1,
		       sizeof(names) - 1);
	/* Asking for a table that is not there would make it. */
	if (!strstr(names, "\nnat\n"))
		return 0;
	/* Any kind serves, and this one needs no right. */
	fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* EAGAIN: it changed between the two questions. */
	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++)
		result = read_entries(table, fd);
	return result;
}
