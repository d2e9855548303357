/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sources.c - the addresses of snatAddresses, on the host as it is now. */
#include "plugin/sources.h"

#include "datapath/warning.h"
#include "net/local_address.h"

static void warn_of_absent(const struct host *host, const __u8 (*addresses)[CNI_ADDRESS_SIZE],
			   __u8 count)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (__u8 i = 0; i < count; i++)
		if (!local_address_exists(host->socket, addresses[i]))
			warning("\"snatAddresses\": the host does not have %s now; until it has,"
				" or routes to it lead here, flows that leave with it get no"
				" replies",
				cni_address_format(addresses[i], text));
}

void sources_warn_of_absent(const struct host *host, const struct conf *conf)
{
	warn_of_absent(host, conf->policy.sources4, conf->policy.source4_count);
	warn_of_absent(host, conf->policy.sources6, conf->policy.source6_count);
}
