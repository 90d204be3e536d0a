#include "acl/gram.h"

#include "acl/glob.h"
#include "admin/check.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH_COUNT 2
#define FIRST_SLOTS 64
#define ROOM 256 // hits of a look-up without an allocation

static const unsigned widths[WIDTH_COUNT] = {6, 3}; // bytes of a gram, the better first

struct pattern {
    struct mask *mask;
    uint32_t value;
    uint32_t next; // another one under the same gram, or GRAM_NONE
};

struct slot {
    uint64_t key; // the gram's bytes, its width above them; 0: free
    uint32_t first;
    uint32_t count;
};

struct gram_index {
    struct pattern *patterns;
    struct slot *slots;
    size_t count, capacity; // patterns
    size_t slot_count, used;
    size_t bytes;          // of the masks
    bool has[WIDTH_COUNT]; // whether any pattern has a gram of this width
    uint32_t always;       // patterns with no gram
    uint32_t everything;   // the pattern that is `*`
};

// The bytes seen so far as a number whose low `width` bytes are the latest gram, in lower case.
static uint64_t roll(uint64_t bytes, char byte) {
    return bytes << 8 | (uint8_t)view_lower(byte);
}

static uint64_t gram_key(uint64_t bytes, unsigned width) {
    return (bytes & (((uint64_t)1 << 8 * width) - 1)) | (uint64_t)width << 56;
}

static size_t find_slot(const struct slot *slots, size_t count, uint64_t key) {
    size_t place = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (count - 1);
    while (slots[place].key && slots[place].key != key)
        place = (place + 1) & (count - 1);
    return place;
}

static bool make_slots(struct gram_index *index, size_t count) {
    struct slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < index->slot_count; i++)
        if (index->slots[i].key)
            slots[find_slot(slots, count, index->slots[i].key)] = index->slots[i];
    free(index->slots);
    index->slots = slots;
    index->slot_count = count;
    return true;
}

struct gram_index *gram_index_new(void) {
    struct gram_index *index = calloc(1, sizeof *index);
    if (!index)
        return NULL;
    index->always = index->everything = GRAM_NONE;
    if (make_slots(index, FIRST_SLOTS))
        return index;
    free(index);
    return NULL;
}

void gram_index_free(struct gram_index *index) {
    if (!index)
        return;
    for (size_t i = 0; i < index->count; i++)
        free(index->patterns[i].mask);
    free(index->patterns);
    free(index->slots);
    free(index);
}

static bool reserve(struct gram_index *index) {
    if (index->used * 2 >= index->slot_count && !make_slots(index, index->slot_count * 2))
        return false;
    if (index->count < index->capacity)
        return true;
    size_t capacity = index->capacity ? index->capacity + index->capacity / 2 : 8;
    struct pattern *grown = capacity < GRAM_NONE ? realloc(index->patterns, capacity * sizeof *grown) : NULL;
    if (!grown)
        return false;
    index->patterns = grown;
    index->capacity = capacity;
    return true;
}

// The grams of one width of a text, one after the other; a `*` of a glob parts them.
struct grams {
    struct view text;
    unsigned width;
    size_t run;
    uint64_t bytes;
};

static bool next_gram(struct grams *grams, uint64_t *key) {
    while (grams->text.length) {
        char byte = *grams->text.data;
        grams->text = view_skip(grams->text, 1);
        grams->run = byte == GLOB_STAR ? 0 : grams->run + 1;
        grams->bytes = roll(grams->bytes, byte);
        if (grams->run < grams->width)
            continue;
        *key = gram_key(grams->bytes, grams->width);
        return true;
    }
    return false;
}

// What every URL that matches must have: of a place host and path in one, for so they stand in a URL.
static struct view mask_literals(const struct mask *mask) {
    if (mask->kind == MASK_PLACE)
        return (struct view){mask->bytes, mask->host.length + mask->path.length};
    return mask->path;
}

// The mask's gram with the fewest patterns so far; 0 when it has none.
static uint64_t choose_gram(const struct gram_index *index, const struct mask *mask, unsigned width) {
    struct grams grams = {.text = mask_literals(mask), .width = width};
    uint64_t key, best = 0;
    uint32_t fewest = UINT32_MAX;
    while (next_gram(&grams, &key)) {
        uint32_t count = index->slots[find_slot(index->slots, index->slot_count, key)].count;
        if (count < fewest) {
            fewest = count;
            best = key;
        }
    }
    return best;
}

// Where the mask is filed: the head of the list it belongs to.
static uint32_t *file_under(struct gram_index *index, const struct mask *mask) {
    for (size_t i = 0; i < WIDTH_COUNT; i++) {
        uint64_t key = choose_gram(index, mask, widths[i]);
        if (!key)
            continue;
        struct slot *slot = &index->slots[find_slot(index->slots, index->slot_count, key)];
        if (!slot->key) {
            *slot = (struct slot){key, GRAM_NONE, 0};
            index->used++;
        }
        slot->count++;
        index->has[i] = true;
        return &slot->first;
    }
    return &index->always;
}

