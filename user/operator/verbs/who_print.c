/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* who_print.c - what `bpf-portmap who` has found, for people and for programs. */
#include <stdio.h>
#include <string.h>

#include "datapath/records/attachments.h"
#include "datapath/records/port_taken.h"
#include "host/foreign_nat.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/text.h"
#include "net/processes.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/verbs/who.h"
#include "nat/engine_chains.h"

#define WHO_TEXT_SIZE (CONTAINER_TEXT_SIZE + 512)
#define REMARK_SIZE 160
#define PORT_TEXT_SIZE (ENDPOINT_TEXT_SIZE + 8)

static const struct table_column columns[] = {
	{"STATE", TABLE_LEFT, "state"},     {"BY", TABLE_LEFT, "by"},
	{"PORT", TABLE_LEFT, "host"},       {"", TABLE_HIDDEN, "protocol"},
	{"WHO", TABLE_LEFT, "container"},   {"", TABLE_HIDDEN, "since"},
	{"", TABLE_HIDDEN, "rule"},         {"", TABLE_HIDDEN, "process"},
	{"", TABLE_HIDDEN, "from_outside"}, {"", TABLE_HIDDEN, "from_host"},
	{"", TABLE_REMARK, "remark"},
};

/* The container's ID that portmap's or netavark's comment has; "": there is none. `dnat name:
 * "bridge" id: "4f1c..."`; of portmap's nftables backend the ID alone. */
static void claimant_container_id(const struct nat_rule *rule, char id[NAT_COMMENT_SIZE])
{
	static const char mark[] = "id: \"";
	const char *begin = strstr(rule->comment, mark);
	const char *engine = nat_engine_of(rule);
	size_t length;

	begin = begin ? begin + strlen(mark) : rule->comment;
	length = strcspn(begin, "\" ");
	if ((begin == rule->comment && begin[length]) ||
	    (strcmp(engine, "portmap") != 0 && strcmp(engine, "netavark") != 0))
		length = 0;
	memcpy(id, begin, length);
	id[length] = '\0';
}

bool who_counts(const struct contestant *contestant)
{
	return contestant->kind != CONTESTANT_MAPPING || contestant->alive;
}

static struct container_info *container_of(struct who *who, const struct contestant *contestant)
{
	return view_container(&who->view, contestant->mapping->portmap.owner);
}

static void write_port(const struct who *who, const struct contestant *contestant,
		       char text[PORT_TEXT_SIZE])
{
	char endpoint[ENDPOINT_TEXT_SIZE];

	if (contestant->kind == CONTESTANT_SOCKET)
		format_endpoint(contestant->address, who->port.port, endpoint);
	else
		format_host_port(contestant->address, who->port.port, endpoint);
	snprintf(text, PORT_TEXT_SIZE, "%s/%s", endpoint,
		 contestant->protocol ? protocol_word(contestant->protocol) : "any");
}

static void write_mapping(struct who *who, const struct contestant *contestant, char *text)
{
	const struct container_info *container = container_of(who, contestant);
	char since[TIME_TEXT_SIZE] = "";
	const char *id, *what;
	bool named;

	if (!container || !container->has_record) {
		snprintf(text, WHO_TEXT_SIZE, "nobody");
		return;
	}
	id = container->name.container_id;
	id = engine_id(id);
	named = strncmp(container->text, id, strlen(container->text)) != 0;
	what = container->record.workload.kind == WORKLOAD_POD ? ", sandbox " : ", container ";
	format_time(container->record.since, since);
	snprintf(text, WHO_TEXT_SIZE, "%s %s%s%.12s, since %s", container_kind_word(container),
		 container->text, named ? what : "", named ? id : "", since);
}

static bool is_known(const uint8_t new_address[CNI_ADDRESS_SIZE])
{
	return memcmp(new_address, cni_address_any_ipv6, CNI_ADDRESS_SIZE) != 0;
}

static void write_rule(struct who *who, const struct nat_rule *rule, char *text)
{
	char to[ENDPOINT_TEXT_SIZE] = "", id[NAT_COMMENT_SIZE];
	bool is_dnat = rule->verdict && !strcmp(rule->verdict, "dnat");
	char name[ENGINE_TEXT_SIZE];
	int length = 0;

	if (is_known(rule->new_address))
		format_endpoint(rule->new_address, rule->new_port ? rule->new_port : who->port.port,
				to);
	else if (rule->new_port)
		snprintf(to, sizeof(to), "port %u of this host", rule->new_port);
	claimant_container_id(rule, id);
	if (!is_dnat)
		length = snprintf(text, WHO_TEXT_SIZE, "%s in table %s, ", rule->verdict,
				  rule->table);
	length += snprintf(text + length, WHO_TEXT_SIZE - (size_t)length, "chain %s%s%s",
			   rule->chain_name, *to ? " -> " : "", to);
	if (*id)
		snprintf(text + length, WHO_TEXT_SIZE - (size_t)length, " (container %s%s%.12s%s)",
			 container_name_of(&who->view.names, id)
				 ? container_name_write(&who->view.names, id, name)
				 : "",
			 container_name_of(&who->view.names, id) ? ", " : "", engine_id(id),
			 processes_are_in_container(id) ? ", running" : "");
	else if (*rule->comment)
		snprintf(text + length, WHO_TEXT_SIZE - (size_t)length, " (%s)", rule->comment);
}

