/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nothing.c - a static program that does nothing: the lower limit for a plugin's time. */

int main(void)
{
	return 0;
}
