// The façade's answers to `weir explain`: what is stored under a URL, and what a request would get.
#include "admin/container.h"
#include "cache/disk.h"
#include "cache/store.h"
#include "cache/tier.h"
#include "cache/vary.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

// ---- texts, cut to their room ----

static void copy_text(char *out, size_t size, struct view text) {
    static const char cut[] = "...";
    size_t most = size - 1, length = text.length <= most ? text.length : most - (sizeof cut - 1);
    if (length)
        memcpy(out, text.data, length);
    if (length < text.length) {
        memcpy(out + length, cut, sizeof cut - 1);
        length += sizeof cut - 1;
    }
    out[length] = '\0';
}

static void copy_field(char out[static EXPLAIN_TEXT_BYTES], const struct http_head *head, enum field_id id) {
    const struct http_field *field = http_field_find(head, id, 0);
    copy_text(out, EXPLAIN_TEXT_BYTES, field ? field->value : (struct view){"", 0});
}

// ---- what is there ----

static void describe_head(
        struct cache_variant *out, const struct stored_head *head, const struct cache_query *query) {
    out->is_selected = vary_matches(head->vary, head->selectors, query->head);
    out->status = head->http.status;
    out->age_s = freshness_age(&head->freshness, query->now);
    out->lifetime_s = freshness_lifetime(&head->freshness, query->rules ? query->rules->refresh : NULL);
    out->content_length = head->content_length;
    out->is_confirmed_first = head->freshness.no_cache;
    out->is_never_stale = head->freshness.must_revalidate;
    copy_text(out->vary, sizeof out->vary, head->vary);
    copy_text(out->selectors, sizeof out->selectors, head->selectors);
    copy_field(out->etag, &head->http, FIELD_ETAG);
    copy_field(out->last_modified, &head->http, FIELD_LAST_MODIFIED);
    copy_field(out->content_type, &head->http, FIELD_CONTENT_TYPE);
}

static void describe_span(struct cache_variant *out, uint64_t first, uint64_t last) {
    out->content_bytes += last - first + 1;
    if (out->span_count++ >= EXPLAIN_SPANS_MAX)
        return;
    out->spans[out->span_count - 1].first = first;
    out->spans[out->span_count - 1].last = last;
}

// What is there of the content, in memory.
static void describe_content(struct cache_variant *out, const struct cache_object *object) {
    struct body_hole run;
    for (uint64_t at = 0; body_run(object->body, at, &run); at = run.last + 1)
        describe_span(out, run.first, run.last);
}

static void describe_place(struct cache_variant *out, const struct cache_object *object) {
    struct disk_place place;
    body_copy_place(object->body, &place);
    if (place.volume)
        copy_text(out->disk_path, sizeof out->disk_path, view_of(disk_place_path(&place)));
    disk_place_put(&place);
}

static void describe_whole(struct cache_variant *out, const struct cache_object *object) {
    describe_content(out, object);
    out->is_partial = object_may_have_holes(object) && !body_is_complete(object->body);
    if (object->is_partial)
        out->content_length = object->size == SIZE_UNKNOWN ? -1 : (int64_t)object->size;
    else if (object->head->has_body)
        out->content_length = (int64_t)object->size;
    out->memory_bytes = object->node.bytes;
    describe_place(out, object);
}

static void describe(
        struct cache_variant *out, struct cache_object *object, const struct cache_query *query) {
    enum phase phase = object_phase(object);
    *out = (struct cache_variant){.state = VARIANT_AWAITED, .content_length = -1};
    if (phase == PHASE_PENDING || !object->head)
        return;
    describe_head(out, object->head, query);
    out->state = object->place == PLACE_STORED ? VARIANT_STORED : VARIANT_ARRIVING;
    if (phase == PHASE_WHOLE) {
        describe_whole(out, object);
        return;
    }
    describe_content(out, object);
}

static void describe_chain(
        struct cache_explanation *out, struct cache_object *first, const struct cache_query *query) {
    for (struct cache_object *object = first; object; object = object->sibling)
        if (out->variant_count++ < EXPLAIN_VARIANTS_MAX)
            describe(&out->variants[out->variant_count - 1], object, query);
}

