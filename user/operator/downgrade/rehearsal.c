/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rehearsal.c - lets the older version load its programs while ours still work. */
#include "operator/downgrade/rehearsal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/warning.h"
#include "operator/downgrade/adds.h"
#include "operator/run_command.h"

#define VETH "bpfpmrehearsal" /* 14 characters; a container's never has this name */
#define NETWORK "bpf-portmap-downgrade"
#define SECONDS 30

static _Noreturn void stay_in_namespace(int ready, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!unshare(CLONE_NEWNET) && getppid() == parent && write(ready, "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

/* A process in a network namespace of its own; both end with us. -1 and errno. */
static pid_t start_namespace(void)
{
	pid_t parent = getpid(), child;
	int ready[2];
	char byte;

	if (pipe(ready))
		return -1;
	child = fork();
	if (!child)
		stay_in_namespace(ready[1], parent);
	close(ready[1]);
	if (child > 0 && read(ready[0], &byte, 1) != 1) {
		waitpid(child, NULL, 0);
		child = -1;
		errno = EPERM;
	}
	close(ready[0]);
	return child;
}

static void end_namespace(pid_t child)
{
	static const char *const arguments[] = {"ip", "link", "delete", VETH, NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};

	command_run(&run);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int make_veth(pid_t child, struct cni_error *err)
{
	char number[16], why[COMMAND_FAILURE_SIZE];
	const char *const arguments[] = {"ip",   "link", "add",  VETH,    "type", "veth",
					 "peer", "name", "eth0", "netns", number, NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};

	snprintf(number, sizeof(number), "%d", child);
	return command_run(&run)
		       ? 0
		       : cni_error_set(err, CNI_ERROR_IO, "%s", command_run_why(&run, why));
}

/* Masquerade alone, at no uplink. An address for documentation (RFC 5737), which nobody has. */
static json_t *make_container(void)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s, s:b, s:[s],"
			 " s:{s:s, s:[{s:s, s:s}], s:[{s:s, s:i}]}}}",
			 "network", NETWORK, "container_id", "rehearsal", "ifname", "eth0", "args",
			 "", "config", "cniVersion", "1.0.0", "name", NETWORK, "type",
			 "bpf-portmap", "ipMasq", 1, "uplinks", VETH, "prevResult", "cniVersion",
			 "1.0.0", "interfaces", "name", "eth0", "sandbox", "/", "ips", "address",
			 "203.0.113.77/32", "interface", 0);
}

int rehearse(const char *binary, struct cni_error *err)
{
	cleanup_json json_t *container = make_container();
	cleanup_error struct cni_error why = {0};
	pid_t child = start_namespace();
	char netns[32];
	int result = 0;

	if (child < 0)
		cni_error_set(&why, CNI_ERROR_IO, "cannot make a network namespace: %s",
			      strerror(errno));
	if (child < 0 || make_veth(child, &why)) {
		warning("ports stay closed until the kernel has verified the older programs: %s",
			cni_error_message(&why));
	} else {
		snprintf(netns, sizeof(netns), "/proc/%d/ns/net", child);
		result = add_make(container, "ADD", netns, binary, err) ||
					 add_make(container, "DEL", netns, binary, err)
				 ? -1
				 : 0;
	}
	if (child > 0)
		end_namespace(child);
	return result;
}
