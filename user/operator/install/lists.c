/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lists.c - the conflists of a directory. */
#include "operator/install/lists.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/text.h"

/* As Go's filepath.Ext() has it: from the last dot on. */
static bool has_end(const char *name, const char *end)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, end);
}

static bool is_read_by_runtimes(const struct dirent *entry)
{
	return entry->d_type != DT_DIR &&
	       (has_end(entry->d_name, ".conf") || has_end(entry->d_name, ".conflist") ||
		has_end(entry->d_name, ".json"));
}

static DIR *list_entries(const struct directory *directory)
{
	int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;

	if (!listing)
		cleanup_close_pointer(&fd);
	return listing;
}

char *lists_first(const struct directory *directory)
{
	DIR *listing = list_entries(directory);
	struct dirent *entry;
	char *first = NULL;

	while (listing && (entry = readdir(listing))) {
		if (!is_read_by_runtimes(entry) || (first && strcmp(entry->d_name, first) >= 0))
			continue;
		free(first);
		first = or_exit(strdup(entry->d_name));
	}
	if (listing)
		closedir(listing);
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

static int change_type(const struct directory *directory, const char *name, const struct file *file,
		       bool to_ours, struct cni_error *err)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX];

	directory_path(directory, name, path);
	text = list_text_change(file->text, to_ours ? REFERENCE_TYPE : OUR_TYPE,
				to_ours ? OUR_TYPE : REFERENCE_TYPE, path, err);
	return text ? file_replace(directory, name, file, text, err) : -1;
}

int list_make_ours(const struct directory *directory, const char *name, struct file *file,
		   struct cni_error *err)
{
	cleanup_free char *kept = kept_name(name);

	if (!list_was_changed(directory, name) && file_put(directory, kept, file, file, err))
		return -1;
	return change_type(directory, name, file, true, err);
}

/* "a.conflist" of that and of what was kept of it; NULL: it is neither. malloc'ed. */
static char *list_of(const char *name)
{
	cleanup_free char *list = or_exit(strdup(name));
	size_t length = strlen(list), end = strlen(KEPT_END);

	if (length > end && !strcmp(list + length - end, KEPT_END))
		list[length - end] = '\0';
	return has_end(list, ".conflist") ? TAKE(list) : NULL;
}

static bool is_in(char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

int lists_visit(const struct directory *directory, list_visit *visit, void *context,
		struct cni_error *err)
{
	DIR *listing = list_entries(directory);
	struct dirent *entry;
	char **names = NULL, *name;
	size_t count = 0;
	int result = 0;

	/* First all names: visits change the directory. */
	while (listing && (entry = readdir(listing))) {
		name = list_of(entry->d_name);
		if (name && !is_in(names, count, name))
			*ARRAY_ADD(names, count) = TAKE(name);
		free(name);
	}
	if (listing)
		closedir(listing);
	for (size_t i = 0; i < count; i++) {
		if (!result)
			result = visit(directory, names[i], context, err);
		free(names[i]);
	}
	free(names);
	return result;
}

/* Whosever it is */
static bool is_whole(const struct directory *directory, const char *name)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_file struct file list = FILE_NONE;
	enum list_verdict verdict = list_look(directory, name, &list, &ignored);

	return list.fd >= 0 && (verdict == LIST_HAS_REFERENCE || verdict == LIST_HAS_NEITHER);
}

int list_give_back(const struct directory *directory, const char *name, struct cni_error *err)
{
	cleanup_free char *kept = kept_name(name);
	cleanup_error struct cni_error ignored = {0};
	cleanup_file struct file list = FILE_NONE;

	if (list_look(directory, name, &list, &ignored) == LIST_HAS_OURS &&
	    change_type(directory, name, &list, false, err))
		return -1;
	return is_whole(directory, name) ? file_remove(directory, kept, err) : 0;
}
