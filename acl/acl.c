#include "acl/acl.h"

#include "acl/mask_set.h"
#include "acl/prefix.h"
#include "admin/check.h"

#include <stdlib.h>
#include <string.h>

struct acl {
    struct rule_list rules;
    struct prefix_table *clients; // allow and deny; the values are client_value()
    bool has_allow;
    struct mask_set *block, *pass, *no_cache;
};

struct acl_mask {
    struct mask *mask;
};

// Where a rule stands, for errors.
struct place {
    const struct directive *directive;
    int word;
};

// An acl being made. `places` has those of allow and deny, which are the first rules.
struct build {
    struct acl *acl;
    struct config_errors *errors;
    struct place *places;
    size_t capacity;
    unsigned bad;
    bool out_of_memory;
};

static uint32_t client_value(uint32_t rule, bool deny) {
    return rule << 1 | deny;
}

static uint32_t client_rule(uint32_t value) {
    return value == PREFIX_NONE ? RULE_NONE : value >> 1;
}

static bool client_denies(uint32_t value) {
    return value & 1;
}

static const char *place_word(struct place place) {
    return place.directive->words[place.word].text;
}

static uint32_t add_rule(struct build *build, struct place place, const char *verb) {
    uint32_t rule = rule_list_add(&build->acl->rules, verb, view_of(place_word(place)), place.directive->file,
            place.directive->line);
    build->out_of_memory |= rule == RULE_NONE;
    return rule;
}

// Says what is wrong with a word; for host bits alone, which prefix was meant.
static void bad_word(struct build *build, struct place place, const struct mask_error *error) {
    char right[ADDRESS_TEXT_BYTES];
    build->bad++;
    if (error->bits == ADDRESS_NO_PREFIX)
        config_error(
                build->errors, place.directive, place.word, "\"%.80s\": %s", place_word(place), error->why);
    else
        config_error(build->errors, place.directive, place.word,
                "\"%.80s\": bits are set behind the prefix, write %s", place_word(place),
                address_print_prefix(&error->prefix, error->bits, right));
}

// `winner` RULE_NONE: several rules together.
static void never_matches(
        struct build *build, struct place place, uint32_t winner, const char *others, const char *cure) {
    const struct rule_list *rules = &build->acl->rules;
    build->bad++;
    if (winner == RULE_NONE) {
        config_error(build->errors, place.directive, place.word, "\"%.80s\" can never match: %s, %s",
                place_word(place), others, cure);
        return;
    }
    struct view text = view_take(rule_text(rules, winner), 80);
    config_error(build->errors, place.directive, place.word,
            "\"%.80s\" can never match: \"" VIEW_FORMAT "\" in %s:%u %s, %s", place_word(place),
            VIEW_ARGUMENT(text), rule_file(rules, winner), rules->rules[winner].line, others, cure);
}

static bool remember_place(struct build *build, uint32_t rule, struct place place) {
    if (rule >= build->capacity) {
        size_t capacity = build->capacity ? 2 * build->capacity : 16;
        struct place *grown = realloc(build->places, capacity * sizeof *grown);
        if (!grown)
            return false;
        build->places = grown;
        build->capacity = capacity;
    }
    build->places[rule] = place;
    return true;
}

static void add_client(struct build *build, struct place place, bool deny) {
    struct mask_error error;
    struct acl *acl = build->acl;
    error.why = address_parse_prefix(view_of(place_word(place)), &error.prefix, &error.bits);
    if (error.why) {
        bad_word(build, place, &error);
        return;
    }
    uint32_t rule = add_rule(build, place, deny ? "deny" : "allow");
    if (rule == RULE_NONE)
        return;
    CHECK(rule < RULE_NONE / 2);
    acl->has_allow |= !deny;
    build->out_of_memory |=
            !remember_place(build, rule, place) ||
            !prefix_table_add(acl->clients, &error.prefix, error.bits, client_value(rule, deny));
}

