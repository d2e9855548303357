/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* doctor.c - `bpf-portmap doctor`: runs the checks, and prints what they found. */
#include "operator/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/verbs.h"

/* --- what a code means: its section of docs/findings.md, which the program contains ----------- */

#define WIDTH 80
#define HEADING "\n## "
#define BLANKS " \n"

__asm__(".pushsection .rodata\n"
	"findings_page: .incbin \"docs/findings.md\"\n"
	".byte 0\n"
	".popsection\n");
extern const char findings_page[];

static void print_wrapped(const char *text, const char *end)
{
	size_t column = 0;

	for (text += strspn(text, BLANKS); text < end; text += strspn(text, BLANKS)) {
		size_t length = strcspn(text, BLANKS);

		if (column && column + 1 + length > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%s%.*s", column ? " " : "", (int)length, text);
		text += length;
	}
	putchar('\n');
}

static bool explain_print(const char *code)
{
	cleanup_free char *heading = cni_format(HEADING "%s\n", code);
	const char *text = strchr(code, '\n') ? NULL : strstr(findings_page, heading), *end;

	if (!text)
		return false;
	text += strlen(heading);
	end = strstr(text, HEADING);
	print_wrapped(text, end ? end : text + strlen(text));
	printf("docs/findings.md#%s\n", code);
	return true;
}

const struct check checks[] = {
	{"probe", GROUP_PORT, NEEDS_MAPS,
	 "what a client sends first is answered; whether the program then serves is not asked",
	 .run = check_probe},
	{"connect", GROUP_PORT, NEEDS_MAPS, "who is named by --from, or in a container, connects",
	 .run = check_connect},
	{"outwards", GROUP_MASQUERADE, NEEDS_MAPS,
	 "what a masqueraded container sends leaves the host", .run = check_outwards},
	{"conflist-first", GROUP_RECORDS, NEEDS_NOTHING,
	 "the first conflist has bpf-portmap, if any has", .of_conflist = check_conflist_first},
	{"bpffs", GROUP_HOST, NEEDS_NOTHING,
	 "/sys/fs/bpf is mounted, can be written to, and is root's", .run = check_bpffs},
	{"rights", GROUP_HOST, NEEDS_NOTHING, "the kernel lets root load programs, and shows them",
	 .run = check_rights},
	{"pins", GROUP_HOST, NEEDS_SIGHT, "maps and programs are pinned, all of them",
	 .run = check_pins},
	{"version", GROUP_HOST, NEEDS_SIGHT, "maps and programs are of this version of bpf-portmap",
	 .run = check_version},
	{"cgroup", GROUP_HOST, NEEDS_MAPS, "the root of cgroup2 is mounted", .run = check_cgroup},
	{"lock", GROUP_HOST, NEEDS_NOTHING, "nobody keeps ADD and DEL waiting", .run = check_lock},
	{"programs", GROUP_HOOKS, NEEDS_MAPS,
	 "our programs are at both hooks of every uplink and bridge", .run = check_uplinks},
	{"settled", GROUP_HOOKS, NEEDS_MAPS, "every interface is as ADD and repair want it",
	 .run = check_settled},
	{"uplinks", GROUP_HOOKS, NEEDS_MAPS, "\"uplinks\" match an interface",
	 .run = check_named_uplinks},
	{"runs-behind", GROUP_HOOKS, NEEDS_MAPS,
	 "no tc program of others behind ours drops answers, or turns the fast path off",
	 .run = check_foreign_behind},
	{"container-programs", GROUP_HOOKS, NEEDS_MAPS,
	 "our programs are at the veths of containers", .run = check_container_hooks},
	{"bridge", GROUP_HOOKS, NEEDS_MAPS, "the bridges that containers were added to are there",
	 .run = check_bridge},
	{"socket-programs", GROUP_HOOKS, NEEDS_MAPS,
	 "programs are at the sockets of the host's processes, for the ports that need them",
	 .run = check_socket_hooks},
	{"owner", GROUP_PORT, NEEDS_SIGHT, "the port is mapped, and its container lives",
	 .run = check_owner},
	{"host-ip", GROUP_PORT, NEEDS_MAPS, "the host has the address of hostIP",
	 .of_mapping = check_host_ip},
	{"nat", GROUP_PORT, NEEDS_MAPS, "no rule of the host's NAT takes the port",
	 .run = check_nat},
	{"ephemeral", GROUP_PORT, NEEDS_MAPS, "the host's own connections do not use the port",
	 .run = check_ephemeral},
	{"way", GROUP_WAY, NEEDS_MAPS, "the host forwards to the container, which has a route back",
	 .of_endpoint = check_way},
	{"listener", GROUP_WAY, NEEDS_MAPS,
	 "a process in the container listens at the port, not at 127.0.0.1 alone",
	 .of_mapping = check_listener},
	{"conntrack", GROUP_WAY, NEEDS_MAPS, "the table of nf_conntrack has room",
	 .run = check_conntrack},
	{"ipsec", GROUP_WAY, NEEDS_MAPS, "no IPsec policy is for packets that are masqueraded",
	 .run = check_ipsec},
	{"mtu", GROUP_WAY, NEEDS_MAPS, "uplinks take packets as large as containers send",
	 .of_endpoint = check_mtu},
	{"queues", GROUP_WAY, NEEDS_MAPS,
	 "queues at uplinks and containers' veths drop less than a tenth of what leaves",
	 .run = check_queues},
	{"drops", GROUP_WAY, NEEDS_MAPS, "no interface has dropped packets while doctor ran",
	 .run = check_drops},
	{"neighbours", GROUP_WAY, NEEDS_MAPS,
	 "addresses that were asked for just now have one owner, at the MAC that is known",
	 .run = check_neighbours},
	{"resolver", GROUP_MASQUERADE, NEEDS_MAPS,
	 "no container asks for names at a loopback address where nobody listens",
	 .run = check_resolver},
	{"snat-address", GROUP_MASQUERADE, NEEDS_MAPS,
	 "the host has the addresses of snatAddresses", .run = check_source_addresses},
	{"ports-left", GROUP_MASQUERADE, NEEDS_MAPS,
	 "towards each server there are ports to masquerade with", .run = check_ports_left},
	{"tables", GROUP_MASQUERADE, NEEDS_MAPS, "the table of connections has room",
	 .run = check_tables},
	{"abandoned", GROUP_RECORDS, NEEDS_MAPS, "every container's veth is there",
	 .run = check_abandoned},
	{"unfinished", GROUP_RECORDS, NEEDS_MAPS, "no ADD or DEL was cut short",
	 .run = check_unfinished},
	{"conflist", GROUP_RECORDS, NEEDS_NOTHING, "conflists can be read",
	 .of_conflist = check_conflist_syntax},
	{"conflist-portmap", GROUP_RECORDS, NEEDS_NOTHING,
	 "no conflist has portmap beside bpf-portmap", .of_conflist = check_conflist_portmap},
	{"conflist-capability", GROUP_RECORDS, NEEDS_NOTHING,
	 "conflists let runtimes tell the ports", .of_conflist = check_conflist_capability},
	{"conflist-masquerade", GROUP_RECORDS, NEEDS_NOTHING,
	 "no conflist has two plugins that masquerade", .of_conflist = check_conflist_masquerade},
};

#define STATUS_NOT_PROBED 4
#define INDENT 25 /* of what belongs to a finding */

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

static bool sends(const struct check *check)
{
	return check->run == check_probe || check->run == check_outwards ||
	       check->run == check_connect || check->run == check_neighbours;
}

struct place {
	const struct portmap *portmap;
	size_t mapping;
};

static int compare_endpoints(const struct place *one, const struct place *other)
{
	int order = memcmp(&one->portmap->owner, &other->portmap->owner, sizeof(struct owner));

	return order ? order
		     : memcmp(one->portmap->container_address, other->portmap->container_address,
			      CNI_ADDRESS_SIZE);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *one = a, *other = b;
	int order = compare_endpoints(one, other);

	return order ? order : (one->mapping > other->mapping) - (one->mapping < other->mapping);
}

/* Mappings of one container, one after another, would say the same again. Returns, by mapping,
 * whether it is the first one of its container's address; free it. */
static bool *find_first_of_endpoints(const struct doctor *doctor)
{
	size_t count = doctor->mappings.count;
	cleanup_free struct place *places = or_exit(calloc(count + 1, sizeof(*places)));
	bool *first = or_exit(calloc(count + 1, sizeof(*first)));

	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){&doctor->mappings.list[i].portmap, i};
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		first[places[i].mapping] =
			i == 0 || compare_endpoints(&places[i - 1], &places[i]) != 0;
	return first;
}

