/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* installer.c - our binary among the plugins of a node, and our plugin in its list. */
#include "operator/install/installer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/json.h"
#include "cni/network_config.h"
#include "cni/version.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/pins.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "operator/conflists.h"
#include "operator/install/files.h"
#include "operator/install/lists.h"
#include "plugin/commands.h"

#define PROGRAM_LIMIT ((size_t)64 << 20)

static bool is_link(const struct directory *directory, const char *name, char target[PATH_MAX])
{
	ssize_t length = readlinkat(directory->fd, name, target, PATH_MAX - 1);

	target[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool is_there(const struct directory *directory, const char *name)
{
	return !faccessat(directory->fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Of any version: every one names the directory of its pins, and no other plugin does. */
static bool is_ours(const struct directory *directory, const char *name)
{
	cleanup_file struct file file = FILE_NONE;
	cleanup_error struct cni_error ignored = {0};

	return !file_read(directory, name, &file, &ignored) && file.text &&
	       memmem(file.text, file.length, PINS_ROOT, strlen(PINS_ROOT));
}

/* Returns whether the file is the program `self`, and can be run. */
static bool binary_is_self(const struct directory *directory, const char *name,
			   const struct file *self)
{
	cleanup_file struct file file = FILE_NONE;
	cleanup_error struct cni_error ignored = {0};

	return !file_read(directory, name, &file, &ignored) && file.text &&
	       (file.status.st_mode & 0555) == 0555 && file.length == self->length &&
	       !memcmp(file.text, self->text, file.length);
}

int binary_put(const struct directory *directory, const char *name, const struct file *self,
	       struct cni_error *err)
{
	if (binary_is_self(directory, name, self))
		return 0;
	return file_put(directory, name, self, NULL, err) ? -1 : 1;
}

/* Returns whether the alias is there already. */
static bool alias_is_put(const struct directory *directory, const struct file *self)
{
	char target[PATH_MAX];

	return is_link(directory, ALIAS, target) ? !strcmp(target, OUR_BINARY)
						 : binary_is_self(directory, ALIAS, self);
}

/* There is none, or it is ours, of an older version. */
static int keep_reference(const struct directory *directory, struct cni_error *err)
{
	cleanup_file struct file reference = FILE_NONE;

	if (!is_there(directory, ALIAS) || is_ours(directory, ALIAS))
		return 0;
	if (file_read(directory, ALIAS, &reference, err))
		return -1;
	return file_put(directory, KEPT_REFERENCE, &reference, &reference, err);
}

/* Puts `self` in the place of the reference plugin, and keeps that as KEPT_REFERENCE, where its
 * containers' DEL finds it. There is a file `portmap` at every instant. Returns whether something
 * changed; -1: CNI_ERROR_IO; CNI_ERROR_INVALID_CONFIGURATION where `portmap` is a link to a program
 * that may look at its own name, as that of k3s does. */
static int alias_put(const struct directory *directory, const struct file *self,
		     struct cni_error *err)
{
	char target[PATH_MAX];

	if (is_link(directory, ALIAS, target))
		return !strcmp(target, OUR_BINARY)
			       ? 0
			       : cni_error_set(
					 err, CNI_ERROR_INVALID_CONFIGURATION,
					 "%s/" ALIAS
					 " is a link to %s, which may look at the name under which"
					 " it is run: --alias is not possible there; install "
					 "without it",
					 directory->path, target);
	return keep_reference(directory, err) ? -1 : binary_put(directory, ALIAS, self, err);
}

int alias_undo(const struct directory *directory, struct cni_error *err)
{
	bool is_kept = is_there(directory, KEPT_REFERENCE), ours = is_ours(directory, ALIAS);
	char target[PATH_MAX];

	/* A link is somebody else's; install makes none. */
	if (!(ours || is_kept) || is_link(directory, ALIAS, target))
		return 0;
	if (is_kept && (ours || !is_there(directory, ALIAS)))
		return file_move(directory, KEPT_REFERENCE, ALIAS, err) ? -1 : 1;
	/* Or some agent has put another one there since. */
	return file_remove(directory, ours ? ALIAS : KEPT_REFERENCE, err) ? -1 : 1;
}

int binary_remove(const struct directory *directory, struct cni_error *err)
{
	if (!is_ours(directory, OUR_BINARY))
		return 0;
	return file_remove(directory, OUR_BINARY, err) ? -1 : 1;
}

int binaries_check_package(const struct directory *directory, struct cni_error *err)
{
	char target[PATH_MAX];

	if (!is_link(directory, ALIAS, target) || strcmp(target, OUR_BINARY) != 0)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s/" ALIAS " is a link to " OUR_BINARY ", as the package"
			     " bpf-portmap-as-portmap makes it: remove that package first",
			     directory->path);
}

/* "--list /etc/cni/net.d/x.conflist" says the directory as well. */
static void choose_list(struct installer *installer, const struct options *options)
{
	const char *directory = options->conf_dir ? options->conf_dir : DEFAULT_CONF_DIR;
	const char *list = options->list, *slash = list ? strrchr(list, '/') : NULL;

	snprintf(installer->conf_path, sizeof(installer->conf_path), "%s", directory);
	if (slash)
		snprintf(installer->conf_path, sizeof(installer->conf_path), "%.*s/",
			 (int)(slash - list), list);
	if (list)
		installer->list = or_exit(strdup(slash ? slash + 1 : list));
}

int installer_open(struct installer *installer, const struct options *options,
		   struct cni_error *err)
{
	*installer = (struct installer){
		.alias = options->alias,
		.bin_path = options->bin_dir ? options->bin_dir : DEFAULT_BIN_DIR,
		.self = FILE_NONE,
		.bin = DIRECTORY_CLOSED,
		.conf = DIRECTORY_CLOSED,
		.folder = DIRECTORY_CLOSED,
	};
	choose_list(installer, options);
	installer->self.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (installer->self.fd < 0)
		return cni_error_set(err, CNI_ERROR_IO,
				     "cannot open this program (/proc/self/exe): %s",
				     strerror(errno));
	installer->self.text = cni_read_all(installer->self.fd, PROGRAM_LIMIT, "/proc/self/exe",
					    &installer->self.length, err);
	return installer->self.text ? 0 : -1;
}

void installer_close(struct installer *installer)
{
	file_release(&installer->self);
	directory_close(&installer->bin);
	directory_close(&installer->conf);
	directory_close(&installer->folder);
	free(installer->list);
}

int installer_look(struct installer *installer, struct cni_error *err)
{
	if (directory_open(&installer->bin, installer->bin_path, err) ||
	    directory_open(&installer->conf, installer->conf_path, err))
		return -1;
	return 0;
}

static json_t *parse(const char *text)
{
	json_t *list = json_loads(text, 0, NULL);

	/* A number that no integer holds is none of our options. */
	return list ? list : json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
}

/* Of "cniVersions" runtimes take the newest that they know, so that one is enough. */
static int check_versions(const json_t *list, struct cni_error *err)
{
	const json_t *version = cni_json_get(list, "cniVersion");
	const json_t *versions = cni_json_get(list, "cniVersions");
	size_t i;

	if (!json_string_length(version) && !json_array_size(versions))
		return 0;
	if (json_string_length(version) &&
	    !cni_version_check(CNI_ADD, json_string_value(version), err))
		return 0;
	json_array_foreach (versions, i, version) {
		cni_error_release(err);
		if (json_is_string(version) &&
		    !cni_version_check(CNI_ADD, json_string_value(version), err))
			return 0;
	}
	return -1;
}

/* A plugin of a network's folder needs none. */
static int check_name(const json_t *list, struct cni_error *err)
{
	if (!json_object_get(list, "plugins") || json_string_length(cni_json_get(list, "name")))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "the list has no \"name\", so that no runtime takes it: give it one");
}

/* What ADD and STATUS say. Where only containers suffer that are there, the next ADD mends that. */
static int probe(const char *text, struct cni_error *err)
{
	cleanup_json json_t *list = parse(text);
	/* Of the plugin whose place ours takes, so that options which ours refuses are seen before
	 * the first container needs it. */
	json_t *plugin = conflist_plugin(list, REFERENCE_TYPE);
	json_t *entry = plugin || strcmp(plugin_type(list), REFERENCE_TYPE) ? plugin : list;
	cleanup_json json_t *none = json_object();
	const struct cni_network_config config = {.root = entry ? entry : none};
	cleanup_error struct cni_error failure = {0};

	/* As the first ADD does, which only that can do for a container that installs. */
	if (bpffs_is_mounted() ? bpffs_verify(err) : !bpffs_is_of_host() && bpffs_mount(err))
		return cni_error_wrap(err, "the node stays with " REFERENCE_TYPE);
	if (!check_name(list, &failure) && !check_versions(list, &failure) &&
	    (!command_status(NULL, &config, &failure) || failure.code == CNI_ERROR_LIMITED))
		return 0;
	cni_error_move(err, &failure);
	return cni_error_wrap(err, "the node stays with " REFERENCE_TYPE);
}

/* Refuses what can be refused before anything is changed. */
static int check(const struct installer *installer, const char *name, const struct file *list,
		 struct cni_error *err)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX];

	if (probe(list->text ? list->text : "", err))
		return -1;
	if (!list->text)
		return 0;
	directory_path(installer->where, name, path);
	text = list_text_change(list->text, REFERENCE_TYPE, OUR_TYPE, path, err);
	return text ? 0 : -1;
}