static void write_who(struct who *who, const struct contestant *contestant, char *text)
{
	const struct socket_holder *process;
	char holder[HOLDER_TEXT_SIZE];

	switch (contestant->kind) {
	case CONTESTANT_MAPPING:
		write_mapping(who, contestant, text);
		break;
	case CONTESTANT_RULE:
		write_rule(who, contestant->rule, text);
		break;
	default:
		/* "nginx (pid 812)" */
		process = &contestant->socket->holder;
		snprintf(holder, sizeof(holder), "%s (pid %d)", process->name, (int)process->pid);
		snprintf(text, WHO_TEXT_SIZE, "%s %s",
			 process->pid ? holder : "a socket without a process",
			 contestant->socket->protocol == PROTOCOL_UDP ? "has a socket" : "listens");
	}
}

static bool lost_all(const struct contest_score *score)
{
	return score->claimed && !score->won;
}

static bool lost_some(const struct contest_score *score)
{
	return score->won < score->claimed;
}

static void write_loss_at(const struct contest_score *score, const char *where, char *text)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	snprintf(text, REMARK_SIZE, "<- overruled%s at %s%s", where,
		 cni_address_format(score->lost_at, address),
		 score->claimed - score->won > 1 ? " and others" : "");
}

/* What the host's NAT takes is written down by the next `repair`, where it came after ADD. */
static bool waits_for_repair(const struct who *who, const struct contestant *contestant)
{
	bool is_mapped = false;

	if (contestant->kind != CONTESTANT_RULE)
		return false;
	for_each (other, who->contestants, who->count) {
		if (other->kind != CONTESTANT_MAPPING)
			continue;
		is_mapped = true;
		/* Such a rule takes nothing from the mapping, whatever `repair` sees. */
		if (foreign_nat_leads_to_container(&who->host.datapath.objects, contestant->rule,
						   &other->mapping->key, &other->mapping->portmap))
			return false;
	}
	return is_mapped &&
	       contestant->scores[ORIGIN_OUTSIDE].won <
		       contestant->scores[ORIGIN_OUTSIDE].claimed &&
	       foreign_nat_takes_all(&who->host.datapath.objects, contestant->rule);
}

/* An engine's container in which no process runs: it is being made or removed, or was forgotten. */
static bool write_forgotten(struct who *who, const struct contestant *contestant,
			    char text[REMARK_SIZE])
{
	const struct objects *objects = &who->host.datapath.objects;
	char command[LAST_RESORT_SIZE];
	struct attachment record;
	struct owner owner;
	struct slot slot;

	if (contestant->kind != CONTESTANT_MAPPING)
		return false;
	owner = contestant->mapping->portmap.owner;
	if (!owner_read(objects, owner, &slot) ||
	    !slot_read_record(objects, owner.slot, &slot, &record) ||
	    !slot_is_engines(&slot, &record))
		return false;
	describe_last_resort(&slot, command);
	if (*command)
		snprintf(text, REMARK_SIZE,
			 "! no process runs in it: %s frees the port where its engine has"
			 " forgotten it",
			 command);
	return *command;
}

/* Where it gets less than it claims. A mark for people comes first. */
static void write_remark(struct who *who, const struct contestant *contestant,
			 char text[REMARK_SIZE])
{
	const struct contest_score *outside = &contestant->scores[ORIGIN_OUTSIDE];
	const struct contest_score *host = &contestant->scores[ORIGIN_HOST];

	*text = '\0';
	if (!who_counts(contestant))
		snprintf(text, REMARK_SIZE,
			 "! its container is gone: `bpf-portmap repair` tidies up");
	else if (contestant->kind == CONTESTANT_MAPPING && mapping_turn_text(contestant->mapping))
		snprintf(text, REMARK_SIZE, "%s %s",
			 mapping_gets_new(contestant->mapping) ? "!" : "<-",
			 mapping_turn_text(contestant->mapping));
	else if (write_forgotten(who, contestant, text))
		return;
	else if (!outside->claimed && !host->claimed)
		snprintf(text, REMARK_SIZE, "! it is at no address of this host");
	else if (waits_for_repair(who, contestant))
		snprintf(text, REMARK_SIZE, "<- overruled until the next `bpf-portmap repair`");
	else if (lost_all(outside) && (!host->claimed || lost_all(host)))
		snprintf(text, REMARK_SIZE, "<- overruled");
	else if (lost_all(outside))
		snprintf(text, REMARK_SIZE, "<- overruled from outside");
	else if (lost_some(outside))
		write_loss_at(outside, "", text);
	else if (lost_all(host))
		snprintf(text, REMARK_SIZE,
			 outside->claimed ? "<- overruled on this host" : "<- overruled");
	else if (lost_some(host))
		write_loss_at(host, " on this host", text);
}

