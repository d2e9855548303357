/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sha512.h - SHA-512 (FIPS 180-4), for container IDs like cnitool's; not for secrets.
 */
#ifndef CNIRUN_SHA512_H
#define CNIRUN_SHA512_H

#include <stddef.h>
#include <stdint.h>

#define SHA512_SIZE 64

void sha512(const void *data, size_t length, uint8_t digest[SHA512_SIZE]);

#endif
