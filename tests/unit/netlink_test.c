/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink_test.c - requests as the kernel wants them, and what is made of its answers. */
#include "cni_testing.h"

#include <errno.h>
#include <sys/socket.h>

#include "net/netlink.h"

#define ANY_TYPE 100

/* What comes at once: messages with a number each. */
struct datagram {
	uint32_t sender; /* 0: the kernel */
	uint32_t late;   /* to so many requests before this one */
	uint8_t bytes[256];
	size_t size;
};

static void add(struct datagram *datagram, int type, int flags, int number)
{
	size_t size = type == NLMSG_ERROR ? sizeof(struct nlmsgerr) : sizeof(number);
	struct nlmsghdr header = {
		.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
		.nlmsg_type = (uint16_t)type,
		.nlmsg_flags = (uint16_t)flags,
	};

	memcpy(datagram->bytes + datagram->size, &header, sizeof(header));
	memcpy(datagram->bytes + datagram->size + NLMSG_HDRLEN, &number, sizeof(number));
	datagram->size += NLMSG_SPACE(size);
}

struct taken {
	int sum;
	size_t count;
};

static void take(struct nlmsghdr *message, void *context)
{
	struct taken *taken = context;
	int number;

	memcpy(&number, nlmsg_data(message), sizeof(number));
	taken->sum += number;
	taken->count++;
}

/* What is still to be read. */
static const struct datagram *to_read;
static size_t to_read_count;

static uint32_t sequence; /* of the request */

/* In place of the C library's: what comes from the kernel is chosen here. */
ssize_t send(int fd, const void *request, size_t size, int flags)
{
	sequence = ((const struct nlmsghdr *)request)->nlmsg_seq;
	return (ssize_t)size;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	struct nlmsghdr *header = message->msg_iov->iov_base;
	struct sockaddr_nl *from = message->msg_name;
	int left;

	if (!to_read_count) {
		errno = ETIME; /* it would wait for ever */
		return -1;
	}
	*from = (struct sockaddr_nl){.nl_family = AF_NETLINK, .nl_pid = to_read->sender};
	memcpy(header, to_read->bytes, to_read->size);
	left = (int)to_read->size;
	for (; nlmsg_ok(header, left); header = nlmsg_next(header, &left))
		header->nlmsg_seq = sequence - to_read->late;
	to_read_count--;
	return (ssize_t)to_read++->size;
}

/* netlink_ask() with this answer. All of it is to be read, whatever comes of it. */
static int ask(int flags, const struct datagram *answers, size_t count, struct taken *taken)
{
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_ROUTE, &fault);
	uint32_t fixed = 1;
	cleanup_request struct nl_msg *request =
		netlink_begin(ANY_TYPE, flags, &fixed, sizeof(fixed));
	int result;

	assert_non_null(socket);
	to_read = answers;
	to_read_count = count;
	*taken = (struct taken){0};
	result = netlink_ask(socket, request, take, taken);
	assert_int_equal(to_read_count, 0);
	return result;
}

TEST(test_one_answer, "one answer")
{
	struct datagram answer = {0};
	struct taken taken;

	add(&answer, ANY_TYPE, 0, 7);
	assert_int_equal(ask(0, &answer, 1, &taken), 0);
	assert_int_equal(taken.sum, 7);
}

/* With NLM_F_ACK the answer comes first, then that it is done. */
TEST(test_acknowledged, "acknowledged")
{
	struct datagram answers[2] = {0};
	struct taken taken;

	add(&answers[0], ANY_TYPE, 0, 7);
	add(&answers[1], NLMSG_ERROR, 0, 0);
	assert_int_equal(ask(NLM_F_ACK, answers, 2, &taken), 0);
	assert_int_equal(taken.sum, 7);
}