static const char *state_word(const struct contestant *contestant)
{
	const struct contest_score *scores = contestant->scores;

	if (!who_counts(contestant))
		return "left";
	return scores[ORIGIN_OUTSIDE].won ||
			       (!scores[ORIGIN_OUTSIDE].claimed && scores[ORIGIN_HOST].won)
		       ? "taken"
		       : "also";
}

static const char *score_word(const struct contest_score *score)
{
	if (!score->claimed)
		return NULL;
	return !score->won ? "none" : score->won < score->claimed ? "some" : "all";
}

static json_t *json_rule(const struct who *who, const struct nat_rule *rule)
{
	char id[NAT_COMMENT_SIZE];

	claimant_container_id(rule, id);
	return json_pack("{s:s, s:s, s:s?, s:o, s:s?, s:s?}", "table", rule->table, "chain",
			 rule->chain_name, "verdict", rule->verdict, "to",
			 is_known(rule->new_address)
				 ? json_endpoint(rule->new_address,
						 rule->new_port ? rule->new_port : who->port.port)
				 : json_null(),
			 "comment", *rule->comment ? rule->comment : NULL, "container_id",
			 *id ? id : NULL);
}

static json_t *json_process(const struct socket_holder *process)
{
	if (!process->pid)
		return json_null();
	return json_pack("{s:i, s:s}", "pid", (int)process->pid, "name", process->name);
}

static void add_row(struct output *output, struct who *who, const struct contestant *contestant)
{
	bool is_rule = contestant->kind == CONTESTANT_RULE;
	bool is_socket = contestant->kind == CONTESTANT_SOCKET;
	struct container_info *container =
		is_rule || is_socket ? NULL : container_of(who, contestant);
	char text[WHO_TEXT_SIZE], port[PORT_TEXT_SIZE], remark[REMARK_SIZE];
	char since[TIME_TEXT_SIZE] = "";
	enum protocol protocol = contestant->protocol;

	write_port(who, contestant, port);
	write_who(who, contestant, text);
	cni_printable(text, "");
	write_remark(who, contestant, remark);
	if (container && container->has_record)
		format_time(container->record.since, since);
	output_text(output, state_word(contestant));
	output_text(output, contestant->by);
	output_endpoint(output, port, contestant->address, who->port.port);
	output_text(output, protocol ? protocol_word(protocol) : NULL);
	output_container(output, text, &who->view, container);
	output_text(output, *since ? since : NULL);
	output_json(output, "", is_rule ? json_rule(who, contestant->rule) : json_null());
	output_json(output, "",
		    is_socket ? json_process(&contestant->socket->holder) : json_null());
	output_text(output, score_word(&contestant->scores[ORIGIN_OUTSIDE]));
	output_text(output, score_word(&contestant->scores[ORIGIN_HOST]));
	if (*remark && output->options->json)
		output_text(output, strchr(remark, ' ') + 1);
	else
		output_text(output, *remark ? remark : NULL);
}

static void print_head(const struct who *who, bool taken)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	if (!who->places)
		puts("note  that is no address of this host");
	if (taken || who->blind)
		return;
	printf("free  nobody has port %u%s%s%s%s\n", who->port.port, who->port.protocol ? "/" : "",
	       who->port.protocol ? protocol_word(who->port.protocol) : "",
	       who->has_address ? " at " : "",
	       who->has_address ? cni_address_format(who->address, address) : "");
}

int who_print(struct who *who, bool taken, struct cni_error *err)
{
	static const char *const order[] = {"taken", "also", "left"};
	cleanup_output struct output output = {.options = who->options};

	if (!who->options->json)
		print_head(who, taken);
	if (who->count)
		output_begin(&output, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t word = 0; word < 3; word++)
		for (size_t i = 0; i < who->count; i++)
			if (!strcmp(state_word(&who->contestants[i]), order[word]))
				add_row(&output, who, &who->contestants[i]);
	return output_end(&output, NULL, err);
}
