// The command `weir explain`: writes its words as the one line that the daemon reads.
#include "admin/command.h"
#include "intercept/control.h"

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
    if (value[0] == ' ' || value[0] == ':' || !strchr(value, ':'))
        return command_usage_error(call, "--header takes \"Name: value\"");
    return add_field(words, value) ? COMMAND_DONE : command_usage_error(call, "that is too long");
}

int explain_command(const struct command_call *call) {
    struct words words = {.method = "GET", .client = "", .destination = ""};
    char request[CONTROL_REQUEST_BYTES];
    for (int i = 0; i < call->argc; i++) {
        int status = take_word(call, &i, &words);
        if (status != COMMAND_DONE)
            return status;
    }
    if (!words.url)
        return command_usage_error(call, "name a URL");
    int length =
            snprintf(request, sizeof request, "explain\t%s\t%s\t%s\t%s\t%s%s", words.json ? "json" : "text",
                    words.url, words.method, words.client, words.destination, words.fields);
    if (length < 0 || (size_t)length >= sizeof request - 1)
        return command_usage_error(call, "that is too long");
    return control_run(call, request);
}
