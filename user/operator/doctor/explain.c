/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* explain.c - what each code of a finding means; docs/findings.md has the same text. */
#include "operator/doctor/explain.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 80

static const struct {
	const char *code, *text;
} explanations[] = {
	{"probe", "The packet that was sent did not come back as an answer, and the line says"
		  " where it ended. What it means to have sent one: a server's kernel sees a "
		  "SYN and then a RST, and its program sees no connection at all; the client "
		  "who is named gets no packet. A line that begins with the word note tells "
		  "of a client that doctor chose itself, and whom a firewall does not want: "
		  "ask with --from for one whom it should let in."},
	{"nat", "A rule of the host's own NAT, kube-proxy's or Docker's for example, takes what "
		"comes to the port, and the line names it. Where it was there at ADD, or at the "
		"last repair, the packets are left to it, as with portmap. One that came since "
		"gets nothing until the next bpf-portmap repair."},
	{"probe-policy",
	 "A firewall's chain drops whatever none of its rules accepts, and none "
	 "accepts this packet. The remedy adds rules at the end of that chain for "
	 "this port alone, and with --from for this client alone. Where the chain "
	 "lets others to the port, who else may come is your decision: no remedy is "
	 "printed without --from."},
	{"probe-rule", "A rule of a firewall drops or rejects the packet, or the answer to it. The"
		       " rule, its table and its handle are named. Somebody has written it on "
		       "purpose, so that no remedy is printed: change that rule, or where a tool "
		       "writes it, that tool's configuration."},
	{"probe-nat", "bpf-portmap's program has given the packet the container's address, and a "
		      "rule of the host's own NAT another one after that: the host itself, or "
		      "somebody else, gets it. The rule is named. Have it leave out what goes to "
		      "containers, by an interface or by the address that it is meant for."},
	{"probe-netfilter", "The kernel says that netfilter dropped it, and not which rule: "
			    "iptables-legacy, or a user of netfilter that nftables does not trace. "
			    "Rules of iptables-legacy that drop, and have counted the packet, are "
			    "listed behind the line."},
	{"probe-xdp", "An XDP program at the interface drops the packet before anything else of "
		      "the host sees it. Ask whoever attached it; ip link show names it."},
	{"probe-own", "bpf-portmap's own program drops the packet, for the reason that is named: "
		      "sourceRanges of the conflist, a full table, a limit. The counters of "
		      "bpf-portmap stats go by the same names."},
	{"probe-kernel",
	 "The kernel drops the packet for the reason that is named, outside of "
	 "firewalls: no route, a rule of ip rule that says blackhole, the reverse "
	 "path filter, a filter of a socket or a cgroup, a tc program or a queue of "
	 "others."},
	{"probe-refused", "The packet got into the container, and its kernel refuses: no process "
			  "listens at the container's port, or only at another address. Start the "
			  "program, have it listen at 0.0.0.0 and ::, or map the port at which it "
			  "listens."},
	{"probe-silent",
	 "The packet was lost, and nobody said that he dropped it. The line tells "
	 "how far it came: not to bpf-portmap's programs, into the container, or out"
	 " of it."},
	{"probe-way", "A look at the host, after the packet was lost, found what is wrong on its "
		      "way: forwarding, an interface that is down, a route, the bridge, a MAC "
		      "address, the container's route back."},
	{"probe-lost", "Of many packets some are lost or refused and others answered: a rule that "
		       "drops at random, a limit, a queue that is full, two containers with one "
		       "address. Ask again with --count 50; the line names what dropped the one of"
		       " which the most is known."},
	{"probe-size", "Small packets are answered, and those that fill the uplink's MTU are not. "
		       "Clients connect, and then hang. Look for a smaller MTU on the way (ip link"
		       " show), and for rules about sizes or about packets with data."},
	{"outwards", "A packet that a masqueraded container sends to a server outside does not "
		     "leave the host as it should, and the line says where it ended. It is sent "
		     "to a server to which a container is connected, or else to one that is made"
		     " up, and ends at the uplink."},
	{"connect", "A process of this host, or of a container, connected as --from and --to "
		    "say, or could not. It is a real connection, which is reset at once: the "
		    "server's program accepts one that has no data, and may log it. Where it "
		    "fails the rule of this host's nftables that drops it is named, if there is"
		    " one. The address of a server that is named is asked for from within the "
		    "container: in its /etc/hosts, and at the servers of its /etc/resolv.conf."},
	{"conflist-first",
	 "Runtimes take the first conflist of their directory, by its name, and it "
	 "is one without bpf-portmap: ports of new containers are not mapped. Remove"
	 " the other list, or give ours a name that comes first."},
	{"bpffs", "Maps and programs are kept in /sys/fs/bpf, which must be a BPF file system"
		  " that can be written to and that belongs to root. Without it each ADD "
		  "fails."},
	{"rights", "doctor could not look at maps, programs and interfaces. Run it as root; "
		   "where a container runs it, that needs CAP_NET_ADMIN, CAP_SYS_ADMIN and the"
		   " host's /sys/fs/bpf."},
	{"pins", "Maps or programs are missing from /sys/fs/bpf/bpf-portmap, or are older "
		 "than the ones that run, for example after another file system was mounted "
		 "over it for a while. The next ADD, or repair, loads and pins them again; "
		 "connections go on."},
	{"version", "The programs that run were loaded by another version of bpf-portmap. "
		    "bpf-portmap upgrade replaces them, and connections go on."},
	{"cgroup", "Connections from processes of the host itself are translated at their "
		   "sockets, by programs at the root of cgroup2, which is not mounted, or not "
		   "as a whole. Everything else works."},
	{"lock", "A process has had the lock of this host for longer than an ADD or DEL "
		 "takes, so that both wait. If it hangs, end it: the lock goes with it."},
	{"programs", "A program of bpf-portmap is missing at an uplink or a bridge: ports are "
		     "not mapped there. Somebody has removed it, with the qdisc for example. "
		     "repair attaches it again."},
	{"settled", "Interfaces have come, or changed their address or name, since the last ADD"
		    " or repair, and are not as the next one would have them. repair does that "
		    "at once."},
	{"uplinks", "The conflist's \"uplinks\" name no interface that there is: no port is "
		    "mapped from outside."},
	{"runs-behind", "A tc program of others comes after ours. At ingress it turns the fast path"
			" off, as it wants to see packets; at egress doctor runs it with an "
			"answer's headers, and says where it would drop that."},
	{"container-programs",
	 "A program of bpf-portmap is missing at a container's veth: what the "
	 "container sends is not translated. repair attaches it again."},
	{"bridge", "The bridge to which a container was connected is gone. Add the container "
		   "again, as ADD makes the bridge."},
	{"socket-programs",
	 "Programs at the sockets of the host's processes are missing, so that these"
	 " do not reach mapped ports by loopback addresses, or may bind to them. "
	 "repair attaches them again."},
	{"owner", "No container has the port, or the one that had it is gone. The engine's "
		  "log says why an ADD failed; bpf-portmap list shows the ports that are "
		  "mapped."},
	{"host-ip", "The port is mapped at an address that the host does not have (hostIP). "
		    "Give the host that address, or map the port without it."},
	{"ephemeral", "The host's own connections may get this port as their source port: answers"
		      " to such a connection would go to the container. Reserve it, as the remedy"
		      " does until the next boot; a file in /etc/sysctl.d keeps it."},
	{"way", "A look found something wrong on the way into the container or back: "
		"forwarding, an interface that is down, a route, the bridge, a MAC address."
		" No packet was sent to this port."},
	{"listener", "Nobody listens at the container's port, or only at another address, by the"
		     " container's list of sockets. No packet was sent to this port."},
	{"conntrack", "The host's table of nf_conntrack is nearly full, and the kernel drops new "
		      "connections when it is. bpf-portmap itself does not need it; firewalls do."},
	{"ipsec", "The host has IPsec policies, which are asked before an address is "
		  "translated: write them for containers' own addresses. The fast path is "
		  "off."},
	{"mtu", "Interfaces on the way have different MTUs. Where a container may send "
		"larger packets than the uplink takes, they are fragmented or refused; "
		"where its veth takes less than the container sends, they are lost without "
		"a word."},
	{"queues",
	 "A queue (qdisc) that packets leave by has dropped a tenth of them or more since "
	 "it was made: a shaper, whose rate or limit is too small, or a link that is too "
	 "slow. tc -s qdisc show dev INTERFACE tells the same. A probe is not dropped there: "
	 "it ends at bpf-portmap's program, before the queue."},
	{"resolver",
	 "A container's /etc/resolv.conf has a loopback address, such as systemd-resolved's"
	 " 127.0.0.53, which inside of the container is the container itself, and there"
	 " nobody listens: no name is found. Give the runtime a resolver that has an "
	 "address of its own; systemd-resolved's upstreams are in "
	 "/run/systemd/resolve/resolv.conf."},
	{"snat-address", "The host does not have an address of \"snatAddresses\": what leaves with "
			 "it gets no answer."},
	{"tables", "The table of connections is nearly full, or its places for those that nobody "
		   "has answered yet, as in a flood. bpf-portmap flows --top 10 shows whose they "
		   "are; \"flowEntries\" sets its size when the first container is added after a "
		   "restart."},
	{"abandoned", "A container has gone and its runtime has not called DEL. Its ports are "
		      "free for others all the same; repair removes the record."},
	{"unfinished", "An ADD or DEL was killed in between. Remove the container and add it "
		       "again."},
	{"conflist", "A conflist is no JSON, or cannot be read: runtimes skip it."},
	{"conflist-portmap", "A conflist has portmap beside bpf-portmap: ports are mapped twice. "
			     "bpf-portmap install takes the other one out."},
	{"conflist-capability",
	 "A conflist does not tell runtimes that bpf-portmap wants to know the "
	 "ports: \"capabilities\": {\"portMappings\": true} is missing, and no port "
	 "is mapped."},
	{"conflist-masquerade", "Two plugins of a conflist masquerade (ipMasq), or none does. With "
				"bpf-portmap's ipMasq the main plugin's is to be false."},
};

static void print_wrapped(const char *text)
{
	while (strlen(text) > WIDTH) {
		size_t length = WIDTH;

		while (text[length] != ' ')
			length--;
		printf("%.*s\n", (int)length, text);
		text += length + 1;
	}
	puts(text);
}

bool explain_print(const char *code)
{
	for (size_t i = 0; i < sizeof(explanations) / sizeof(explanations[0]); i++)
		if (!strcmp(explanations[i].code, code)) {
			print_wrapped(explanations[i].text);
			printf("docs/findings.md#%s\n", code);
			return true;
		}
	return false;
}
