/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plan_test.c - what a plan makes of a look: a host with eth0, eth1 and the bridge cni0, which has
 * one container, and networks that say something about them.
 */
#include "cni_testing.h"

#include <stdio.h>

#include "plan/plan.h"
#include "plan/uplinks.h"

enum {
	ETH0 = 2,
	ETH1,
	CNI0,
	VETH,
	INTERFACES = 4,
	ID = 100, /* of the first of our programs that are pinned */
	OLD_ID = 200,
	COPIES = MOST_HOOK_CHANGES + 4,
};

static struct addressed_interface addressed[INTERFACES];
static struct address_list addresses = {.interfaces = addressed, .count = 3};
static uint32_t program_ids[PROGRAM_COUNT];
static struct interface_look interfaces[INTERFACES];
static struct network_wish networks[4];
static struct look look;
static struct conf container_conf;
static struct plan plan;

static const char *const names[] = {"eth0", "eth1", "cni0", "veth1"};

static struct interface_look *at(uint32_t ifindex)
{
	return &interfaces[ifindex - ETH0];
}

static void hang(uint32_t ifindex, enum hook hook, enum program_number program, uint32_t id)
{
	struct hook_look *there = &at(ifindex)->hooks.hooks[hook];
	static struct hung places[INTERFACES][HOOK_COUNT][COPIES];

	there->list = places[ifindex - ETH0][hook];
	there->list[there->count++] = (struct hung){
		.mechanism = MECHANISM_TCX, .program = program, .id = id, .name = "another"};
}

/* As an ADD has left it, whose conflist says nothing about interfaces. */
static void know(uint32_t ifindex, enum interface_role role)
{
	struct interface_look *interface = at(ifindex);

	interface->is_known = true;
	interface->entry.role = role;
	if (role == ROLE_BRIDGE)
		memcpy(interface->entry.bridge_mac, interface->link.mac, LINK_MAC_SIZE);
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(&interface->entry, (enum hook)hook);

		if (program != PROGRAM_COUNT)
			hang(ifindex, (enum hook)hook, program, program_ids[program]);
	}
}

static int set_up(void **state)
{
	memset(interfaces, 0, sizeof(interfaces));
	memset(networks, 0, sizeof(networks));
	look = (struct look){.addresses = &addresses,
			     .program_ids = program_ids,
			     .interfaces = interfaces,
			     .count = INTERFACES,
			     .networks = networks,
			     .network_count = 1,
			     .is_whole = true};
	networks[0].name = "web";
	networks[0].uplinks = networks[0].excluded_interfaces = "";
	for (int program = 0; program < PROGRAM_COUNT; program++)
		program_ids[program] = ID + (uint32_t)program;
	for (uint32_t i = 0; i < INTERFACES; i++) {
		interfaces[i].link = (struct link){.ifindex = ETH0 + i,
						   .mac = {2, 0, 0, 0, 0, (uint8_t)i},
						   .peer_netns_id = -1};
		snprintf(interfaces[i].link.name, IF_NAMESIZE, "%s", names[i]);
		interfaces[i].is_read = interfaces[i].has_hooks = interfaces[i].hooks.tcx = true;
		if (i < addresses.count) {
			addressed[i] = (struct addressed_interface){.ifindex = ETH0 + i,
								    .is_reachable = true};
			interfaces[i].addressed = &addressed[i];
		}
	}
	snprintf(at(CNI0)->link.kind, LINK_KIND_SIZE, "bridge");
	snprintf(at(VETH)->link.kind, LINK_KIND_SIZE, "veth");
	at(VETH)->link.master = CNI0;
	at(VETH)->master = at(CNI0)->link;
	know(ETH0, ROLE_UPLINK);
	know(ETH1, ROLE_UPLINK);
	know(CNI0, ROLE_BRIDGE);
	at(VETH)->entry.owner = (struct owner){1, 1};
	at(VETH)->entry.bridge_ifindex = CNI0;
	memcpy(at(VETH)->entry.bridge_mac, at(CNI0)->link.mac, LINK_MAC_SIZE);
	know(VETH, ROLE_PORT);
	return 0;
}

static int tear_down(void **state)
{
	plan_release(&plan);
	return 0;
}

FIXTURE(set_up, tear_down)

static void make(void)
{
	plan_release(&plan);
	assert_int_equal(plan_make(&plan, &look, &fault), 0);
}

