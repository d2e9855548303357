/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* inject.c - makes a frame, and hands it to the kernel as if it had come in by an interface. */
#include "operator/kernel/inject.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/clock.h"
#include "net/netlink.h"

#define FRAME_SIZE 2048 /* XDP may make it longer */
#define HOP_LIMIT 64
#define WINDOW 64240
#define SEQUENCE_BEGIN 1
#define DATA_LEAST 2 /* an even number of bytes */

/* The checksum of an even number of bytes; never 0, which would be none. */
static uint16_t checksum(const uint8_t *bytes, size_t length, uint32_t sum)
{
	for (size_t i = 0; i < length; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff ? 0xffff : htons((uint16_t)~sum);
}

/* As clients begin: firewalls drop a SYN without a maximum segment size as that of a scanner. */
#define SYN_OPTIONS 12
static const uint8_t syn_options[SYN_OPTIONS] = {
	TCPOPT_MAXSEG,
	TCPOLEN_MAXSEG,
	0x05,
	0xa0, /* 1440 bytes */
	TCPOPT_NOP,
	TCPOPT_NOP,
	TCPOPT_SACK_PERMITTED,
	TCPOLEN_SACK_PERMITTED,
	TCPOPT_NOP,
	TCPOPT_WINDOW,
	TCPOLEN_WINDOW,
	7,
};

union segment {
	struct {
		struct tcphdr header;
		uint8_t options[SYN_OPTIONS];
	} tcp;
	struct udphdr udp;
};

static size_t header_of(const struct probe_packet *packet)
{
	if (packet->protocol != PROTOCOL_TCP)
		return sizeof(struct udphdr);
	return sizeof(struct tcphdr) + (packet->step == STEP_BEGIN ? SYN_OPTIONS : 0);
}

/* `data`: how many bytes follow the header. Those of STEP_DATA end where the SYN has ended. */
static void put_tcp(union segment *segment, const struct probe_packet *packet, size_t data)
{
	struct tcphdr *header = &segment->tcp.header;
	bool begins = packet->step == STEP_BEGIN, has_data = packet->step == STEP_DATA;

	*header = (struct tcphdr){
		.source = htons(packet->source_port),
		.dest = htons(packet->destination_port),
		.seq = htonl(SEQUENCE_BEGIN + !begins - (has_data ? (uint32_t)data : 0)),
		.ack_seq = htonl(has_data ? packet->acknowledgment : 0),
		.doff = header_of(packet) / 4,
		.syn = begins,
		.ack = has_data,
		.rst = packet->step == STEP_END,
		.window = htons(WINDOW)};
	memcpy(segment->tcp.options, syn_options, SYN_OPTIONS);
}

/* With the pseudo header. The twelve bytes before an IPv4 address here are the same of both: two
 * times 0xffff, which is no summand. */
static size_t put_transport(uint8_t *at, const struct probe_packet *packet, size_t header)
{
	bool is_tcp = packet->protocol == PROTOCOL_TCP;
	size_t length = header_of(packet);
	size_t least = length + (is_tcp && packet->step == STEP_DATA ? DATA_LEAST : 0);
	size_t filled = packet->size > header + least ? packet->size - header : least;
	union segment segment = {.udp = {.source = htons(packet->source_port),
					 .dest = htons(packet->destination_port),
					 .len = htons((uint16_t)filled)}};
	uint8_t bytes[2 * CNI_ADDRESS_SIZE + sizeof(segment)];
	uint16_t *check = is_tcp ? &segment.tcp.header.check : &segment.udp.check;

	if (is_tcp)
		put_tcp(&segment, packet, filled - length);
	memcpy(bytes, packet->source, CNI_ADDRESS_SIZE);
	memcpy(bytes + CNI_ADDRESS_SIZE, packet->destination, CNI_ADDRESS_SIZE);
	memcpy(bytes + 2 * CNI_ADDRESS_SIZE, &segment, length);
	*check =
		checksum(bytes, 2 * CNI_ADDRESS_SIZE + length, packet->protocol + (uint32_t)filled);
	memcpy(at, &segment, length);
	return filled;
}

static size_t put_ipv4(uint8_t *at, const struct probe_packet *packet)
{
	struct iphdr ip = {.version = 4,
			   .ihl = 5,
			   .ttl = HOP_LIMIT,
			   .frag_off = htons(IP_DF),
			   .protocol = packet->protocol};
	size_t length = sizeof(ip) + put_transport(at + sizeof(ip), packet, sizeof(ip));

	ip.tot_len = htons((uint16_t)length);
	memcpy(&ip.saddr, packet->source + 12, 4);
	memcpy(&ip.daddr, packet->destination + 12, 4);
	ip.check = checksum((const uint8_t *)&ip, sizeof(ip), 0);
	memcpy(at, &ip, sizeof(ip));
	return length;
}

static size_t put_ipv6(uint8_t *at, const struct probe_packet *packet)
{
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6U << 28), .ip6_nxt = packet->protocol, .ip6_hlim = HOP_LIMIT};
	size_t length = put_transport(at + sizeof(ip), packet, sizeof(ip));

	ip.ip6_plen = htons((uint16_t)length);
	memcpy(&ip.ip6_src, packet->source, CNI_ADDRESS_SIZE);
	memcpy(&ip.ip6_dst, packet->destination, CNI_ADDRESS_SIZE);
	memcpy(at, &ip, sizeof(ip));
	return sizeof(ip) + length;
}

