/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * local.c - makes socket calls on one socket, one after another, for tests of what each call
 * returns. Unlike peer.c it opens a socket of the family that its argument names, and binds it only
 * where it is told to.
 */
#include <fcntl.h>
#include <sys/uio.h>

#include "sockets.h"

#define LINE_SIZE 512
#define RECEIVE_TIMEOUT 5000 /* milliseconds */
#define CONNECT_TIMEOUT 5000

const char tool_usage[] =
	"local tcp4|tcp6|udp4|udp6 STEP...\n"
	"     Opens one socket and takes the steps in turn. Each prints a line: its result, or\n"
	"     \"STEP ok\", or \"STEP: REASON\" if it fails; the next one follows in any case. "
	"Exits\n"
	"     with 1 if any failed. With an IPv6 socket IPv4 addresses are v4-mapped.\n"
	"  bind ADDRESS PORT      freebind   may be an address that the host does not have\n"
	"  connect ADDRESS PORT   connect-nonblocking ADDRESS PORT   fast-open ADDRESS PORT\n"
	"  unconnect              connect to AF_UNSPEC\n"
	"  names                  peer=... own=..., by getpeername and getsockname\n"
	"  sendto, sendmsg, sendmmsg ADDRESS PORT\n"
	"  sendmsg-from SOURCE ADDRESS PORT   with this source address, by a control message\n"
	"  receive, recvfrom, recvmsg, recvmmsg   the answer; from=... as the call returns it\n"
	"  ask                    a request to the connected peer, and recvfrom\n"
	"  others COUNT ADDRESS PORT   COUNT other sockets send there, each closed before the "
	"next\n"
	"  wait                   for a line on standard input\n";

static int family, type, fd;
static char **arguments; /* of the step; the first one is its name */

/* Of a step that has an address: its last two arguments */
static union socket_address address;
static socklen_t address_size;

static socklen_t address_set(union socket_address *result, const char *text, const char *port)
{
	struct sockaddr_in6 parsed = parse_address(text, parse_number(port, 0, 65535));

	return address_for(result, family, &parsed);
}

/* Shows a v4-mapped address as such, because a program that passed one expects one back. */
static const char *address_text(const union socket_address *shown, char *text)
{
	char host[INET6_ADDRSTRLEN];

	if (shown->any.sa_family == AF_INET)
		snprintf(text, ENDPOINT_SIZE, "%s:%u",
			 inet_ntop(AF_INET, &shown->ipv4.sin_addr, host, sizeof(host)),
			 ntohs(shown->ipv4.sin_port));
	else if (shown->any.sa_family == AF_INET6)
		snprintf(text, ENDPOINT_SIZE, "[%s]:%u",
			 inet_ntop(AF_INET6, &shown->ipv6.sin6_addr, host, sizeof(host)),
			 ntohs(shown->ipv6.sin6_port));
	else
		snprintf(text, ENDPOINT_SIZE, "none");
	return text;
}

/* What a step returns: 0 or -1 and errno, of which its line tells; or that it has told of itself.
 */
#define TOLD 1
#define TOLD_OF_FAILURE 2

static const char request[] = "who?\n";
#define REQUEST_SIZE (sizeof(request) - 1)

static int step_freebind(void)
{
	int on = 1;

	return setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
}

static int step_bind(void)
{
	return bind(fd, &address.any, address_size);
}

static int step_connect(void)
{
	return connect(fd, &address.any, address_size);
}

static int step_connect_nonblocking(void)
{
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error;

	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("O_NONBLOCK");
	if (step_connect() && errno != EINPROGRESS)
		return -1;
	errno = ETIMEDOUT;
	if (poll(&writable, 1, patience(CONNECT_TIMEOUT)) == 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) || fcntl(fd, F_SETFL, 0))
		die("SO_ERROR");
	errno = error;
	return error ? -1 : 0;
}

/* 0, or -1 and errno */
static int send_request(int from, int flags)
{
	ssize_t sent = sendto(from, request, REQUEST_SIZE, flags | MSG_NOSIGNAL, &address.any,
			      address_size);

	return sent < 0 ? -1 : 0;
}

static int step_fast_open(void)
{
	return send_request(fd, MSG_FASTOPEN);
}

static int step_unconnect(void)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	return connect(fd, &nobody, sizeof(nobody));
}

static int step_names(void)
{
	union socket_address peer = {0}, own = {0};
	socklen_t peer_size = sizeof(peer), own_size = sizeof(own);
	char peer_text[ENDPOINT_SIZE], own_text[ENDPOINT_SIZE];

	if (getsockname(fd, &own.any, &own_size) ||
	    (getpeername(fd, &peer.any, &peer_size) && errno != ENOTCONN))
		return -1;
	printf("peer=%s own=%s\n", address_text(&peer, peer_text), address_text(&own, own_text));
	return TOLD;
}

static int step_sendto(void)
{
	return send_request(fd, 0);
}

/* From or to this peer */
static struct mmsghdr datagram(union socket_address *peer, struct iovec *data)
{
	return (struct mmsghdr){.msg_hdr = {.msg_name = peer,
					    .msg_namelen = sizeof(*peer),
					    .msg_iov = data,
					    .msg_iovlen = 1}};
}

static int step_sendmsg(void)
{
	struct iovec data = {(void *)request, REQUEST_SIZE};
	struct mmsghdr message = datagram(&address, &data);

	message.msg_hdr.msg_namelen = address_size;
	if (strcmp(arguments[0], "sendmmsg") == 0)
		return sendmmsg(fd, &message, 1, 0) == 1 ? 0 : -1;
	return sendmsg(fd, &message.msg_hdr, 0) < 0 ? -1 : 0;
}

