/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* doctor.c - `bpf-portmap doctor`: runs the checks, and prints what they found. */
#include "operator/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "operator/doctor/statuses.h"
#include "operator/print/items.h"
#include "operator/print/terminal.h"
#include "operator/verbs.h"

const struct check checks[] = {
	{"probe", GROUP_PORT, NEEDS_MAPS, check_probe, "what a client sends is answered"},
	{"outwards", GROUP_MASQUERADE, NEEDS_MAPS, check_outwards,
	 "what a masqueraded container sends leaves the host"},
	{"conflist-first", GROUP_RECORDS, NEEDS_NOTHING, check_conflist_first,
	 "the first conflist has bpf-portmap, if any has"},
	{"bpffs", GROUP_HOST, NEEDS_NOTHING, check_bpffs,
	 "/sys/fs/bpf is mounted, can be written to, and is root's"},
	{"rights", GROUP_HOST, NEEDS_NOTHING, check_rights,
	 "the kernel lets root load programs, and shows them"},
	{"pins", GROUP_HOST, NEEDS_SIGHT, check_pins, "maps and programs are pinned, all of them"},
	{"version", GROUP_HOST, NEEDS_SIGHT, check_version,
	 "maps and programs are of this version of bpf-portmap"},
	{"cgroup", GROUP_HOST, NEEDS_MAPS, check_cgroup, "the root of cgroup2 is mounted"},
	{"lock", GROUP_HOST, NEEDS_NOTHING, check_lock, "nobody keeps ADD and DEL waiting"},
	{"binaries", GROUP_HOST, NEEDS_NOTHING, check_binaries,
	 "runtimes run this very bpf-portmap"},
	{"programs", GROUP_HOOKS, NEEDS_MAPS, check_uplinks,
	 "our programs are at both hooks of every uplink and bridge"},
	{"new-interface", GROUP_HOOKS, NEEDS_MAPS, check_unknown_interfaces,
	 "every interface with an address was classified"},
	{"uplinks", GROUP_HOOKS, NEEDS_MAPS, check_named_uplinks, "\"uplinks\" match an interface"},
	{"runs-before", GROUP_HOOKS, NEEDS_MAPS, check_foreign_ahead,
	 "no tc program of others runs before ours"},
	{"runs-behind", GROUP_HOOKS, NEEDS_MAPS, check_foreign_behind,
	 "no tc program of others turns the fast path off"},
	{"container-programs", GROUP_HOOKS, NEEDS_MAPS, check_container_hooks,
	 "our programs are at the veths of containers"},
	{"bridge", GROUP_HOOKS, NEEDS_MAPS, check_bridge,
	 "veths are ports of the bridges that they were added to, which have the same MAC"},
	{"bridge-ports", GROUP_HOOKS, NEEDS_MAPS, check_bridge_ports,
	 "every port of a bridge of containers has our program"},
	{"socket-programs", GROUP_HOOKS, NEEDS_MAPS, check_socket_hooks,
	 "programs are at the sockets of the host's processes, for the ports that need them"},
	{"owner", GROUP_PORT, NEEDS_MAPS, check_owner,
	 "the port is mapped, and its container lives"},
	{"host-process", GROUP_PORT, NEEDS_MAPS, check_listening_process,
	 "no process of the host has the port"},
	{"foreign-nat", GROUP_PORT, NEEDS_MAPS, check_foreign_nat,
	 "no rule of iptables or nftables maps the port"},
	{"host-ip", GROUP_PORT, NEEDS_MAPS, check_host_ip, "the host has the address of hostIP"},
	{"ephemeral", GROUP_PORT, NEEDS_MAPS, check_ephemeral,
	 "the host's own connections do not use the port"},
	{"excluded", GROUP_PORT, NEEDS_MAPS, check_excluded,
	 "ports are mapped at the address of hostIP"},
	{"way", GROUP_WAY, NEEDS_MAPS, check_way,
	 "the host forwards to the container, which has a route back"},
	{"listener", GROUP_WAY, NEEDS_MAPS, check_listener,
	 "a process in the container listens at the port, not at 127.0.0.1 alone"},
	{"conntrack", GROUP_WAY, NEEDS_MAPS, check_conntrack, "the table of nf_conntrack has room"},
	{"ipsec", GROUP_WAY, NEEDS_MAPS, check_ipsec,
	 "no IPsec policy is for packets that are masqueraded"},
	{"mtu", GROUP_WAY, NEEDS_MAPS, check_mtu,
	 "uplinks take packets as large as containers send"},
	{"snat-address", GROUP_MASQUERADE, NEEDS_MAPS, check_source_addresses,
	 "the host has the addresses of snatAddresses"},
	{"tables", GROUP_MASQUERADE, NEEDS_MAPS, check_tables, "the table of connections has room"},
	{"abandoned", GROUP_RECORDS, NEEDS_MAPS, check_abandoned,
	 "every container's veth is there"},
	{"unfinished", GROUP_RECORDS, NEEDS_MAPS, check_unfinished, "no ADD or DEL was cut short"},
	{"conflist", GROUP_RECORDS, NEEDS_NOTHING, check_conflist_syntax, "conflists can be read"},
	{"conflist-portmap", GROUP_RECORDS, NEEDS_NOTHING, check_conflist_portmap,
	 "no conflist has portmap beside bpf-portmap"},
	{"conflist-capability", GROUP_RECORDS, NEEDS_NOTHING, check_conflist_capability,
	 "conflists let runtimes tell the ports"},
	{"conflist-options", GROUP_RECORDS, NEEDS_NOTHING, check_conflist_options,
	 "options of bpf-portmap are spelt as they should be"},
	{"conflist-masquerade", GROUP_RECORDS, NEEDS_NOTHING, check_conflist_masquerade,
	 "one plugin of a conflist masquerades"},
};

