// Looking up: what a request may have, and what the origin must be asked for.
#include "admin/check.h"
#include "cache/partial.h"
#include "cache/store.h"
#include "cache/tier.h"
#include "cache/vary.h"

#include <stdlib.h>

struct search {
    struct cache *cache;
    const struct cache_query *query;
    struct cache_request request;
    struct entry_name name;
    struct shard *shard;
    struct cache_reader *reader;
    const char *reason;
    struct cache_object *selected; // what is stored for this request, usable or not
    struct cache_object *part;     // what is stored for it, when that is not what it asks for
    struct cache_object *resumed;  // the part that a fill can complete
    struct body_hole hole;         // the next of it that this request wants
    struct cache_object *found;    // to be read or joined
    enum reader_role role;         // of who does so
    enum cache_source source;
    bool is_unavailable; // nothing usable, and the origin may not be asked
    bool is_refresh;     // a hit that wants a fill of its own
    bool is_alone;       // a fill of this request would be of no use to others before its head is there
};

#define LOOKS_MAX 64 // responses that arrive for one URL, of which a look-up looks at the newest

// The next of those that arrive, NULL behind the last one that is looked at.
static struct cache_object *next_arriving(const struct cache_object *object, unsigned *looks) {
    return ++*looks < LOOKS_MAX ? object->sibling : NULL;
}

static bool is_matching(const struct search *search, const struct cache_object *object) {
    const struct stored_head *head = object->head;
    return vary_rank(head->vary, head->selectors, search->query->head, &head->http) != VARY_OTHER;
}

static struct cache_object *find_stored(const struct search *search, const struct entry *entry) {
    const struct stored_head *heads[INDEX_VARIANTS_MAX];
    struct cache_object *objects[INDEX_VARIANTS_MAX];
    unsigned count = 0;
    for (struct cache_object *object = entry->stored; object && count < INDEX_VARIANTS_MAX;
            object = object->sibling) {
        objects[count] = object;
        heads[count++] = object->head;
    }
    int chosen = vary_choose(heads, count, search->query->head);
    return chosen < 0 ? NULL : objects[chosen];
}

// As if nothing were said of a refresh: for a request that takes a stale response anyway, or wants the origin
// left alone.
static enum use use_without_refresh(
        struct search *search, const struct freshness *freshness, const char **reason) {
    struct freshness plain = *freshness;
    plain.while_revalidate_s = -1;
    return policy_use(&search->request, &plain, store_rule(search->query->rules), search->query->now, reason);
}

static enum use use_of(struct search *search, const struct cache_object *object) {
    const struct cache_query *query = search->query;
    if (atomic_load_explicit(&object->contradicted, memory_order_relaxed))
        return search->reason = "contradicted", USE_NOT;
    const struct freshness *freshness = &object->head->freshness;
    enum use use =
            policy_use(&search->request, freshness, store_rule(query->rules), query->now, &search->reason);
    if (use != USE_REFRESH)
        return use;
    const char *reason = NULL;
    enum use plain = use_without_refresh(search, freshness, &reason);
    if (plain != USE_NOT || search->request.control.only_if_cached)
        return search->reason = reason, plain;
    return use;
}

static bool is_usable(enum use use) {
    return use == USE_FRESH || use == USE_STALE;
}

// A range needs the whole; one is stored an instant before it is whole.
static bool is_readable(const struct search *search, struct cache_object *object) {
    return !search->request.has_range || object_phase(object) == PHASE_WHOLE;
}

// One whose head is there and that may be read from its beginning.
static struct cache_object *find_arriving(struct search *search, const struct entry *entry) {
    unsigned looks = 0;
    for (struct cache_object *object = entry->arriving; object; object = next_arriving(object, &looks))
        if (object_phase(object) == PHASE_ARRIVING && !object->is_left && is_matching(search, object) &&
                partial_will_serve(object, search->query) && is_usable(use_of(search, object)))
            return object;
    return NULL;
}

// Whether two requests select the same variant, as far as one list of names tells.
static bool is_alike(struct view names, const struct http_head *a, const struct http_head *b) {
    char text[VARY_SELECTORS_BYTES];
    struct view selectors;
    return names.length == 0 ||
           (vary_select(names, a, text, &selectors) && vary_matches(names, selectors, b));
}

