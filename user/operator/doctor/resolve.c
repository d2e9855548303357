/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* resolve.c - whom a container asks for names, and what address it finds for one. */
#include "operator/doctor/doctor.h"

#include <arpa/nameser.h>
#include <poll.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/address.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/netns.h"
#include "net/sockets.h"
#include "operator/doctor/way.h"
#include "operator/kernel/namespaces.h"

#define NAMES_PORT 53
#define ALL_MS 3000
#define SERVER_MS 1000
#define SERVERS_MOST 3 /* as the C library has it */
#define DOMAINS_MOST 6
#define BLANKS " \t\r"

/* One question in a container. */
struct asking {
	const char *name;
	bool ipv4;
	int64_t end;
	uint8_t servers[SERVERS_MOST][CNI_ADDRESS_SIZE];
	size_t server_count;
	char domains[DOMAINS_MOST][NS_MAXDNAME];
	size_t domain_count;
	unsigned int dots; /* a name with fewer is looked for in the domains first */
	struct resolved *resolved;
};

/* --- the container's files ------------------------------------------------------------------ */

static void take_domains(struct asking *asking, char *rest)
{
	char *state = NULL;

	asking->domain_count = 0;
	for (char *word = strtok_r(rest, BLANKS, &state);
	     word && asking->domain_count < DOMAINS_MOST; word = strtok_r(NULL, BLANKS, &state))
		snprintf(asking->domains[asking->domain_count++], sizeof(asking->domains[0]), "%s",
			 word);
}

/* A line of resolv.conf; of "search" and "domain" the last one counts. */
static void take_setting(struct asking *asking, char *line)
{
	char *rest = line + strcspn(line, BLANKS), *dots;
	uint8_t *server = asking->servers[asking->server_count];

	if (!*rest)
		return;
	*rest++ = '\0';
	rest += strspn(rest, BLANKS);
	if (!strcmp(line, "search") || !strcmp(line, "domain"))
		take_domains(asking, rest);
	dots = strcmp(line, "options") ? NULL : strstr(rest, "ndots:");
	if (dots)
		sscanf(dots, "ndots:%3u", &asking->dots);
	rest[strcspn(rest, BLANKS)] = '\0';
	if (!strcmp(line, "nameserver") && asking->server_count < SERVERS_MOST &&
	    !cni_address_parse(rest, server))
		asking->server_count++;
}

/* "192.0.2.7 db.example db", as /etc/hosts has it. */
static void take_host(struct asking *asking, char *line)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	char *state = NULL, *word;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &state);
	if (asking->resolved->is_found || !word || cni_address_parse(word, address) ||
	    cni_address_is_ipv4(address) != asking->ipv4)
		return;
	while ((word = strtok_r(NULL, BLANKS, &state)) && strcasecmp(word, asking->name) != 0)
		;
	if (!word)
		return;
	asking->resolved->is_found = true;
	memcpy(asking->resolved->address, address, CNI_ADDRESS_SIZE);
	snprintf(asking->resolved->said, sizeof(asking->resolved->said), "its /etc/hosts");
}

static void take_lines(struct asking *asking, const char *text,
		       void (*take)(struct asking *asking, char *line))
{
	char copy[CONTAINER_FILE_SIZE], *state = NULL;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
		take(asking, line);
}

static void take_settings(void *context, size_t number, const char *text)
{
	(void)number;
	take_lines(context, text, take_setting);
}

static void take_hosts(void *context, size_t number, const char *text)
{
	(void)number;
	take_lines(context, text, take_host);
}

/* --- its servers ---------------------------------------------------------------------------- */

enum reply {
	REPLY_NONE,
	REPLY_ADDRESS,    /* an address of the name */
	REPLY_NO_ADDRESS, /* there is no such name, or it has none of this family */
	REPLY_REFUSED,    /* the server could not say */
};

/* Returns the question's length; it has a number of its own. 0: it is no name. */
static size_t make_question(uint8_t message[NS_PACKETSZ], const char *name, bool ipv4)
{
	/* The container's configuration was read already; the C library would read this host's. */
	struct __res_state state = {.options = RES_INIT | RES_RECURSE};
	int length = res_nmkquery(&state, ns_o_query, name, ns_c_in, ipv4 ? ns_t_a : ns_t_aaaa,
				  NULL, 0, NULL, message, NS_PACKETSZ);

	return length < 0 ? 0 : (size_t)length;
}

