#include "cache/spans.h"

#include "cache/budget.h"
#include "cache/object.h"

#include <stdlib.h>
#include <string.h>

struct spans *spans_new(void) {
    struct spans *spans = memory_new(sizeof *spans);
    spans->count = 0;
    return spans;
}

void spans_free(struct spans *spans) {
    if (!spans)
        return;
    for (unsigned i = 0; i < spans->count; i++)
        object_put(spans->all[i].source);
    free(spans);
}

static void take_out(struct spans *spans, unsigned at) {
    object_put(spans->all[at].source);
    memmove(&spans->all[at], &spans->all[at + 1], (--spans->count - at) * sizeof *spans->all);
}

static void drop_smallest(struct spans *spans) {
    unsigned smallest = 0;
    for (unsigned i = 1; i < spans->count; i++)
        if (spans->all[i].last - spans->all[i].first < spans->all[smallest].last - spans->all[smallest].first)
            smallest = i;
    take_out(spans, smallest);
}

// Cuts the new span at its neighbours. False: nothing of it is new.
static bool trim(const struct spans *spans, struct span *span) {
    for (unsigned i = 0; i < spans->count; i++) {
        const struct span *other = &spans->all[i];
        if (span->first >= other->first && span->last <= other->last)
            return false;
        if (span->first >= other->first && span->first <= other->last)
            span->first = other->last + 1;
        if (span->last >= other->first && span->last <= other->last)
            span->last = other->first - 1;
    }
    return span->first <= span->last;
}

void spans_add(struct spans *spans, uint64_t first, uint64_t last, struct cache_object *source) {
    struct span span = {first, last, source};
    for (unsigned i = spans->count; i-- > 0;)
        if (spans->all[i].first >= first && spans->all[i].last <= last &&
                spans->all[i].last - spans->all[i].first < last - first)
            take_out(spans, i);
    if (!trim(spans, &span))
        return;
    unsigned at = 0;
    while (at < spans->count && spans->all[at].first < span.first)
        at++;
    memmove(&spans->all[at + 1], &spans->all[at], (spans->count++ - at) * sizeof *spans->all);
    object_get(source);
    spans->all[at] = span;
    if (spans->count > SPANS_MAX)
        drop_smallest(spans);
}

void spans_add_all(struct spans *spans, const struct spans *other, uint64_t end) {
    for (unsigned i = 0; i < other->count && other->all[i].first < end; i++) {
        const struct span *span = &other->all[i];
        spans_add(spans, span->first, span->last < end ? span->last : end - 1, span->source);
    }
}

const struct span *spans_find(const struct spans *spans, uint64_t offset) {
    for (unsigned i = 0; i < spans->count && spans->all[i].first <= offset; i++)
        if (offset <= spans->all[i].last)
            return &spans->all[i];
    return NULL;
}

uint64_t spans_end(const struct spans *spans, uint64_t offset) {
    const struct span *span;
    while ((span = spans_find(spans, offset)))
        offset = span->last + 1;
    return offset;
}
