/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_host.c - checks of the BPF file system and what is pinned there, of rights and the lock. */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "datapath/attach/socket_hooks.h"
#include "datapath/load/bpf_error.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/lock.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"

#define LOCK_LOOKS 150 /* an ADD holds it for a few milliseconds, the first one for a second */
#define LOCK_PAUSE_US 20000

void check_bpffs(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};
	struct statvfs status;

	if (bpffs_is_of_host())
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("mount -t bpf bpf " BPFFS " # on the host"),
			     "this container sees no BPF file system at " BPFFS
			     ": the first ADD on the host mounts one");
	else if (!bpffs_is_mounted())
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("mount -t bpf bpf " BPFFS "\nbpf-portmap repair"),
			     "no BPF file system is mounted at " BPFFS);
	else if (!statvfs(BPFFS, &status) && status.f_flag & ST_RDONLY)
		doctor_found(doctor, VERDICT_FAIL, cni_format("mount -o remount,rw " BPFFS),
			     BPFFS " is mounted read-only");
	else if (bpffs_verify(&err))
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("chown 0:0 %s; chmod 1700 %s", BPFFS, BPFFS), "%s",
			     cni_error_message(&err));
}

void check_pins(struct doctor *doctor)
{
	const struct datapath *datapath = &doctor->host.datapath;

	if (datapath->state == DATAPATH_DAMAGED)
		doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
			     "maps or programs are missing in %s", datapath->directory);
	/* Without the file system nobody knows. */
	if (datapath->state == DATAPATH_ABSENT && bpffs_is_mounted() &&
	    view_runs_without_pins(datapath))
		doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
			     "programs run at interfaces, and the pins of their maps are gone from"
			     " %s",
			     datapath->directory);
}

void check_version(struct doctor *doctor)
{
	const struct datapath *datapath = &doctor->host.datapath;
	const char *gap = datapath_conntrack_gap(datapath);
	cleanup_error struct cni_error err = {0};

	if (datapath->state == DATAPATH_FOREIGN) {
		datapath_refuse_foreign(datapath, &err);
		doctor_found(doctor, VERDICT_FAIL, NULL, "%s", cni_error_message(&err));
	} else if (datapath->is_blind) {
		doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "conntrack, Open vSwitch or tc's action ct came after the programs:"
			     " connections that another NAT of this host translates may end at a"
			     " container");
	} else if (datapath->state == DATAPATH_OUTDATED) {
		doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap upgrade"),
			     "the programs that run are of bpf-portmap %.*s, this is %s",
			     PROGRAM_VERSION_SIZE, datapath->maker, PROGRAM_VERSION);
	}
	if (gap)
		doctor_found(doctor, VERDICT_NOTE, NULL, "%s", gap);
	gap = datapath_realtime_gap();
	if (gap)
		doctor_found(doctor, VERDICT_NOTE, NULL, "%s", gap);
}

void check_cgroup(struct doctor *doctor)
{
	cleanup_error struct cni_error err = {0};
	struct cgroup_root root;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		if (!doctor->mappings.list[i].portmap.localhost)
			continue;
		if (cgroup_root_open(&root, &err)) {
			doctor_found(doctor, VERDICT_WARN,
				     cni_format("mount -t cgroup2 cgroup2 /sys/fs/cgroup"),
				     "processes of this host reach mapped ports on a slower way, by"
				     " lo: %s",
				     cni_error_message(&err));
			return;
		}
		close(root.fd);
		if (!root.is_whole)
			doctor_found(doctor, VERDICT_WARN, NULL,
				     "%s is not the root of all cgroups: processes outside of it"
				     " reach mapped ports on a slower way, by lo",
				     root.path);
		return;
	}
}

void check_rights(struct doctor *doctor)
{
	bool said = doctor->finding_count &&
		    doctor->findings[doctor->finding_count - 1].verdict == VERDICT_FAIL;

	/* The file system, which was looked at just before, may be the reason. */
	if (doctor->blind && !said)
		doctor_found(doctor, bpf_error_obstacle() ? VERDICT_FAIL : VERDICT_COULD_NOT_LOOK,
			     geteuid() ? cni_format("# run doctor as root") : NULL, "%s",
			     doctor->blind);
}

void check_lock(struct doctor *doctor)
{
	char holder[LOCK_HOLDER_SIZE];

	for (int i = 0; i < LOCK_LOOKS; i++) {
		if (!lock_is_held(holder))
			return;
		usleep(LOCK_PAUSE_US);
	}
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# if it hangs, end that process: the lock goes with it"),
		     "ADD and DEL wait for %s, which has had their lock for %d ms", holder,
		     LOCK_LOOKS * LOCK_PAUSE_US / 1000);
}
