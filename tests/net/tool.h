/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tool.h - what the tools of the network tests share: they end with a reason, parse their
 * arguments and options, and wait longer on a slow machine. Every address is IPv6; IPv4 is
 * v4-mapped (RFC 4291 2.5.5.2).
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define ENDPOINT_SIZE (INET6_ADDRSTRLEN + 9)
#define MAX_OPTIONS 24

/* Each tool defines its own. */
extern const char tool_usage[];

static inline _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(EXIT_USAGE);
}

static inline _Noreturn void die_usage(void)
{
	fputs(tool_usage, stderr);
	exit(EXIT_USAGE);
}

static inline int parse_number(const char *text, int low, int high)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (!*text || *end || number < low || number > high)
		die_usage();
	return (int)number;
}

/* One option of a tool, --name: exactly one of the three pointers says where it is stored. */
struct tool_option {
	const char *name;
	bool *flag;
	const char **text;
	int *number;
	int low, high; /* of a number */
};

/* The table ends with an option that has no name. The first argument that is not an option is
 * argv[optind] afterwards. */
static inline void parse_options(int argc, char **argv, const struct tool_option *options)
{
	struct option names[MAX_OPTIONS] = {0};
	int index;

	for (index = 0; options[index].name; index++) {
		if (index == MAX_OPTIONS - 1)
			abort();
		names[index].name = options[index].name;
		names[index].has_arg = options[index].flag ? no_argument : required_argument;
	}
	for (int result; (result = getopt_long(argc, argv, "", names, &index)) != -1;) {
		const struct tool_option *option = &options[index];

		if (result)
			die_usage();
		if (option->flag)
			*option->flag = true;
		else if (option->text)
			*option->text = optarg;
		else
			*option->number = parse_number(optarg, option->low, option->high);
	}
}

/* A command of a tool, and what it does with its operands, which follow its name, and which NULL
 * follows. */
struct tool_command {
	const char *name;
	int least, most; /* operands */
	int (*run)(char **operands);
};

/* words: what is left of the arguments. The table ends with a command that has no name. */
static inline int run_command(int count, char **words, const struct tool_command *command)
{
	for (; count && command->name; command++)
		if (strcmp(command->name, words[0]) == 0 && count - 1 >= command->least &&
		    count - 1 <= command->most)
			return command->run(words + 1);
	die_usage();
}

static inline int parse_port(const char *text)
{
	return parse_number(text, 1, 65535);
}

/* How long to wait for what takes a quiet machine at most this many milliseconds: SLOWER in the
 * environment is the factor by which this machine is slower (tests/pace). */
static inline int patience(int milliseconds)
{
	const char *slower = getenv("SLOWER");

	return slower ? milliseconds * parse_number(slower, 1, 1000) : milliseconds;
}

static inline long milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void sleep_milliseconds(int milliseconds)
{
	struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

/* A test lets a tool go on by a line. False: it has closed standard input. */
static inline bool await_line(void)
{
	char line[16];

	return fgets(line, sizeof(line), stdin);
}

/* Goes on in the background, without what a shell does to its own jobs, and says as whom. */
static inline void go_on_as_child(void)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork");
	if (child) {
		printf("pid %d\n", (int)child);
		exit(0);
	}
	setsid();
}

/* Raises the limit of open files as far as the process may. */
static inline void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE");
}

static inline struct sockaddr_in6 any_address(int port)
{
	return (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
}

static inline struct sockaddr_in6 parse_address(const char *text, int port)
{
	struct sockaddr_in6 address = any_address(port);
	char mapped[INET6_ADDRSTRLEN + 8];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	if (inet_pton(AF_INET6, mapped, &address.sin6_addr) != 1) {
		fprintf(stderr, "%s: not an address: %s\n", program_invocation_short_name, text);
		exit(EXIT_USAGE);
	}
	return address;
}

static inline bool is_ipv4(const struct sockaddr_in6 *address)
{
	return IN6_IS_ADDR_V4MAPPED(&address->sin6_addr);
}

static inline void map_ipv4(uint8_t *address, uint32_t ipv4)
{
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + 12, &ipv4, 4);
}

/* The IPv4 address of a v4-mapped one, in network byte order. */
static inline uint32_t ipv4_of(const struct sockaddr_in6 *address)
{
	return address->sin6_addr.s6_addr32[3];
}

/* address:port; text has room for ENDPOINT_SIZE. */
static inline const char *format_address(const struct sockaddr_in6 *address, char *text)
{
	char host[INET6_ADDRSTRLEN];

	if (is_ipv4(address))
		inet_ntop(AF_INET, &address->sin6_addr.s6_addr[12], host, sizeof(host));
	else
		inet_ntop(AF_INET6, &address->sin6_addr, host, sizeof(host));
	snprintf(text, ENDPOINT_SIZE, is_ipv4(address) ? "%s:%u" : "[%s]:%u", host,
		 ntohs(address->sin6_port));
	return text;
}