/* NULL: nothing is to be done there. */
static const struct change *change_at(uint32_t ifindex)
{
	for (size_t i = 0; i < plan.count; i++)
		if (plan.changes[i].at.ifindex == ifindex)
			return &plan.changes[i];
	return NULL;
}

static const struct change *need_change_at(uint32_t ifindex)
{
	const struct change *change = change_at(ifindex);

	assert_non_null(change);
	return change;
}

#define LIST(name) name "\0"

static void add_network(const char *name, const char *uplinks, const char *excluded)
{
	struct network_wish *wish = &networks[look.network_count++];

	wish->name = name;
	wish->uplinks = uplinks;
	wish->excluded_interfaces = excluded;
}

TEST(test_nothing_to_do, "nothing to do")
{
	make();
	assert_int_equal(plan.count, 0);
	assert_int_equal(plan.warning_count, 0);
}

TEST(test_new_interface, "new interface")
{
	at(ETH1)->is_known = false;
	at(ETH1)->entry = (struct interface){0};
	memset(at(ETH1)->hooks.hooks, 0, sizeof(at(ETH1)->hooks.hooks));
	make();
	assert_int_equal(plan.count, 1);
	assert_int_equal(need_change_at(ETH1)->entry.role, ROLE_UPLINK);
	assert_int_equal(need_change_at(ETH1)->hooks.count, 2);
	assert_string_equal(need_change_at(ETH1)->what, "attached");
	assert_null(plan_find_damage(&plan));
}

TEST(test_lost_program, "lost program")
{
	at(ETH0)->hooks.hooks[HOOK_INGRESS].count = 0;
	make();
	assert_int_equal(plan.count, 1);
	assert_ptr_equal(plan_find_damage(&plan), need_change_at(ETH0));
	assert_string_equal(need_change_at(ETH0)->missing,
			    "from_uplink is not attached at ingress");
	assert_int_equal(need_change_at(ETH0)->hooks.list[0].action, HOOK_ATTACH);
	assert_false(need_change_at(ETH0)->writes_entry);
}

TEST(test_older_program, "older program")
{
	at(ETH0)->hooks.hooks[HOOK_EGRESS].list[0].id = OLD_ID;
	make();
	assert_int_equal(need_change_at(ETH0)->hooks.list[0].action, HOOK_REPLACE);
	assert_int_equal(need_change_at(ETH0)->hooks.list[0].replaced, OLD_ID);
	/* It works on the same maps, so CHECK is content. */
	assert_null(plan_find_damage(&plan));
	at(ETH0)->hooks.hooks[HOOK_EGRESS].list[0].on_other_maps = true;
	make();
	assert_non_null(plan_find_damage(&plan));
}

TEST(test_copy_is_detached, "copy is detached")
{
	hang(ETH0, HOOK_INGRESS, PROGRAM_FROM_UPLINK, OLD_ID);
	make();
	assert_int_equal(need_change_at(ETH0)->hooks.count, 1);
	assert_int_equal(need_change_at(ETH0)->hooks.list[0].action, HOOK_DETACH);
	assert_int_equal(need_change_at(ETH0)->hooks.list[0].program.id, OLD_ID);
}

/* The order of networks is that of a map, which nobody knows. */
TEST(test_order_decides_nothing, "order decides nothing")
{
	for (int order = 0; order < 2; order++) {
		look.network_count = 0;
		if (order)
			add_network("named", LIST("eth1"), "");
		add_network("excludes", "", LIST("eth1"));
		if (!order)
			add_network("named", LIST("eth1"), "");
		make();
		assert_null(change_at(ETH1));
		assert_false(plan.excluded[1]);
	}
}

TEST(test_excluded, "excluded")
{
	look.network_count = 0;
	add_network("excludes", "", LIST("eth1"));
	make();
	assert_int_equal(need_change_at(ETH1)->entry.role, ROLE_LEFT_ALONE);
	assert_int_equal(need_change_at(ETH1)->entry.addresses_excluded, 1);
	assert_int_equal(need_change_at(ETH1)->hooks.count, 2);
	assert_true(plan.excluded[1]);
	/* Another one has it as an uplink, and does not name it. */
	add_network("any", "", "");
	make();
	assert_int_equal(need_change_at(ETH1)->entry.role, ROLE_UPLINK);
	assert_int_equal(need_change_at(ETH1)->hooks.count, 0);
	assert_true(plan.excluded[1]);
}

