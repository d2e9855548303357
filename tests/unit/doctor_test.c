/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* doctor_test.c - who takes a packet in the container; words of remedies; answers about names. */
#include "cni_testing.h"

#include <stdio.h>

#include "operator/doctor/dns.h"
#include "operator/doctor/listening.h"
#include "operator/doctor/remedy_word.h"

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

/* The answer to a question for db.test: an alias, and the address of that. */
static const uint8_t answer_body[] = {
	2,    'd', 'b', 4, 't', 'e', 's', 't', 0, 0,  1, 0, 1,                  /* the question */
	0xc0, 12,  0,   5, 0,   1,   0,   0,   0, 60, 0, 4, 1,   'a', 0xc0, 15, /* CNAME a.test */
	0xc0, 37,  0,   1, 0,   1,   0,   0,   0, 60, 0, 4, 192, 0,   2,    7}; /* A */

static size_t make_answer(uint8_t message[DNS_SIZE], uint8_t code)
{
	const uint8_t header[12] = {0x12, 0x34, 0x81, code, 0, 1, 0, 2};

	memcpy(message, header, sizeof(header));
	memcpy(message + sizeof(header), answer_body, sizeof(answer_body));
	return sizeof(header) + sizeof(answer_body);
}

TEST(test_names, "answers about names")
{
	uint8_t message[DNS_SIZE], address[CNI_ADDRESS_SIZE], cut[DNS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE], name[256];
	size_t length = make_answer(message, 0x80);

	assert_int_equal(DNS_ADDRESS, dns_read(message, length, 0x1234, true, address));
	assert_string_equal("192.0.2.7", cni_address_format(address, text));
	assert_int_equal(DNS_NO_ADDRESS, dns_read(message, length, 0x1234, false, address));
	assert_int_equal(DNS_NOTHING, dns_read(message, length, 0x1235, true, address));
	for (size_t size = 0; size < length; size++) {
		uint8_t *exact = memcpy(test_malloc(size + !size), message, size);

		assert_int_not_equal(DNS_ADDRESS, dns_read(exact, size, 0x1234, true, address));
		test_free(exact);
	}
	make_answer(message, 0x83);
	assert_int_equal(DNS_NO_ADDRESS, dns_read(message, length, 0x1234, true, address));
	make_answer(message, 0x82);
	assert_int_equal(DNS_REFUSED, dns_read(message, length, 0x1234, true, address));
	memset(cut, 0xff, sizeof(cut));
	assert_int_equal(DNS_REFUSED, dns_read(cut, sizeof(cut), 0xffff, true, address));

	length = dns_write(message, 0x1234, "db.test", true);
	assert_int_equal(12 + 13, length);
	assert_memory_equal(answer_body, message + 12, 13);
	assert_int_equal(length, dns_write(message, 0x1234, "db.test.", true));
	assert_int_equal(0, dns_write(message, 1, "", true));
	assert_int_equal(0, dns_write(message, 1, "db..test", true));
	memset(name, 'a', sizeof(name));
	name[64] = '\0';
	assert_int_equal(0, dns_write(message, 1, name, true));
	name[63] = '\0';
	assert_int_equal(12 + 65 + 4, dns_write(message, 1, name, true));
}
