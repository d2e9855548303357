/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* options.h - the options of all verbs. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "lib/command_line.h"
#include "operator/flow_words.h"

/* Which options a verb has. */
enum option_set {
	OPTIONS_OUTPUT = 1 << 0,
	OPTIONS_PORTS = 1 << 1, /* which mappings */
	OPTIONS_LIST = 1 << 2,
	OPTIONS_FLOWS = 1 << 3,
	OPTIONS_STATS = 1 << 4,
	OPTIONS_DOCTOR = 1 << 5,
	OPTIONS_TRACE = 1 << 6,
	OPTIONS_REPAIR = 1 << 7,
	OPTIONS_MIGRATE = 1 << 8,
	OPTIONS_INSTALL = 1 << 9,
	OPTIONS_UNINSTALL = 1 << 10,
	OPTIONS_UPGRADE = 1 << 11,
};

/* --color */
enum color {
	COLOR_UNSET, /* as COLOR_AUTO */
	COLOR_AUTO,
	COLOR_ALWAYS,
	COLOR_NEVER,
};

struct port_option {
	uint16_t port;          /* 0: any */
	enum protocol protocol; /* 0: any */
};

/* A range of addresses, or one address. */
struct range_option {
	bool is_set;
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length; /* in the address's own family */
};

/* In the order of --by. */
enum sort_by {
	SORT_NONE,
	SORT_PACKETS,
	SORT_BYTES,
	SORT_CLIENT, /* how many connections each has */
	SORT_CONTAINER,
};

/* Begins as {0}. */
struct options {
	bool help;
	bool json;
	bool wide;
	bool all;
	bool count;
	bool prometheus;
	bool per_port;
	bool dry_run;
	bool checks;
	bool from_portmap;
	const char *prometheus_file; /* NULL: standard output */
	enum color color;
	const char *container;
	const char *network;
	struct port_option port;
	enum protocol protocol; /* 0: any */
	struct range_option client;
	struct range_option from;
	const char *from_name;  /* a container, or "localhost"; NULL: an address, or nobody */
	struct range_option to; /* an address: no length */
	char to_name[256];      /* "": the address; else the container is to find it */
	uint16_t to_port;
	enum flow_state state; /* FLOW_STATE_ANY */
	enum flow_way_path path;
	uint32_t top; /* 0: all */
	enum sort_by sort_by;
	uint32_t watch; /* seconds; 0: once */
	bool drops;
	struct range_option host; /* an address: no length */
	uint32_t seconds;         /* 0: until a signal */
	uint32_t limit;           /* 0: none */
	const char *bin_dir;      /* NULL: the default */
	const char *conf_dir;     /* NULL: the default */
	const char *list;         /* NULL: the first */
	bool alias;
	bool purge;
	bool drop_ports;
	bool quick;
	bool no_probe;
	const char *explain; /* a code; NULL: none */
	const char *in;      /* an uplink; NULL: any */
	bool send;
	bool load;
};

/* The options of a set, for command_line_read() into a struct options. */
struct command_line options_of(unsigned int set);

/* Reads "8080" or "53/udp". False: it is neither. */
bool options_parse_port(const char *text, struct port_option *port);
