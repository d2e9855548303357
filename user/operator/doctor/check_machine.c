/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_machine.c - checks of rights, and of the lock. */
#include <unistd.h>

#include "datapath/load/bpf_error.h"
#include "datapath/load/lock.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"

#define LOCK_LOOKS 10 /* an ADD holds it for a few milliseconds */
#define LOCK_PAUSE_US 20000

void check_rights(struct doctor *doctor)
{
	bool said = doctor->finding_count &&
		    doctor->findings[doctor->finding_count - 1].verdict == VERDICT_FAIL;

	/* The file system, which was looked at just before, may be the reason. */
	if (doctor->blind && !said)
		doctor_found(doctor, bpf_error_obstacle() ? VERDICT_FAIL : VERDICT_COULD_NOT_LOOK,
			     geteuid() ? cni_format("sudo bpf-portmap doctor") : NULL, "%s",
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
