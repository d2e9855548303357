/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request.h - what the runtime asks for one container: runtimeConfig and CNI_ARGS. */
#pragma once

#include "conf/option_table.h"

/* Reads the options, and what the runtime asks for this container; `args` is CNI_ARGS.
 * CNI_ERROR_UNSUPPORTED_FIELD, CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. Two mappings of
 * one host port to different targets are refused here. Release conf also after a failure. */
int conf_parse(struct conf *conf, const json_t *config, const char *args, struct cni_error *err);

/* Points conf->ports to a container with these addresses (NULL: it has none of that family).
 * CNI_ERROR_INVALID_CONFIGURATION where a mapping cannot be had: no address at all, or hostIP of a
 * family that the container lacks; 0.0.0.0 and :: are left out then, with a warning added to
 * conf. */
int conf_claim_ports(struct conf *conf, const uint8_t *container_ipv4,
		     const uint8_t *container_ipv6, struct cni_error *err);
