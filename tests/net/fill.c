/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fill.c - fills our maps directly, for tests of commands that read them: with many records, or
 * with damaged ones; and measures such commands.
 */
#include <limits.h>
#include <linux/types.h>
#include <sys/wait.h>

#include "pinned.h"

#include "abi.h"

#define BATCH 4096
#define BYTES 4096 /* no key or value is larger */
#define FIRST_SLOT 100

const char tool_usage[] =
	"fill many DIRECTORY OWNERS FLOWS   OWNERS containers with a port each, and FLOWS "
	"connections\n"
	"                                   to them; more than the map can have, so a larger one\n"
	"                                   is pinned in its place\n"
	"fill damage DIRECTORY SEED COUNT   changes COUNT random bytes of the entries of each map\n"
	"                                   but meta, and adds entries that are random altogether\n"
	"fill measure COMMAND...            runs it, and prints to stderr how many milliseconds "
	"it\n"
	"                                   took, and its memory in KB\n";

/* All maps but meta. */
static const char *const damaged[] = {
	"portmaps",  "containers",  "published_ports",    "slots",       "veths",
	"endpoints", "networks",    "endpoint_addresses", "interfaces",  "host_addresses",
	"policies",  "aliases",     "connections",        "half_open",   "assured",
	"shares",    "usage",       "client_shares",      "port_shares", "fragments",
	"held",      "attachments", "external_ports",     "noticed",     "counters"};

static void write_entry(int fd, const void *key, const void *value)
{
	if (bpf_map_update_elem(fd, key, value, BPF_ANY))
		die("update");
}

static void set_ipv4(__u8 address[16], uint32_t ipv4)
{
	map_ipv4(address, htonl(ipv4));
}

static uint32_t second_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

static struct owner owner_of(int number)
{
	return (struct owner){(__u32)(FIRST_SLOT + number), (__u32)(1000000 + number)};
}

static void add_owner(const char *directory, int number)
{
	static int slots = -1, attachments, portmaps;
	struct attachment_key name = {0};
	struct attachment record = {
		.owner = owner_of(number),
		.since = (__u64)time(NULL),
		.ifindex = 1,
		.state = ATTACHMENT_READY,
		.workload = {.kind = WORKLOAD_POD, .namespace = "shop"},
	};
	struct slot slot = {.generation = record.owner.generation, .live = 1, .ifindex = 1};
	struct portmap_key key = {.protocol = PROTOCOL_TCP, .host_port = (__u16)(1024 + number)};
	struct portmap_succession entry = {.now = {.owner = record.owner, .container_port = 80}};

	if (slots < 0) {
		slots = open_map(directory, "slots");
		attachments = open_map(directory, "attachments");
		portmaps = open_map(directory, "portmaps");
	}
	snprintf(name.name, sizeof(name.name), "bridge/sandbox%d/eth0", number);
	snprintf(record.workload.name, sizeof(record.workload.name), "web-%d", number);
	memcpy(slot.attachment, name.name, sizeof(slot.attachment));
	set_ipv4(key.host_address, 0);
	set_ipv4(entry.now.container_address, 0x0a580000 + (uint32_t)number);
	write_entry(slots, &record.owner.slot, &slot);
	write_entry(attachments, &name, &record);
	write_entry(portmaps, &key, &entry);
}

static void make_flow(int number, int owners, struct connection_key *key,
		      struct connection *connection)
{
	int owner = number % owners;

	memset(key, 0, sizeof(*key));
	memset(connection, 0, sizeof(*connection));
	set_ipv4(key->inside, 0x0a580000 + (uint32_t)owner);
	set_ipv4(key->outside, 0xc6120000 + (uint32_t)number);
	key->inside_port = 80;
	key->outside_port = (__u16)(1024 + number % 60000);
	key->protocol = PROTOCOL_TCP;
	connection->owner = owner_of(owner);
	connection->id = 2;
	connection->state = STATE_REPLIED | STATE_ASSURED | STATE_COUNTED;
	set_ipv4(connection->external_address, 0xc0000201);
	connection->external_port = (__u16)(1024 + owner);
	connection->peer_port = key->outside_port;
	connection->kind = FLOW_MAPPING;
	connection->last_seen = second_now();
	connection->packets[0] = connection->packets[1] = (__u32)number;
	connection->bytes[0] = connection->bytes[1] = 1000ULL * (__u32)number;
}

static void add_flows(const char *directory, int owners, int flows)
{
	static struct connection_key keys[BATCH];
	static struct connection values[BATCH];
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	char path[PIN_SIZE];
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "connections", sizeof(*keys), sizeof(*values),
				(__u32)flows + 1, &options);

	if (fd < 0 || unlink(pin_of(path, directory, "connections")))
		die(path);
	pin(fd, path);
	for (int done = 0; done < flows;) {
		__u32 count = 0;

		for (; count < BATCH && done < flows; done++, count++)
			make_flow(done, owners, &keys[count], &values[count]);
		if (bpf_map_update_batch(fd, keys, values, &count, NULL))
			die("update batch");
	}
}

static void randomize(unsigned char *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)rand();
}

/* `count` times: an entry that is there with a byte changed, and a random one. */
static void damage(int fd, int count)
{
	static unsigned char key[BYTES], value[BYTES * 64];
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	bool has_key = false;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) || info.key_size > BYTES)
		die("info");
	for (int i = 0; i < count; i++) {
		bool array =
			info.type == BPF_MAP_TYPE_ARRAY || info.type == BPF_MAP_TYPE_PERCPU_ARRAY;
		uint32_t index = (uint32_t)rand() % (info.max_entries < 64 ? info.max_entries : 64);

		has_key = !bpf_map_get_next_key(fd, has_key ? key : NULL, key);
		if (array)
			memcpy(key, &index, sizeof(index));
		if ((array || has_key) && !bpf_map_lookup_elem(fd, key, value)) {
			value[(uint32_t)rand() % info.value_size] = (unsigned char)rand();
			bpf_map_update_elem(fd, key, value, BPF_ANY);
		}
		if (array || i % 2)
			continue;
		randomize(key, info.key_size);
		randomize(value, info.value_size);
		bpf_map_update_elem(fd, key, value, BPF_ANY);
		has_key = false;
	}
}

static long milliseconds_of(struct timeval time)
{
	return time.tv_sec * 1000 + time.tv_usec / 1000;
}

static int many(char **operands)
{
	int owners = parse_number(operands[1], 1, MAX_SLOTS - FIRST_SLOT - 1);

	for (int i = 0; i < owners; i++)
		add_owner(operands[0], i);
	add_flows(operands[0], owners, parse_number(operands[2], 1, 10000000));
	return 0;
}

static int damage_maps(char **operands)
{
	srand((unsigned int)parse_number(operands[1], 0, 1000000));
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
		damage(open_map(operands[0], damaged[i]), parse_number(operands[2], 1, 100000));
	return 0;
}

static int measure(char **command)
{
	long began = milliseconds_now();
	struct rusage usage;
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (!child) {
		execv(command[0], command);
		die(command[0]);
	}
	if (wait4(child, &status, 0, &usage) < 0)
		die("wait4");
	fprintf(stderr, "%ld %ld %ld\n", milliseconds_now() - began,
		milliseconds_of(usage.ru_utime) + milliseconds_of(usage.ru_stime), usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_USAGE;
}

int main(int argc, char **argv)
{
	static const struct tool_command commands[] = {
		{"many", 3, 3, many},
		{"damage", 3, 3, damage_maps},
		{"measure", 1, INT_MAX, measure},
		{NULL},
	};

	return run_command(argc - 1, argv + 1, commands);
}