TEST(test_refused, "refused")
{
	struct datagram answer = {0};
	struct taken taken;

	add(&answer, NLMSG_ERROR, 0, -ENODEV);
	assert_int_equal(ask(0, &answer, 1, &taken), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(taken.count, 0);
}

TEST(test_dump, "dump")
{
	struct datagram answers[3] = {0};
	struct taken taken;

	add(&answers[0], ANY_TYPE, NLM_F_MULTI, 1);
	add(&answers[0], ANY_TYPE, NLM_F_MULTI, 2);
	add(&answers[1], ANY_TYPE, NLM_F_MULTI, 4);
	add(&answers[2], NLMSG_DONE, NLM_F_MULTI, 0);
	assert_int_equal(ask(NLM_F_DUMP, answers, 3, &taken), 0);
	assert_int_equal(taken.sum, 7);
	/* A dump that fails on its way says so at its end. */
	answers[2].size = 0;
	add(&answers[2], NLMSG_DONE, NLM_F_MULTI, -EPERM);
	assert_int_equal(ask(NLM_F_DUMP, answers, 3, &taken), -1);
	assert_int_equal(errno, EPERM);
}

TEST(test_interrupted_dump, "interrupted dump")
{
	struct datagram answers[2] = {0};
	struct taken taken;

	add(&answers[0], ANY_TYPE, NLM_F_MULTI | NLM_F_DUMP_INTR, 1);
	add(&answers[1], ANY_TYPE, NLM_F_MULTI, 2);
	add(&answers[1], NLMSG_DONE, NLM_F_MULTI, 0);
	assert_int_equal(ask(NLM_F_DUMP, answers, 2, &taken), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(taken.sum, 3);
}

/* The last message of a datagram may end without its padding; what is still in the buffer from the
 * datagram before it is no message. */
TEST(test_without_padding, "without padding")
{
	struct datagram answers[3] = {0};
	struct taken taken;
	uint32_t length = NLMSG_LENGTH(sizeof(int)) + 1;

	add(&answers[0], ANY_TYPE, NLM_F_MULTI, 1);
	memcpy(answers[0].bytes, &length, sizeof(length));
	answers[1] = answers[0];
	answers[1].size = length;
	answers[0].size = NLMSG_ALIGN(length);
	add(&answers[0], ANY_TYPE, NLM_F_MULTI, 2);
	add(&answers[2], NLMSG_DONE, NLM_F_MULTI, 0);
	assert_int_equal(ask(NLM_F_DUMP, answers, 3, &taken), 0);
	assert_int_equal(taken.count, 3);
	assert_int_equal(taken.sum, 4);
}

/* Who is not the kernel is not listened to, whatever it says. */
TEST(test_stranger, "stranger")
{
	struct datagram answers[4] = {{.sender = 4711}, {0}, {.sender = 4711}, {0}};
	struct taken taken;

	add(&answers[0], ANY_TYPE, 0, 1);
	add(&answers[0], NLMSG_ERROR, 0, -EPERM);
	add(&answers[1], ANY_TYPE, NLM_F_MULTI, 2);
	add(&answers[2], ANY_TYPE, NLM_F_MULTI | NLM_F_DUMP_INTR, 4);
	add(&answers[2], NLMSG_DONE, NLM_F_MULTI, 0);
	add(&answers[3], NLMSG_DONE, NLM_F_MULTI, 0);
	assert_int_equal(ask(NLM_F_DUMP, answers, 4, &taken), 0);
	assert_int_equal(taken.sum, 2);
}

TEST(test_attributes, "attributes")
{
	uint32_t fixed = 1;
	cleanup_request struct nl_msg *request =
		netlink_begin(ANY_TYPE, NLM_F_ACK, &fixed, sizeof(fixed));
	struct nlattr *outer, *inner;

	assert_non_null(request);
	assert_int_equal(nlmsg_hdr(request)->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
	nla_put_string(request, 1, "clsact");
	outer = nla_nest_start(request, 2);
	nla_put_u32(request, 3, 77);
	nla_nest_end(request, outer);

	assert_int_equal(*(uint32_t *)nlmsg_data(nlmsg_hdr(request)), 1);
	assert_true(netlink_is(nlmsg_find_attr(nlmsg_hdr(request), sizeof(fixed), 1), "clsact"));
	assert_false(netlink_is(nlmsg_find_attr(nlmsg_hdr(request), sizeof(fixed), 1), "cls"));
	assert_false(netlink_is(NULL, ""));
	outer = nlmsg_find_attr(nlmsg_hdr(request), sizeof(fixed), 2);
	inner = netlink_find(outer, 3);
	assert_non_null(inner);
	assert_int_equal(nla_get_u32(inner), 77);
	assert_null(netlink_find(outer, 1));
	assert_null(netlink_find(NULL, 3));
}

/* What is left of the answer to a request that failed half-way. */
TEST(test_late, "late")
{
	struct datagram answers[3] = {{.late = 1}, {.late = 1}, {0}};
	struct taken taken;

	add(&answers[0], ANY_TYPE, NLM_F_MULTI | NLM_F_DUMP_INTR, 1);
	add(&answers[1], NLMSG_DONE, NLM_F_MULTI, -EPERM);
	add(&answers[2], ANY_TYPE, 0, 2);
	assert_int_equal(ask(0, answers, 3, &taken), 0);
	assert_int_equal(taken.sum, 2);
}

TEST(test_no_socket, "no socket")
{
	uint32_t fixed = 1;
	cleanup_request struct nl_msg *request = netlink_begin(ANY_TYPE, 0, &fixed, sizeof(fixed));

	assert_int_equal(netlink_ask(NULL, request, NULL, NULL), -1);
	assert_int_equal(errno, ENOTSOCK);
}
