/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_nat.h - rules of the host's own NAT for mapped ports: kube-proxy's Services, Docker's,
 * netavark's, an administrator's; and portmap's, of containers that still run.
 *
 * Our programs come before netfilter. What a rule takes whatever else the packet is (nat_rule.h:
 * `whole`) is left to it, as the reference plugin does, behind whose rules such a rule stands: ADD
 * writes down what it sees for its own ports, `repair` what there is for all, and the programs
 * begin no flow there. Portmap's own rules get nothing any more, nor do rules that take a part of
 * the packets only, nor those that lead to the same port of the same container: another engine's,
 * for a network of its own that the container is on, too. A rule that comes later waits for the
 * next `repair`; so does the end of one.
 */
#pragma once

#include "datapath/records/nat_ports.h"
#include "host/container.h"
#include "host/host.h"
#include "nat/nat_rules.h"

/* For ADD, before the claim: looks for such rules for the container's ports
 * where that is quickly done, and writes down those that get what comes. Warns of each port.
 * With "refuseForeign" it fails: CNI_ERROR_PORT_TAKEN naming a rule, or CNI_ERROR_KERNEL_REFUSED
 * where the rules cannot be read. */
int foreign_nat_check(const struct host *host, const struct container *container,
		      struct cni_error *err);

/* For CHECK: warns of rules for the container's ports, and says who gets what comes. */
void foreign_nat_warn(const struct host *host, const struct container *container);

/* For `repair` and doctor: looks at all rules for all mapped ports, and writes down what they take,
 * as the change says and to whom it reports. CNI_ERROR_KERNEL_REFUSED. */
int foreign_nat_settle(const struct host *host, const struct nat_ports_change *change,
		       struct cni_error *err);

/* Returns whether the rule takes all that meets its conditions, and is to have it unless it leads
 * to the container itself. */
bool foreign_nat_takes_all(const struct objects *objects, const struct nat_rule *rule);

/* Returns whether the rule leads to the port of the container that the mapping leads to, at any
 * address that the container was given. */
bool foreign_nat_leads_to_container(const struct objects *objects, const struct nat_rule *rule,
				    const struct portmap_key *key, const struct portmap *portmap);
