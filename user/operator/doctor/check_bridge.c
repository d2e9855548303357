/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_bridge.c - checks of what else is at the containers' bridges. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"
#include "net/text_file.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "operator/doctor/ruleset.h"

/* NULL: it is no bridge. */
static DIR *open_ports(const struct known_interface *bridge)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s/brif", bridge->link.name);
	return bridge->link.ifindex ? opendir(path) : NULL;
}

/* The next port of the bridge; false, and the directory is closed: there are no more. */
static bool next_port(DIR *directory, char name[IF_NAMESIZE])
{
	const struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= IF_NAMESIZE)
			continue;
		memcpy(name, entry->d_name, strlen(entry->d_name) + 1);
		return true;
	}
	if (directory)
		closedir(directory);
	return false;
}

static bool is_isolated(const char *port)
{
	char path[64], value[4];

	snprintf(path, sizeof(path), "/sys/class/net/%s/brport/isolated", port);
	text_file_read(path, value, sizeof(value));
	return *value == '1';
}

void check_isolation(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->interface_count; i++) {
		DIR *directory = open_ports(&doctor->interfaces[i]);
		char first[IF_NAMESIZE] = "", last[IF_NAMESIZE] = "";
		char name[IF_NAMESIZE];

		while (next_port(directory, name)) {
			if (!is_isolated(name))
				continue;
			memcpy(first, last, sizeof(first));
			memcpy(last, name, sizeof(last));
		}
		if (*first)
			doctor_found(
				doctor, VERDICT_WARN,
				cni_format("bridge link set dev %s isolated off\n"
					   "# or leave it so: \"portIsolation\" asks for it",
					   remedy_word(last).text),
				"%s: %s and %s are isolated: containers there do not reach each"
				" other's mapped ports",
				doctor->interfaces[i].link.name, first, last);
	}
}

/* The number of ports that belong to no container of ours, and the last one's name. */
static unsigned int count_strangers(const struct doctor *doctor,
				    const struct known_interface *bridge, char last[IF_NAMESIZE])
{
	DIR *directory = open_ports(bridge);
	unsigned int count = 0;
	char name[IF_NAMESIZE];

	while (next_port(directory, name)) {
		if (doctor_interface(doctor, link_index(name)))
			continue;
		memcpy(last, name, sizeof(name));
		count++;
	}
	return count;
}

static void report_strangers(struct doctor *doctor, const struct known_interface *bridge,
			     const struct judgement *judgement)
{
	char name[IF_NAMESIZE] = "", more[32] = "";
	unsigned int count = count_strangers(doctor, bridge, name);

	if (!count)
		return;
	if (count > 1)
		snprintf(more, sizeof(more), " (and %u more)", count - 1);
	/* bridge-nf-call-iptables=0 would mend it as well, and break Services of Kubernetes. */
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# add that container again with bpf-portmap in its conflist, or"
				" accept what %s switches before the rule that drops INVALID",
				remedy_word(bridge->link.name).text),
		     "%s%s at %s belongs to no container of ours, and does not reach their ports:"
		     " the bridge's packets pass iptables, and %s %s %s drops INVALID",
		     name, more, bridge->link.name, judgement->family, judgement->table,
		     judgement->chain);
}

/* What answers a neighbour's masqueraded connection is INVALID to conntrack where the neighbour is
 * at no veth of ours. */
void check_bridge_netfilter(struct doctor *doctor)
{
	char value[4];

	text_file_read("/proc/sys/net/bridge/bridge-nf-call-iptables", value, sizeof(value));
	for (size_t i = 0; *value == '1' && i < doctor->interface_count; i++) {
		const struct known_interface *bridge = &doctor->interfaces[i];
		struct forwarded packet = {.ipv4 = true,
					   .state = "invalid",
					   .in = bridge->link.name,
					   .out = bridge->link.name,
					   .protocol = PROTOCOL_TCP};
		struct judgement judgement = ruleset_judge(doctor->ruleset, &packet);

		if (judgement.fate == FATE_DROPPED)
			report_strangers(doctor, bridge, &judgement);
	}
}
