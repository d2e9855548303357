/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * local.c - makes socket calls on one socket, one after another, for tests of what each call
 * returns. Unlike peer.c it opens a socket of the family that its argument names, and binds it only
 * where it is told to.
 */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sockets.h"

#define LINE_SIZE 512
#define RECEIVE_TIMEOUT 5000 /* milliseconds */
#define CONNECT_TIMEOUT 5    /* seconds */

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

static int family;
static int type;

static socklen_t address_set(union socket_address *address, const char *text, const char *port)
{
	struct sockaddr_in6 parsed = parse_address(text, parse_number(port, 0, 65535));

	return address_for(address, family, &parsed);
}

/* Shows a v4-mapped address as such, because a program that passed one expects one back. */
static const char *address_text(const union socket_address *address, char *text)
{
	char host[INET6_ADDRSTRLEN];

	if (address->any.sa_family == AF_INET)
		snprintf(text, ENDPOINT_SIZE, "%s:%u",
			 inet_ntop(AF_INET, &address->ipv4.sin_addr, host, sizeof(host)),
			 ntohs(address->ipv4.sin_port));
	else if (address->any.sa_family == AF_INET6)
		snprintf(text, ENDPOINT_SIZE, "[%s]:%u",
			 inet_ntop(AF_INET6, &address->ipv6.sin6_addr, host, sizeof(host)),
			 ntohs(address->ipv6.sin6_port));
	else
		snprintf(text, ENDPOINT_SIZE, "none");
	return text;
}

static int report(const char *step, bool failed)
{
	if (failed)
		printf("%s: %s\n", step, strerror(errno));
	else
		printf("%s ok\n", step);
	return failed;
}

static int step_freebind(int fd, char **arguments)
{
	int on = 1;

	return report(arguments[0], setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)));
}

static int step_bind(int fd, char **arguments)
{
	union socket_address address;
	socklen_t size = address_set(&address, arguments[1], arguments[2]);

	return report(arguments[0], bind(fd, &address.any, size));
}

static int step_connect(int fd, char **arguments)
{
	union socket_address address;
	socklen_t size = address_set(&address, arguments[1], arguments[2]);

	return report(arguments[0], connect(fd, &address.any, size));
}

static int step_connect_nonblocking(int fd, char **arguments)
{
	union socket_address address;
	socklen_t size = address_set(&address, arguments[1], arguments[2]), error_size;
	struct pollfd writable = {.fd = fd, .events = POLLOUT};
	int error;

	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("O_NONBLOCK");
	if (connect(fd, &address.any, size) && errno != EINPROGRESS)
		return report(arguments[0], true);
	if (poll(&writable, 1, patience(CONNECT_TIMEOUT * 1000)) == 0) {
		errno = ETIMEDOUT;
		return report(arguments[0], true);
	}
	error_size = sizeof(error);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) || fcntl(fd, F_SETFL, 0))
		die("SO_ERROR");
	errno = error;
	return report(arguments[0], error);
}

static const char request[] = "who?\n";
#define REQUEST_SIZE (sizeof(request) - 1)

static int step_fast_open(int fd, char **arguments)
{
	union socket_address address;
	socklen_t size = address_set(&address, arguments[1], arguments[2]);

	return report(arguments[0], sendto(fd, request, REQUEST_SIZE, MSG_FASTOPEN | MSG_NOSIGNAL,
					   &address.any, size) < 0);
}

static int step_unconnect(int fd, char **arguments)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	return report(arguments[0], connect(fd, &nobody, sizeof(nobody)));
}

static int step_names(int fd, char **arguments)
{
	union socket_address peer = {0}, own = {0};
	socklen_t peer_size = sizeof(peer), own_size = sizeof(own);
	char peer_text[ENDPOINT_SIZE], own_text[ENDPOINT_SIZE];

	if (getsockname(fd, &own.any, &own_size))
		return report(arguments[0], true);
	if (getpeername(fd, &peer.any, &peer_size) && errno != ENOTCONN)
		return report(arguments[0], true);
	printf("peer=%s own=%s\n", address_text(&peer, peer_text), address_text(&own, own_text));
	return 0;
}

static int step_sendto(int fd, char **arguments)
{
	union socket_address address;
	socklen_t size = address_set(&address, arguments[1], arguments[2]);

	return report(arguments[0],
		      sendto(fd, request, REQUEST_SIZE, MSG_NOSIGNAL, &address.any, size) < 0);
}

