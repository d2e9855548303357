/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * uninstall.c - `bpf-portmap uninstall`: takes it off a node again: conflists first, so that new
 * containers do without; then what is in the kernel; the binary, which lists may not name by then,
 * last. Killed anywhere, the next call completes it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "datapath/records/attachment.h"
#include "datapath/records/attachments.h"
#include "host/host.h"
#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "net/link.h"
#include "net/tc.h"
#include "operator/install/installer.h"
#include "operator/install/lists.h"
#include "operator/verbs.h"
#include "operator/view/mappings.h"
#include "operator/view/portmap_gone.h"
#include "operator/view/view.h"

/* --- conflists and binaries -------------------------------------------------------------- */

/* Whatever it is, also what a link leads to. */
static bool mentions_ours(const struct directory *directory, const char *name)
{
	cleanup_close int fd = openat(directory->fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cleanup_error struct cni_error ignored = {0};
	cleanup_free char *text = NULL;
	size_t length;

	if (fd >= 0)
		text = cni_read_all(fd, CNI_INPUT_LIMIT, name, &length, &ignored);
	return text && strstr(text, "\"" OUR_TYPE "\"");
}

/* A list that stays as it is must not name a binary that goes. */
static int check_list(const struct directory *directory, const char *name, void *context,
		      struct cni_error *err)
{
	const struct installer *installer = context;
	cleanup_error struct cni_error why = {0};
	cleanup_file struct file file = FILE_NONE;
	enum list_verdict verdict = list_look(directory, name, &file, &why);
	bool is_named = installer->list && !strcmp(installer->list, name);

	if (verdict == LIST_HAS_REFERENCE || verdict == LIST_HAS_NEITHER)
		return 0;
	if (verdict == LIST_HAS_OURS && !is_named && !list_was_changed(directory, name))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "nothing was changed: %s/%s names " OUR_TYPE
				     ", and not because"
				     " `bpf-portmap install` has changed it: change it by hand, or"
				     " name it with --list to make it " REFERENCE_TYPE,
				     directory->path, name);
	if (verdict == LIST_HAS_OURS || !mentions_ours(directory, name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "nothing was changed: %s/%s names " OUR_TYPE
			     ", and cannot be changed here: %s",
			     directory->path, name, cni_error_message(&why));
}

/* What was kept of a list that is gone, half written or a link may be the only good copy, and
 * stays; it does not take the place of the list, which may be an agent's work. No runtime reads it.
 */
static int give_back_list(const struct directory *directory, const char *name, void *context,
			  struct cni_error *err)
{
	cleanup_error struct cni_error why = {0};
	cleanup_file struct file file = FILE_NONE;
	enum list_verdict verdict = list_look(directory, name, &file, &why);

	if (verdict == LIST_HAS_OURS) {
		if (list_change(directory, name, &file, false, err))
			return -1;
		directory_say(directory, name, "has " REFERENCE_TYPE " again");
	}
	if (file.fd >= 0 && verdict != LIST_IS_NO_JSON && verdict != LIST_IS_REFUSED)
		return list_forget(directory, name, err);
	if (list_was_changed(directory, name))
		directory_say(directory, name,
			      "what it was before `install` stays in %s/%s" KEPT_END ", as %s",
			      directory->path, name, cni_error_message(&why));
	return 0;
}

/* In a directory that does not exist, and so is not open, nothing is found. */
static int open_if_there(struct directory *directory, const char *path, struct cni_error *err)
{
	return access(path, F_OK) ? 0 : directory_open(directory, path, err);
}

/* From here to the end no `install --watch` makes a list ours again. */
static int open_and_lock(struct installer *installer, int *lock, struct cni_error *err)
{
	if (open_if_there(&installer->bin, installer->bin_path, err) ||
	    open_if_there(&installer->conf, installer->conf_path, err))
		return -1;
	return installer->bin.fd >= 0 ? directory_lock(&installer->bin, lock, err) : 0;
}

static int give_back(struct installer *installer, struct cni_error *err)
{
	int undone;

	if (binaries_check_package(&installer->bin, err) ||
	    lists_visit(&installer->conf, check_list, installer, err) ||
	    lists_visit(&installer->conf, give_back_list, installer, err))
		return -1;
	undone = alias_undo(&installer->bin, err);
	if (undone > 0)
		directory_say(&installer->bin, ALIAS, "is the reference plugin again");
	directory_sweep(&installer->conf);
	return undone < 0 ? -1 : 0;
}

/* Whether a runtime that adds a container now runs the reference plugin. */
static bool has_reference(const struct installer *installer)
{
	cleanup_free char *first = lists_first(&installer->conf);
	cleanup_error struct cni_error ignored = {0};
	cleanup_file struct file file = FILE_NONE;

	return first && list_look(&installer->conf, first, &file, &ignored) == LIST_HAS_REFERENCE;
}

/* --- containers -------------------------------------------------------------------------- */

/* Of an engine's ID people need the first digits. */
static void shorten_id(char *text)
{
	for (char *digits = text; *(digits += strcspn(digits, "0123456789abcdef"));) {
		size_t length = strspn(digits, "0123456789abcdef");

		if (length == ENGINE_ID_DIGITS) {
			memmove(digits + ENGINE_ID_SHOWN, digits + length,
				strlen(digits + length) + 1);
			length = ENGINE_ID_SHOWN;
		}
		digits += length;
	}
}

/* Prints those that live, and have ports or are masqueraded, a line for each. */
static int print_containers(const struct host *host, struct view *view, size_t *living,
			    struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_mappings struct mappings mappings = {0};
	char who[DESCRIBED_ATTACHMENT_SIZE], ports[PORTS_TEXT_SIZE];
	size_t count;

	if (mappings_read(&mappings, view, err) || mappings_add_replaced(&mappings, view, err) ||
	    mappings_add_masqueraded(&mappings, view, err) ||
	    attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (!mappings_write_ports(&mappings, entries[i].attachment.owner, ports) ||
		    !attachment_has_veth(&host->datapath.objects, &entries[i].attachment))
			continue;
		view_describe(view, &entries[i], who);
		shorten_id(who);
		printf("%s: %s\n", who, ports);
		(*living)++;
	}
	return 0;
}

/* Call it with the lock. */
static int refuse_containers(const struct installer *installer, const struct host *host,
			     struct cni_error *err)
{
	cleanup_view struct view view = {0};
	size_t living = 0;

	view_of_host(&view, host);
	if (print_containers(host, &view, &living, err))
		return -1;
	if (!living)
		return 0;
	cni_error_set(err, CNI_ERROR_TRY_AGAIN,
		      "%zu container%s host ports or masquerade from " OUR_TYPE, living,
		      living == 1 ? " still has" : "s still have");
	return cni_error_set_details(
		err,
		"new containers %s from now on; stop these, or create them anew (a static Pod by"
		" moving its manifest away and back, one without an owner by creating it again),"
		" and then run uninstall again; with --drop-ports it goes on, and their ports are "
		"lost at once",
		has_reference(installer) ? "get their ports from " REFERENCE_TYPE
					 : "get no host ports");
}

/* --- the kernel -------------------------------------------------------------------------- */

static void print_change(const char *interface, const char *what, void *context)
{
	printf("%s: %s\n", interface, what);
}

static int remove_attachments(struct host *host, struct release *release, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	if (attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		const struct attachment *attachment = &entries[i].attachment;

		bridge_entry_delete(attachment->ifindex, attachment->container_mac);
		if (attachment_remove_locked(release, &entries[i].key, &failure))
			result = cni_error_chain(err, &failure);
	}
	return result;
}

/* What the bandwidth plugin sends a container's packets through. */
static bool detach_from_shaper(uint32_t ifindex)
{
	const struct attached_program attached = {MECHANISM_CLSACT, PROGRAM_FROM_CONTAINER,
						  shaper_program(ifindex)};

	if (!attached.id)
		return false;
	hook_detach(ifindex, HOOK_EGRESS, &attached);
	return true;
}

static void detach_from(struct host *host, const struct link_name *link)
{
	bool detached = detach_from_shaper(link->ifindex);
	struct hooks_look look;
	struct interface entry;

	hooks_look(&look, link->ifindex, qdisc_at_ingress(link->ifindex), &host->datapath.objects);
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		for_each (hung, look.hooks[hook].list, look.hooks[hook].count) {
			const struct attached_program ours = {hung->mechanism, hung->program,
							      hung->id};

			if (hung->program == PROGRAM_COUNT)
				continue;
			hook_detach(link->ifindex, (enum hook)hook, &ours);
			detached = true;
		}
	hooks_look_release(&look);
	if (detached)
		host_report(host, link->name, "detached");
	/* A killed run may have left the qdisc. */
	detached |= datapath_is_usable(&host->datapath) &&
		    interface_read(&host->datapath.objects, link->ifindex, &entry);
	if (detached)
		qdisc_delete_empty_clsact(link->ifindex);
}

static int detach_from_all(struct host *host, struct cni_error *err)
{
	struct link_names links = {0};
	int result = link_names_read(&links, err);

	for (size_t i = 0; i < links.count && !result; i++)
		detach_from(host, &links.list[i]);
	free(links.list);
	return result;
}

/* Removes every attachment, dead or alive, as DEL does; detaches the programs from all interfaces,
 * deletes the clsact qdiscs that nobody else uses, detaches the programs at sockets, and removes
 * the pins, meta last: by it the next call knows what a killed one has left. What hosts in other
 * network namespaces have is theirs. The host is open alone; its lock is released. */
static int remove_host(struct host *host, struct cni_error *err)
{
	struct release release = {.objects = &host->datapath.objects};

	if ((datapath_is_usable(&host->datapath) && remove_attachments(host, &release, err)) ||
	    detach_from_all(host, err) ||
	    (bpffs_is_mounted() && pins_remove(host->datapath.directory, err)))
		return -1;
	return 0;
}

/* Alone: no ADD claims anything in between, and one that loads just now has finished.
 */
static int remove_from_kernel(const struct installer *installer, const struct options *options,
			      struct cni_error *err)
{
	cleanup_host struct host host = {.report = print_change};
	struct datapath *datapath = &host.datapath;
	cleanup_pins_lock int pins_lock = -1;
	bool was_there;

	if ((bpffs_is_mounted() && (bpffs_verify(err) || pins_lock_take(&pins_lock, err))) ||
	    host_open(&host, DATAPATH_ALONE, err))
		return -1;
	was_there = datapath->state != DATAPATH_ABSENT;
	if (datapath->state == DATAPATH_FOREIGN && !options->purge)
		return datapath_refuse_foreign(datapath, err);
	host_find_maps(&host);
	if (datapath_is_usable(datapath) && !options->drop_ports &&
	    refuse_containers(installer, &host, err))
		return -1;
	if (remove_host(&host, err))
		return -1;
	if (was_there)
		printf("%s: removed\n", datapath->directory);
	return 0;
}

/* Rules of portmap for containers that had their DEL by us, or none, would get the packets of those
 * to which portmap gives the ports from now on. */
static int remove_rules_of_portmap(struct cni_error *err)
{
	cleanup_host struct host host = {0};
	size_t count = 0;

	if (host_open(&host, DATAPATH_READ, err))
		return -1;
	return portmap_gone_remove(&host, false, &count, err);
}

/* Last of all the binary. A runtime that had read the list before may have run it until then;
 * without it nobody could run that container's DEL, and then uninstall. */
static int remove_binary_and_look(struct installer *installer, const struct options *options,
				  struct cni_error *err)
{
	struct cni_error failure = {0};
	int removed;

	directory_sweep(&installer->bin);
	removed = binary_remove(&installer->bin, err);
	if (removed < 0)
		return -1;
	if (!remove_from_kernel(installer, options, err)) {
		if (removed)
			directory_say(&installer->bin, OUR_BINARY, "removed");
		return 0;
	}
	if (!removed)
		return -1;
	if (binary_put(&installer->bin, OUR_BINARY, &installer->self, &failure) < 0)
		return cni_error_chain(err, &failure);
	return cni_error_wrap(err, "%s/" OUR_BINARY " stays until that is mended",
			      installer->bin.path);
}

int verb_uninstall(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_installer struct installer installer;
	int lock = -1, result = -1;

	if (!installer_open(&installer, options, err) && !open_and_lock(&installer, &lock, err) &&
	    !give_back(&installer, err) && !remove_rules_of_portmap(err) &&
	    !remove_from_kernel(&installer, options, err) &&
	    !remove_binary_and_look(&installer, options, err))
		result = EXIT_SUCCESS;
	directory_unlock(&installer.bin, &lock);
	if (!result)
		puts("nothing of " OUR_TYPE " is left in use on this host");
	return result;
}
