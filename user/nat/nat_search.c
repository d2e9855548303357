/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_search.c - one search for rules: what it takes. */
#include "nat/nat_search.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/array.h"

#define TRIES 3

void nat_rule_list_append(struct nat_rule_list *list, const struct nat_rule *rule)
{
	*ARRAY_ADD(list->rules, list->count) = *rule;
}

void nat_rule_list_release(struct nat_rule_list *list)
{
	free(list->rules);
	*list = (struct nat_rule_list){0};
}

bool nat_search_wants(const struct search *search, const struct nat_rule *rule)
{
	const struct nat_question *question = search->question;

	return question->asked ? nat_rule_is_asked_for(rule, question->asked)
			       : question->concerns(question->context, rule);
}

void nat_search_take(void *context, const struct nat_rule *rule)
{
	struct search *search = context;

	if ((rule->verdict || rule->jumps || search->question->place == NAT_OF_PORTMAP) &&
	    nat_search_wants(search, rule))
		nat_rule_list_append(&search->reading, rule);
}

/* A list that changes meanwhile is asked for again; what has gone has nothing. */
void nat_search_dump(struct search *search, struct nl_msg *request, netlink_take take,
		     void *context, size_t *count)
{
	int result = -1;

	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		*count = 0;
		result = netlink_ask(search->socket, request, take, context);
	}
	/* A kernel without nf_tables says so by EINVAL. */
	if (result && errno != ENOENT && errno != EINVAL && errno != EOPNOTSUPP)
		search->failure = errno;
}