// The same by every Vary that is known of the URL.
static bool may_share(const struct search *search, const struct entry *entry, const struct http_head *other) {
    struct view last = {"", 0};
    for (const struct cache_object *object = entry->stored; object; object = object->sibling) {
        if (!view_equal(object->head->vary, last) &&
                !is_alike(object->head->vary, search->query->head, other))
            return false;
        last = object->head->vary;
    }
    unsigned looks = 0;
    for (struct cache_object *object = entry->arriving; object; object = next_arriving(object, &looks))
        if (object_phase(object) == PHASE_ARRIVING &&
                !is_alike(object->head->vary, search->query->head, other))
            return false;
    return true;
}

// What was asked with conditions of the store's own is the whole, whatever the request's range.
static bool asks_alike(const struct search *search, const struct cache_fill *fill) {
    if (fill->resumed)
        return search->part && fill->resumed->body == search->part->body &&
               partial_wants(search->part, search->query, &fill->hole);
    return fill->asks_whole || partial_is_alike(&fill->request->http, search->query->head);
}

// One without a head, whose request would be answered alike.
static struct cache_object *find_pending(const struct search *search, const struct entry *entry) {
    unsigned looks = 0;
    for (struct cache_object *object = entry->arriving; object; object = next_arriving(object, &looks))
        if (object_phase(object) == PHASE_PENDING && !object->is_left && !object->fill->alone &&
                asks_alike(search, object->fill) && may_share(search, entry, &object->fill->request->http))
            return object;
    return NULL;
}

static enum lookup say(struct search *search, enum lookup lookup, const char *reason) {
    search->reason = reason;
    return lookup;
}

static enum lookup hit(struct search *search, struct cache_object *object) {
    search->found = object;
    search->role = ROLE_HIT;
    search->source = SOURCE_STORED;
    return LOOKUP_HIT;
}

static enum lookup join(
        struct search *search, struct cache_object *object, enum reader_role role, const char *reason) {
    search->found = object;
    search->role = role;
    search->source = SOURCE_ORIGIN;
    return say(search, LOOKUP_JOIN, reason);
}

static enum lookup unavailable(struct search *search, const char *reason) {
    search->is_unavailable = true;
    return say(search, LOOKUP_PASS, reason);
}

static enum marker marker_of(const struct search *search, struct entry *entry) {
    return entry ? index_marker(search->shard, entry, search->query->now.steady_s) : MARKER_NONE;
}

// Whether a fill of this request, or what it confirms, would ask with conditions of the store's own.
static bool has_base(const struct search *search, const struct entry *entry) {
    if (search->resumed || (search->selected && policy_has_validator(&search->selected->head->http)))
        return true;
    if (search->request.has_range)
        return false;
    for (const struct cache_object *object = entry ? entry->stored : NULL; object; object = object->sibling)
        if (policy_etag(&object->head->http) && !object->is_partial)
            return true;
    return false;
}

// Without anything usable: whose answer to wait for, or what to ask the origin.
static enum lookup decide_fetch(struct search *search, struct entry *entry) {
    const struct cache_request *request = &search->request;
    struct cache_object *selected = search->selected, *pending;
    const char *why = selected                 ? search->reason
                      : search->part           ? "incomplete"
                      : entry && entry->stored ? "variant"
                                               : "absent";
    if (request->control.only_if_cached)
        return unavailable(search, "only-if-cached");
    if (!request->is_get)
        return say(search, LOOKUP_PASS, "head");
    bool is_confirmable = selected && policy_has_validator(&selected->head->http);
    bool is_shared = marker_of(search, entry) == MARKER_NONE ||
                     (is_confirmable && !selected->head->freshness.no_cache); // confirmed for all who wait
    // What was asked for before may be older than what a request's no-cache is about.
    bool may_wait = is_shared && !search->query->is_again && !request->control.no_cache;
    if (entry && may_wait && (pending = find_pending(search, entry)))
        return join(search, pending, ROLE_JOINED, "awaited");
    // What is there may answer it; what it fetches is not kept [RFC 9111 §5.2.1.5].
    if (request->control.no_store)
        return say(search, LOOKUP_PASS, "no-store");
    bool can_resume = search->part && partial_find_hole(search->part, search->query, NULL, &search->hole);
    search->resumed = can_resume ? search->part : NULL;
    search->is_alone = request->has_authorization || (request->has_condition && !has_base(search, entry));
    return say(search, is_confirmable ? LOOKUP_STALE : LOOKUP_MISS, why);
}

