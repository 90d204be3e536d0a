// The raw messages of tests/corpus through sniffing, parsing, target, framing and body: what must be refused
// is, with the status of its table.
#include "http/body.h"
#include "http/head.h"
#include "http/target.h"

#include "tests/unit/http/message.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "tests/corpus/"
#define FIELDS 128

static const struct http_limits limits = {.head_bytes = 65536, .target_bytes = 16384, .fields = FIELDS};

// The content is in memory of exactly its size.
static struct view read_file(const char *kind, const char *name) {
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s/%s", kind, name);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    static char content[1 << 20];
    size_t length = fread(content, 1, sizeof content, file);
    fclose(file);
    char *copy = malloc(length ? length : 1);
    memcpy(copy, content, length);
    return (struct view){copy, length};
}

// Decodes all of `input` in steps. False when the body was malformed or is not over at the end.
static bool decode(const struct framing *framing, struct view input, size_t step, struct view *rest) {
    struct body_decoder decoder;
    struct view content, piece;
    enum body body = BODY_MORE;
    body_decoder_init(&decoder, framing);
    do {
        piece = view_take(input, step);
        input = view_skip(input, step);
        while ((body = body_decode(&decoder, &piece, &content)) == BODY_DATA)
            CU_ASSERT(content.length > 0);
    } while (body == BODY_MORE && input.length > 0);
    if (body == BODY_MORE)
        body = body_decode_close(&decoder);
    *rest = (struct view){input.data - piece.length, input.length + piece.length};
    body_decoder_fini(&decoder);
    return body == BODY_END;
}

// Parses as bytes arrive, `step` at a time.
static enum parse parse(
        struct view input, size_t step, bool is_request, struct http_head *head, struct http_error *error) {
    enum parse result = PARSE_MORE;
    for (size_t seen = 0, length = 0; result == PARSE_MORE && seen < input.length; seen = length) {
        length = seen + step < input.length ? seen + step : input.length;
        struct view part = view_take(input, length);
        result = is_request ? http_parse_request(part, seen, &limits, head, error)
                            : http_parse_response(part, seen, &limits, head, error);
    }
    return result;
}

// 0: one message, and nothing else; -1: not whole.
static int judge_request(struct view input, size_t step) {
    struct http_field fields[FIELDS];
    struct http_head head = {.fields = fields, .field_capacity = FIELDS};
    struct http_error error = {0};
    struct http_target target;
    struct framing framing;
    struct view rest;
    enum sniff sniff = SNIFF_MORE;
    for (size_t length = 0; sniff == SNIFF_MORE && length <= input.length; length++)
        sniff = http_sniff(view_take(input, length), limits.target_bytes);
    CU_ASSERT_EQUAL(sniff, SNIFF_HTTP);
    enum parse result = parse(input, step, true, &head, &error);
    if (result == PARSE_DONE)
        result = target_of_request(&head, &target, &error);
    if (result == PARSE_DONE)
        result = framing_of_request(&head, &framing, &error);
    if (result != PARSE_DONE)
        return result == PARSE_BAD ? error.status : -1;
    if (!decode(&framing, view_skip(input, head.head_length), step, &rest))
        return 400;
    return rest.length == 0 ? 0 : -1;
}

#define CUT 1

static int judge_response(struct view input, enum method_id method, size_t step) {
    struct http_field fields[FIELDS];
    struct http_head head = {.fields = fields, .field_capacity = FIELDS};
    struct http_error error = {0};
    struct framing framing;
    struct view rest;
    do {
        if (parse(input, step, false, &head, &error) != PARSE_DONE ||
                framing_of_response(&head, method, &framing, &error) != PARSE_DONE)
            return 502;
        input = view_skip(input, head.head_length);
    } while (head.status < 200);
    return decode(&framing, input, step, &rest) ? 0 : CUT;
}

static int expectation(const char *word) {
    if (strcmp(word, "ok") == 0)
        return 0;
    return strcmp(word, "cut") == 0 ? CUT : atoi(word);
}

static void check(const char *kind, const char *name, const char *expected) {
    struct view input = read_file(kind, name);
    bool is_request = strcmp(kind, "requests") == 0;
    enum method_id method = strncmp(name, "head-", 5) == 0 ? METHOD_HEAD : METHOD_GET;
    static const size_t steps[] = {1, 2, 3, 7, 64, 1 << 20};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int outcome = is_request ? judge_request(input, steps[i]) : judge_response(input, method, steps[i]);
        if (outcome != expectation(expected))
            printf("\n  %s/%s in steps of %zu: %d, not %s\n", kind, name, steps[i], outcome, expected);
        CU_ASSERT_EQUAL(outcome, expectation(expected));
    }
    free((char *)input.data);
}

static unsigned count_files(const char *kind) {
    char path[256];
    unsigned count = 0;
    snprintf(path, sizeof path, FOLDER "%s", kind);
    DIR *folder = opendir(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

// Every file of a folder is in its table, and comes out as the table says.
static void check_table(const char *kind, unsigned least) {
    char path[256], line[256], name[128], expected[16];
    unsigned count = 0;
    snprintf(path, sizeof path, FOLDER "%s.tbl", kind);
    FILE *table = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    while (fgets(line, sizeof line, table)) {
        CU_ASSERT_EQUAL_FATAL(sscanf(line, "%127s %15s", name, expected), 2);
        check(kind, name, expected);
        count++;
    }
    fclose(table);
    CU_ASSERT(count >= least);
    CU_ASSERT_EQUAL(count, count_files(kind));
}

static void requests(void) {
    check_table("requests", 60);
}

static void responses(void) {
    check_table("responses", 40);
}

SUITE(http_corpus, CASE(requests), CASE(responses))