static void describe_entry(
        struct cache *cache, const struct cache_query *query, struct cache_explanation *out) {
    struct entry_name name = store_name(cache, query);
    struct shard *shard = index_shard(&cache->index, name.key);
    pthread_mutex_lock(&shard->lock);
    const struct entry *entry = index_find(shard, &name);
    if (entry) {
        describe_chain(out, entry->stored, query);
        describe_chain(out, entry->arriving, query);
    }
    pthread_mutex_unlock(&shard->lock);
}

// ---- what lies on disk alone ----

struct waiter {
    struct cache_reader reader;
    pthread_mutex_t lock;
    pthread_cond_t signal;
    bool is_awake;
};

static void wake(struct cache_reader *reader) {
    struct waiter *waiter = CONTAINER_OF(reader, struct waiter, reader);
    pthread_mutex_lock(&waiter->lock);
    waiter->is_awake = true;
    pthread_cond_signal(&waiter->signal);
    pthread_mutex_unlock(&waiter->lock);
}

static bool wait_awake(struct waiter *waiter) {
    struct timespec until;
    int timeout = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += EXPLAIN_DISK_MS / 1000;
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->is_awake && timeout == 0)
        timeout = pthread_cond_timedwait(&waiter->signal, &waiter->lock, &until);
    bool is_awake = waiter->is_awake;
    pthread_mutex_unlock(&waiter->lock);
    return is_awake;
}

// Brings the heads into the index. One of the volume's threads reads, so that a disk that hangs holds up
// nobody for long: false then.
static bool bring(struct cache *cache, const struct cache_query *query) {
    struct entry_name name = store_name(cache, query);
    struct waiter waiter = {.reader = {.wake = wake}};
    struct tier_pins pins;
    pthread_mutex_init(&waiter.lock, NULL);
    pthread_cond_init(&waiter.signal, NULL);
    enum tier_look look = tier_look(cache, &name, &query->now, true, &waiter.reader, &pins);
    bool in_time = look == TIER_KNOWN || wait_awake(&waiter);
    tier_leave(&waiter.reader); // nobody wakes it any more
    tier_unpin(&pins);
    pthread_cond_destroy(&waiter.signal);
    pthread_mutex_destroy(&waiter.lock);
    return in_time;
}

void cache_explain(struct cache *cache, const struct cache_query *query, struct cache_explanation *out) {
    struct lookup_preview preview;
    memset(out, 0, sizeof *out);
    out->is_unread = !query->skips_disk && !bring(cache, query);
    lookup_preview(cache, query, &preview);
    out->lookup = preview.lookup;
    out->reason = preview.reason;
    out->is_unavailable = preview.is_unavailable;
    out->is_refreshed = preview.is_refreshed;
    if (preview.fill)
        copy_text(out->fields, sizeof out->fields, cache_fill_fields(preview.fill));
    lookup_preview_end(&preview);
    describe_entry(cache, query, out);
}

// ---- where it is ----

struct places {
    struct view authority, path;
    struct endpoint *out;
    unsigned count;
};

static void look_in(const struct shard *shard, size_t bucket, struct places *places) {
    for (const struct entry *entry = shard->buckets[bucket]; entry; entry = entry->next) {
        bool is_there = (entry->stored || entry->arriving) &&
                        view_equal(entry->authority, places->authority) &&
                        view_equal(entry->path, places->path);
        if (is_there && places->count++ < EXPLAIN_DESTINATIONS_MAX)
            places->out[places->count - 1] = entry->destination;
    }
}

// Bucket by bucket, as a purge does it.
unsigned cache_destinations(struct cache *cache, struct view authority, struct view path,
        struct endpoint out[static EXPLAIN_DESTINATIONS_MAX]) {
    struct places places = {authority, path, out, 0};
    pthread_mutex_lock(&cache->whole);
    for (unsigned i = 0; i < INDEX_SHARDS; i++)
        for (size_t bucket = 0; bucket < cache->index.shards[i].bucket_count; bucket++) {
            pthread_mutex_lock(&cache->index.shards[i].lock);
            look_in(&cache->index.shards[i], bucket, &places);
            pthread_mutex_unlock(&cache->index.shards[i].lock);
        }
    pthread_mutex_unlock(&cache->whole);
    return places.count;
}