// Nothing may go out.
static enum lookup decide_offline(struct search *search, struct entry *entry) {
    struct cache_object *pending;
    if (search->selected && is_readable(search, search->selected))
        return say(search, hit(search, search->selected), "offline");
    if (entry && search->request.is_get && !search->request.has_range && !search->query->is_again &&
            (pending = find_pending(search, entry)))
        return join(search, pending, ROLE_JOINED, "awaited");
    return unavailable(search, "offline");
}

// Whether a successor arrives already, however soon that one will have to be refreshed itself.
static bool is_succeeded(const struct search *search, const struct entry *entry) {
    unsigned looks = 0;
    for (struct cache_object *object = entry->arriving; object; object = next_arriving(object, &looks))
        if (object_phase(object) == PHASE_ARRIVING && !object->is_left && object->head->http.status != 206 &&
                is_matching(search, object))
            return true;
    return false;
}

// Used while it is refreshed, once however many ask: by this request, unless another does so.
static enum lookup decide_refresh(struct search *search, struct entry *entry) {
    search->is_refresh = !find_pending(search, entry) && !is_succeeded(search, entry);
    return hit(search, search->selected);
}

static enum lookup decide(struct search *search, struct entry *entry) {
    struct cache_object *selected = entry ? find_stored(search, entry) : NULL, *arriving;
    bool is_part = selected && !partial_serves(selected, search->query);
    search->part = is_part ? selected : NULL;
    selected = is_part ? NULL : selected;
    search->selected = selected;
    search->resumed = NULL;
    search->is_refresh = false;
    bool is_there = selected && is_readable(search, selected);
    enum use use = selected ? use_of(search, selected) : USE_NOT;
    if (is_there && is_usable(use))
        return hit(search, selected);
    const char *why_not = search->reason;
    if (entry && (arriving = find_arriving(search, entry)))
        return join(search, arriving, ROLE_HIT, "arriving");
    search->reason = why_not;
    if (search->query->is_offline)
        return decide_offline(search, entry);
    if (is_there && use == USE_REFRESH && !search->request.control.no_store)
        return decide_refresh(search, entry);
    return decide_fetch(search, entry);
}

// What is made for a fill before the lock is taken again.
struct spare {
    struct cache_fill *fill;
    struct entry *entry;
};

// What it is to confirm, or to complete. `is_begun`: it will be, and is announced.
static void take_stored(const struct search *search, enum lookup lookup, struct entry *entry, bool is_begun,
        struct cache_fill *fill) {
    struct cache_object *resumed = search->resumed;
    bool can_resume =
            resumed && partial_find_hole(resumed, search->query, is_begun ? &fill->flow : NULL, &fill->hole);
    fill->asks_range = lookup == LOOKUP_MISS && search->request.has_range && !can_resume;
    fill->is_pending_hole = can_resume && is_begun;
    if (can_resume)
        fill->resumed = object_get(resumed);
    else
        fill_take_bases(fill, entry, search->selected);
    fill->asks_whole = fill->base_count > 0 || lookup == LOOKUP_HIT;
}

static void write_fields(struct cache_fill *fill) {
    if (fill->base_count)
        fill_write_validators(fill);
    else if (fill->resumed)
        fill_write_range(fill);
}

static void put_into_index(
        struct search *search, enum lookup lookup, struct entry *entry, struct spare *spare) {
    struct cache_fill *fill = spare->fill;
    struct cache_object *object = fill->object;
    take_stored(search, lookup, entry, true, fill);
    if (!entry) {
        entry = spare->entry;
        spare->entry = NULL;
        index_add(search->shard, entry);
        entry->is_loaded = !tier_may_have(search->cache, &search->name);
        budget_charge(search->cache, memory_cost(entry->bytes));
    }
    object->key = search->name.key;
    object->entry = entry;
    object->place = PLACE_ARRIVING;
    object->sibling = entry->arriving;
    entry->arriving = object;
    fill->alone = search->is_alone;
}

static bool needs_fill(const struct search *search, enum lookup lookup) {
    return lookup == LOOKUP_STALE || lookup == LOOKUP_MISS || (lookup == LOOKUP_HIT && search->is_refresh);
}

static void attach(struct search *search) {
    struct cache_reader *reader = search->reader;
    object_attach(search->found, reader, search->role);
    reader->source = (unsigned char)search->source;
    reader->reason = search->reason;
}

// The disk counts hits, too, as long as they are news in memory.
static void hit_stored(struct cache_object *object) {
    uint8_t frequency = atomic_load_explicit(&object->node.frequency, memory_order_relaxed);
    eviction_hit(&object->node);
    if (frequency < EVICTION_FREQUENCY_MAXIMUM)
        body_hit_disk(object->body, atomic_load_explicit(&object->location, memory_order_relaxed));
}

