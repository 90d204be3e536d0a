#include "intercept/store_judge.h"

#include "admin/check.h"
#include "admin/clock.h"
#include "cache/head_record.h"
#include "intercept/store_volumes.h"
#include "intercept/url_mask.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MASKS_MAX 64 // compiled, of purges that still count; more are compiled again and again

struct compiled {
    char *text;
    struct acl_mask *mask; // NULL: malformed, matches nothing
};

struct store_judge {
    pthread_rwlock_t lock;
    struct settings *settings; // NULL: none yet, everything goes by its hits
    struct compiled masks[MASKS_MAX];
    unsigned count, next;
};

struct store_judge *store_judge_new(void) {
    struct store_judge *judge = calloc(1, sizeof *judge);
    if (judge && pthread_rwlock_init(&judge->lock, NULL) != 0) {
        free(judge);
        return NULL;
    }
    return judge;
}

void store_judge_set(struct store_judge *judge, struct settings *settings) {
    pthread_rwlock_wrlock(&judge->lock);
    struct settings *before = judge->settings;
    judge->settings = settings_get(settings);
    pthread_rwlock_unlock(&judge->lock);
    settings_put(before);
}

void store_judge_free(struct store_judge *judge) {
    if (!judge)
        return;
    settings_put(judge->settings);
    for (unsigned i = 0; i < judge->count; i++) {
        acl_mask_free(judge->masks[i].mask);
        free(judge->masks[i].text);
    }
    pthread_rwlock_destroy(&judge->lock);
    free(judge);
}

// ---- masks ----

static const struct compiled *find(const struct store_judge *judge, struct view text) {
    for (unsigned i = 0; i < judge->count; i++)
        if (view_equal(view_of(judge->masks[i].text), text))
            return &judge->masks[i];
    return NULL;
}

// The lock is held for writing. Without memory nothing is kept, and *mask is the caller's.
static void keep_mask(struct store_judge *judge, char *text, struct acl_mask *mask) {
    struct compiled *place = &judge->masks[judge->next];
    if (judge->count == MASKS_MAX) {
        acl_mask_free(place->mask);
        free(place->text);
    } else {
        judge->count++;
    }
    *place = (struct compiled){text, mask};
    judge->next = (judge->next + 1) % MASKS_MAX;
}

static bool compile_and_match(
        struct store_judge *judge, struct view text, struct view authority, struct view path) {
    const char *why = "";
    char *copy = strndup(text.data, text.length);
    struct acl_mask *mask = copy ? acl_mask_new(copy, &why) : NULL;
    bool found = mask && url_mask_matches(mask, authority, path);
    pthread_rwlock_wrlock(&judge->lock);
    bool is_new = copy && !find(judge, text);
    if (is_new)
        keep_mask(judge, copy, mask);
    pthread_rwlock_unlock(&judge->lock);
    if (is_new)
        return found;
    acl_mask_free(mask);
    free(copy);
    return found;
}

bool store_judge_matches(void *context, struct view text, struct view authority, struct view path) {
    struct store_judge *judge = context;
    pthread_rwlock_rdlock(&judge->lock);
    const struct compiled *compiled = find(judge, text);
    bool is_there = compiled != NULL;
    bool found = compiled && compiled->mask && url_mask_matches(compiled->mask, authority, path);
    pthread_rwlock_unlock(&judge->lock);
    return is_there ? found : compile_and_match(judge, text, authority, path);
}

// ---- what is carried over ----

static enum volume_verdict verdict_of(enum penalty_verdict verdict, unsigned hits) {
    switch (verdict) {
    case PENALTY_DROP:
        return VOLUME_DROP;
    case PENALTY_PASS:
        return hits ? VOLUME_DROP : VOLUME_BY_HITS;
    case PENALTY_KEEP:
        return hits ? VOLUME_BY_HITS : VOLUME_KEEP;
    }
    UNREACHABLE("a verdict");
}

static enum volume_verdict judge_head(const struct settings *settings, const struct volume_judged *judged,
        const struct stored_head *head, const struct head_record *record, struct moment now) {
    struct cache_rules rules;
    struct penalty_facts facts;
    store_rules_find(settings->store_rules, record->authority, record->path, &rules);
    penalty_facts_of(&facts, head, record->body_length, record->authority, record->path, rules.refresh, now);
    return verdict_of(
            penalty_judge(penalty_lines_get(settings->penalties), &facts, judged->hits, !judged->is_main),
            judged->hits);
}

enum volume_verdict store_judge_keep(void *context, const struct volume_judged *judged) {
    struct store_judge *judge = context;
    struct head_record record;
    struct head_record_now now = {.moment = moment_of_ms(clock_wall_ms(), clock_monotonic_ms())};
    struct stored_head *head = head_record_decode(judged->head, &now, &record);
    if (!head)
        return VOLUME_BY_HITS; // whoever reads it next sees what is wrong
    pthread_rwlock_rdlock(&judge->lock);
    struct settings *settings = judge->settings ? settings_get(judge->settings) : NULL;
    pthread_rwlock_unlock(&judge->lock);
    enum volume_verdict verdict =
            settings ? judge_head(settings, judged, head, &record, now.moment) : VOLUME_BY_HITS;
    settings_put(settings);
    free(head);
    return verdict;
}
