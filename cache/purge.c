#include "cache/purge.h"

#include "cache/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT32_MAX
#define ROOM_FIRST 16
#define OLDEST_SHARE 4 // of the rules that become coarser at once

struct purge {
    uint64_t seed, bytes_most;
    struct purge_rule *rules;
    uint32_t count, room;
    uint32_t *places; // of hashed rules, by their identity; twice `room`, open addressing
    uint32_t patterns[PURGE_PATTERNS_MAX + 1], pattern_count; // which of them are prefixes and masks
    uint64_t bytes;                                           // of all rules in the journal
    struct purge_rule everything;                             // kind 0: none
};

struct purge *purge_new(uint64_t seed, uint64_t bytes_most) {
    struct purge *purge = memory_new(sizeof *purge);
    *purge = (struct purge){.seed = seed, .bytes_most = bytes_most};
    return purge;
}

void purge_free(struct purge *purge) {
    if (!purge)
        return;
    for (uint32_t i = 0; i < purge->count; i++)
        free(purge->rules[i].text);
    free(purge->rules);
    free(purge->places);
    free(purge);
}

static bool is_hashed(enum volume_purge kind) {
    return kind == VOLUME_PURGE_URL || kind == VOLUME_PURGE_HOST || kind == VOLUME_PURGE_KEY;
}

// ---- making a rule ----

static struct cache_key url_id(const struct purge *purge, struct view authority, struct view path) {
    const struct endpoint any = {0};
    return key_of(purge->seed, &any, authority, path);
}

static struct cache_key host_id(const struct purge *purge, struct view authority) {
    return url_id(purge, authority, (struct view){0});
}

static void set_text(struct purge_rule *rule, struct view text) {
    rule->length = (uint32_t)text.length;
    rule->text = memory_new(text.length + 1);
    memcpy(rule->text, text.length ? text.data : "", text.length);
}

int purge_make(const struct purge *purge, struct purge_rule *rule, enum volume_purge kind,
        struct view authority, struct view path) {
    if (kind == VOLUME_PURGE_PREFIX && path.length > PURGE_TEXT_MAXIMUM)
        kind = VOLUME_PURGE_HOST;
    *rule = (struct purge_rule){.kind = kind};
    switch (kind) {
    case VOLUME_PURGE_URL:
        rule->id = url_id(purge, authority, path);
        rule->host = host_id(purge, authority);
        return 0;
    case VOLUME_PURGE_HOST:
        rule->id = host_id(purge, authority);
        return 0;
    case VOLUME_PURGE_PREFIX:
        rule->host = host_id(purge, authority);
        set_text(rule, path);
        return 0;
    case VOLUME_PURGE_MASK:
        if (path.length > PURGE_TEXT_MAXIMUM)
            return -EINVAL;
        set_text(rule, path);
        return 0;
    case VOLUME_PURGE_ALL:
    case VOLUME_PURGE_KEY:
        return 0;
    }
    return -EINVAL;
}

// ---- the table of the hashed ones ----

static uint32_t *place_of(const struct purge *purge, enum volume_purge kind, struct cache_key id) {
    uint32_t size = purge->room * 2;
    uint32_t at = key_reduce(key_fold(id) + (uint64_t)kind * UINT64_C(0x9e3779b97f4a7c15), size);
    for (;; at = (at + 1) % size) {
        uint32_t *place = &purge->places[at];
        if (*place == NOWHERE ||
                (purge->rules[*place].kind == kind && key_equal(purge->rules[*place].id, id)))
            return place;
    }
}

static struct purge_rule *find(const struct purge *purge, enum volume_purge kind, struct cache_key id) {
    uint32_t *place = purge->room ? place_of(purge, kind, id) : NULL;
    return place && *place != NOWHERE ? &purge->rules[*place] : NULL;
}

static struct purge_rule *find_pattern(const struct purge *purge, const struct purge_rule *rule) {
    for (uint32_t i = 0; i < purge->pattern_count; i++) {
        struct purge_rule *known = &purge->rules[purge->patterns[i]];
        if (known->kind == rule->kind && known->length == rule->length &&
                key_equal(known->host, rule->host) && memcmp(known->text, rule->text, rule->length) == 0)
            return known;
    }
    return NULL;
}

static void index_rule(struct purge *purge, uint32_t at) {
    const struct purge_rule *rule = &purge->rules[at];
    purge->bytes += purge_rule_bytes(rule);
    if (is_hashed(rule->kind))
        *place_of(purge, rule->kind, rule->id) = at;
    else
        purge->patterns[purge->pattern_count++] = at;
}