bool gram_index_add(struct gram_index *index, struct mask *mask, uint32_t value) {
    CHECK(mask->kind == MASK_PLACE || mask->kind == MASK_ANYWHERE);
    if (!reserve(index)) {
        free(mask);
        return false;
    }
    uint32_t *head = file_under(index, mask);
    index->patterns[index->count] = (struct pattern){mask, value, *head};
    *head = (uint32_t)index->count++;
    index->bytes += sizeof *mask + mask->host.length + mask->path.length;
    if (mask_is_everything(mask) && index->everything == GRAM_NONE)
        index->everything = *head;
    return true;
}

// The slots a URL leads to. Sorted and made unique before masks are tried, so that a URL that repeats itself
// does not repeat the work.
struct hits {
    uint32_t *place;
    size_t count, capacity;
    uint32_t room[ROOM];
};

static int compare_places(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void make_unique(struct hits *hits) {
    size_t kept = 0;
    qsort(hits->place, hits->count, sizeof *hits->place, compare_places);
    for (size_t i = 0; i < hits->count; i++)
        if (kept == 0 || hits->place[kept - 1] != hits->place[i])
            hits->place[kept++] = hits->place[i];
    hits->count = kept;
}

static void make_room(struct hits *hits) {
    make_unique(hits);
    if (hits->count < hits->capacity / 2)
        return;
    uint32_t *larger = malloc(2 * hits->capacity * sizeof *larger);
    CHECK(larger);
    memcpy(larger, hits->place, hits->count * sizeof *larger);
    if (hits->place != hits->room)
        free(hits->place);
    hits->place = larger;
    hits->capacity *= 2;
}

static void collect(const struct gram_index *index, struct view text, unsigned width, struct hits *hits) {
    struct grams grams = {.text = text, .width = width};
    uint64_t key;
    while (next_gram(&grams, &key)) {
        size_t place = find_slot(index->slots, index->slot_count, key);
        if (!index->slots[place].key)
            continue;
        if (hits->count == hits->capacity)
            make_room(hits);
        hits->place[hits->count++] = (uint32_t)place;
    }
}

// The earliest pattern of a list that matches, or `best` when that is earlier still.
static uint32_t try_list(
        const struct gram_index *index, uint32_t first, const struct url *url, uint32_t best) {
    for (uint32_t i = first; i != GRAM_NONE; i = index->patterns[i].next)
        if (i < best && mask_matches(index->patterns[i].mask, url))
            best = i;
    return best;
}

uint32_t gram_index_find(const struct gram_index *index, const struct url *url) {
    struct hits hits;
    hits.place = hits.room;
    hits.count = 0;
    hits.capacity = ROOM;
    for (size_t i = 0; i < WIDTH_COUNT; i++)
        if (index->has[i])
            collect(index, url->text, widths[i], &hits);
    make_unique(&hits);
    uint32_t best = try_list(index, index->always, url, GRAM_NONE);
    for (size_t i = 0; i < hits.count; i++)
        best = try_list(index, index->slots[hits.place[i]].first, url, best);
    if (hits.place != hits.room)
        free(hits.place);
    return best == GRAM_NONE ? GRAM_NONE : index->patterns[best].value;
}

static uint32_t find_equal(const struct gram_index *index, uint32_t first, const struct mask *mask) {
    for (uint32_t i = first; i != GRAM_NONE; i = index->patterns[i].next)
        if (mask_equal(index->patterns[i].mask, mask))
            return index->patterns[i].value;
    return GRAM_NONE;
}

uint32_t gram_index_equal(const struct gram_index *index, const struct mask *mask) {
    uint32_t found = find_equal(index, index->always, mask);
    for (size_t i = 0; i < WIDTH_COUNT && found == GRAM_NONE; i++) {
        struct grams grams = {.text = mask_literals(mask), .width = widths[i]};
        for (uint64_t key; found == GRAM_NONE && next_gram(&grams, &key);) {
            const struct slot *slot = &index->slots[find_slot(index->slots, index->slot_count, key)];
            found = slot->key ? find_equal(index, slot->first, mask) : GRAM_NONE;
        }
    }
    return found;
}

uint32_t gram_index_everything(const struct gram_index *index) {
    return index->everything == GRAM_NONE ? GRAM_NONE : index->patterns[index->everything].value;
}

size_t gram_index_count(const struct gram_index *index) {
    return index->count;
}

size_t gram_index_bytes(const struct gram_index *index) {
    return sizeof *index + index->capacity * sizeof *index->patterns +
           index->slot_count * sizeof *index->slots + index->bytes;
}
