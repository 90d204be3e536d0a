// Heads for the tests, written as text with "\n" for line ends.
#pragma once

#include "http/head.h"
#include "tests/unit/unit.h"

#include <string.h>

#define TEXT_FIELDS 64

struct text_head {
    struct http_head head;
    struct http_field fields[TEXT_FIELDS];
    char bytes[8192];
};

static inline struct view text_lines(struct text_head *text, const char *first, const char *fields) {
    size_t length = 0;
    const char *parts[] = {first, "\n", fields, "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *at = parts[i]; *at && length < sizeof text->bytes - 2; at++) {
            if (*at == '\n')
                text->bytes[length++] = '\r';
            text->bytes[length++] = *at;
        }
    text->head = (struct http_head){.fields = text->fields, .field_capacity = TEXT_FIELDS};
    return (struct view){text->bytes, length};
}

static const struct http_limits text_limits = {8192, 4096, TEXT_FIELDS};

// `fields`: "Name: value\n" lines.
__attribute__((unused)) static const struct http_head *text_response(
        struct text_head *text, int status, const char *fields) {
    char first[] = "HTTP/1.1 000 Some reason";
    struct http_error error;
    first[9] = (char)('0' + status / 100);
    first[10] = (char)('0' + status / 10 % 10);
    first[11] = (char)('0' + status % 10);
    struct view input = text_lines(text, first, fields);
    CU_ASSERT_EQUAL_FATAL(http_parse_response(input, 0, &text_limits, &text->head, &error), PARSE_DONE);
    return &text->head;
}

__attribute__((unused)) static const struct http_head *text_request(
        struct text_head *text, const char *method, const char *fields) {
    char first[64];
    struct http_error error;
    CU_ASSERT_FATAL(strlen(method) < 32);
    strcat(strcpy(first, method), " /path HTTP/1.1");
    struct view input = text_lines(text, first, fields);
    CU_ASSERT_EQUAL_FATAL(http_parse_request(input, 0, &text_limits, &text->head, &error), PARSE_DONE);
    return &text->head;
}
