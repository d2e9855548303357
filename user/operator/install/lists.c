/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lists.c - the conflists of a directory. */
#include "operator/install/lists.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/conflists.h"

char *lists_first(const struct directory *directory)
{
	struct dirent **entries = NULL;
	int count = scandirat(directory->fd, ".", &entries, conflist_is_read, alphasort);
	char *first = count > 0 ? or_exit(strdup(entries[0]->d_name)) : NULL;

	while (count > 0)
		free(entries[--count]);
	free(entries);
	return first;
}

enum list_verdict list_look(const struct directory *directory, const char *name, struct file *file,
			    struct cni_error *err)
{
	char path[PATH_MAX];

	directory_path(directory, name, path);
	if (file_read(directory, name, file, err))
		return LIST_IS_REFUSED;
	if (file->fd >= 0)
		return list_text_judge(file->text, file->length, path, err);
	cni_error_set(err, CNI_ERROR_IO, "%s does not exist", path);
	return LIST_HAS_NEITHER;
}

static char *kept_name(const char *name)
{
	return cni_format("%s" KEPT_END, name);
}

bool list_was_changed(const struct directory *directory, const char *name)
{
	cleanup_free char *kept = kept_name(name);

	return !faccessat(directory->fd, kept, F_OK, AT_SYMLINK_NOFOLLOW);
}

int list_change(const struct directory *directory, const char *name, const struct file *file,
		bool to_ours, struct cni_error *err)
{
	const char *from = to_ours ? REFERENCE_TYPE : OUR_TYPE;
	const char *to = to_ours ? OUR_TYPE : REFERENCE_TYPE;
	cleanup_free char *kept = kept_name(name);
	cleanup_free char *text = NULL;
	char path[PATH_MAX];

	if (to_ours && !list_was_changed(directory, name) &&
	    file_put(directory, kept, file, file, err))
		return -1;
	directory_path(directory, name, path);
	text = list_text_change(file->text, from, to, path, err);
	return text ? file_replace(directory, name, file, text, err) : -1;
}

int list_forget(const struct directory *directory, const char *name, struct cni_error *err)
{
	cleanup_free char *kept = kept_name(name);

	return file_remove(directory, kept, err);
}

/* Where the name of what was kept of a conflist ends as the list's does. */
static char *end_of_kept(const char *name)
{
	size_t length = strlen(name), end = strlen(".conflist" KEPT_END);

	return length > end && !strcmp(name + length - end, ".conflist" KEPT_END)
		       ? (char *)name + length - strlen(KEPT_END)
		       : NULL;
}

static int is_list_or_kept(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return (dot && !strcmp(dot, ".conflist")) || end_of_kept(entry->d_name);
}

int lists_visit(const struct directory *directory, list_visit *visit, void *context,
		struct cni_error *err)
{
	struct dirent **entries = NULL;
	int result = 0, count = scandirat(directory->fd, ".", &entries, is_list_or_kept, alphasort);

	for (int i = 0; i < count; i++) {
		char *name = entries[i]->d_name, *end = end_of_kept(name);

		if (end)
			*end = '\0';
		/* Of a list that is there, its own name is another entry. */
		if (!result && !(end && !faccessat(directory->fd, name, F_OK, AT_SYMLINK_NOFOLLOW)))
			result = visit(directory, name, context, err);
		free(entries[i]);
	}
	free(entries);
	return result;
}
