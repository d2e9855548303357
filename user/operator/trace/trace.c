/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* trace.c - `bpf-portmap trace`: what its operands mean. */
#include "operator/trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "operator/verbs.h"

#define CLIENT_PORT 51514 /* of a SOURCE without a port */
#define END_SIZE 64

static int refuse(struct cni_error *err, const char *word, const char *must)
{
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "\"%.60s\" is not %s; see bpf-portmap trace --help", word, must);
}

static bool parse_port(const char *text, uint16_t *port)
{
	struct port_option option;

	if (strchr(text, '/') || !options_parse_port(text, &option))
		return false;
	*port = option.port;
	return true;
}

/* "192.0.2.10", "192.0.2.10:80", "2001:db8::1", "[2001:db8::1]:80" */
static bool parse_end(const char *text, uint8_t address[CNI_ADDRESS_SIZE], uint16_t *port)
{
	char bare[END_SIZE];
	const char *colon = strrchr(text, ':');
	bool is_bracketed = *text == '[';
	size_t length;

	if (!cni_address_parse(text, address))
		return true;
	if (is_bracketed && colon && colon[-1] != ']')
		colon = NULL;
	length = (colon ? (size_t)(colon - text) : strlen(text)) - 2 * is_bracketed;
	if (length >= sizeof(bare) || (is_bracketed && !strchr(text, ']')))
		return false;
	memcpy(bare, text + is_bracketed, length);
	bare[length] = '\0';
	return !cni_address_parse(bare, address) && (!colon || parse_port(colon + 1, port));
}

static int parse_packet(char *const *operands, struct trace_packet *packet, struct cni_error *err)
{
	bool has_ports;

	packet->protocol = protocol_parse(operands[0]);
	if (!packet->protocol)
		return refuse(err, operands[0],
			      "a protocol: tcp, udp, udplite, sctp, icmp or icmpv6");
	if (!operands[1] || !parse_end(operands[1], packet->source, &packet->source_port))
		return refuse(err, operands[1] ? operands[1] : "", "SOURCE[:PORT]");
	if (!operands[2] || !parse_end(operands[2], packet->destination, &packet->destination_port))
		return refuse(err, operands[2] ? operands[2] : "", "DESTINATION:PORT");
	if (cni_address_is_ipv4(packet->source) != cni_address_is_ipv4(packet->destination))
		return refuse(err, operands[2], "of the source's family");
	has_ports = packet->protocol != PROTOCOL_ICMP && packet->protocol != PROTOCOL_ICMPV6;
	if (has_ports && !packet->destination_port)
		return refuse(err, operands[2], "DESTINATION:PORT");
	if (!packet->source_port)
		packet->source_port = CLIENT_PORT;
	return 0;
}

/* As tcpdump's: "host 192.0.2.10 and tcp port 8080" */
static int parse_words(char *const *words, struct live_wish *wish, struct cni_error *err)
{
	for (; *words; words++) {
		enum protocol protocol = protocol_parse(*words);

		if (protocol) {
			wish->port.protocol = protocol;
		} else if (!strcmp(*words, "host") && words[1]) {
			if (cni_address_parse(*++words, wish->host))
				return refuse(err, *words, "an address");
		} else if (!strcmp(*words, "port") && words[1]) {
			enum protocol before = wish->port.protocol;

			if (!options_parse_port(*++words, &wish->port))
				return refuse(err, *words, "a port");
			if (!wish->port.protocol)
				wish->port.protocol = before;
		} else if (strcmp(*words, "and") != 0 && strcmp(*words, "proto") != 0) {
			return refuse(err, *words, "host ADDRESS, port PORT or a protocol");
		}
	}
	return 0;
}

static int run(const struct options *options, char *const *operands, struct view *view,
	       struct cni_error *err)
{
	struct live_wish wish = {.port = options->port};
	struct trace_packet packet = {0};

	if (options->host.is_set)
		memcpy(wish.host, options->host.address, CNI_ADDRESS_SIZE);
	if (options->protocol)
		wish.port.protocol = options->protocol;
	if (options->live ? parse_words(operands, &wish, err)
			  : parse_packet(operands, &packet, err))
		return -1;
	if (view_open(view, err))
		return -1;
	if (view->is_empty)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "there is nothing to trace");
	return options->live ? trace_live(options, &wish, view, err)
			     : trace_dry_run(options, &packet, view, err);
}

int verb_trace(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct view view = {0};
	int result;

	if (!options->live && !operands[0])
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "trace needs PROTOCOL SOURCE[:PORT] DESTINATION:PORT, or"
				     " --live; see bpf-portmap trace --help");
	result = run(options, operands, &view, err);
	view_close(&view);
	return result;
}