static void run_check(struct doctor *doctor, const struct check *check)
{
	cleanup_free bool *first = NULL;
	struct subject subject;

	if (check->run)
		check->run(doctor);
	for (size_t i = 0; check->of_conflist && i < doctor->conflist_count; i++)
		check->of_conflist(doctor, &doctor->conflists[i]);
	for (size_t i = 0; check->of_mapping && i < doctor->mappings.count; i++)
		if (doctor_subject(doctor, i, &subject))
			check->of_mapping(doctor, &subject);
	if (check->of_endpoint)
		first = find_first_of_endpoints(doctor);
	for (size_t i = 0; first && i < doctor->mappings.count; i++)
		if (first[i] && doctor_subject(doctor, i, &subject))
			check->of_endpoint(doctor, &subject);
}

static void run_checks(struct doctor *doctor)
{
	for (size_t i = 0; i < check_count; i++) {
		size_t before = doctor->finding_count;

		doctor->check = &checks[i];
		if ((doctor->options->quick && !is_quick(&checks[i])) ||
		    (checks[i].needs != NEEDS_NOTHING && doctor->blind) ||
		    (checks[i].needs == NEEDS_MAPS &&
		     !datapath_is_usable(&doctor->host.datapath)) ||
		    (doctor->options->no_probe && sends(&checks[i])))
			continue;
		doctor->has_looked = true;
		run_check(doctor, &checks[i]);
		if (doctor->finding_count == before && doctor->has_looked)
			doctor_found(doctor, VERDICT_OK, NULL, "%s", checks[i].looked_at);
	}
}

