/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace.c - `bpf-portmap trace`: packets as the programs meet them, and those that the kernel
 * drops.
 *
 * Nothing is left when it is killed: the programs tell for ten seconds at a time, their events'
 * map forgets a reader whose file closes, and the program at the tracepoint goes with its file.
 */
#include <linux/membarrier.h>
#include <linux/pkt_cls.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "datapath/load/maps.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/text.h"
#include "operator/kernel/namespaces.h"
#include "operator/kernel/tracing.h"
#include "operator/items.h"
#include "operator/print/format.h"
#include "operator/trace/words.h"
#include "operator/verbs.h"

/* For which the programs tell without being asked again: a busy machine may let this wait. */
#define ASKED_SECONDS 10
#define POLL 200 /* ms */
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

struct live {
	struct options options; /* with what the operands say */
	struct view view;
	bool colors;
	struct tracing tracing;
	struct trace_filter filter;
	struct kernel_names names;
	uint32_t *namespaces; /* inodes */
	size_t namespace_count;
	uint64_t namespaces_read_at; /* ns */
	uint64_t asked, since;       /* ns: last, and when what is told was whole again */
	uint64_t shown;
	struct told *last; /* by CPU: what a program of ours has told last; time 0: nothing */
	size_t cpu_count;
	bool netfilter_said;
	uint64_t realtime; /* minus CLOCK_MONOTONIC, ns */
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = 1;
}

/* As a filter. */
static const uint8_t any[CNI_ADDRESS_SIZE];

static bool matches(const struct trace_filter *filter, const uint8_t *source, uint16_t source_port,
		    const uint8_t *destination, uint16_t destination_port)
{
	if (filter->port && filter->port != source_port && filter->port != destination_port)
		return false;
	return !memcmp(filter->address, any, CNI_ADDRESS_SIZE) ||
	       !memcmp(filter->address, source, CNI_ADDRESS_SIZE) ||
	       !memcmp(filter->address, destination, CNI_ADDRESS_SIZE);
}

/* The connection of a packet that the kernel dropped between the hooks. */
static bool find_connection(const struct live *live, const struct trace_drop *drop,
			    struct trace_connection *found)
{
	return trace_find_connection(&live->view, drop->protocol, &drop->tuple, INWARDS, found) ||
	       trace_find_connection(&live->view, drop->protocol, &drop->tuple, OUTWARDS, found);
}

static bool is_endpoint(const struct live *live, const uint8_t *address)
{
	struct endpoint_key key;
	struct endpoint endpoint;

	memcpy(key.address, address, CNI_ADDRESS_SIZE);
	return endpoint_read(&live->view.datapath.objects, &key, &endpoint);
}

static bool is_mapped(const struct live *live, const struct trace_drop *drop)
{
	struct portmap_key key = {.protocol = drop->protocol,
				  .host_port = drop->tuple.destination_port};
	const uint8_t *destination = drop->tuple.destination;
	struct portmap portmap;

	memcpy(key.host_address, destination, CNI_ADDRESS_SIZE);
	if (portmap_read(&live->view.datapath.objects, &key, &portmap))
		return true;
	memcpy(key.host_address,
	       cni_address_is_ipv4(destination) ? cni_address_any_ipv4 : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	return portmap_read(&live->view.datapath.objects, &key, &portmap);
}

static bool is_known_namespace(const struct live *live, uint32_t inode)
{
	for (size_t i = 0; i < live->namespace_count; i++)
		if (live->namespaces[i] == inode)
			return true;
	return false;
}

/* Keeps no file open: that would keep the namespace of a container that ends, and its veth. */
static void read_namespaces(struct live *live)
{
	struct namespaces found = {0};
	struct stat status;

	live->namespace_count = 0;
	namespaces_read(&found, live->view.socket);
	for (size_t i = 0; i < found.count; i++) {
		uint32_t *inode = ARRAY_ADD(live->namespaces, live->namespace_count);

		*inode = fstat(found.list[i].fd, &status) ? 0 : (uint32_t)status.st_ino;
	}
	namespaces_release(&found);
}

/* Whether a veth of this host leads there. Containers come and go: it is looked again, at most once
 * a second. */
static bool is_containers_namespace(struct live *live, uint32_t inode)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (is_known_namespace(live, inode))
		return true;
	if (live->namespaces_read_at && now - live->namespaces_read_at < NSEC_PER_SEC)
		return false;
	live->namespaces_read_at = now;
	read_namespaces(live);
	return is_known_namespace(live, inode);
}