/* Reads a message that may hold anything; of several addresses the first. */
static enum reply read_reply(const uint8_t *message, size_t length, uint16_t id,
			     const struct asking *asking)
{
	unsigned int size = asking->ipv4 ? NS_INADDRSZ : NS_IN6ADDRSZ;
	ns_msg reply;
	ns_rr record;

	if (ns_initparse(message, (int)length, &reply) || ns_msg_id(reply) != id ||
	    !ns_msg_getflag(reply, ns_f_qr))
		return REPLY_NONE;
	if (ns_msg_getflag(reply, ns_f_rcode) != ns_r_noerror)
		return ns_msg_getflag(reply, ns_f_rcode) == ns_r_nxdomain ? REPLY_NO_ADDRESS
									  : REPLY_REFUSED;
	for (int i = 0; i < ns_msg_count(reply, ns_s_an); i++) {
		if (ns_parserr(&reply, ns_s_an, i, &record))
			break;
		if (ns_rr_type(record) == (asking->ipv4 ? ns_t_a : ns_t_aaaa) &&
		    ns_rr_class(record) == ns_c_in && ns_rr_rdlen(record) == size) {
			cni_address_make(asking->resolved->address, ns_rr_rdata(record), size);
			return REPLY_ADDRESS;
		}
	}
	return REPLY_NO_ADDRESS;
}

/* What comes to the connected socket is from this server. */
static enum reply wait_for_reply(int fd, uint16_t id, const struct asking *asking)
{
	int64_t end = clock_ms() + SERVER_MS;
	struct pollfd waiting = {.fd = fd, .events = POLLIN};
	enum reply reply = REPLY_NONE;
	uint8_t message[NS_PACKETSZ];
	ssize_t length;

	while (reply == REPLY_NONE && clock_ms() < end) {
		if (poll(&waiting, 1, (int)(end - clock_ms())) != 1)
			break;
		length = recv(fd, message, sizeof(message), 0);
		if (length < 0)
			break;
		reply = read_reply(message, (size_t)length, id, asking);
	}
	return reply;
}

static enum reply ask_server(const struct asking *asking, const uint8_t *server, const char *name)
{
	uint8_t message[NS_PACKETSZ];
	struct sockaddr_storage to;
	socklen_t size = socket_address_make(&to, server, NAMES_PORT);
	cleanup_close int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	size_t length = make_question(message, name, asking->ipv4);

	if (!length)
		return REPLY_NO_ADDRESS;
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, size) ||
	    send(fd, message, length, 0) != (ssize_t)length)
		return REPLY_NONE;
	return wait_for_reply(fd, (uint16_t)ns_get16(message), asking);
}

/* False: another server, or another domain, may know it. */
static bool ask_servers(const struct asking *asking, const char *name)
{
	struct resolved *resolved = asking->resolved;
	char server[CNI_ADDRESS_TEXT_SIZE];
	enum reply reply = REPLY_NONE;

	for (size_t i = 0; i < asking->server_count && clock_ms() < asking->end; i++) {
		reply = ask_server(asking, asking->servers[i], name);
		cni_address_format(asking->servers[i], server);
		resolved->is_found = reply == REPLY_ADDRESS;
		snprintf(resolved->said, sizeof(resolved->said),
			 reply == REPLY_ADDRESS      ? "%s"
			 : reply == REPLY_NO_ADDRESS ? "%s knows no IPv%c address of that name"
			 : reply == REPLY_REFUSED    ? "%s could not say"
						     : "no answer from %s",
			 server, asking->ipv4 ? '4' : '6');
		if (reply == REPLY_ADDRESS || reply == REPLY_NO_ADDRESS)
			break;
	}
	return reply == REPLY_ADDRESS;
}

/* The name in the order of the domains, as the C library looks for it. */
static int ask(void *context, struct cni_error *err)
{
	struct asking *asking = context;
	unsigned int dots = 0;
	bool as_it_is;

	(void)err;
	for (const char *at = asking->name; *at; at++)
		dots += *at == '.';
	as_it_is = dots >= asking->dots;
	if (as_it_is && ask_servers(asking, asking->name))
		return 0;
	for (size_t i = 0; i < asking->domain_count && clock_ms() < asking->end; i++) {
		cleanup_free char *name = cni_format("%s.%s", asking->name, asking->domains[i]);

		if (ask_servers(asking, name))
			return 0;
	}
	if (!as_it_is)
		ask_servers(asking, asking->name);
	return 0;
}

