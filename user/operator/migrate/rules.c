/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rules.c - the rules by which the reference plugin portmap maps ports. */
#include "operator/migrate/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/text.h"

void rule_leave(struct portmap_rule *rule, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(rule->reason, sizeof(rule->reason), format, arguments);
	va_end(arguments);
	cni_printable(rule->reason, "");
	rule->fate = RULE_LEFT;
}

int portmap_rules_read(struct portmap_rules *rules, struct cni_error *err)
{
	return iptables_rules_read(rules, err) || nftables_rules_read(rules, err) ? -1 : 0;
}

void portmap_rules_release(struct portmap_rules *rules)
{
	for (size_t i = 0; i < rules->source_count; i++) {
		free(rules->sources[i].text);
		json_decref(rules->sources[i].table);
	}
	free(rules->sources);
	free(rules->rules);
	*rules = (struct portmap_rules){0};
}

int portmap_rules_remove(struct portmap_rules *rules, struct cni_error *err)
{
	int result = 0;

	for (size_t i = 0; i < rules->source_count; i++) {
		struct cni_error failure = {0};

		if (rules->sources[i].save ? iptables_rules_remove(rules, i, &failure)
					   : nftables_rules_remove(rules, i, &failure))
			result = cni_error_chain(err, &failure);
	}
	return result;
}
