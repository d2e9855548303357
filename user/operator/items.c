/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* items.c - --json: one object with a list of items. */
#include "operator/items.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"

int items_refuse_write(struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "cannot write to standard output: %s",
			     strerror(errno));
}

int items_flush(FILE *file, struct cni_error *err)
{
	errno = EIO; /* of an earlier write, at which nobody looked */
	if (!fflush(file) && !ferror(file))
		return 0;
	items_refuse_write(err);
	/* Whoever asks next, at the end of the program, need not tell it again. */
	clearerr(file);
	return -1;
}

static int write_value(struct items *items, const json_t *value, struct cni_error *err)
{
	/* In ASCII, control characters are \uNNNN, which a terminal does not obey. */
	if (json_dumpf(value, items->file, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII))
		return items_refuse_write(err);
	return 0;
}

static int begin(struct items *items, struct cni_error *err)
{
	char name[HOST_NAME_MAX + 1] = "";
	cleanup_json json_t *host = NULL;

	gethostname(name, sizeof(name) - 1);
	cni_make_utf8(name);
	host = or_exit(json_string(name));
	fprintf(items->file, "{\"version\":%d,\"host\":", ITEMS_VERSION);
	if (write_value(items, host, err))
		return -1;
	fputs(",\"items\":[", items->file);
	return 0;
}

int items_next(struct items *items, struct cni_error *err)
{
	if (!items->count && begin(items, err))
		return -1;
	fputs_unlocked(items->count++ ? ",\n" : "\n", items->file);
	return 0;
}

int items_end(struct items *items, json_t *summary, struct cni_error *err)
{
	cleanup_json json_t *owned = summary;

	if (!items->count && begin(items, err))
		return -1;
	fputs(items->count ? "\n]" : "]", items->file);
	if (owned) {
		fputs(",\"summary\":", items->file);
		if (write_value(items, owned, err))
			return -1;
	}
	fputs("}\n", items->file);
	return items_flush(items->file, err);
}