// One pass with the lock held. False when a fill is needed and there is none to spare yet.
static bool try_lookup(
        struct search *search, struct spare *spare, struct cache_fill **fill, enum lookup *lookup) {
    struct entry *entry = index_find(search->shard, &search->name);
    search->found = NULL;
    *lookup = decide(search, entry);
    bool is_filled = needs_fill(search, *lookup);
    if (is_filled && !spare->fill)
        return false;
    if (is_filled) {
        put_into_index(search, *lookup, entry, spare);
        *fill = spare->fill;
        spare->fill = NULL;
    }
    if (*lookup == LOOKUP_HIT)
        hit_stored(search->found);
    if (search->found)
        attach(search);
    if (search->selected && *lookup == LOOKUP_PASS)
        object_get(search->selected); // until finish_lookup
    if (entry)
        store_release(search->cache, search->shard, entry); // its marker may have been all there was
    return true;
}

static struct cache_fill *new_fill(
        const struct search *search, const struct http_head *request, const char *pass_reason) {
    struct cache_fill *fill = fill_new(search->cache, request, pass_reason);
    fill->asked = search->request.control;
    fill->now = search->query->now;
    fill->rule = store_rule(search->query->rules);
    return fill;
}

// A refresh for a HEAD fetches what a GET would.
static void make_spare(struct search *search, struct spare *spare) {
    struct http_head get = *search->query->head;
    get.method = VIEW("GET");
    get.method_id = METHOD_GET;
    spare->fill = new_fill(search, &get, NULL);
    spare->entry = index_entry_new(&search->name);
}

static void begin_stream(
        struct cache *cache, struct cache_reader *reader, struct cache_fill **fill, const char *reason) {
    *fill = fill_new(cache, NULL, reason);
    object_attach((*fill)->object, reader, ROLE_OWN);
}

static enum lookup search_index(struct search *search, struct cache_fill **fill) {
    struct spare spare = {NULL, NULL};
    enum lookup lookup;
    pthread_mutex_lock(&search->shard->lock);
    while (!try_lookup(search, &spare, fill, &lookup)) {
        pthread_mutex_unlock(&search->shard->lock);
        make_spare(search, &spare);
        pthread_mutex_lock(&search->shard->lock);
    }
    pthread_mutex_unlock(&search->shard->lock);
    if (spare.fill) {
        spare.fill->object->fill = NULL;
        fill_free(spare.fill);
    }
    free(spare.entry);
    return lookup;
}

// A stream that what is stored may stand in for.
static void finish_pass(struct search *search, struct cache_fill **fill) {
    struct cache_object *selected = search->selected;
    if (!search->is_unavailable) {
        *fill = new_fill(search, NULL, search->reason);
        object_attach((*fill)->object, search->reader, ROLE_OWN);
        if (selected && object_phase(selected) == PHASE_WHOLE)
            (*fill)->selected = object_get(selected);
    }
    if (selected)
        object_put(selected);
}

static void finish_lookup(struct search *search, enum lookup lookup, struct cache_fill **fill) {
    if (lookup == LOOKUP_PASS)
        finish_pass(search, fill);
    else if (*fill)
        write_fields(*fill);
    if (lookup == LOOKUP_STALE || lookup == LOOKUP_MISS)
        object_attach((*fill)->object, search->reader, ROLE_OWN);
    if (lookup != LOOKUP_PASS && *fill)
        budget_settle(search->cache);
}

// Whether the origin may not be asked, which the store is not for either.
static bool is_unaskable(struct search *search) {
    bool is_offline = search->query->is_offline;
    if (is_offline || search->request.control.only_if_cached)
        search->reason = is_offline ? "offline" : "only-if-cached";
    return is_offline || search->request.control.only_if_cached;
}

// Its answer may turn out to be one to GET [RFC 9110 §9.3.3].
static bool may_answer_get(const struct search *search) {
    return search->query->head->method_id == METHOD_POST && search->query->store_allowed &&
           !search->request.control.no_store;
}

static enum lookup pass(struct search *search, bool is_on, struct cache_fill **fill) {
    search->is_unavailable = is_unaskable(search);
    if (search->is_unavailable)
        return LOOKUP_PASS;
    if (!is_on || !may_answer_get(search)) {
        begin_stream(search->cache, search->reader, fill, search->reason);
        return LOOKUP_PASS;
    }
    search->name = store_name(search->cache, search->query);
    *fill = new_fill(search, search->query->head, search->reason);
    (*fill)->spare = index_entry_new(&search->name);
    (*fill)->object->key = search->name.key;
    object_attach((*fill)->object, search->reader, ROLE_OWN);
    budget_settle(search->cache);
    return LOOKUP_PASS;
}

