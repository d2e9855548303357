/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* explain.c - what each code of a finding means: its section of docs/findings.md, which the program
 * contains. */
#include "operator/doctor/explain.h"

#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"

#define WIDTH 80
#define HEADING "\n## "
#define BLANKS " \n"

__asm__(".pushsection .rodata\n"
	"findings_page: .incbin \"docs/findings.md\"\n"
	".byte 0\n"
	".popsection\n");
extern const char findings_page[];

static void print_wrapped(const char *text, const char *end)
{
	size_t column = 0;

	for (text += strspn(text, BLANKS); text < end; text += strspn(text, BLANKS)) {
		size_t length = strcspn(text, BLANKS);

		if (column && column + 1 + length > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%s%.*s", column ? " " : "", (int)length, text);
		text += length;
	}
	putchar('\n');
}

bool explain_print(const char *code)
{
	cleanup_free char *heading = cni_format(HEADING "%s\n", code);
	const char *text = strchr(code, '\n') ? NULL : strstr(findings_page, heading), *end;

	if (!text)
		return false;
	text += strlen(heading);
	end = strstr(text, HEADING);
	print_wrapped(text, end ? end : text + strlen(text));
	printf("docs/findings.md#%s\n", code);
	return true;
}