/* The program at the tracepoint tells of more than what is wanted. `found` may be NULL. */
static bool drop_is_wanted(struct live *live, const struct trace_drop *drop,
			   const struct trace_connection *found)
{
	const struct trace_tuple *tuple = &drop->tuple;
	bool wanted = matches(&live->filter, tuple->source, tuple->source_port, tuple->destination,
			      tuple->destination_port);

	if (found)
		wanted = wanted || matches(&live->filter, found->value.external_address,
					   found->value.external_port, found->key.outside,
					   found->value.peer_port);
	if (!wanted)
		return false;
	if (drop->in_container)
		return (is_endpoint(live, tuple->source) ||
			is_endpoint(live, tuple->destination)) &&
		       is_containers_namespace(live, drop->netns);
	return found || is_endpoint(live, tuple->source) || is_endpoint(live, tuple->destination) ||
	       is_mapped(live, drop) || live->filter.port ||
	       memcmp(live->filter.address, any, CNI_ADDRESS_SIZE) != 0;
}

static struct told *last_of(struct live *live, uint32_t cpu)
{
	while (live->cpu_count <= cpu)
		*ARRAY_ADD(live->last, live->cpu_count) = (struct told){0};
	return &live->last[cpu];
}

/* The kernel drops what a program of ours has refused: that is known already. No program runs on
 * this CPU in between. */
static bool is_our_own_drop(struct live *live, const struct told *told)
{
	struct told *last = last_of(live, told->cpu);
	bool same = last->event.time && last->event.action == TC_ACT_SHOT &&
		    !memcmp(&last->event.after, &told->drop.tuple, sizeof(told->drop.tuple));

	if (same)
		last->event.time = 0;
	return same;
}

static void print_time(const struct live *live, const struct told *told)
{
	uint64_t ns = told->event.time + live->realtime;
	time_t second = (time_t)(ns / NSEC_PER_SEC);
	char text[16] = "";
	struct tm parts;

	if (localtime_r(&second, &parts))
		strftime(text, sizeof(text), "%H:%M:%S", &parts);
	printf("%s.%03u cpu%u ", text, (unsigned int)(ns % NSEC_PER_SEC / 1000000), told->cpu);
}

/* An object a line, of which `body`, which is stolen, has the rest. */
static int print_json(const struct live *live, const struct told *told, json_t *body,
		      struct cni_error *err)
{
	uint64_t ns = told->event.time + live->realtime;
	time_t second = (time_t)(ns / NSEC_PER_SEC);
	char host[HOST_NAME_MAX + 1] = "", text[24] = "", moment[40];
	cleanup_json json_t *line = NULL;
	struct tm parts;

	gethostname(host, sizeof(host) - 1);
	cni_make_utf8(host);
	if (gmtime_r(&second, &parts))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(moment, sizeof(moment), "%s.%06uZ", text,
		 (unsigned int)(ns % NSEC_PER_SEC / 1000));
	line = json_pack("{s:i, s:s, s:s, s:i}", "version", ITEMS_VERSION, "host", host, "time",
			 moment, "cpu", (int)told->cpu);
	json_object_update(line, body);
	json_decref(body);
	if (json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) || putchar('\n') == EOF)
		return items_refuse_write(err);
	return 0;
}

static int show_event(struct live *live, const struct told *told, struct cni_error *err)
{
	char interface[IF_NAMESIZE];
	struct trace_words words;
	bool is_marked;

	trace_words_of(&live->view, &told->event, &words);
	*last_of(live, told->cpu) = *told;
	if (live->filter.drops && words.outcome != OUTCOME_DROPPED)
		return 0;
	live->shown++;
	if (live->options.json)
		return print_json(live, told, trace_event_json(&live->view, &told->event, &words),
				  err);
	print_time(live, told);
	view_interface(&live->view, told->event.ifindex, interface);
	printf("%s %s %s  ", interface, trace_is_ingress(told->event.hook) ? "in" : "out",
	       trace_program_name(told->event.hook));
	trace_print_packet(stdout, &told->event);
	fputs("  ", stdout);
	is_marked = live->colors && words.outcome == OUTCOME_DROPPED;
	fputs(is_marked ? YELLOW : "", stdout);
	trace_print_words(stdout, &words);
	fputs(is_marked ? PLAIN : "", stdout);
	putchar('\n');
	return 0;
}

/* Once: the kernel does not say which rule it was. Another client may meet another one. */
static void say_who_tells(struct live *live, const struct trace_drop *drop,
			  const struct trace_connection *found)
{
	const char *reason = kernel_reason(&live->names, drop->reason);
	bool is_mapped = found && found->value.kind == FLOW_MAPPING;
	uint16_t port = is_mapped ? found->value.external_port : live->filter.port;
	char text[8] = "", client[CNI_ADDRESS_TEXT_SIZE] = "";

	if (live->netfilter_said || !reason || strcmp(reason, "NETFILTER_DROP") != 0)
		return;
	live->netfilter_said = true;
	fflush(stdout);
	if (port)
		snprintf(text, sizeof(text), " %u", port);
	if (is_mapped)
		cni_address_format(found->key.outside, client);
	fprintf(stderr,
		"netfilter dropped it (FORWARD or another chain): bpf-portmap doctor%s%s%s tells"
		" which rule\n",
		text, is_mapped ? " --from " : "", client);
}

