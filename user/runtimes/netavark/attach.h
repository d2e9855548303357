/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.h - setup and teardown: a container's interface in a network.
 *
 * What a setup is about to do is written down before it begins. So whatever a run that was killed
 * has left is undone by the next setup or teardown of that container.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"

typedef int attach_reply(const json_t *status, struct cni_error *err);

/* Attaches the network namespace; `root` is what netavark sends. Hands the status that netavark
 * expects to `reply`, and undoes everything if that or a plugin fails: netavark calls no teardown
 * then. */
int attach_setup(const json_t *root, const char *netns, attach_reply *reply, struct cni_error *err);

/* Detaches it, by what setup has written down. The namespace may be gone, and what setup did may be
 * incomplete. Removes the bridge with the last container, and containers of the network whose
 * namespace has gone without a teardown. */
int attach_teardown(const json_t *root, const char *netns, struct cni_error *err);
