/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_workload_test.c - whose container it is, as CNI_ARGS say.
 */
#include "cni_testing.h"

#include "lib/cleanup.h"
#include "conf/request.h"

#define TEN "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN
#define LONG SIXTY SIXTY SIXTY SIXTY TEN "01234"

static const struct {
	const char *name;
	const char *args;
	enum workload_kind kind;
	const char *namespace, *workload_name;
} rows[] = {
	{"nobody says", "", WORKLOAD_NONE, "", ""},
	{"CNI_ARGS that are garbage", "garbage;;=;K8S_POD_NAME", WORKLOAD_NONE, "", ""},
	{"a pod as containerd has it",
	 "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;"
	 "K8S_POD_INFRA_CONTAINER_ID=106d;K8S_POD_UID=4711",
	 WORKLOAD_POD, "default", "web-0"},
	{"Podman's, without a namespace", "K8S_POD_NAME=web-0", WORKLOAD_CONTAINER, "", "web-0"},
	{"a pod without a name", "K8S_POD_NAMESPACE=default;K8S_POD_NAME=", WORKLOAD_NONE, "", ""},
	{"of two names the later one counts, as in libcni", "K8S_POD_NAME=a;K8S_POD_NAME=b",
	 WORKLOAD_CONTAINER, "", "b"},
	{"a key that only ends like it", "XK8S_POD_NAME=a", WORKLOAD_NONE, "", ""},
	{"a job as Nomad has it",
	 "IgnoreUnknown=true;NOMAD_REGION=global;NOMAD_NAMESPACE=prod;NOMAD_JOB_ID=shop;"
	 "NOMAD_GROUP_NAME=web;NOMAD_ALLOC_ID=f27f98b1-2ae0-46fc-809f-74723ed3260f",
	 WORKLOAD_NOMAD, "prod", "shop/web"},
	{"a job without a group", "NOMAD_JOB_ID=shop", WORKLOAD_NOMAD, "", "shop"},
	{"control characters and what is not ASCII",
	 "K8S_POD_NAME=a\033[31m\n\177b\303\244;K8S_POD_NAMESPACE=\t", WORKLOAD_POD, "?",
	 "a?[31m??b??"},
	{"a value that is a whole assignment", "K8S_POD_NAME=a=b", WORKLOAD_CONTAINER, "", "a=b"},
	{"names as long as there is room", "K8S_POD_NAMESPACE=" SIXTY "012;K8S_POD_NAME=" LONG,
	 WORKLOAD_POD, SIXTY "012", LONG},
	{"names that are longer are cut", "K8S_POD_NAMESPACE=" SIXTY "0123;K8S_POD_NAME=" LONG "x",
	 WORKLOAD_POD, SIXTY "012", LONG},
	{"a group that is cut",
	 "NOMAD_JOB_ID=" SIXTY SIXTY SIXTY SIXTY TEN "0123;NOMAD_GROUP_NAME=g", WORKLOAD_NOMAD, "",
	 SIXTY SIXTY SIXTY SIXTY TEN "0123/"},
};

ROWS(rows, reads_the_workload)
{
	cleanup_json json_t *config = json_object();
	struct conf conf = {0};

	assert_int_equal(conf_parse(&conf, config, row->args, &fault), 0);
	assert_int_equal(conf.workload.kind, row->kind);
	assert_string_equal(conf.workload.namespace, row->namespace);
	assert_string_equal(conf.workload.name, row->workload_name);
	conf_release(&conf);
}
