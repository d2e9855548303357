/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* doctor_test.c - who takes a packet in the container; words of remedies. */
#include "cni_testing.h"

#include <stdio.h>

#include "net/sockets.h"
#include "operator/print/format.h"

static enum listening listening_with(const char *address, bool both)
{
	struct host_socket one = {.protocol = PROTOCOL_TCP, .port = 80, .both_families = both};
	struct socket_list list = {&one, 1};
	uint8_t container[CNI_ADDRESS_SIZE];
	const uint8_t *where;

	cni_address_parse("10.88.0.2", container);
	cni_address_parse(address, one.address);
	return listening_at(&list, PROTOCOL_TCP, container, 80, &where);
}

TEST(test_listening, "listening")
{
	struct socket_list none = {NULL, 0};
	const uint8_t *where;

	assert_int_equal(LISTENING, listening_with("0.0.0.0", false));
	assert_int_equal(LISTENING, listening_with("::", true));
	assert_int_equal(LISTENING, listening_with("10.88.0.2", false));
	assert_int_equal(LISTENING_ELSEWHERE, listening_with("::", false));
	assert_int_equal(LISTENING_ELSEWHERE, listening_with("10.88.0.3", false));
	assert_int_equal(LISTENING_AT_LOOPBACK, listening_with("127.0.0.1", false));
	assert_int_equal(LISTENING_NOT,
			 listening_at(&none, PROTOCOL_TCP, cni_address_any_ipv4, 80, &where));
	assert_null(where);
}

TEST(test_remedy_words, "remedy words")
{
	char longest[REMEDY_WORD_SIZE];

	assert_string_equal("eth0.5@x", remedy_word("eth0.5@x").text);
	assert_string_equal("/run/netns/a+b_c-d:1", remedy_word("/run/netns/a+b_c-d:1").text);
	assert_string_equal("''", remedy_word("").text);
	assert_string_equal("';reboot;'", remedy_word(";reboot;").text);
	assert_string_equal("'$(a)`b` *'", remedy_word("$(a)`b` *").text);
	assert_string_equal("''\\'';a;'\\'''", remedy_word("';a;'").text);
	assert_string_equal("'a?reboot?'", remedy_word("a\nreboot\x7f").text);
	memset(longest, '\'', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal("''", remedy_word(longest).text);
	longest[REMEDY_WORD_SIZE / 4 - 1] = '\0';
	assert_int_equal(4 * (REMEDY_WORD_SIZE / 4 - 1) + 2, strlen(remedy_word(longest).text));
}
