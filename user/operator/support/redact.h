/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * redact.h - conflists without what may be secret. Without any I/O.
 */
#pragma once

#include <jansson.h>

#define REDACTED "(left out)"

/* Puts REDACTED in the place of every value whose key neither CNI's specification nor its reference
 * plugins nor bpf-portmap know: tokens and passwords of other plugins (Calico's etcd, kubeconfigs)
 * have such keys. */
void redact_conflist(json_t *list);
