/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sources.h - the addresses of snatAddresses, on the host as it is now.
 */
#ifndef PLUGIN_SOURCES_H
#define PLUGIN_SOURCES_H

#include "plugin/conf.h"
#include "plugin/host.h"

/* One that the host does not have may come later, so it is no error; but until then
 * nothing comes back to it. */
void sources_warn_of_absent(const struct host *host, const struct conf *conf);

#endif