void resolve_name(struct doctor *doctor, const struct subject *subject, const char *name,
		  struct resolved *resolved)
{
	const struct namespace *inside = doctor_namespace(doctor, subject);
	struct asking asking = {.name = name,
				.ipv4 = subject->ipv4,
				.end = clock_ms() + ALL_MS,
				.dots = 1,
				.resolved = resolved};
	cleanup_error struct cni_error err = {0};
	struct stat status;

	*resolved = (struct resolved){0};
	snprintf(resolved->said, sizeof(resolved->said),
		 "no server is named in its /etc/resolv.conf, or no process of it has that");
	if (!inside || fstat(inside->fd, &status))
		return;
	container_files_read(&status.st_ino, 1, "etc/hosts", take_hosts, &asking);
	if (resolved->is_found)
		return;
	container_files_read(&status.st_ino, 1, "etc/resolv.conf", take_settings, &asking);
	if (netns_call(inside->fd, ask, &asking, &err))
		snprintf(resolved->said, sizeof(resolved->said), "%s", cni_error_message(&err));
}

/* --- a resolver at a loopback address is the container's own, and mostly there is none
 * --------------------------------------------------------------- */

#define NAMES_PORT 53

/* Docker's own resolver, which has another port there and a rule that leads to it. */
static const uint8_t of_docker[CNI_ADDRESS_SIZE] = {[10] = 0xff, 0xff, 127, 0, 0, 11};

/* The containers that are asked about, and by the same numbers their namespaces. */
struct askers {
	struct doctor *doctor;
	struct subject *subjects;
	ino_t *netns;
	size_t count;
};

static bool serves_names(struct doctor *doctor, const struct subject *subject,
			 const uint8_t *address)
{
	const struct socket_list *sockets = way_sockets(doctor, subject);
	const uint8_t *where;

	return !sockets ||
	       listening_at(sockets, PROTOCOL_UDP, address, NAMES_PORT, &where) == LISTENING;
}

static void look_at_resolver(struct doctor *doctor, const struct subject *subject,
			     const char *address)
{
	uint8_t parsed[CNI_ADDRESS_SIZE];

	if (cni_address_parse(address, parsed) || !cni_address_is_loopback(parsed) ||
	    !memcmp(parsed, of_docker, CNI_ADDRESS_SIZE) || serves_names(doctor, subject, parsed))
		return;
	doctor_found(doctor, VERDICT_WARN, NULL,
		     "%s asks for names at %s (/etc/resolv.conf), where nobody listens inside: a"
		     " resolver of the host's is reached at the host's addresses alone",
		     subject->container->text, address);
}

static void look_at_file(void *context, size_t number, const char *text)
{
	const struct askers *askers = context;
	char address[CNI_ADDRESS_TEXT_SIZE];

	for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0)
		if (sscanf(line, "nameserver %45s", address) == 1)
			look_at_resolver(askers->doctor, &askers->subjects[number], address);
}

static bool is_new(const struct askers *askers, const struct subject *subject)
{
	for (size_t i = 0; i < askers->count; i++)
		if (owner_is(askers->subjects[i].mapping->portmap.owner,
			     subject->mapping->portmap.owner))
			return false;
	return true;
}

static void add_asker(struct askers *askers, size_t mapping)
{
	struct subject *subject = &askers->subjects[askers->count];
	const struct namespace *namespace;
	struct stat status;

	if (!doctor_subject(askers->doctor, mapping, subject) || !is_new(askers, subject))
		return;
	namespace = doctor_namespace(askers->doctor, subject);
	if (namespace && !fstat(namespace->fd, &status))
		askers->netns[askers->count++] = status.st_ino;
}

void check_resolver(struct doctor *doctor)
{
	size_t most = doctor->mappings.count + 1;
	cleanup_free struct subject *subjects = or_exit(calloc(most, sizeof(*subjects)));
	cleanup_free ino_t *netns = or_exit(calloc(most, sizeof(*netns)));
	struct askers askers = {doctor, subjects, netns, 0};

	for (size_t i = 0; i < doctor->mappings.count; i++)
		add_asker(&askers, i);
	container_files_read(netns, askers.count, "etc/resolv.conf", look_at_file, &askers);
}
