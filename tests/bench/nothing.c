/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nothing.c - a static program that does nothing: what no plugin can be faster than. */

int main(void)
{
	return 0;
}