const size_t check_count = sizeof(checks) / sizeof(checks[0]);

static const char *const group_words[GROUP_COUNT] = {
	[GROUP_HOST] = "host", [GROUP_HOOKS] = "hooks",           [GROUP_PORT] = "port",
	[GROUP_WAY] = "way",   [GROUP_MASQUERADE] = "masquerade", [GROUP_RECORDS] = "records",
};

/* What makes all ports of the host fail, and takes milliseconds to see. */
static bool is_quick(const struct check *check)
{
	return check->group == GROUP_HOST || check->run == check_uplinks;
}

static void run_checks(struct doctor *doctor)
{
	for (size_t i = 0; i < check_count; i++) {
		size_t before = doctor->finding_count;

		doctor->check = &checks[i];
		if ((doctor->options->quick && !is_quick(&checks[i])) ||
		    (checks[i].needs != NEEDS_NOTHING && doctor->blind) ||
		    (checks[i].needs == NEEDS_MAPS && !datapath_is_usable(&doctor->host.datapath)))
			continue;
		checks[i].run(doctor);
		if (doctor->finding_count == before)
			doctor_found(doctor, VERDICT_OK, NULL, "%s", checks[i].looked_at);
	}
}

static void count_verdicts(const struct doctor *doctor, size_t counts[VERDICT_COUNT])
{
	memcpy(counts, doctor->suppressed, sizeof(doctor->suppressed));
	for (size_t i = 0; i < doctor->finding_count; i++)
		counts[doctor->findings[i].verdict]++;
}

static int exit_status(const struct doctor *doctor, const size_t counts[VERDICT_COUNT])
{
	if (doctor->options->quick)
		return counts[VERDICT_FAIL] || doctor->blind ? 1 : 0;
	return counts[VERDICT_FAIL]             ? 2
	       : doctor->blind                  ? 3
	       : counts[VERDICT_WARN]           ? 1
	       : counts[VERDICT_COULD_NOT_LOOK] ? 3
						: 0;
}

/* The lines behind the first one are indented like it. */
static void print_remedy(const char *remedy)
{
	const char *title = "remedy";

	while (*remedy) {
		int length = (int)strcspn(remedy, "\n");

		printf("      %-18s %.*s\n", title, length, remedy);
		remedy += length;
		remedy += *remedy == '\n';
		title = "";
	}
}

static void print_finding(const struct finding *finding, bool colors)
{
	static const char *const words[] = {"ok", "warn", "FAIL", "?", "note"};
	static const char *const begin[] = {"", "\033[33m", "\033[31;1m", "\033[33m", ""};
	bool colored = colors && finding->verdict != VERDICT_OK;

	printf("%s%-5s%s %-18s %s\n", colored ? begin[finding->verdict] : "",
	       words[finding->verdict], colored ? "\033[0m" : "", finding->check->name,
	       finding->text);
	if (finding->remedy)
		print_remedy(finding->remedy);
	if (finding->more)
		printf("%-5s %-18s ... and %zu more   (--all shows them)\n", "",
		       finding->check->name, finding->more);
}

static void append_count(char text[], size_t size, size_t count, const char *what, bool plural)
{
	size_t length = strlen(text);

	if (count)
		snprintf(text + length, size - length, "%s%zu %s%s", length ? ", " : "", count,
			 what, plural && count > 1 ? "s" : "");
}