uint32_t frame_make(uint8_t frame[FRAME_MAX], const struct probe_packet *packet,
		    const uint8_t destination[LINK_MAC_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(packet->source);
	struct ethhdr header = {.h_source = {0x02, 0, 0, 0, 0, 0x01},
				.h_proto = htons(ipv4 ? ETH_P_IP : ETH_P_IPV6)};

	memset(frame, 0, FRAME_MAX);
	memcpy(header.h_dest, destination, LINK_MAC_SIZE);
	memcpy(frame, &header, sizeof(header));
	return (uint32_t)(sizeof(header) + (ipv4 ? put_ipv4(frame + sizeof(header), packet)
						 : put_ipv6(frame + sizeof(header), packet)));
}

static int load(uint32_t ifindex)
{
	const struct bpf_insn instructions[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = (int)ifindex},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = BPF_F_INGRESS},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_clone_redirect},
		{.code = BPF_JMP | BPF_EXIT},
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "inject", "GPL", instructions,
			     sizeof(instructions) / sizeof(*instructions), NULL);
}

int program_run(int program, const uint8_t *frame, uint32_t length, uint32_t *result)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = length);

	if (bpf_prog_test_run_opts(program, &run))
		return -1;
	*result = run.retval;
	return 0;
}

int inject_frame(uint32_t ifindex, const uint8_t *frame, uint32_t length)
{
	cleanup_close int program = load(ifindex);
	uint32_t result;

	if (program < 0 || program_run(program, frame, length, &result))
		return -1;
	/* A positive one is the network stack's word that it has dropped the frame. */
	errno = (int)result < 0 ? -(int)result : 0;
	return errno ? -1 : 0;
}

bool inject_tc_drops(uint32_t id, const uint8_t *frame, uint32_t length)
{
	cleanup_close int program = bpf_prog_get_fd_by_id(id);
	uint32_t result;

	return program >= 0 && !program_run(program, frame, length, &result) &&
	       result == TC_ACT_SHOT;
}

static bool drops(int program, uint32_t ifindex, const uint8_t *frame, uint32_t length)
{
	uint8_t out[FRAME_SIZE];
	struct xdp_md context = {.data_end = length, .ingress_ifindex = ifindex};
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = length,
			    .data_out = out, .data_size_out = sizeof(out), .ctx_in = &context,
			    .ctx_size_in = sizeof(context));

	return !bpf_prog_test_run_opts(program, &run) &&
	       (run.retval == XDP_DROP || run.retval == XDP_ABORTED);
}

/* The program that sees packets, of the driver's hook or else of the generic one. */
static void take_xdp(struct nlmsghdr *message, void *context)
{
	static const int of_modes[] = {IFLA_XDP_DRV_PROG_ID, IFLA_XDP_SKB_PROG_ID};
	const struct nlattr *xdp = nlmsg_find_attr(message, sizeof(struct ifinfomsg), IFLA_XDP);
	uint32_t *id = context;

	for (size_t i = 0; i < sizeof(of_modes) / sizeof(of_modes[0]) && !*id; i++) {
		const struct nlattr *program = netlink_find(xdp, of_modes[i]);

		*id = program ? nla_get_u32(program) : 0;
	}
}

/* Returns its id; 0: there is none. libbpf asks for all interfaces, which takes long where there
 * are many. */
static uint32_t xdp_program(uint32_t ifindex)
{
	struct ifinfomsg header = {.ifi_index = (int)ifindex};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETLINK, 0, &header, sizeof(header));
	uint32_t id = 0;

	return netlink_ask(netlink_route(NULL), request, take_xdp, &id) ? 0 : id;
}

bool inject_xdp_drops(uint32_t ifindex, const uint8_t *frame, uint32_t length,
		      char name[XDP_NAME_SIZE])
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info), id = xdp_program(ifindex);
	cleanup_close int program = id ? bpf_prog_get_fd_by_id(id) : -1;

	if (program < 0 || !drops(program, ifindex, frame, length))
		return false;
	bpf_obj_get_info_by_fd(program, &info, &size);
	memcpy(name, info.name, XDP_NAME_SIZE);
	name[XDP_NAME_SIZE - 1] = '\0';
	return true;
}

/* --- asking for a neighbour ----------------------------------------------------------------- */

#define HOPS 255 /* an answer to what came by a router would be refused (RFC 4861) */

