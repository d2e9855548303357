/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * names.h - names of a network's containers, for aardvark-dns, the name server of Podman's
 * networks.
 *
 * netavark tells it of its own drivers' networks alone: in a file for each network, and by a signal
 * when one has changed (config.md of aardvark-dns). Here the same is done for ours. A file is
 * always written whole, from what setup has written down of the network's containers, so that each
 * call also removes whatever a killed one has left.
 */
#pragma once

#include "lib/error.h"
#include "runtimes/netavark/request.h"

/* The domain that aardvark-dns takes off a name. */
#define NAMES_DOMAIN "dns.podman"

/* Checks whether there is an aardvark-dns that can be used. CNI_ERROR_INVALID_CONFIGURATION, which
 * says what to do. */
int names_check(struct cni_error *err);

/* Adds the container, which is set up and written down; starts the server if need be. As of
 * names_check(), and CNI_ERROR_IO. */
int names_add(const struct request *request, struct cni_error *err);

/* Removes the container, before it is detached. Warns of a failure: its other traces go
 * nevertheless. */
void names_remove(const struct request *request);
