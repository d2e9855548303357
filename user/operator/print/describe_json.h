/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * describe_json.h - what several verbs show, as JSON: new references.
 */
#pragma once

#include <jansson.h>

#include "lib/address.h"
#include "operator/view/view.h"

/* {"address":"192.0.2.1","port":80} */
json_t *json_endpoint(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

/* "pod", "job", "container" */
const char *container_kind_word(const struct container_info *container);

/* {"name":"default/web-0","kind":"pod","id":"4f1c...","network":"bridge","interface":"eth0",
 * "host_interface":"vethb3f2d6e2"}; null for NULL. A veth that has gone is null. */
json_t *json_container(const struct view *view, const struct container_info *container);
