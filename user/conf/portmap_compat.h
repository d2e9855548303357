/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmap_compat.h - options of the reference plugin portmap that nothing here can obey.
 */
#ifndef CONF_PORTMAP_COMPAT_H
#define CONF_PORTMAP_COMPAT_H

#include "conf/option.h"

/* Warns of one that is about marks or chains, so that portmap's lists work unchanged. */
int portmap_compat_ignore(const struct given *given, enum option_type type, struct cni_error *err);

/* Fails with CNI_ERROR_UNSUPPORTED_FIELD unless it is empty: ports would be open to more clients
 * than asked for. */
int portmap_compat_refuse(const struct given *given, struct cni_error *err);

#endif