enum lookup cache_lookup(struct cache *cache, const struct cache_query *query, struct cache_reader *reader,
        struct cache_fill **fill, const char **reason) {
    CHECK(!reader->object && reader->wake);
    *fill = NULL;
    struct search search = {.cache = cache, .query = query, .reader = reader, .reason = "absent"};
    bool is_on = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed) > 0;
    enum lookup lookup;
    if (policy_read_request(query->head, query->store_allowed && is_on, &search.request, &search.reason)) {
        search.reason = "absent";
        search.name = store_name(cache, query);
        search.shard = index_shard(&cache->index, search.name.key);
        tier_leave(reader);
        struct tier_pins pins;
        if (tier_look(cache, &search.name, &query->now, !query->skips_disk, reader, &pins) == TIER_WAIT)
            return *reason = "disk", LOOKUP_WAIT;
        lookup = search_index(&search, fill);
        finish_lookup(&search, lookup, fill);
        tier_unpin(&pins);
    } else {
        lookup = pass(&search, is_on, fill);
    }
    *reason = search.reason;
    return lookup;
}

void cache_stream(struct cache *cache, struct cache_reader *reader, struct cache_fill **fill) {
    cache_reader_detach(reader);
    begin_stream(cache, reader, fill, "alone");
}

// ---- without effects ----

static void preview_decision(struct search *search, struct lookup_preview *preview) {
    pthread_mutex_lock(&search->shard->lock);
    struct entry *entry = index_find(search->shard, &search->name);
    preview->lookup = decide(search, entry);
    if (needs_fill(search, preview->lookup))
        take_stored(search, preview->lookup, entry, false, preview->fill);
    if (entry)
        store_release(search->cache, search->shard, entry); // as above
    pthread_mutex_unlock(&search->shard->lock);
    preview->is_unavailable = search->is_unavailable;
    preview->is_refreshed = preview->lookup == LOOKUP_HIT && search->is_refresh;
    write_fields(preview->fill);
}

void lookup_preview(struct cache *cache, const struct cache_query *query, struct lookup_preview *preview) {
    struct search search = {.cache = cache, .query = query, .reason = "absent"};
    *preview = (struct lookup_preview){.lookup = LOOKUP_PASS};
    bool is_on = atomic_load_explicit(&cache->budget.limit, memory_order_relaxed) > 0;
    if (policy_read_request(query->head, query->store_allowed && is_on, &search.request, &search.reason)) {
        search.reason = "absent";
        search.name = store_name(cache, query);
        search.shard = index_shard(&cache->index, search.name.key);
        struct tier_pins pins;
        tier_look(cache, &search.name, &query->now, false, NULL, &pins);
        preview->fill = new_fill(&search, query->head, NULL);
        preview_decision(&search, preview);
        tier_unpin(&pins);
    } else {
        preview->is_unavailable = is_unaskable(&search);
    }
    preview->reason = search.reason;
}

void lookup_preview_end(struct lookup_preview *preview) {
    if (!preview->fill)
        return;
    preview->fill->object->fill = NULL;
    fill_free(preview->fill);
}

// ---- holes ----

struct cache_fill *cache_reader_fill(
        struct cache_reader *reader, const struct cache_query *query, uint64_t until) {
    struct cache_object *object = reader->object;
    CHECK(object && object->head);
    uint64_t first = reader->offset;
    if (!partial_can_ask(object) || until <= first)
        return NULL;
    // It may bring the whole: once is enough.
    if (!body_can_ask(object->body) && body_is_fetched(object->body))
        return NULL;
    struct cache_fill *fill = fill_new(object->cache, query->head, NULL);
    fill->now = query->now;
    fill->rule = store_rule(query->rules);
    cache_control_parse(query->head, &fill->asked);
    fill->object->key = object->key;
    if (!body_find_hole(object->body, first, until - 1, CACHE_AHEAD_BYTES, &fill->flow, &fill->hole)) {
        fill->object->fill = NULL;
        fill_free(fill);
        return NULL;
    }
    fill->resumed = object_get(object);
    fill->is_hole = fill->is_pending_hole = fill->asks_whole = true;
    fill_write_range(fill);
    return fill;
}