static void say(struct installer *installer, const struct directory *directory, const char *name,
		const char *what)
{
	directory_say(directory, name, "%s", what);
	installer->changes++;
}

/* Debian's containerd searches /usr/lib/cni first, for example. */
static void warn_of_others(const struct installer *installer)
{
	static const char *const directories[] = {"/opt/cni/bin", "/usr/lib/cni",
						  "/usr/libexec/cni"};
	char ours[PATH_MAX], other[PATH_MAX], own[PATH_MAX];

	if (!realpath(installer->bin_path, own))
		return;
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(other, sizeof(other), "%s/" ALIAS, directories[i]);
		if (access(other, X_OK) || !realpath(directories[i], ours) || !strcmp(ours, own))
			continue;
		fprintf(stderr,
			"bpf-portmap: %s is there as well: a runtime that searches %s first "
			"(bin_dirs,"
			" cni_path) never runs the alias; then install with --bin-dir %s\n",
			other, directories[i], directories[i]);
	}
}

static int put_binary(struct installer *installer, struct cni_error *err)
{
	int put = binary_put(&installer->bin, OUR_BINARY, &installer->self, err);

	if (put > 0)
		say(installer, &installer->bin, OUR_BINARY, "installed, version " PROGRAM_VERSION);
	if (put < 0 || !installer->alias)
		return put < 0 ? -1 : 0;
	put = alias_put(&installer->bin, &installer->self, err);
	if (put > 0)
		warn_of_others(installer);
	if (put > 0)
		say(installer, &installer->bin, ALIAS,
		    "is " OUR_BINARY " now; the reference plugin is " KEPT_REFERENCE);
	return put < 0 ? -1 : 0;
}

