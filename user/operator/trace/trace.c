/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* trace.c - `bpf-portmap trace`: what its operands mean. */
#include "operator/trace/trace.h"

#include <string.h>

#include "operator/verbs.h"

static int refuse(struct cni_error *err, const char *word, const char *must)
{
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "\"%.60s\" is not %s; see bpf-portmap trace --help", word, must);
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

	if (options->host.is_set)
		memcpy(wish.host, options->host.address, CNI_ADDRESS_SIZE);
	if (options->protocol)
		wish.port.protocol = options->protocol;
	if (parse_words(operands, &wish, err) || view_open(view, err))
		return -1;
	if (view->is_empty)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "there is nothing to trace");
	return trace_live(options, &wish, view, err);
}

int verb_trace(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct view view = {0};
	int result = run(options, operands, &view, err);

	view_close(&view);
	return result;
}
