/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* engines.c - what /proc and the files of container engines say about a container. */
#include "operator/engines.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/text_file.h"

#define MIN_UNIQUE_ID 12

bool engines_run(const char *container_id)
{
	char path[64], text[4096];
	struct dirent *entry;
	bool found = false;
	DIR *proc;

	if (strlen(container_id) < MIN_UNIQUE_ID)
		return false;
	proc = opendir("/proc");
	while (proc && !found && (entry = readdir(proc))) {
		int pid = (int)strtol(entry->d_name, NULL, 10); /* 0: it is no process */

		if (!pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
		text_file_read(path, text, sizeof(text));
		found = strstr(text, container_id);
	}
	if (proc)
		closedir(proc);
	return found;
}