TEST(test_refusing, "a network with uplinks of its own is refused at others'")
{
	look.network_count = 0;
	add_network("named", LIST("eth0"), "");
	add_network("any", "", "");
	networks[0].number = 3;
	make();
	assert_int_equal(plan.warning_count, 0);
	assert_int_equal(need_change_at(ETH1)->entry.refusing, 1 << 3);
	assert_null(change_at(ETH0));
	at(ETH1)->is_named_now = true;
	make();
	assert_int_equal(need_change_at(ETH1)->entry.refusing, 0);
}

TEST(test_conflict_is_said, "conflict is said")
{
	look.network_count = 0;
	add_network("excludes", "", LIST("eth1"));
	networks[0].is_of_request = true;
	add_network("named", LIST("eth1"), "");
	make();
	assert_int_equal(plan.warning_count, 1);
	assert_non_null(strstr(plan.warnings[0],
			       "network excludes excludes it, network named names it in"));
	assert_non_null(strstr(plan.warnings[0], "it is an uplink"));
}

TEST(test_named_by_others_alone, "named by others alone")
{
	look.network_count = 0;
	add_network("named", LIST("eth0"), "");
	make();
	assert_null(change_at(ETH0));
	assert_null(change_at(CNI0));
	assert_int_equal(need_change_at(ETH1)->entry.role, ROLE_LEFT_ALONE);
	assert_string_equal(need_change_at(ETH1)->what, "left: no network has it as an uplink");
	at(ETH1)->entry.by_administrator = 1;
	make();
	assert_null(change_at(ETH1));
}

/* Programs stay for the next container. */
TEST(test_no_network, "no network")
{
	look.network_count = 0;
	at(ETH1)->entry.addresses_excluded = 1;
	make();
	assert_int_equal(plan.count, 0);
	assert_true(plan.excluded[1]);
}

TEST(test_unmatched, "unmatched")
{
	look.network_count = 0;
	add_network("named", LIST("vpn*"), "");
	networks[0].is_of_request = true;
	make();
	assert_non_null(plan.unmatched_uplinks);
	assert_non_null(strstr(plan.unmatched_uplinks, "(\"vpn*\") match no interface"));
	assert_non_null(strstr(plan.unmatched_uplinks, "there are eth0, eth1, cni0"));
}

TEST(test_becomes_port, "becomes port")
{
	at(ETH1)->link.master = CNI0;
	at(ETH1)->master = at(CNI0)->link;
	make();
	assert_int_equal(need_change_at(ETH1)->kind, CHANGE_FORGET);
	assert_int_equal(need_change_at(ETH1)->hooks.count, 2);
	assert_non_null(
		strstr(need_change_at(ETH1)->what, "left: it is a port of the bridge cni0"));
}

TEST(test_interface_gone, "interface gone")
{
	at(ETH1)->is_gone = true;
	at(VETH)->is_gone = true;
	make();
	assert_int_equal(need_change_at(ETH1)->kind, CHANGE_FORGET);
	/* That of a container goes with its attachment. */
	assert_null(change_at(VETH));
}

TEST(test_bridge_has_another_mac, "bridge has another mac")
{
	at(CNI0)->link.mac[5] = 77;
	make();
	assert_int_equal(need_change_at(CNI0)->entry.bridge_mac[5], 77);
	assert_int_equal(need_change_at(VETH)->entry.bridge_mac[5], 77);
	assert_int_equal(need_change_at(VETH)->hooks.count, 0);
}

/* Returns the id of the program that is replaced at the hook; 0: none is. */
static uint32_t replaced_at(const struct hook_changes *changes, enum hook hook)
{
	for (size_t i = 0; i < changes->count; i++)
		if (changes->list[i].action == HOOK_REPLACE && changes->list[i].hook == hook)
			return changes->list[i].replaced;
	return 0;
}