// Of allow and deny a prefix that decides for nobody is an error, unless the same word stands twice.
static void client_lost(void *context, uint32_t loser, uint32_t winner) {
    struct build *build = context;
    struct place place = build->places[client_rule(loser)];
    if (winner == PREFIX_NONE)
        never_matches(build, place, RULE_NONE, "longer prefixes cover all of it", "remove it or them");
    else if (client_denies(loser) != client_denies(winner))
        never_matches(build, place, client_rule(winner), "is the same prefix", "remove one of them");
}

// One mask of block, pass or no_cache. `over`: a finished set that wins over it, or NULL.
static void add_mask(struct build *build, struct place place, const char *verb, struct mask_set *set,
        const struct mask_set *over) {
    struct mask_error error;
    struct mask *mask = mask_new(view_of(place_word(place)), &error);
    if (!mask) {
        bad_word(build, place, &error);
        return;
    }
    uint32_t winner = over ? mask_set_cover(over, mask) : RULE_NONE;
    if (winner != RULE_NONE)
        never_matches(build, place, winner, "wins over all of it", "remove one of them");
    uint32_t rule = add_rule(build, place, verb);
    if (rule == RULE_NONE)
        free(mask);
    else
        build->out_of_memory |= !mask_set_add(set, mask, rule);
}

static void add_clients(struct build *build, const struct config *config) {
    for (size_t i = 0; i < config->directive_count; i++) {
        const struct directive *directive = &config->directives[i];
        bool deny = directive->id == DIRECTIVE_deny;
        for (unsigned word = 0; (deny || directive->id == DIRECTIVE_allow) && word < directive->word_count;
                word++)
            add_client(build, (struct place){directive, (int)word}, deny);
    }
    build->out_of_memory |= !prefix_table_finish(build->acl->clients, client_lost, build);
}

static void add_masks(struct build *build, const struct config *config, enum directive_id id,
        const char *verb, struct mask_set *set, const struct mask_set *over) {
    for (size_t i = 0; i < config->directive_count; i++) {
        const struct directive *directive = &config->directives[i];
        for (unsigned word = 0; directive->id == id && word < directive->word_count; word++)
            add_mask(build, (struct place){directive, (int)word}, verb, set, over);
    }
    build->out_of_memory |= !mask_set_finish(set);
}

static struct acl *allocate(void) {
    struct acl *acl = calloc(1, sizeof *acl);
    if (!acl)
        return NULL;
    rule_list_init(&acl->rules);
    acl->clients = prefix_table_new();
    acl->block = mask_set_new(&acl->rules);
    acl->pass = mask_set_new(&acl->rules);
    acl->no_cache = mask_set_new(&acl->rules);
    if (acl->clients && acl->block && acl->pass && acl->no_cache)
        return acl;
    acl_free(acl);
    return NULL;
}

static void build_all(struct build *build, const struct config *config) {
    struct acl *acl = build->acl;
    add_clients(build, config);
    add_masks(build, config, DIRECTIVE_pass, "pass", acl->pass, NULL);
    add_masks(build, config, DIRECTIVE_block, "block", acl->block, acl->pass);
    add_masks(build, config, DIRECTIVE_no_cache, "no_cache", acl->no_cache, NULL);
    rule_list_trim(&acl->rules);
}

struct acl *acl_new(const struct config *config, struct config_errors *errors) {
    static const struct directive nowhere = {.file = "acl"};
    struct build build = {.acl = allocate(), .errors = errors};
    if (build.acl)
        build_all(&build, config);
    free(build.places);
    if (!build.acl || build.out_of_memory)
        config_error(errors, config->directive_count ? config->directives : &nowhere, -1,
                "no memory for the rules of allow, deny, block, pass and no_cache, shorten them");
    if (build.acl && !build.out_of_memory && !build.bad)
        return build.acl;
    acl_free(build.acl);
    return NULL;
}

void acl_free(struct acl *acl) {
    if (!acl)
        return;
    prefix_table_free(acl->clients);
    mask_set_free(acl->block);
    mask_set_free(acl->pass);
    mask_set_free(acl->no_cache);
    rule_list_fini(&acl->rules);
    free(acl);
}