static int exit_status(const struct doctor *doctor, const size_t counts[VERDICT_COUNT])
{
	/* A packet should have shown that ports are answered, and none was sent. */
	bool unproven = doctor->mappings.count && !doctor->options->no_probe && !doctor->sent;

	if (doctor->options->quick)
		return counts[VERDICT_FAIL] || doctor->blind ? 1 : 0;
	return counts[VERDICT_FAIL]             ? 2
	       : doctor->blind                  ? 3
	       : counts[VERDICT_WARN]           ? 1
	       : counts[VERDICT_COULD_NOT_LOOK] ? 3
	       : unproven                       ? STATUS_NOT_PROBED
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

/* Breaks lines between words where a terminal would break them anywhere. */
static void print_text(const char *text)
{
	size_t width = terminal_width(), room = width > 2 * INDENT ? width - INDENT : 0;

	while (room && strlen(text) > room) {
		size_t length = room;

		while (length && text[length] != ' ')
			length--;
		length = length ? length : room;
		printf("%.*s\n%*s", (int)length, text, INDENT, "");
		text += length + (text[length] == ' ');
	}
	puts(text);
}

/* The same remedy once. */
static bool is_above(const struct doctor *doctor, const struct finding *finding)
{
	for_each (other, doctor->findings, doctor->finding_count)
		if (other != finding && other->remedy && !strcmp(other->remedy, finding->remedy) &&
		    (other->verdict < finding->verdict ||
		     (other->verdict == finding->verdict && other < finding)))
			return true;
	return false;
}

static const struct {
	const char *word, *color;
	const char *json, *count; /* the latter: its key in the summary */
	const char *counted, *plural;
} verdicts[VERDICT_COUNT] = {
	[VERDICT_FAIL] = {"FAIL", "\033[31;1m", "fail", "fail", "failure", "s"},
	[VERDICT_WARN] = {"warn", "\033[33m", "warn", "warn", "warning", "s"},
	[VERDICT_COULD_NOT_LOOK] = {"?", "\033[33m", "could-not-look", "could_not_look",
				    "not looked at", ""},
	[VERDICT_NOTE] = {"note", "", "note", "note", "note", "s"},
	[VERDICT_OK] = {"ok", "", "ok", "ok", "ok", ""},
};

static void print_finding(const struct doctor *doctor, const struct finding *finding, bool colors)
{
	const char *color = colors ? verdicts[finding->verdict].color : "";

	printf("%s%-5s%s %-18s ", color, verdicts[finding->verdict].word, *color ? "\033[0m" : "",
	       finding->code);
	print_text(finding->text);
	if (finding->remedy)
		print_remedy(is_above(doctor, finding) ? "(the one above)" : finding->remedy);
	if (finding->more)
		printf("%-5s %-18s ... and %zu more   (--all shows them)\n", "",
		       finding->check->name, finding->more);
}

/* What nothing was sent to is not known to be answered, whatever else is in order. */
static void print_unprobed(const struct doctor *doctor)
{
	size_t ports = doctor->mappings.count;

	if (doctor->options->quick || doctor->options->to.is_set || doctor->ports_probed >= ports)
		return;
	if (!doctor->sent)
		printf("; not probed: no packet was sent");
	else
		printf("; not probed: %zu of %zu mapped ports", ports - doctor->ports_probed,
		       ports);
}

static int print_lines(const struct doctor *doctor, const size_t counts[VERDICT_COUNT])
{
	const struct options *options = doctor->options;
	bool colors = terminal_has_color(options->color);
	const char *separator = "";

	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		for (size_t i = 0; i < doctor->finding_count; i++)
			if ((int)doctor->findings[i].verdict == verdict &&
			    (options->all || verdict != VERDICT_OK))
				print_finding(doctor, &doctor->findings[i], colors);
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
		if (!counts[verdict])
			continue;
		printf("%s%zu %s%s", separator, counts[verdict], verdicts[verdict].counted,
		       counts[verdict] > 1 ? verdicts[verdict].plural : "");
		separator = ", ";
	}
	print_unprobed(doctor);
	puts(options->all ? "" : "   (--all shows them)");
	return exit_status(doctor, counts);
}