/* Each process that loads without seeing the others' pins attaches a copy. */
TEST(test_many_copies, "more copies of our programs than one command removes")
{
	memset(at(ETH0)->hooks.hooks, 0, sizeof(at(ETH0)->hooks.hooks));
	for (uint32_t i = 0; i < COPIES; i++) {
		hang(ETH0, HOOK_EGRESS, PROGRAM_TO_UPLINK, OLD_ID + i);
		hang(ETH0, HOOK_INGRESS, PROGRAM_FROM_UPLINK, OLD_ID + COPIES + i);
	}
	make();
	assert_in_range(need_change_at(ETH0)->hooks.count, HOOK_COUNT, MOST_HOOK_CHANGES);
	assert_int_equal(replaced_at(&need_change_at(ETH0)->hooks, HOOK_EGRESS), OLD_ID);
	assert_int_equal(replaced_at(&need_change_at(ETH0)->hooks, HOOK_INGRESS), OLD_ID + COPIES);
}

TEST(test_others_bar_the_fast_path, "others bar the fast path")
{
	hang(ETH0, HOOK_INGRESS, PROGRAM_COUNT, 7);
	hang(VETH, HOOK_EGRESS, PROGRAM_COUNT, 8);
	make();
	assert_int_equal(need_change_at(ETH0)->entry.without_fast_path, 1);
	assert_non_null(strstr(need_change_at(ETH0)->what, "without the fast path"));
	assert_int_equal(need_change_at(VETH)->entry.without_fast_path, 1);
	assert_int_equal(plan.warning_count, 0);
}

/* A veth that a ptp container's ADD is about to claim has an address of the host. */
TEST(test_containers_veth_is_no_uplink, "containers veth is no uplink")
{
	at(ETH1)->is_known = false;
	at(ETH1)->entry = (struct interface){0};
	memset(at(ETH1)->hooks.hooks, 0, sizeof(at(ETH1)->hooks.hooks));
	hang(ETH1, HOOK_INGRESS, PROGRAM_FROM_CONTAINER, ID + PROGRAM_FROM_CONTAINER);
	make();
	assert_null(change_at(ETH1));
	/* Another command took it for one. */
	at(ETH1)->is_known = true;
	at(ETH1)->entry.role = ROLE_UPLINK;
	make();
	assert_int_equal(need_change_at(ETH1)->kind, CHANGE_FORGET);
	assert_int_equal(need_change_at(ETH1)->hooks.count, 0);
	assert_null(plan_find_damage(&plan));
}

/* The container at hand. */
static void add_container(enum attach_mode mode)
{
	look.adds = true;
	look.veth.link = at(VETH)->link;
	look.veth.bridge = at(CNI0)->link;
	container_conf = (struct conf){.attach = mode, .fast_path = FAST_PATH_ESTABLISHED};
	look.conf = &container_conf;
	memset(at(VETH)->hooks.hooks, 0, sizeof(at(VETH)->hooks.hooks));
}

TEST(test_veth, "veth")
{
	add_container(ATTACH_AUTO);
	make();
	assert_int_equal(plan.count, 0);
	assert_int_equal(plan.veth_hooks.count, 1);
	assert_int_equal(plan.veth_hooks.list[0].action, HOOK_ATTACH);
	assert_int_equal(plan.veth_hooks.list[0].program.mechanism, MECHANISM_TCX);
	assert_false(plan.veth_hooks.makes_clsact);
	add_container(ATTACH_CLSACT);
	make();
	assert_int_equal(plan.veth_hooks.list[0].program.mechanism, MECHANISM_CLSACT);
	assert_true(plan.veth_hooks.makes_clsact);
}

/* Taken for an uplink before its ADD: no packet passes between the two programs. */
TEST(test_veth_taken_back, "veth taken back")
{
	add_container(ATTACH_AUTO);
	hang(VETH, HOOK_INGRESS, PROGRAM_FROM_UPLINK, ID);
	hang(VETH, HOOK_EGRESS, PROGRAM_TO_UPLINK, ID + 1);
	make();
	assert_int_equal(plan.veth_hooks.count, 2);
	assert_int_equal(plan.veth_hooks.list[0].action, HOOK_DETACH);
	assert_int_equal(plan.veth_hooks.list[1].action, HOOK_REPLACE);
	assert_int_equal(plan.veth_hooks.list[1].replaced, ID);
}

TEST(test_veth_without_tcx, "veth without tcx")
{
	add_container(ATTACH_TCX);
	at(VETH)->hooks.tcx = false;
	plan_release(&plan);
	assert_int_equal(plan_make(&plan, &look, &fault), -1);
	assert_int_equal(fault.code, CNI_ERROR_KERNEL_REFUSED);
	assert_non_null(strstr(cni_error_message(&fault), "needs Linux 6.6"));
	cni_error_release(&fault);
}
