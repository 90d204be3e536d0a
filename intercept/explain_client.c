// The command `weir explain`: writes its words as the one line that the daemon reads.
#include "admin/command.h"
#include "http/framing.h"
#include "http/octet.h"
#include "http/target.h"
#include "intercept/control.h"
#include "intercept/explain.h"
#include "intercept/url_argument.h"

#include <string.h>

struct words {
    const char *url, *method, *client, *destination;
    bool json;
    size_t used; // of fields
    char fields[CONTROL_REQUEST_BYTES];
};

static bool has_control_bytes(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

// Lines of their own would be other fields, and a tab another word.
static bool add_field(struct words *words, const char *field) {
    size_t room = sizeof words->fields - words->used, length = strlen(field);
    if (length + 1 >= room)
        return false;
    words->fields[words->used++] = '\t';
    memcpy(words->fields + words->used, field, length + 1);
    words->used += length;
    return true;
}

// What a request with this field alone is refused for; NULL: nothing.
static const char *field_problem(const char *text) {
    static const struct http_limits limits = {
            .head_bytes = CONTROL_REQUEST_BYTES * 2, .target_bytes = CONTROL_REQUEST_BYTES, .fields = 2};
    struct http_field fields[2];
    struct http_head head = {.fields = fields, .field_capacity = 2};
    struct http_target target;
    struct framing framing;
    struct http_error error = {.why = "it is no whole field"};
    char request[CONTROL_REQUEST_BYTES + 64];
    int length = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", text);
    if (length < 0 || (size_t)length >= sizeof request)
        return "it is too long";
    bool good = http_parse_request((struct view){request, (size_t)length}, 0, &limits, &head, &error) ==
                        PARSE_DONE &&
                target_of_request(&head, &target, &error) == PARSE_DONE &&
                framing_of_request(&head, &framing, &error) == PARSE_DONE;
    return good ? NULL : error.why;
}

static int take_field(const struct command_call *call, struct words *words, const char *field) {
    if (field[0] == ' ' || field[0] == ':' || !strchr(field, ':'))
        return command_usage_error(call, "--header \"%.80s\": write \"Name: value\"", field);
    if (view_starts_fold(view_of(field), VIEW("Host:")))
        return command_usage_error(call, "--header \"%.80s\": the host is the URL's, write it there", field);
    const char *why = field_problem(field);
    if (why)
        return command_usage_error(
                call, "--header \"%.80s\": weir refuses a request with that field (%s)", field, why);
    return add_field(words, field) ? COMMAND_DONE : command_usage_error(call, "that is too long");
}

static const char **place_of(struct words *words, const char *option) {
    if (strcmp(option, "--method") == 0)
        return &words->method;
    if (strcmp(option, "--client") == 0)
        return &words->client;
    return strcmp(option, "--destination") == 0 ? &words->destination : NULL;
}

// COMMAND_DONE, or what is wrong was told.
static int take_word(const struct command_call *call, int *at, struct words *words) {
    const char *word = call->argv[*at];
    bool is_field = strcmp(word, "--header") == 0;
    const char **place = place_of(words, word);
    if (has_control_bytes(word))
        return command_usage_error(call, "a control byte stands in a word");
    if (strcmp(word, "--json") == 0)
        return words->json = true, COMMAND_DONE;
    if (!is_field && !place) {
        if (word[0] == '-')
            return command_usage_error(call, "no option is called \"%s\"", word);
        if (words->url)
            return command_usage_error(call, "\"%s\" is one word too many", word);
        return words->url = word, COMMAND_DONE;
    }
    if (++*at >= call->argc || !*call->argv[*at] || has_control_bytes(call->argv[*at]))
        return command_usage_error(call, "%s needs a value behind it", word);
    const char *value = call->argv[*at];
    if (place)
        return *place = value, COMMAND_DONE;
    return take_field(call, words, value);
}

static int check_words(const struct command_call *call, const struct words *words) {
    struct url_argument url;
    struct address client;
    struct endpoint destination;
    if (!words->url)
        return command_usage_error(call, "name a URL, http://HOST/PATH");
    const char *why = url_argument_read(view_of(words->url), &url);
    if (why)
        return command_usage_error(call, "URL \"%.80s\": %s", words->url, why);
    if (!octet_all_token(view_of(words->method)) || strlen(words->method) > HTTP_METHOD_BYTES)
        return command_usage_error(
                call, "--method \"%.80s\": write a method's name, GET or HEAD", words->method);
    if (strcmp(words->method, "CONNECT") == 0)
        return command_usage_error(call, "--method CONNECT: a tunnel has no URL and nothing of it is stored, "
                                         "write GET or HEAD");
    if (*words->client && !address_parse(view_of(words->client), &client))
        return command_usage_error(
                call, "--client \"%.80s\": write an IP address, 192.0.2.1 or 2001:db8::1", words->client);
    if (*words->destination && !explain_read_destination(view_of(words->destination), &destination))
        return command_usage_error(call,
                "--destination \"%.80s\": write IP or IP:PORT, 192.0.2.1:80 or [2001:db8::1]:80",
                words->destination);
    return COMMAND_DONE;
}

int explain_command(const struct command_call *call) {
    struct words words = {.method = "GET", .client = "", .destination = ""};
    char request[CONTROL_REQUEST_BYTES];
    for (int i = 0; i < call->argc; i++) {
        int status = take_word(call, &i, &words);
        if (status != COMMAND_DONE)
            return status;
    }
    int good = check_words(call, &words);
    if (good != COMMAND_DONE)
        return good;
    int length =
            snprintf(request, sizeof request, "explain\t%s\t%s\t%s\t%s\t%s%s", words.json ? "json" : "text",
                    words.url, words.method, words.client, words.destination, words.fields);
    if (length < 0 || (size_t)length >= sizeof request - 1)
        return command_usage_error(call, "that is too long");
    return control_run(call, request);
}