/* In the network's folder, where the list itself has neither. Returns whether there is one. */
static bool look_in_folder(struct installer *installer, char **name, struct file *list,
			   enum list_verdict *verdict)
{
	char *found = lists_open_folder(&installer->conf, *name, &installer->folder)
			      ? lists_find_in_folder(&installer->folder, list, verdict)
			      : NULL;

	if (!found)
		return false;
	free(*name);
	*name = found;
	installer->where = &installer->folder;
	return true;
}

/* What runtimes take by now. *name: malloc'ed, NULL where there is no list yet, which the alias
 * does not need: it changes none. */
static int look(struct installer *installer, char **name, struct file *list,
		enum list_verdict *verdict, struct cni_error *err)
{
	*name = installer->list ? or_exit(strdup(installer->list)) : lists_first(&installer->conf);
	*verdict = LIST_HAS_REFERENCE;
	installer->where = &installer->conf;
	if (!*name && installer->alias)
		return 0;
	if (!*name)
		return cni_error_set(err, CNI_ERROR_IO,
				     "%s has no conflist yet: the node's network is not set up",
				     installer->conf.path);
	*verdict = list_look(&installer->conf, *name, list, err);
	if (*verdict == LIST_HAS_NEITHER && look_in_folder(installer, name, list, verdict))
		cni_error_release(err);
	return *verdict == LIST_HAS_REFERENCE || *verdict == LIST_HAS_OURS ? 0 : -1;
}

static bool is_in_place(const struct installer *installer, enum list_verdict verdict)
{
	if (!installer->had_lock || !binary_is_self(&installer->bin, OUR_BINARY, &installer->self))
		return false;
	return installer->alias ? alias_is_put(&installer->bin, &installer->self)
				: verdict == LIST_HAS_OURS;
}

/* With the lock: what was seen without it may be another run's work by now. The binary first. */
static int change(struct installer *installer, struct cni_error *err)
{
	cleanup_free char *name = NULL;
	cleanup_file struct file list = FILE_NONE;
	enum list_verdict verdict;

	installer->had_lock = true;
	directory_sweep(&installer->bin);
	directory_sweep(&installer->conf);
	if (put_binary(installer, err) || look(installer, &name, &list, &verdict, err))
		return -1;
	if (verdict == LIST_HAS_OURS || installer->alias)
		return 0;
	if (list_change(installer->where, name, &list, true, err))
		return -1;
	if (!list_text_has_ports(list.text))
		fprintf(stderr,
			"bpf-portmap: %s/%s: " REFERENCE_TYPE " has no \"capabilities\":"
			" {\"portMappings\": true}, so runtimes tell it no ports: put that in\n",
			installer->where->path, name);
	say(installer, installer->where, name,
	    "has " OUR_TYPE " in the place of " REFERENCE_TYPE "; what it was is in the file "
	    "that ends with " KEPT_END);
	return 0;
}

int installer_run(struct installer *installer, struct cni_error *err)
{
	cleanup_free char *name = NULL;
	cleanup_file struct file list = FILE_NONE;
	enum list_verdict verdict;
	int result, lock = -1;

	if (look(installer, &name, &list, &verdict, err))
		return -1;
	if (is_in_place(installer, verdict))
		return 0;
	if ((verdict == LIST_HAS_REFERENCE && check(installer, name, &list, err)) ||
	    directory_lock(&installer->bin, &lock, err))
		return -1;
	result = change(installer, err);
	directory_unlock(&installer->bin, &lock);
	return result;
}
