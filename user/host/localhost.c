/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* localhost.c - the host's own processes as clients of mapped ports. */
#include "host/localhost.h"

#include "datapath/attach/socket_hooks.h"
#include "lib/warning.h"

static void warn(struct cni_error *why)
{
	warning("processes on this host cannot reach mapped ports, neither at 127.0.0.1 nor at"
		" another of its addresses: %s. Everything else works; \"localhost\": false "
		"silences"
		" this",
		cni_error_message(why));
	cni_error_release(why);
}

void localhost_set_up(const struct host *host, const struct conf *conf)
{
	struct cni_error why = {0};

	if (conf->localhost && conf->port_count &&
	    socket_hooks_attach(&host->datapath, SOCKETS_REACH_PORTS, &why))
		warn(&why);
}

int localhost_verify(const struct host *host, const struct conf *conf, struct cni_error *err)
{
	struct cni_error why = {0}, obstacle = {0};

	if (!conf->localhost || !conf->port_count ||
	    !socket_hooks_verify(&host->datapath, SOCKETS_REACH_PORTS, &why))
		return 0;
	if (socket_hooks_are_used(&host->datapath, SOCKETS_REACH_PORTS) ||
	    !socket_hooks_probe(&host->datapath, SOCKETS_REACH_PORTS, &obstacle)) {
		*err = why;
		return -1;
	}
	/* ADD could not attach them either, and said so. */
	cni_error_release(&obstacle);
	warn(&why);
	return 0;
}

/* Nothing is tried out: that would be loading. */
static int find_obstacle(const struct host *host, struct cni_error *err)
{
	if (socket_hooks_probe(&host->datapath, SOCKETS_REACH_PORTS, err))
		return -1;
	if (!datapath_is_usable(&host->datapath) ||
	    !socket_hooks_are_used(&host->datapath, SOCKETS_REACH_PORTS))
		return 0;
	return socket_hooks_verify(&host->datapath, SOCKETS_REACH_PORTS, err);
}

void localhost_warn(const struct host *host, const struct conf *conf)
{
	struct cni_error why = {0};

	if (conf->localhost && find_obstacle(host, &why))
		warn(&why);
}