static void control_set_source(struct msghdr *message, const union socket_address *source)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct in_pktinfo source4 = {.ipi_spec_dst = source->ipv4.sin_addr};
	struct in6_pktinfo source6 = {.ipi6_addr = source->ipv6.sin6_addr};
	bool ip4 = source->any.sa_family == AF_INET;
	size_t size = ip4 ? sizeof(source4) : sizeof(source6);

	control->cmsg_level = ip4 ? IPPROTO_IP : IPPROTO_IPV6;
	control->cmsg_type = ip4 ? IP_PKTINFO : IPV6_PKTINFO;
	control->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(control), ip4 ? (void *)&source4 : (void *)&source6, size);
	message->msg_controllen = CMSG_SPACE(size);
}

static int step_sendmsg_from(void)
{
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = {0};
	struct iovec data = {(void *)request, REQUEST_SIZE};
	struct msghdr message = datagram(&address, &data).msg_hdr;
	union socket_address source;

	message.msg_namelen = address_size;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	address_set(&source, arguments[1], "0");
	control_set_source(&message, &source);
	return sendmsg(fd, &message, 0) < 0 ? -1 : 0;
}

static int step_others(void)
{
	int failed = 0;

	for (int i = parse_number(arguments[1], 1, 1000000); i && !failed; i--) {
		int other = socket(family, type | SOCK_CLOEXEC, 0);

		failed = other < 0 ? -1 : send_request(other, 0);
		close(other);
	}
	return failed;
}

static ssize_t receive(const char *how, char *line, union socket_address *from)
{
	socklen_t size = sizeof(*from);
	struct iovec data = {line, LINE_SIZE - 1};
	struct mmsghdr message = datagram(from, &data);

	if (strcmp(how, "receive") == 0)
		return read(fd, line, LINE_SIZE - 1);
	if (strcmp(how, "recvmsg") == 0)
		return recvmsg(fd, &message.msg_hdr, 0);
	if (strcmp(how, "recvmmsg") == 0)
		return recvmmsg(fd, &message, 1, 0, NULL) == 1 ? (ssize_t)message.msg_len : -1;
	return recvfrom(fd, line, LINE_SIZE - 1, 0, &from->any, &size);
}

static int step_receive(void)
{
	union socket_address from = {0};
	char line[LINE_SIZE], from_text[ENDPOINT_SIZE];
	ssize_t got;

	errno = ETIMEDOUT;
	if (!has_received(fd, patience(RECEIVE_TIMEOUT)))
		return -1;
	got = receive(arguments[0], line, &from);
	if (got < 0)
		return -1;
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	printf("%s from=%s\n", got ? line : "closed", address_text(&from, from_text));
	return got ? TOLD : TOLD_OF_FAILURE;
}

static int step_ask(void)
{
	return send(fd, request, REQUEST_SIZE, MSG_NOSIGNAL) < 0 ? -1 : step_receive();
}

static int step_wait(void)
{
	errno = EPIPE;
	return await_line() ? TOLD : -1;
}

static const struct step {
	const char *name;
	int (*take)(void);
	int arguments;
} steps[] = {
	{"bind", step_bind, 2},
	{"freebind", step_freebind, 0},
	{"connect", step_connect, 2},
	{"connect-nonblocking", step_connect_nonblocking, 2},
	{"fast-open", step_fast_open, 2},
	{"unconnect", step_unconnect, 0},
	{"names", step_names, 0},
	{"sendto", step_sendto, 2},
	{"sendmsg", step_sendmsg, 2},
	{"sendmmsg", step_sendmsg, 2},
	{"sendmsg-from", step_sendmsg_from, 3},
	{"receive", step_receive, 0},
	{"recvfrom", step_receive, 0},
	{"recvmsg", step_receive, 0},
	{"recvmmsg", step_receive, 0},
	{"ask", step_ask, 0},
	{"others", step_others, 3},
	{"wait", step_wait, 0},
};

static const struct step *step_find(const char *name)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (strcmp(steps[i].name, name) == 0)
			return &steps[i];
	die_usage();
}

static void open_socket(const char *name)
{
	if (strlen(name) != 4)
		die_usage();
	type = strncmp(name, "tcp", 3) == 0 ? SOCK_STREAM : SOCK_DGRAM;
	family = name[3] == '4' ? AF_INET : AF_INET6;
	fd = socket(family, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	limit_time(fd, SO_SNDTIMEO, patience(CONNECT_TIMEOUT));
}

/* Returns whether it has failed. */
static bool take(const struct step *step)
{
	int result;

	if (step->arguments >= 2)
		address_size = address_set(&address, arguments[step->arguments - 1],
					   arguments[step->arguments]);
	result = step->take();
	if (result < 0)
		printf("%s: %s\n", arguments[0], strerror(errno));
	else if (!result)
		printf("%s ok\n", arguments[0]);
	return result < 0 || result == TOLD_OF_FAILURE;
}

int main(int argc, char **argv)
{
	bool failed = false;

	if (argc < 3)
		die_usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_socket(argv[1]);
	for (arguments = argv + 2; *arguments;) {
		const struct step *step = step_find(*arguments);

		if (argv + argc - arguments <= step->arguments)
			die_usage();
		failed |= take(step);
		arguments += 1 + step->arguments;
	}
	return failed;
}
