/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* series.c - many packets to a port. */
#include "operator/doctor/probe.h"

#include <stdio.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/text.h"
#include "operator/doctor/ruleset.h"

#define SERIES_MS 7000
#define TRACED_MOST 10 /* of lost packets, to find the rule */
#define MORE_MOST 3
#define SIZE_MOST 1500
#define SMALL_IPV4 52 /* a SYN */
#define SMALL_IPV6 72

/* What became of packets of one size. */
struct size {
	uint32_t bytes; /* of the IP packet */
	uint32_t sent, answered, resets, errors, traced;
	struct probe_result failed; /* one that was not answered, if possible with a reason */
};

struct series {
	struct doctor *doctor;
	const struct subject *subject;
	struct probe_way *way;
	struct size small, large;
	uint64_t slowest_ns; /* from the uplink until an answer leaves by it */
};

/* Returns whether it is known who dropped the packet. Of netfilter the kernel says no more than its
 * name. */
static bool is_named(const struct probe_result *result)
{
	return result->rule_dropped || result->program_dropped;
}

static void take(struct series *series, struct size *size, const struct probe_result *result)
{
	bool answered = result->answer == ANSWER_ACCEPTED && result->has_left;

	size->answered += answered;
	size->resets += result->answer == ANSWER_RESET;
	size->errors += result->answer == ANSWER_ERROR;
	if (answered && result->took_ns > series->slowest_ns)
		series->slowest_ns = result->took_ns;
	if (!answered && (size->answered + size->traced + 1 == size->sent || is_named(result) ||
			  !is_named(&size->failed)))
		size->failed = *result;
}

/* nftables traces only once something was lost. */
static int send_one(struct series *series, struct size *size, struct cni_error *err)
{
	struct probe_way *way = series->way;
	struct probe_result result;

	way->packet.size = (uint16_t)size->bytes;
	way->packet.source_port = probe_free_port(series->doctor, series->subject, way);
	way->with_rules = size->sent > size->answered && !is_named(&size->failed) &&
			  size->traced < TRACED_MOST;
	size->traced += way->with_rules;
	if (probe_send(series->doctor, series->subject, way, &result, err))
		return -1;
	size->sent++;
	take(series, size, &result);
	return 0;
}

/* Sends one more packet if no trace was on while the last one was lost. */
static int send_for_rule(struct series *series, struct size *size, struct cni_error *err)
{
	return size->sent > size->answered && !is_named(&size->failed) ? send_one(series, size, err)
								       : 0;
}

static int send_all(struct series *series, uint32_t count, struct cni_error *err)
{
	int64_t end = clock_ms() + SERIES_MS;
	bool shows = isatty(STDERR_FILENO);
	int failed = 0;

	series->way->is_one_of_many = true;
	for (uint32_t i = 0; i < count && !failed && clock_ms() < end; i++) {
		bool is_large = i % 2 && series->way->packet.protocol == PROTOCOL_TCP;

		failed = send_one(series, is_large ? &series->large : &series->small, err);
		if (shows)
			fprintf(stderr, "\rbpf-portmap: %u of %u packets ", i + 1, count);
	}
	for (uint32_t i = 0; i < MORE_MOST && !failed && clock_ms() < end; i++)
		failed = send_for_rule(series, &series->small, err) ||
			 send_for_rule(series, &series->large, err);
	if (shows)
		fprintf(stderr, "\r%40s\r", "");
	series->way->packet.size = 0;
	return failed;
}

/* Reports packets of this size, if some of them were not answered. */
static void report_losses(const struct series *series, const struct size *size)
{
	struct probe_finding finding = {0};
	uint32_t failed = size->sent - size->answered;
	uint32_t lost = failed - size->resets - size->errors;
	cleanup_free char *text = NULL;
	enum verdict verdict;

	if (!failed)
		return;
	verdict =
		probe_judge(series->doctor, series->subject, series->way, &size->failed, &finding);
	text = cni_format("%u of %u packets of %u bytes are not answered (%u lost, %u refused, %u"
			  " ICMP errors)%s%s",
			  failed, size->sent, size->bytes, lost, size->resets, size->errors,
			  finding.cause ? ": " : "", finding.cause ? finding.cause : "");
	if (size->failed.kernel_dropped && !is_named(&size->failed))
		finding.has_limits |= ruleset_of_host_has_limits();
	/* A limit is somebody's decision, and was reached by these packets themselves; who gets an
	 * error sends smaller ones. */
	if (finding.has_limits || verdict == VERDICT_NOTE)
		verdict = VERDICT_NOTE;
	else
		verdict = size->errors == failed ? VERDICT_WARN : VERDICT_FAIL;
	series->doctor->code =
		size->answered || !series->small.answered ? "probe-lost" : "probe-size";
	doctor_found_at(series->doctor, verdict, &finding.remedy, text,
			finding.place ? finding.place : series->subject->port);
	series->doctor->code = NULL;
	probe_finding_release(&finding);
}

static void report_all(const struct series *series)
{
	const struct probe_way *way = series->way;
	char client[CNI_ADDRESS_TEXT_SIZE];

	doctor_found(series->doctor, VERDICT_NOTE, NULL,
		     "%s from %s by %s: %u of %u small packets answered, %u of %u of %u bytes;"
		     " slowest %.1f ms",
		     series->subject->port, cni_address_format(way->packet.source, client),
		     way->entry->name, series->small.answered, series->small.sent,
		     series->large.answered, series->large.sent, series->large.bytes,
		     (double)series->slowest_ns / 1e6);
}

void series_probe(struct doctor *doctor, const struct subject *subject, struct probe_way *way,
		  uint32_t count, bool says)
{
	struct series series = {.doctor = doctor, .subject = subject, .way = way};
	cleanup_error struct cni_error err = {0};
	uint32_t mtu = way->entry->mtu;

	series.small.bytes = subject->ipv4 ? SMALL_IPV4 : SMALL_IPV6;
	series.large.bytes = mtu && mtu < SIZE_MOST ? mtu : SIZE_MOST;
	if (send_all(&series, count, &err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s: %s", subject->port,
			     cni_error_message(&err));
		return;
	}
	report_losses(&series, &series.small);
	report_losses(&series, &series.large);
	if (says)
		report_all(&series);
}
