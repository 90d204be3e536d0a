#include "http/cache_control.h"

#include "http/list.h"
#include "http/octet.h"

struct directive {
    struct view name;
    struct view argument; // without its quotes
    bool has_argument;    // anything after the name
    bool is_wellformed;   // nothing, or "=" and a token or a quoted string
};

static struct directive directive_of(struct view member) {
    struct directive directive = {.name = view_take(member, octet_run(member, OCTET_TOKEN))};
    struct view rest = view_skip(member, directive.name.length);
    directive.has_argument = rest.length > 0;
    if (rest.length == 0 || rest.data[0] != '=') {
        directive.is_wellformed = rest.length == 0;
        return directive;
    }
    rest = view_skip(rest, 1);
    bool is_quoted = rest.length >= 2 && rest.data[0] == '"' && rest.data[rest.length - 1] == '"';
    directive.argument = is_quoted ? (struct view){rest.data + 1, rest.length - 2} : rest;
    directive.is_wellformed = is_quoted || octet_all_token(rest);
    return directive;
}

int64_t cache_control_delta(struct view digits) {
    uint64_t number = 0;
    if (digits.length == 0)
        return DELTA_INVALID;
    for (size_t i = 0; i < digits.length; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return DELTA_INVALID;
    if (!view_number(digits, &number) || number > DELTA_MAXIMUM)
        return DELTA_MAXIMUM;
    return (int64_t)number;
}

static int64_t delta_of(const struct directive *directive) {
    return directive->is_wellformed ? cache_control_delta(directive->argument) : DELTA_INVALID;
}

// The first of several stands [RFC 9111 §4.2.1].
static void set_delta(int64_t *delta, const struct directive *directive) {
    if (*delta == DELTA_NONE)
        *delta = delta_of(directive);
}

// Takes a list of field names in. False, and nothing of it taken, when it is none, or too long a one.
static bool take_names(struct cache_control *control, const struct directive *directive) {
    struct list list = {.rest = directive->argument};
    unsigned count = control->name_count;
    struct view name;
    if (!directive->is_wellformed)
        return false;
    while (list_next(&list, &name)) {
        if (!octet_all_token(name) || count == CACHE_CONTROL_NAMES_MAX)
            return false;
        control->names[count++] = name;
    }
    bool has_names = count > control->name_count;
    control->name_count = count;
    return has_names;
}

// Only a well-formed list of fields narrows it: in doubt the whole response is meant.
static void set_either(
        struct cache_control *control, bool *whole, bool *fields, const struct directive *directive) {
    if (take_names(control, directive))
        *fields = true;
    else
        *whole = true;
}

static void read_directive(struct cache_control *control, const struct directive *directive) {
    if (view_equal_fold(directive->name, VIEW("no-cache")))
        set_either(control, &control->no_cache, &control->no_cache_fields, directive);
    else if (view_equal_fold(directive->name, VIEW("private")))
        set_either(control, &control->is_private, &control->private_fields, directive);
    else if (view_equal_fold(directive->name, VIEW("max-stale")) && !directive->has_argument)
        control->max_stale_any = true;
#define FLAG(member, text) else if (view_equal_fold(directive->name, VIEW(text))) control->member = true;
#define DELTA(member, text)                                                                                  \
    else if (view_equal_fold(directive->name, VIEW(text))) set_delta(&control->member, directive);
#include "http/cache_control.tbl"
}

void cache_control_parse(const struct http_head *head, struct cache_control *control) {
    struct list_walk walk = {.head = head, .id = FIELD_CACHE_CONTROL};
    struct view member;
    *control = (struct cache_control){
#define FLAG(member, text)
#define DELTA(member, text) .member = DELTA_NONE,
#include "http/cache_control.tbl"
    };
    control->present = http_field_find(head, FIELD_CACHE_CONTROL, 0) != NULL;
    while (list_walk_next(&walk, &member)) {
        struct directive directive = directive_of(member);
        read_directive(control, &directive);
    }
}

bool cache_control_leaves_out(const struct cache_control *control, struct view name) {
    for (unsigned i = 0; i < control->name_count; i++)
        if (view_equal_fold(control->names[i], name))
            return true;
    return false;
}
