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
		return (directory->of_network ? list_text_judge_plugin : list_text_judge)(
			file->text, file->length, path, err);
	cni_error_set(err, CNI_ERROR_IO, "%s does not exist", path);
	return LIST_HAS_NEITHER;
}

bool lists_open_folder(const struct directory *directory, const char *name,
		       struct directory *folder)
{
	cleanup_free char *list_path = cni_format("%s/%s", directory->path, name);
	cleanup_json json_t *list = conflist_load_alone(list_path);
	cleanup_free char *path = conflist_folder(list, list_path);

	if (!path || directory_open(folder, path, NULL))
		return false;
	folder->of_network = true;
	return true;
}

char *lists_find_in_folder(const struct directory *folder, struct file *file,
			   enum list_verdict *verdict)
{
	struct dirent **entries = NULL;
	int count = scandirat(folder->fd, ".", &entries, conflist_is_of_folder, alphasort);
	char *found = NULL;

	for (int i = 0; i < count; i++) {
		cleanup_error struct cni_error other = {0};
		cleanup_file struct file read = FILE_NONE;
		enum list_verdict its = list_look(folder, entries[i]->d_name, &read, &other);

		if (!found && (its == LIST_HAS_REFERENCE || its == LIST_HAS_OURS)) {
			found = or_exit(strdup(entries[i]->d_name));
			*verdict = its;
			file_release(file);
			*file = read;
			read = (struct file)FILE_NONE;
		}
		free(entries[i]);
	}
	free(entries);
	return found;
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

/* Where the name of what was kept of a conflist, or of a folder's plugin, ends as that one's does.
 */
static char *end_of_kept(const char *name)
{
	return text_ends_with(name, ".conflist" KEPT_END) || text_ends_with(name, ".conf" KEPT_END)
		       ? (char *)name + strlen(name) - strlen(KEPT_END)
		       : NULL;
}

static int is_list_or_kept(const struct dirent *entry)
{
	return text_ends_with(entry->d_name, ".conflist") ||
	       text_ends_with(entry->d_name, ".conflist" KEPT_END);
}

static int is_plugin_or_kept(const struct dirent *entry)
{
	return conflist_is_of_folder(entry) || text_ends_with(entry->d_name, ".conf" KEPT_END);
}

/* The plugins of a list's folder are visited after the list. */
static int visit_folder(const struct directory *directory, const char *name, list_visit *visit,
			void *context, struct cni_error *err)
{
	struct directory folder = DIRECTORY_CLOSED;
	int result = 0;

	if (!directory->of_network && lists_open_folder(directory, name, &folder))
		result = lists_visit(&folder, visit, context, err);
	directory_close(&folder);
	return result;
}

int lists_visit(const struct directory *directory, list_visit *visit, void *context,
		struct cni_error *err)
{
	struct dirent **entries = NULL;
	int result = 0,
	    count = scandirat(directory->fd, ".", &entries,
			      directory->of_network ? is_plugin_or_kept : is_list_or_kept,
			      alphasort);

	for (int i = 0; i < count; i++) {
		char *name = entries[i]->d_name, *end = end_of_kept(name);

		if (end)
			*end = '\0';
		/* Of a list that is there, its own name is another entry. */
		if (!result && !(end && !faccessat(directory->fd, name, F_OK, AT_SYMLINK_NOFOLLOW)))
			result = visit(directory, name, context, err) ||
						 visit_folder(directory, name, visit, context, err)
					 ? -1
					 : 0;
		free(entries[i]);
	}
	free(entries);
	return result;
}