static int show_drop(struct live *live, const struct told *told, struct cni_error *err)
{
	struct trace_connection connection;
	const struct trace_connection *found =
		find_connection(live, &told->drop, &connection) ? &connection : NULL;

	if (told->drop.time < live->since || is_our_own_drop(live, told) ||
	    !drop_is_wanted(live, &told->drop, found))
		return 0;
	live->shown++;
	if (live->options.json)
		return print_json(live, told,
				  trace_drop_json(&live->view, &live->names, &told->drop), err);
	print_time(live, told);
	fputs("kernel  ", stdout);
	fputs(live->colors ? YELLOW : "", stdout);
	trace_print_drop(stdout, &live->names, &told->drop);
	fputs(live->colors ? PLAIN : "", stdout);
	putchar('\n');
	say_who_tells(live, &told->drop, found);
	return 0;
}

static bool is_enough(const struct live *live)
{
	return live->options.limit && live->shown >= live->options.limit;
}

static int show_all(struct live *live, struct cni_error *err)
{
	int result = 0;

	for (size_t i = 0; !result && i < live->tracing.count && !is_enough(live); i++) {
		const struct told *told = &live->tracing.told[i];

		result = told->event.hook == TRACE_KERNEL ? show_drop(live, told, err)
							  : show_event(live, told, err);
	}
	return items_flush(stdout, err) ? -1 : result;
}

/* Of a packet that a program met before it was asked the tracepoint would tell an end without a
 * beginning. membarrier() waits until the kernel is through with such packets. */
static int ask(struct live *live, struct cni_error *err)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), last = live->asked;

	if (tracing_ask(&live->tracing, &live->filter, ASKED_SECONDS, err))
		return -1;
	live->asked = now;
	live->realtime = clock_ns(CLOCK_REALTIME) - now;
	if (last && now - last < ASKED_SECONDS * NSEC_PER_SEC)
		return 0;
	if (last)
		fputs("bpf-portmap: this machine is too busy: some packets were not traced\n",
		      stderr);
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	live->since = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

static int loop(struct live *live, struct cni_error *err)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), now = begin;
	uint64_t most = live->options.seconds * NSEC_PER_SEC;

	while (!stopped && !is_enough(live) && (!most || now - begin < most)) {
		if (now - live->asked >= NSEC_PER_SEC / 2) {
			if (tracing_is_outdated(&live->tracing, live->view.datapath.directory))
				return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
						     "the programs were replaced, and what the new"
						     " ones do is not shown: run it again");
			if (ask(live, err))
				return -1;
		}
		if (tracing_read(&live->tracing, POLL, err) || show_all(live, err))
			return -1;
		now = clock_ns(CLOCK_MONOTONIC);
	}
	if (tracing_ask(&live->tracing, &live->filter, 0, err) ||
	    tracing_read(&live->tracing, 0, err))
		return -1;
	return show_all(live, err);
}

/* A program that the kernel refuses is no reason not to show what ours tell. */
static int attach_drops(struct live *live)
{
	struct cni_error err = {0};
	bool has_reason = false;
	int fd = programs_attach_drops(&live->view.datapath.objects, &live->tracing, &live->filter,
				       &has_reason, &err);

	if (fd < 0)
		fprintf(stderr, "bpf-portmap: what the kernel drops is not shown: %s\n",
			cni_error_message(&err));
	else if (!has_reason)
		fputs("bpf-portmap: Linux before 5.17 says where it drops a packet, not why\n",
		      stderr);
	else
		kernel_names_prepare(&live->names);
	cni_error_release(&err);
	return fd;
}

static int trace(struct live *live, struct cni_error *err)
{
	cleanup_close int locked = tracing_lock(live->view.datapath.directory, 0, err);
	const struct sigaction action = {.sa_handler = stop};
	cleanup_close int drops = -1;

	if (locked < 0 || tracing_open(&live->tracing, &live->view.datapath.objects, err))
		return -1;
	drops = attach_drops(live);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (ask(live, err))
		return -1;
	fputs("bpf-portmap: tracing; Ctrl-C ends it\n", stderr);
	if (loop(live, err))
		return -1;
	fprintf(stderr, "%llu shown, %llu lost\n", (unsigned long long)live->shown,
		(unsigned long long)live->tracing.lost);
	return 0;
}

static int run(struct live *live, struct cni_error *err)
{
	struct options *options = &live->options;

	if (!options->protocol)
		options->protocol = options->port.protocol;
	if (view_open(&live->view, err))
		return -1;
	if (live->view.is_empty)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "there is nothing to trace");
	live->filter = (struct trace_filter){
		.port = options->port.port, .protocol = options->protocol, .drops = options->drops};
	if (options->host.is_set)
		memcpy(live->filter.address, options->host.address, CNI_ADDRESS_SIZE);
	return trace(live, err);
}

int verb_trace(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct live live = {.options = *options, .colors = terminal_has_color(options->color)};
	int result;

	tracing_clear(&live.tracing);
	result = run(&live, err);
	tracing_close(&live.tracing);
	kernel_names_release(&live.names);
	free(live.namespaces);
	free(live.last);
	view_close(&live.view);
	return result;
}