static void rebuild(struct purge *purge, uint32_t room) {
    struct purge_rule *rules = memory_new(room * sizeof *rules);
    if (purge->rules)
        memcpy(rules, purge->rules, purge->count * sizeof *rules);
    free(purge->rules);
    free(purge->places);
    purge->rules = rules;
    purge->room = room;
    purge->places = memory_new(room * 2 * sizeof *purge->places);
    memset(purge->places, 0xff, room * 2 * sizeof *purge->places);
    purge->pattern_count = 0;
    purge->bytes = 0;
    for (uint32_t i = 0; i < purge->count; i++)
        index_rule(purge, i);
}

// ---- adding ----

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void renew(struct purge_rule *known, const struct purge_rule *rule) {
    known->sequence = later(known->sequence, rule->sequence);
    known->number = later(known->number, rule->number);
}

// Keeps what `keeps` says, with the room for it.
static void sift(struct purge *purge, bool keeps(const struct purge *, const struct purge_rule *)) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < purge->count; i++)
        if (keeps(purge, &purge->rules[i]))
            purge->rules[kept++] = purge->rules[i];
        else
            free(purge->rules[i].text);
    purge->count = kept;
    rebuild(purge, kept * 2 > ROOM_FIRST ? kept * 2 : ROOM_FIRST);
}

static bool is_after_everything(const struct purge *purge, const struct purge_rule *rule) {
    return rule->sequence > purge->everything.sequence;
}

static void add_everything(struct purge *purge, const struct purge_rule *rule) {
    if (!purge->everything.kind)
        purge->everything = (struct purge_rule){.kind = VOLUME_PURGE_ALL};
    renew(&purge->everything, rule);
    // A rule that goes may be the one that has to be remembered for longer.
    for (uint32_t i = 0; i < purge->count; i++)
        if (!is_after_everything(purge, &purge->rules[i]))
            purge->everything.number = later(purge->everything.number, purge->rules[i].number);
    sift(purge, is_after_everything);
}

static void insert(struct purge *purge, struct purge_rule *rule) {
    if (rule->kind == VOLUME_PURGE_ALL) {
        free(rule->text);
        add_everything(purge, rule);
        return;
    }
    if (purge->everything.kind && !is_after_everything(purge, rule)) {
        purge->everything.number = later(purge->everything.number, rule->number);
        free(rule->text);
        return;
    }
    struct purge_rule *known =
            is_hashed(rule->kind) ? find(purge, rule->kind, rule->id) : find_pattern(purge, rule);
    if (known) {
        renew(known, rule);
        free(rule->text);
        return;
    }
    if (!purge->rules || purge->count == purge->room)
        rebuild(purge, purge->room ? purge->room * 2 : ROOM_FIRST);
    purge->rules[purge->count] = *rule;
    index_rule(purge, purge->count++);
}

static int compare_age(const void *a, const void *b) {
    uint64_t left = ((const struct purge_rule *)a)->sequence,
             right = ((const struct purge_rule *)b)->sequence;
    return left < right ? -1 : left > right;
}

static void coarsen(struct purge *purge, struct purge_rule *rule) {
    bool has_host = rule->kind == VOLUME_PURGE_URL || rule->kind == VOLUME_PURGE_PREFIX;
    rule->kind = has_host ? VOLUME_PURGE_HOST : VOLUME_PURGE_ALL;
    rule->id = rule->host;
    rule->host = (struct cache_key){0};
    free(rule->text);
    rule->text = NULL;
    rule->length = 0;
    insert(purge, rule);
}

static void coarsen_oldest(struct purge *purge) {
    struct purge_rule *rules = purge->rules;
    bool of_patterns = purge->pattern_count > PURGE_PATTERNS_MAX;
    uint32_t count = purge->count;
    uint32_t oldest = (of_patterns ? purge->pattern_count : count) / OLDEST_SHARE + 1;
    qsort(rules, count, sizeof *rules, compare_age);
    purge->rules = NULL;
    purge->count = 0;
    rebuild(purge, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        bool is_meant = !of_patterns || !is_hashed(rules[i].kind);
        if (is_meant && oldest > 0) {
            oldest--;
            coarsen(purge, &rules[i]);
        } else
            insert(purge, &rules[i]);
    }
    free(rules);
}