static int step_sendmsg(int fd, char **arguments)
{
	union socket_address address;
	socklen_t size = address_set(&address, arguments[1], arguments[2]);
	struct iovec data = {(void *)request, REQUEST_SIZE};
	struct mmsghdr message = {.msg_hdr = {.msg_name = &address,
					      .msg_namelen = size,
					      .msg_iov = &data,
					      .msg_iovlen = 1}};
	bool many = strcmp(arguments[0], "sendmmsg") == 0;

	return report(arguments[0], many ? sendmmsg(fd, &message, 1, 0) != 1
					 : sendmsg(fd, &message.msg_hdr, 0) < 0);
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

static int step_sendmsg_from(int fd, char **arguments)
{
	union socket_address source, address;
	socklen_t size = address_set(&address, arguments[2], arguments[3]);
	struct iovec data = {(void *)request, REQUEST_SIZE};
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = {0};
	struct msghdr message = {.msg_name = &address,
				 .msg_namelen = size,
				 .msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};

	address_set(&source, arguments[1], "0");
	control_set_source(&message, &source);
	return report(arguments[0], sendmsg(fd, &message, 0) < 0);
}

static int step_others(int fd, char **arguments)
{
	long count = parse_number(arguments[1], 1, 1000000);
	bool failed = false;

	(void)fd;
	for (long i = 0; i < count && !failed; i++) {
		union socket_address address;
		socklen_t size = address_set(&address, arguments[2], arguments[3]);
		int other = socket(family, type | SOCK_CLOEXEC, 0);

		if (other < 0)
			return report(arguments[0], true);
		failed = sendto(other, request, REQUEST_SIZE, 0, &address.any, size) < 0;
		close(other);
	}
	return report(arguments[0], failed);
}

static ssize_t receive(int fd, const char *how, char *line, union socket_address *from)
{
	socklen_t size = sizeof(*from);
	struct iovec data = {line, LINE_SIZE - 1};
	struct mmsghdr message = {.msg_hdr = {.msg_name = from,
					      .msg_namelen = sizeof(*from),
					      .msg_iov = &data,
					      .msg_iovlen = 1}};

	if (strcmp(how, "receive") == 0)
		return read(fd, line, LINE_SIZE - 1);
	if (strcmp(how, "recvmsg") == 0)
		return recvmsg(fd, &message.msg_hdr, 0);
	if (strcmp(how, "recvmmsg") == 0)
		return recvmmsg(fd, &message, 1, 0, NULL) == 1 ? (ssize_t)message.msg_len : -1;
	return recvfrom(fd, line, LINE_SIZE - 1, 0, &from->any, &size);
}

static int step_receive(int fd, char **arguments)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	union socket_address from = {0};
	char line[LINE_SIZE], from_text[ENDPOINT_SIZE];
	ssize_t got;

	errno = ETIMEDOUT;
	if (poll(&readable, 1, patience(RECEIVE_TIMEOUT)) == 0)
		return report(arguments[0], true);
	got = receive(fd, arguments[0], line, &from);
	if (got < 0)
		return report(arguments[0], true);
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	printf("%s from=%s\n", got ? line : "closed", address_text(&from, from_text));
	return got == 0;
}

static int step_ask(int fd, char **arguments)
{
	if (send(fd, request, REQUEST_SIZE, MSG_NOSIGNAL) < 0)
		return report(arguments[0], true);
	return step_receive(fd, arguments);
}

static int step_wait(int fd, char **arguments)
{
	char line[LINE_SIZE];

	(void)fd;
	if (fgets(line, sizeof(line), stdin))
		return 0;
	errno = EPIPE;
	return report(arguments[0], true);
}

static const struct step {
	const char *name;
	int (*take)(int fd, char **arguments);
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

static int open_socket(const char *name)
{
	struct timeval limit = {.tv_sec = patience(CONNECT_TIMEOUT)};
	int fd;

	if (strlen(name) != 4)
		die_usage();
	type = strncmp(name, "tcp", 3) == 0 ? SOCK_STREAM : SOCK_DGRAM;
	family = name[3] == '4' ? AF_INET : AF_INET6;
	fd = socket(family, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		die("socket");
	return fd;
}

int main(int argc, char **argv)
{
	int failed = 0, fd;

	if (argc < 3)
		die_usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	fd = open_socket(argv[1]);
	for (int i = 2; i < argc;) {
		const struct step *step = step_find(argv[i]);

		if (argc - i <= step->arguments)
			die_usage();
		failed |= step->take(fd, argv + i);
		i += 1 + step->arguments;
	}
	return failed;
}
