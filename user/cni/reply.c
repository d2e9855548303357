/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reply.c - what goes to stdout: one JSON document per run, and nothing else. */
#include "cni/reply.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "cni/result.h"
#include "cni/version.h"

/* A part of a reply may have reached stdout, so no other may follow. */
static bool begun;

static int write_reply(const json_t *json, size_t flags, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	if (begun)
		return cni_error_set(err, CNI_ERROR_IO, "a reply has been written already");
	text = json_dumps(json, flags | JSON_ENCODE_ANY);
	begun = true;
	length = strlen(text);
	text[length] = '\n'; /* in place of the NUL: one write for the whole reply */
	if (cni_write_all(STDOUT_FILENO, text, length + 1))
		return cni_error_set(err, CNI_ERROR_IO, "cannot write the reply to stdout: %s",
				     strerror(errno));
	return 0;
}

int cni_reply_result(const json_t *result, struct cni_error *err)
{
	return write_reply(result, JSON_INDENT(4), err);
}

int cni_reply_prev_result(const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_json json_t *reply = NULL;
	json_t *prev_result;

	if (cni_network_config_get_prev_result(config, &prev_result, err))
		return -1;
	reply = cni_result_relabel(prev_result, config->version);
	return cni_reply_result(reply, err);
}

int cni_reply_versions(struct cni_error *err)
{
	cleanup_json json_t *answer = NULL;
	json_t *supported = json_array();

	for (size_t i = 0; cni_versions[i]; i++)
		json_array_append_new(supported, json_string(cni_versions[i]));
	answer = json_pack("{s:s, s:o}", "cniVersion", CNI_VERSION_NEWEST, "supportedVersions",
			   supported);
	return write_reply(answer, JSON_COMPACT, err);
}

/* Messages quote input, which need not be UTF-8; JSON must be. */
static json_t *json_text(const char *text)
{
	cleanup_free char *clean = or_exit(strdup(text));

	cni_make_utf8(clean);
	return json_string(clean);
}

void cni_reply_error(const char *version, const struct cni_error *err)
{
	const char *details = cni_error_details(err);
	cleanup_error struct cni_error failure = {0};
	cleanup_json json_t *object = json_pack(
		"{s:s, s:i, s:o, s:o*}", "cniVersion", version, "code", err->code, "msg",
		json_text(cni_error_message(err)), "details", *details ? json_text(details) : NULL);

	if (write_reply(object, JSON_INDENT(4), &failure))
		fprintf(stderr, "%s\n", cni_error_message(err));
}
