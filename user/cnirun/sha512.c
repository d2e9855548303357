/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sha512.c - SHA-512 as FIPS 180-4 describes it, in the names it uses.
 */
#include "cnirun/sha512.h"

#include <string.h>

#define BLOCK_SIZE 128
#define LENGTH_SIZE 16
#define ROUNDS 80
#define WORDS 8

/* The first 64 bits of the fractional parts of the cube roots of the first 80 primes. */
static const uint64_t K[ROUNDS] = {
	0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
	0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
	0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
	0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
	0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
	0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
	0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
	0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
	0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
	0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
	0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
	0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
	0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
	0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
	0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
	0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
	0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
	0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
	0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
	0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

/* The same of the square roots of the first eight. */
static const uint64_t initial[WORDS] = {
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static uint64_t rotr(uint64_t word, int bits)
{
	return word >> bits | word << (64 - bits);
}

static uint64_t load(const uint8_t *bytes)
{
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | bytes[i];
	return word;
}

static void store(uint8_t *bytes, uint64_t word)
{
	for (int i = 7; i >= 0; i--, word >>= 8)
		bytes[i] = (uint8_t)word;
}

static void schedule(uint64_t W[ROUNDS], const uint8_t *block)
{
	for (int t = 0; t < 16; t++)
		W[t] = load(block + 8 * t);
	for (int t = 16; t < ROUNDS; t++) {
		uint64_t sigma0 = rotr(W[t - 15], 1) ^ rotr(W[t - 15], 8) ^ W[t - 15] >> 7;
		uint64_t sigma1 = rotr(W[t - 2], 19) ^ rotr(W[t - 2], 61) ^ W[t - 2] >> 6;

		W[t] = sigma1 + W[t - 7] + sigma0 + W[t - 16];
	}
}

/* v holds a to h. */
static void apply_round(uint64_t v[WORDS], uint64_t input)
{
	uint64_t sum1 = rotr(v[4], 14) ^ rotr(v[4], 18) ^ rotr(v[4], 41);
	uint64_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
	uint64_t sum0 = rotr(v[0], 28) ^ rotr(v[0], 34) ^ rotr(v[0], 39);
	uint64_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
	uint64_t T1 = v[7] + sum1 + choice + input;

	memmove(v + 1, v, (WORDS - 1) * sizeof(*v));
	v[4] += T1;
	v[0] = T1 + sum0 + majority;
}

static void hash_block(uint64_t H[WORDS], const uint8_t *block)
{
	uint64_t W[ROUNDS];
	uint64_t v[WORDS];

	schedule(W, block);
	memcpy(v, H, sizeof(v));
	for (int t = 0; t < ROUNDS; t++)
		apply_round(v, K[t] + W[t]);
	for (int i = 0; i < WORDS; i++)
		H[i] += v[i];
}

void sha512(const void *data, size_t length, uint8_t digest[SHA512_SIZE])
{
	const uint8_t *bytes = data;
	uint8_t padded[2 * BLOCK_SIZE] = {0};
	size_t whole = length / BLOCK_SIZE * BLOCK_SIZE;
	size_t rest = length - whole;
	size_t end = rest + 1 + LENGTH_SIZE <= BLOCK_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;
	uint64_t H[WORDS];

	memcpy(H, initial, sizeof(H));
	for (size_t i = 0; i < whole; i += BLOCK_SIZE)
		hash_block(H, bytes + i);
	memcpy(padded, bytes + whole, rest);
	padded[rest] = 0x80;
	store(padded + end - 8, (uint64_t)length * 8);
	for (size_t i = 0; i < end; i += BLOCK_SIZE)
		hash_block(H, padded + i);
	for (int i = 0; i < WORDS; i++)
		store(digest + 8 * i, H[i]);
}
