/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libelf_static.c - what the static libelf of Debian 13 lacks.
 *
 * Since 0.192 an open ELF file has a tree of the raw chunks that were asked for, whose
 * functions lie in a library of elfutils' own (libeu) that Debian does not ship. libbpf asks
 * for no raw chunk: the tree is zeroed memory and stays empty, and nothing is to be done at
 * its beginning or end. Weak: where libelf brings its own, those are taken.
 */
void eu_search_tree_init(void *tree);
void eu_search_tree_fini(void *tree, void (*release)(void *));

__attribute__((weak)) void eu_search_tree_init(void *tree)
{
	(void)tree;
}

__attribute__((weak)) void eu_search_tree_fini(void *tree, void (*release)(void *))
{
	(void)tree;
	(void)release;
}
