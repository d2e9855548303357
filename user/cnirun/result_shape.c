/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* result_shape.c - whether a plugin's result is valid. */
#include "cnirun/result_shape.h"

#include "cni/json.h"
#include "cni/result.h"
#include "cni/version.h"

static int check_route(const json_t *route, void *context, struct cni_error *err)
{
	struct cni_result_address destination;

	return cni_result_get_cidr(route, "dst", &destination, err);
}

static int check_routes(const json_t *object, struct cni_error *err)
{
	return cni_json_each_object(object, "routes", check_route, NULL, err);
}

/* What the version has no routes of has none. */
static int check_all_routes(const json_t *result, const char *version, struct cni_error *err)
{
	static const char *const families[] = {"ip4", "ip6"};

	if (cni_version_family(version) != CNI_FAMILY_0_1)
		return check_routes(result, err);
	for (size_t i = 0; i < 2; i++)
		if (check_routes(cni_json_get(result, families[i]), err))
			return cni_error_wrap(err, "%s", families[i]);
	return 0;
}

int result_validate(const json_t *result, const char *version, struct cni_error *err)
{
	struct cni_result read = {0};

	if (cni_result_read(&read, result, version, err))
		return -1;
	cni_result_release(&read);
	return check_all_routes(result, version, err);
}