static int print_lines(const struct doctor *doctor, const size_t counts[VERDICT_COUNT])
{
	/* The cause comes first. */
	static const enum verdict order[] = {VERDICT_FAIL, VERDICT_WARN, VERDICT_COULD_NOT_LOOK,
					     VERDICT_NOTE, VERDICT_OK};
	const struct options *options = doctor->options;
	bool colors = terminal_has_color(options->color);
	char text[160] = "";

	for (size_t verdict = 0; verdict < sizeof(order) / sizeof(order[0]); verdict++)
		for (size_t i = 0; i < doctor->finding_count; i++)
			if (doctor->findings[i].verdict == order[verdict] &&
			    (options->all || order[verdict] != VERDICT_OK))
				print_finding(&doctor->findings[i], colors);
	append_count(text, sizeof(text), counts[VERDICT_FAIL], "failure", true);
	append_count(text, sizeof(text), counts[VERDICT_WARN], "warning", true);
	append_count(text, sizeof(text), counts[VERDICT_COULD_NOT_LOOK], "not looked at", false);
	append_count(text, sizeof(text), counts[VERDICT_NOTE], "note", true);
	append_count(text, sizeof(text), counts[VERDICT_OK], "ok", false);
	printf("%s%s\n", text, options->all ? "" : "   (--all shows them)");
	return exit_status(doctor, counts);
}

static int print_json(const struct doctor *doctor, const size_t counts[VERDICT_COUNT],
		      struct cni_error *err)
{
	static const char *const words[] = {"ok", "warn", "fail", "could-not-look", "note"};
	struct items items = {.file = stdout};
	json_t *summary;

	for (size_t i = 0; i < doctor->finding_count; i++) {
		const struct finding *finding = &doctor->findings[i];
		json_t *item =
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:s?, s:I}", "check",
				  finding->check->name, "group", group_words[finding->check->group],
				  "verdict", words[finding->verdict], "looked_at",
				  finding->check->looked_at, "found", finding->text, "remedy",
				  finding->remedy, "more", (json_int_t)finding->more);

		if (items_add(&items, item, err))
			return -1;
	}
	summary = json_pack("{s:I, s:I, s:I, s:I, s:I}", "fail", (json_int_t)counts[VERDICT_FAIL],
			    "warn", (json_int_t)counts[VERDICT_WARN], "could_not_look",
			    (json_int_t)counts[VERDICT_COULD_NOT_LOOK], "note",
			    (json_int_t)counts[VERDICT_NOTE], "ok", (json_int_t)counts[VERDICT_OK]);
	if (items_end(&items, summary, err))
		return -1;
	return exit_status(doctor, counts);
}

void doctor_read_statuses(struct statistics *statistics)
{
	static const int status_of[VERDICT_COUNT] = {
		[VERDICT_WARN] = 1, [VERDICT_FAIL] = 2, [VERDICT_COULD_NOT_LOOK] = 1};
	struct options options = {.all = true, .no_probe = true};
	cleanup_doctor struct doctor doctor = {.options = &options};
	struct check_status *last = NULL;

	doctor_read(&doctor);
	run_checks(&doctor);
	/* The findings of one check follow one another. */
	for (size_t i = 0; i < doctor.finding_count; i++) {
		const struct finding *finding = &doctor.findings[i];

		if (!last || last->check != finding->check->name) {
			last = ARRAY_ADD(statistics->checks, statistics->check_count);
			*last = (struct check_status){finding->check->name, 0};
		}
		if (status_of[finding->verdict] > last->status)
			last->status = status_of[finding->verdict];
	}
}

static int read_operand(struct options *options, const char *operand, struct cni_error *err)
{
	if (!operand)
		return 0;
	return options_parse_port(operand, &options->port)
		       ? 0
		       : cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				       "invalid port \"%.60s\": must be a port, as 8080 or 53/udp",
				       operand);
}

int verb_doctor(const struct options *given, char *const *operands, struct cni_error *err)
{
	struct options options = *given;
	cleanup_doctor struct doctor doctor = {.options = &options};
	size_t counts[VERDICT_COUNT];

	if (read_operand(&options, *operands, err))
		return -1;
	doctor_read(&doctor);
	if (doctor.blind)
		fprintf(stderr, "bpf-portmap: could not look at maps and interfaces: %s\n",
			doctor.blind);
	run_checks(&doctor);
	count_verdicts(&doctor, counts);
	return options.json ? print_json(&doctor, counts, err) : print_lines(&doctor, counts);
}