static bool is_above(const struct purge *purge) {
    return purge->pattern_count > PURGE_PATTERNS_MAX || purge_bytes(purge) > purge->bytes_most;
}

void purge_add(struct purge *purge, struct purge_rule *rule) {
    insert(purge, rule);
    while (purge->count > 0 && is_above(purge))
        coarsen_oldest(purge);
}

static void settle(struct purge_rule *rule, uint64_t sequence, uint64_t number, bool *changed) {
    *changed = *changed || rule->sequence == PURGE_PENDING || rule->number == PURGE_PENDING;
    rule->sequence = rule->sequence == PURGE_PENDING ? sequence : rule->sequence;
    rule->number = rule->number == PURGE_PENDING ? number : rule->number;
}

bool purge_settle(struct purge *purge, uint64_t sequence, uint64_t number) {
    bool changed = false;
    for (uint32_t i = 0; i < purge->count; i++)
        settle(&purge->rules[i], sequence, number, &changed);
    if (purge->everything.kind)
        settle(&purge->everything, sequence, number, &changed);
    return changed;
}

static bool counts(const struct purge *purge, const struct purge_rule *rule) {
    (void)purge;
    return rule->number > 0;
}

bool purge_retire(struct purge *purge, uint64_t oldest) {
    uint32_t before = purge->count;
    bool all = purge->everything.kind && purge->everything.number <= oldest;
    for (uint32_t i = 0; i < purge->count; i++)
        if (purge->rules[i].number <= oldest) {
            purge->rules[i].number = 0;
            before = UINT32_MAX;
        }
    if (all)
        purge->everything = (struct purge_rule){0};
    if (before == UINT32_MAX || all)
        sift(purge, counts);
    return before == UINT32_MAX || all;
}

// ---- asking ----

uint64_t purge_count(const struct purge *purge) {
    return purge->count + (purge->everything.kind != 0);
}

uint64_t purge_newest(const struct purge *purge) {
    uint64_t newest = purge->everything.sequence;
    for (uint32_t i = 0; i < purge->count; i++)
        newest = later(newest, purge->rules[i].sequence);
    return newest;
}

uint64_t purge_settled(const struct purge *purge) {
    uint64_t newest = purge->everything.sequence == PURGE_PENDING ? 0 : purge->everything.sequence;
    for (uint32_t i = 0; i < purge->count; i++)
        if (purge->rules[i].sequence != PURGE_PENDING)
            newest = later(newest, purge->rules[i].sequence);
    return newest;
}

static bool covers(const struct purge_rule *rule, uint64_t sequence) {
    return rule && rule->sequence >= sequence;
}

static bool matches_pattern(const struct purge *purge, const struct purge_asked *asked, struct cache_key host,
        purge_match *matches, void *context) {
    for (uint32_t i = 0; i < purge->pattern_count; i++) {
        const struct purge_rule *rule = &purge->rules[purge->patterns[i]];
        struct view text = {rule->text, rule->length};
        if (!covers(rule, asked->sequence))
            continue;
        if (rule->kind == VOLUME_PURGE_PREFIX
                        ? key_equal(rule->host, host) && view_starts(asked->path, text)
                        : matches && matches(context, text, asked->authority, asked->path))
            return true;
    }
    return false;
}

bool purge_matches(
        const struct purge *purge, const struct purge_asked *asked, purge_match *matches, void *context) {
    if (purge->everything.kind && covers(&purge->everything, asked->sequence))
        return true;
    if (purge->count == 0)
        return false;
    struct cache_key host = host_id(purge, asked->authority);
    struct cache_key url = url_id(purge, asked->authority, asked->path);
    return covers(find(purge, VOLUME_PURGE_KEY, asked->key), asked->sequence) ||
           covers(find(purge, VOLUME_PURGE_HOST, host), asked->sequence) ||
           covers(find(purge, VOLUME_PURGE_URL, url), asked->sequence) ||
           matches_pattern(purge, asked, host, matches, context);
}

void purge_each(
        const struct purge *purge, void visit(void *context, const struct purge_rule *rule), void *context) {
    if (purge->everything.kind)
        visit(context, &purge->everything);
    for (uint32_t i = 0; i < purge->count; i++)
        visit(context, &purge->rules[i]);
}

uint64_t purge_bytes(const struct purge *purge) {
    return PURGE_UNIT_BYTES * (purge->everything.kind ? 2 : 1) + purge->bytes;
}