/* "Who has" of ARP, with the address 0.0.0.0 for the sender (RFC 5227). */
static bool ask_arp(int fd, const struct link *link, const uint8_t *address)
{
	struct sockaddr_ll all = {.sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ARP),
				  .sll_ifindex = (int)link->ifindex,
				  .sll_halen = ETH_ALEN,
				  .sll_addr = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	struct ether_arp question = {.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
						.ar_pro = htons(ETH_P_IP),
						.ar_hln = ETH_ALEN,
						.ar_pln = 4,
						.ar_op = htons(ARPOP_REQUEST)}};

	memcpy(question.arp_sha, link->mac, ETH_ALEN);
	memcpy(question.arp_tpa, address + 12, 4);
	return !bind(fd, (struct sockaddr *)&all, sizeof(all)) &&
	       sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&all, sizeof(all)) >=
		       0;
}

struct solicitation {
	struct nd_neighbor_solicit head;
	struct nd_opt_hdr option;
	uint8_t mac[LINK_MAC_SIZE];
};

static bool listen_for_advertisements(int fd, const struct link *link)
{
	struct icmp6_filter filter;
	int hops = HOPS;

	ICMP6_FILTER_SETBLOCKALL(&filter);
	ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &filter);
	return !setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter)) &&
	       !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) &&
	       !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, link->name, sizeof(link->name));
}

static bool ask_nd(int fd, const struct link *link, const uint8_t *address)
{
	/* The address's group, of which its owner is a member: ff02::1:ff and its last 3 bytes. */
	struct sockaddr_in6 group = {
		.sin6_family = AF_INET6,
		.sin6_scope_id = link->ifindex,
		.sin6_addr = {.s6_addr = {0xff, 0x02, [11] = 1, 0xff, address[13], address[14],
					  address[15]}}};
	struct solicitation question = {
		.head = {.nd_ns_hdr = {.icmp6_type = ND_NEIGHBOR_SOLICIT}},
		.option = {.nd_opt_type = ND_OPT_SOURCE_LINKADDR, .nd_opt_len = 1}};

	memcpy(&question.head.nd_ns_target, address, CNI_ADDRESS_SIZE);
	memcpy(question.mac, link->mac, LINK_MAC_SIZE);
	return listen_for_advertisements(fd, link) &&
	       sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&group,
		      sizeof(group)) >= 0;
}

int neighbour_ask(const struct link *link, const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address);
	int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	/* ARP's gets nothing before it is bound, as it has no protocol. */
	int fd = ipv4 ? socket(AF_PACKET, SOCK_DGRAM | flags, 0)
		      : socket(AF_INET6, SOCK_RAW | flags, IPPROTO_ICMPV6);

	if (fd >= 0 && !(ipv4 ? ask_arp : ask_nd)(fd, link, address)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool read_arp(const uint8_t *bytes, size_t length, const uint8_t *address, uint8_t *mac)
{
	struct ether_arp answer;

	if (length < sizeof(answer))
		return false;
	memcpy(&answer, bytes, sizeof(answer));
	memcpy(mac, answer.arp_sha, LINK_MAC_SIZE);
	return answer.ea_hdr.ar_op == htons(ARPOP_REPLY) &&
	       !memcmp(answer.arp_spa, address + 12, 4);
}

/* The option with the MAC is the only one that there is. */
static bool read_nd(const uint8_t *bytes, size_t length, const uint8_t *address, uint8_t *mac)
{
	struct nd_neighbor_advert head;
	struct nd_opt_hdr option;

	if (length < sizeof(head) + sizeof(option) + LINK_MAC_SIZE)
		return false;
	memcpy(&head, bytes, sizeof(head));
	memcpy(&option, bytes + sizeof(head), sizeof(option));
	memcpy(mac, bytes + sizeof(head) + sizeof(option), LINK_MAC_SIZE);
	return option.nd_opt_type == ND_OPT_TARGET_LINKADDR && option.nd_opt_len == 1 &&
	       !memcmp(&head.nd_na_target, address, CNI_ADDRESS_SIZE);
}

bool neighbour_answer(int question, const uint8_t address[CNI_ADDRESS_SIZE], int milliseconds,
		      uint8_t mac[LINK_MAC_SIZE])
{
	struct pollfd waiting = {.fd = question, .events = POLLIN};
	int64_t end = clock_ms() + milliseconds;
	bool ipv4 = cni_address_is_ipv4(address), found = false;

	do {
		uint8_t bytes[256];
		int64_t left = end - clock_ms();
		ssize_t length = poll(&waiting, 1, left > 0 ? (int)left : 0) == 1
					 ? recv(question, bytes, sizeof(bytes), 0)
					 : -1;

		if (length < 0)
			return false;
		found = (ipv4 ? read_arp : read_nd)(bytes, (size_t)length, address, mac);
	} while (!found);
	return true;
}
