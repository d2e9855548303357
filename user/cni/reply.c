/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reply.c - what goes to stdout: one JSON document per run, and nothing else.
 */
#include "cni/reply.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cni/version.h"
#include "cni/write_all.h"

/* Something may have reached stdout: nothing more must follow. */
static bool begun;

/* A reader that has gone is an error to report, not a reason to die. */
static int write_stdout(const char *text, size_t length)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction before;
	int result;
	int number;

	sigaction(SIGPIPE, &ignore, &before);
	result = cni_write_all(STDOUT_FILENO, text, length);
	number = errno;
	sigaction(SIGPIPE, &before, NULL);
	errno = number;
	return result;
}

static int reply(const json_t *json, size_t flags, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	size_t length;

	if (begun)
		return cni_error_set(err, CNI_ERROR_IO, "a reply has been written already");
	text = json_dumps(json, flags | JSON_ENCODE_ANY);
	if (!text)
		return cni_error_no_memory(err);
	begun = true;
	length = strlen(text);
	text[length] = '\n'; /* in place of the NUL: one write for the whole reply */
	if (write_stdout(text, length + 1))
		return cni_error_set(err, CNI_ERROR_IO, "cannot write the reply to stdout: %s",
				     strerror(errno));
	return 0;
}

int cni_reply_result(const json_t *result, struct cni_error *err)
{
	return reply(result, JSON_INDENT(4), err);
}

int cni_reply_versions(struct cni_error *err)
{
	cleanup_json json_t *answer = NULL;
	json_t *supported = json_array();

	for (size_t i = 0; cni_versions[i]; i++)
		json_array_append_new(supported, json_string(cni_versions[i]));
	answer = json_pack("{s:s, s:o}", "cniVersion", CNI_VERSION_NEWEST, "supportedVersions",
			   supported);
	if (!answer)
		return cni_error_no_memory(err);
	return reply(answer, JSON_COMPACT, err);
}

/* How many bytes the UTF-8 character at `text` has; 0: it is none. */
static size_t utf8_length(const char *text)
{
	for (size_t length = 1; length <= 4; length++) {
		json_t *character;

		if (strnlen(text, length) < length)
			return 0;
		character = json_stringn(text, length);
		if (character) {
			json_decref(character);
			return length;
		}
	}
	return 0;
}

/* Messages quote what strangers sent, which need not be UTF-8; JSON must be. */
static json_t *json_text(const char *text)
{
	cleanup_free char *clean = NULL;
	json_t *string = json_string(text);

	if (string)
		return string;
	clean = strdup(text);
	if (!clean)
		return NULL;
	for (char *position = clean; *position;) {
		size_t length = utf8_length(position);

		if (!length)
			*position = '?';
		position += length ? length : 1;
	}
	return json_string(clean);
}

static json_t *error_object(const char *version, const struct cni_error *err)
{
	json_t *object = json_pack("{s:s, s:i, s:o}", "cniVersion", version, "code", err->code,
				   "msg", json_text(cni_error_message(err)));

	if (object && *cni_error_details(err))
		json_object_set_new(object, "details", json_text(cni_error_details(err)));
	return object;
}

void cni_reply_error(const char *version, const struct cni_error *err)
{
	cleanup_json json_t *object = error_object(version, err);
	struct cni_error failure = {0};

	if (!object || reply(object, JSON_INDENT(4), &failure))
		fprintf(stderr, "%s\n", cni_error_message(err));
	cni_error_release(&failure);
}
