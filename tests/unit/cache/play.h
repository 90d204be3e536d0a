// A client and its origin in one: looks up, answers what it was told to fetch, and reads. Bodies follow a
// pattern, so that every byte read is checked.
#pragma once

#include "admin/container.h"
#include "cache/cache.h"
#include "tests/unit/cache/text.h"

#include <stdatomic.h>

#define PLAY_NOW 784111777 // Sun, 06 Nov 1994 08:49:37 GMT

struct play {
    struct cache_reader reader;
    struct cache *cache;
    struct text_head request;
    struct cache_query query;
    struct cache_fill *fill;
    enum lookup lookup;
    const char *reason;
    struct cache_head head;
    uint64_t sent, received;
    unsigned seed; // of the pattern
    _Atomic unsigned wakes, room_wakes;
};

static inline unsigned char play_byte(unsigned seed, uint64_t offset) {
    return (unsigned char)(offset * 31 + offset / 251 + seed * 17);
}

static void play_wake(struct cache_reader *reader) {
    atomic_fetch_add(&(CONTAINER_OF(reader, struct play, reader))->wakes, 1);
}

static void play_room_wake(void *owner) {
    atomic_fetch_add(&((struct play *)owner)->room_wakes, 1);
}

// Asks `method` for `path` of "host" at 192.0.2.1:80.
__attribute__((unused)) static enum lookup play_begin(struct play *play, struct cache *cache,
        const char *method, const char *path, const char *fields, int64_t now_s) {
    memset(play, 0, sizeof *play);
    play->reader.wake = play_wake;
    play->cache = cache;
    play->query = (struct cache_query){.head = text_request(&play->request, method, fields),
            .destination = {.address = {{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1}}, .port = 80},
            .authority = VIEW("host"),
            .path = view_of(path),
            .now = {now_s, now_s},
            .store_allowed = true};
    return play->lookup = cache_lookup(cache, &play->query, &play->reader, &play->fill, &play->reason);
}

__attribute__((unused)) static enum lookup play_get(
        struct play *play, struct cache *cache, const char *path, int64_t now_s) {
    return play_begin(play, cache, "GET", path, "Host: host\n", now_s);
}

// The origin's head, which arrives at the time of the lookup.
__attribute__((unused)) static enum fill_kind play_answer(
        struct play *play, int status, const char *fields, int64_t content_length) {
    struct text_head text;
    struct cache_response response = {.head = text_response(&text, status, fields),
            .content_length = content_length,
            .request_at = play->query.now,
            .response_at = play->query.now,
            .has_body = status != 304 && status != 204};
    enum fill_kind kind = cache_fill_head(play->fill, &response, &play->reason);
    memset(&text, 0xee, sizeof text);
    return kind;
}

// Sends up to `bytes` of the pattern, as far as there is room; returns how many.
__attribute__((unused)) static uint64_t play_send(struct play *play, uint64_t bytes) {
    unsigned char data[65536];
    uint64_t before = play->sent;
    while (bytes) {
        size_t length = cache_fill_room(play->fill, play_room_wake, play);
        length = length < bytes ? length : (size_t)bytes;
        length = length < sizeof data ? length : sizeof data;
        if (!length)
            break;
        for (size_t i = 0; i < length; i++)
            data[i] = play_byte(play->seed, play->sent + i);
        cache_fill_append(play->fill, data, length);
        play->sent += length;
        bytes -= length;
    }
    return play->sent - before;
}

__attribute__((unused)) static void play_finish(struct play *play) {
    cache_fill_finish(play->fill);
    play->fill = NULL;
}

__attribute__((unused)) static void play_abandon(struct play *play) {
    cache_fill_abandon(play->fill);
    play->fill = NULL;
}

__attribute__((unused)) static enum read play_head(struct play *play) {
    return cache_reader_head(&play->reader, &play->query, &play->head);
}

// Reads at most `most` bytes and checks them. READ_READY: that many; else what ended it.
__attribute__((unused)) static enum read play_read(struct play *play, uint64_t most) {
    struct iovec pieces[4];
    int used = 0;
    while (most) {
        enum read read = cache_reader_peek(&play->reader, pieces, 4, &used);
        if (read != READ_READY)
            return read;
        uint64_t wrong = 0, taken = 0;
        for (int i = 0; i < used && taken < most; i++) {
            const unsigned char *data = pieces[i].iov_base;
            for (size_t j = 0; j < pieces[i].iov_len && taken < most; j++, taken++)
                wrong += data[j] != play_byte(play->seed, play->received + taken);
        }
        if (wrong) // an assertion a read, not a byte: the threads' tests read much
            CU_FAIL("content differs");
        cache_reader_advance(&play->reader, taken);
        play->received += taken;
        most -= taken;
    }
    return READ_READY;
}

__attribute__((unused)) static void play_end(struct play *play) {
    cache_reader_detach(&play->reader);
    if (play->fill)
        cache_fill_abandon(play->fill);
    play->fill = NULL;
}

// A whole exchange that stores `bytes` under `path`.
__attribute__((unused)) static enum fill_kind play_store(struct cache *cache, const char *path,
        const char *request_fields, const char *fields, uint64_t bytes, int64_t now_s) {
    struct play play;
    play_begin(&play, cache, "GET", path, request_fields, now_s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play.fill);
    enum fill_kind kind = play_answer(&play, 200, fields, (int64_t)bytes);
    while (play_send(&play, bytes - play.sent) > 0)
        play_read(&play, UINT64_MAX);
    CU_ASSERT_EQUAL(play.sent, bytes);
    play_finish(&play);
    play_end(&play);
    return kind;
}

// What a lookup would say, without any other effect than on the frequencies.
__attribute__((unused)) static enum lookup play_probe(
        struct cache *cache, const char *method, const char *path, const char *fields, int64_t now_s) {
    struct play play;
    enum lookup lookup = play_begin(&play, cache, method, path, fields, now_s);
    play_end(&play);
    return lookup;
}
