#include "intercept/penalty_lines.h"

#include "admin/value.h"
#include "intercept/url_mask.h"

#include <stdlib.h>

#define DAY_MS (24.0 * 3600 * 1000)

struct penalty_mask {
    struct acl_mask *mask;
    struct penalty_action action;
};

struct penalty_lines {
    struct penalties penalties;
    size_t mask_count;
    struct penalty_mask *masks;
    bool has_bonus;
};

struct build {
    const struct config *config;
    struct penalty_lines *lines;
    struct config_errors *errors;
    const struct directive *large, *small; // the lines
    bool good;
};

#define REFUSE(build, directive, word, ...)                                                                  \
    do {                                                                                                     \
        config_error((build)->errors, directive, word, __VA_ARGS__);                                         \
        (build)->good = false;                                                                               \
    } while (0)

// ---- actions ----

static void read_action(struct build *build, const struct directive *directive, int word, const char *text,
        struct penalty_action *action) {
    const char *why = penalty_action_read(view_of(text), action);
    if (!why) {
        build->lines->has_bonus |= penalty_action_is_bonus(action);
        return;
    }
    *action = PENALTY_NONE;
    REFUSE(build, directive, word, "\"%.80s\" is no action, %s", text, why);
}

static void read_scalar(
        struct build *build, enum directive_id id, const char *text, struct penalty_action *action) {
    struct directive start = {.file = build->config->file, .line = 1, .column = 1};
    const struct directive *place = build->config->set_by[id];
    read_action(build, place ? place : &start, place ? 0 : -1, text, action);
}

#define READ_SCALAR(build, member)                                                                           \
    read_scalar(build, DIRECTIVE_##member##_penalty, (build)->config->member##_penalty,                      \
            &(build)->lines->penalties.member)

static void read_scalars(struct build *build) {
    build->lines->penalties.reference_days = (double)build->config->reference_age / DAY_MS;
    READ_SCALAR(build, negative_cached);
    READ_SCALAR(build, expired);
    READ_SCALAR(build, expired_but_checkable);
    READ_SCALAR(build, redirect);
    READ_SCALAR(build, not_checkable);
}

// ---- large_object_penalty, small_object_penalty ----

static uint64_t read_bytes(struct build *build, const struct directive *directive, unsigned word) {
    int64_t bytes = 0;
    const char *text = directive->words[word].text;
    if (value_size(view_of(text), &bytes) != VALUE_GOOD)
        REFUSE(build, directive, (int)word,
                "\"%.80s\" is no size, write bytes, or a number with K, M, G or T", text);
    else if (word > 0 && bytes == 0)
        REFUSE(build, directive, (int)word, "a step of 0 never ends, write 1 or more");
    return (uint64_t)bytes;
}

static void read_size(struct build *build, const struct directive *directive, const char *name,
        const struct directive **first, struct penalty_size *size) {
    if (*first) {
        REFUSE(build, directive, -1, "%s is set already at %.255s:%u:%u, take one of the two out", name,
                (*first)->file, (*first)->line, (*first)->column);
        return;
    }
    *first = directive;
    *size = (struct penalty_size){.is_set = true, .step_action = PENALTY_NONE};
    size->bytes = read_bytes(build, directive, 0);
    read_action(build, directive, 1, directive->words[1].text, &size->action);
    if (directive->word_count == 3)
        REFUSE(build, directive, 2, "a step needs its action, write %s SIZE ACTION STEP ACTION%s", name,
                config_comment_hint(directive));
    if (directive->word_count < 4)
        return;
    size->step = read_bytes(build, directive, 2);
    read_action(build, directive, 3, directive->words[3].text, &size->step_action);
}

// ---- urlmask ----

static bool make_room(struct penalty_lines *lines) {
    if ((lines->mask_count & (lines->mask_count - 1)) != 0)
        return true;
    size_t room = lines->mask_count ? lines->mask_count * 2 : 1;
    struct penalty_mask *masks = reallocarray(lines->masks, room, sizeof *masks);
    if (masks)
        lines->masks = masks;
    return masks != NULL;
}

static void read_mask(struct build *build, const struct directive *directive) {
    struct penalty_lines *lines = build->lines;
    struct penalty_mask added;
    const char *why = "";
    read_action(build, directive, 1, directive->words[1].text, &added.action);
    added.mask = acl_mask_new(directive->words[0].text, &why);
    if (!added.mask)
        REFUSE(build, directive, 0, "\"%.80s\" is no mask: %s", directive->words[0].text, why);
    else if (lines->mask_count == PENALTY_MASKS_MAX)
        REFUSE(build, directive, -1, "more than %d urlmask lines, take some out", PENALTY_MASKS_MAX);
    else if (!make_room(lines))
        REFUSE(build, directive, -1, "no memory for this mask, make the configuration smaller");
    else {
        lines->masks[lines->mask_count++] = added;
        return;
    }
    acl_mask_free(added.mask);
}

static const struct penalty_action *find_mask(const void *context, struct view authority, struct view path) {
    const struct penalty_lines *lines = context;
    struct acl_request request;
    if (!url_mask_request(&request, authority, path))
        return NULL;
    for (size_t i = 0; i < lines->mask_count; i++)
        if (acl_mask_matches(lines->masks[i].mask, &request))
            return &lines->masks[i].action;
    return NULL;
}

// ---- the whole ----

static void read_line(struct build *build, const struct directive *directive) {
    struct penalties *penalties = &build->lines->penalties;
    if (directive->id == DIRECTIVE_large_object_penalty)
        read_size(build, directive, "large_object_penalty", &build->large, &penalties->large);
    else if (directive->id == DIRECTIVE_small_object_penalty)
        read_size(build, directive, "small_object_penalty", &build->small, &penalties->small);
    else if (directive->id == DIRECTIVE_urlmask)
        read_mask(build, directive);
}

struct penalty_lines *penalty_lines_new(const struct config *config, struct config_errors *errors) {
    struct penalty_lines *lines = calloc(1, sizeof *lines);
    if (!lines) {
        config_error(errors, &(struct directive){.file = config->file}, -1, "out of memory");
        return NULL;
    }
    struct build build = {.config = config, .lines = lines, .errors = errors, .good = true};
    read_scalars(&build);
    for (size_t i = 0; i < config->directive_count; i++)
        read_line(&build, &config->directives[i]);
    if (lines->mask_count) {
        lines->penalties.find_mask = find_mask;
        lines->penalties.context = lines;
    }
    if (build.good)
        return lines;
    penalty_lines_free(lines);
    return NULL;
}

void penalty_lines_free(struct penalty_lines *lines) {
    if (!lines)
        return;
    for (size_t i = 0; i < lines->mask_count; i++)
        acl_mask_free(lines->masks[i].mask);
    free(lines->masks);
    free(lines);
}

const struct penalties *penalty_lines_get(const struct penalty_lines *lines) {
    return &lines->penalties;
}

bool penalty_lines_have_bonus(const struct penalty_lines *lines) {
    return lines->has_bonus;
}

bool penalty_lines_validate(const struct config *config, struct config_errors *errors) {
    struct penalty_lines *lines = penalty_lines_new(config, errors);
    penalty_lines_free(lines);
    return lines != NULL;
}