static const struct table_column item_columns[] = {
	{"", TABLE_HIDDEN, "check"},   {"", TABLE_HIDDEN, "code"},      {"", TABLE_HIDDEN, "group"},
	{"", TABLE_HIDDEN, "verdict"}, {"", TABLE_HIDDEN, "looked_at"}, {"", TABLE_HIDDEN, "found"},
	{"", TABLE_HIDDEN, "remedy"},  {"", TABLE_HIDDEN, "more"},
};

static int print_json(const struct doctor *doctor, const size_t counts[VERDICT_COUNT],
		      struct cni_error *err)
{
	cleanup_output struct output output = {.options = doctor->options};
	json_t *summary = json_object();

	output_begin(&output, item_columns, sizeof(item_columns) / sizeof(item_columns[0]));
	for_each (finding, doctor->findings, doctor->finding_count) {
		output_text(&output, finding->check->name);
		output_text(&output, finding->code);
		output_text(&output, group_words[finding->check->group]);
		output_text(&output, verdicts[finding->verdict].json);
		output_text(&output, finding->check->looked_at);
		output_text(&output, finding->text);
		output_text(&output, finding->remedy);
		output_number(&output, finding->more);
	}
	for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
		json_object_set_new(summary, verdicts[verdict].count,
				    json_integer((json_int_t)counts[verdict]));
	json_object_set_new(summary, "probed", json_integer((json_int_t)doctor->sent));
	json_object_set_new(summary, "ports", json_integer((json_int_t)doctor->mappings.count));
	json_object_set_new(summary, "ports_probed",
			    json_integer((json_int_t)doctor->ports_probed));
	return output_end(&output, summary, err) ? -1 : exit_status(doctor, counts);
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
	for_each (finding, doctor.findings, doctor.finding_count) {
		if (!last || last->check != finding->check->name) {
			last = ARRAY_ADD(statistics->checks, statistics->check_count);
			*last = (struct check_status){finding->check->name, 0};
		}
		if (status_of[finding->verdict] > last->status)
			last->status = status_of[finding->verdict];
	}
}

int verb_doctor(const struct options *given, char *const *operands, struct cni_error *err)
{
	struct options options = *given;
	cleanup_doctor struct doctor doctor = {.options = &options};
	size_t counts[VERDICT_COUNT];

	if (options.explain)
		return explain_print(options.explain)
			       ? 0
			       : cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
					       "no finding has the code \"%.60s\"",
					       options.explain);
	if (*operands && !options_parse_port(*operands, &options.port))
		return cni_error_set(
			err, CNI_ERROR_INVALID_ENVIRONMENT,
			"invalid port \"%.60s\": must be a port, such as 8080 or 53/udp",
			*operands);
	doctor_read(&doctor);
	if (doctor.blind)
		fprintf(stderr, "bpf-portmap: could not look at maps and interfaces: %s\n",
			doctor.blind);
	run_checks(&doctor);
	memcpy(counts, doctor.suppressed, sizeof(doctor.suppressed));
	for_each (finding, doctor.findings, doctor.finding_count)
		counts[finding->verdict]++;
	return options.json ? print_json(&doctor, counts, err) : print_lines(&doctor, counts);
}