enum acl_verdict acl_client(const struct acl *acl, const struct address *client, struct acl_match *match) {
    uint32_t value = prefix_table_find(acl->clients, client);
    bool deny = value == PREFIX_NONE ? acl->has_allow : client_denies(value);
    rule_match(&acl->rules, client_rule(value), match);
    return deny ? ACL_DENY : ACL_ALLOW;
}

static uint32_t find_in(const struct mask_set *set, const struct url_list *urls, bool is_destination) {
    for (unsigned i = 0; i < urls->count; i++)
        if (urls->url[i].is_destination == is_destination)
            return mask_set_find_one(set, &urls->url[i]);
    return RULE_NONE;
}

// A blocked address of the destination: what a pass of the mere name does not lift.
static uint32_t find_blocked_address(const struct acl *acl, const struct url_list *urls) {
    for (unsigned i = 0; i < urls->count; i++)
        if (urls->url[i].is_destination)
            return mask_set_find_address(acl->block, &urls->url[i]);
    return RULE_NONE;
}

// The rule that decides; *blocks says how.
static uint32_t decide_url(const struct acl *acl, const struct url_list *urls, bool *blocks) {
    *blocks = false;
    uint32_t rule = find_in(acl->pass, urls, true);
    if (rule != RULE_NONE)
        return rule;
    uint32_t pass = find_in(acl->pass, urls, false);
    rule = pass == RULE_NONE ? mask_set_find(acl->block, urls) : find_blocked_address(acl, urls);
    *blocks = rule != RULE_NONE;
    return *blocks ? rule : pass;
}

enum acl_verdict acl_url(const struct acl *acl, const struct acl_request *request, struct acl_match *match) {
    struct url_list urls;
    uint32_t rule = RULE_NONE;
    bool blocks = false;
    if (!mask_set_is_empty(acl->block) || !mask_set_is_empty(acl->pass)) {
        url_list_init(&urls, request);
        rule = decide_url(acl, &urls, &blocks);
        url_list_fini(&urls);
    }
    rule_match(&acl->rules, rule, match);
    return blocks ? ACL_BLOCK : ACL_ALLOW;
}

bool acl_no_cache_rule(const struct acl *acl, const struct acl_request *request, struct acl_match *match) {
    struct url_list urls;
    uint32_t rule = RULE_NONE;
    if (!mask_set_is_empty(acl->no_cache)) {
        url_list_init(&urls, request);
        rule = mask_set_find(acl->no_cache, &urls);
        url_list_fini(&urls);
    }
    rule_match(&acl->rules, rule, match);
    return rule != RULE_NONE;
}

bool acl_no_cache(const struct acl *acl, const struct acl_request *request) {
    struct acl_match ignored;
    return acl_no_cache_rule(acl, request, &ignored);
}

struct acl_mask *acl_mask_new(const char *text, const char **why) {
    struct mask_error error;
    struct acl_mask *one = malloc(sizeof *one);
    if (one)
        one->mask = mask_new(view_of(text), &error);
    *why = one ? error.why : "out of memory";
    if (one && one->mask)
        return one;
    free(one);
    return NULL;
}

bool acl_mask_matches(const struct acl_mask *one, const struct acl_request *request) {
    struct url_list urls;
    bool found = false;
    url_list_init(&urls, request);
    for (unsigned i = 0; i < urls.count && !found; i++)
        found = mask_matches(one->mask, &urls.url[i]);
    url_list_fini(&urls);
    return found;
}

void acl_mask_free(struct acl_mask *one) {
    if (!one)
        return;
    free(one->mask);
    free(one);
}

size_t acl_count(const struct acl *acl) {
    return acl->rules.count;
}

size_t acl_bytes(const struct acl *acl) {
    return sizeof *acl + rule_list_bytes(&acl->rules) + prefix_table_bytes(acl->clients) +
           mask_set_bytes(acl->block) + mask_set_bytes(acl->pass) + mask_set_bytes(acl->no_cache);
}

bool acl_validate(const struct config *config, struct config_errors *errors) {
    struct acl *acl = acl_new(config, errors);
    bool is_valid = acl != NULL;
    acl_free(acl);
    return is_valid;
}
