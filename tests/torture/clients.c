// The clients: a thread each, one operation after the other, everything that comes back checked against the
// world.
#include "tests/torture/load.h"
#include "tests/torture/wire.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLACK_S 3.0 // whole seconds in Date and Age, and what the origin takes to speak
#define PARTS_MAX 4
#define MULTIPART_BYTES (4u << 20)
#define OPERATION_S 180.0

struct client {
    struct world *world;
    struct wire wire;
    struct dice dice;
    uint16_t proxy, origin;
    unsigned number;
    unsigned char *multipart; // content, to be taken apart
};

struct operation {
    unsigned url, variant;
    bool is_head, is_reload, wants_close, is_calm;
    unsigned part_count; // ranges asked for; 0: the whole
    struct part {
        uint64_t first, last;
    } parts[PARTS_MAX];
    char tag[64];      // of If-None-Match; empty: none
    uint64_t leave_at; // bytes of content; UINT64_MAX: stays
    bool is_slow;
    double began;
    double purged;      // nothing that the origin has given before
    struct place place; // of the response
    double stamp;
};

enum verdict {
    VERDICT_OVER, // and right
    VERDICT_LEFT, // early, by the client
    VERDICT_CUT,
    VERDICT_DROPPED, // without an answer
    VERDICT_HANGS,
    VERDICT_WRONG,
};

static enum verdict wrong(struct client *client, const struct operation *operation, const char *format, ...) {
    char text[512];
    va_list more;
    va_start(more, format);
    vsnprintf(text, sizeof text, format, more);
    va_end(more);
    char head[sizeof client->wire.head];
    snprintf(head, sizeof head, "%s", client->wire.head);
    for (char *at = head; *at; at++)
        *at = *at == '\r' ? ' ' : *at == '\n' ? '|' : *at;
    printf("WRONG %.3f client %u /d%u/u%u variant %u%s%s ranges %u (%" PRIu64 "-%" PRIu64
           ") asked at %.3f%s%s: %s; %s\n",
            world_now() - client->world->start, client->number, operation->url % FOLDERS, operation->url,
            operation->variant, operation->is_head ? " HEAD" : "", operation->is_reload ? " reload" : "",
            operation->part_count, operation->parts[0].first, operation->parts[0].last,
            operation->began - client->world->start, *operation->tag ? " if-none-match " : "", operation->tag,
            text, head);
    return VERDICT_WRONG;
}

static void pause_ms(uint64_t ms) {
    struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&left, NULL);
}

// ---- what to do ----

static unsigned choose_url(struct dice *dice) {
    double uniform = (double)dice_below(dice, 1 << 24) / (1 << 24);
    unsigned rank = (unsigned)(uniform * uniform * uniform * URLS);
    return (unsigned)((rank * 37u + 11) % URLS); // 37 and URLS have no common divisor
}

static void choose_parts(struct client *client, struct operation *operation, uint64_t size) {
    struct dice *dice = &client->dice;
    operation->part_count = dice_chance(dice, .8) ? 1 : 2 + (unsigned)dice_below(dice, PARTS_MAX - 1);
    for (struct part *part = operation->parts; part < operation->parts + operation->part_count; part++) {
        uint64_t most = operation->part_count > 1 ? 200000 : dice_chance(dice, .1) ? size : 300000;
        part->first = dice_below(dice, size + (dice_chance(dice, .02) ? 10 : 0));
        part->last = part->first + dice_below(dice, 1 + dice_below(dice, most + 1));
    }
}

static void choose(struct client *client, struct operation *operation) {
    struct dice *dice = &client->dice;
    operation->url = choose_url(dice);
    operation->variant = url_varies(operation->url) ? (unsigned)dice_below(dice, VARIANTS) : 0;
    struct place place = {
            operation->url, place_version(client->world, operation->url, world_now()), operation->variant};
    uint64_t size = place_size(client->world, &place);
    operation->is_head = dice_chance(dice, .02);
    operation->is_reload = dice_chance(dice, .02);
    operation->wants_close = dice_chance(dice, .05);
    operation->leave_at = UINT64_MAX;
    if (dice_chance(dice, size > 400000 ? .85 : .2))
        choose_parts(client, operation, size);
    else if (dice_chance(dice, .1))
        snprintf(operation->tag, sizeof operation->tag, "\"%u-%u-%u\"", place.url,
                place.version - (unsigned)dice_below(dice, 2), place.variant);
    if (dice_chance(dice, .04))
        operation->leave_at = dice_below(dice, size + 1);
    operation->is_slow = dice_chance(dice, .01);
    if (operation->is_slow && operation->leave_at > 1 << 20) // its receive window is small
        operation->leave_at = 1 << 20;
}

static size_t write_request(struct client *client, const struct operation *operation, char out[static 2048]) {
    char *to = out;
    char host[64];
    snprintf(host, sizeof host, "198.51.100.%u:%u", 20 + operation->url % HOSTS, client->origin);
    to += sprintf(to, "%s http://%s/d%u/u%u HTTP/1.1\r\nHost: %s\r\n", operation->is_head ? "HEAD" : "GET",
            host, operation->url % FOLDERS, operation->url, host);
    if (url_varies(operation->url))
        to += sprintf(to, "X-Variant: %u\r\n", operation->variant);
    for (unsigned i = 0; i < operation->part_count; i++)
        to += sprintf(to, "%s%" PRIu64 "-%" PRIu64, i == 0 ? "Range: bytes=" : ",", operation->parts[i].first,
                operation->parts[i].last);
    to += sprintf(to, "%s", operation->part_count > 0 ? "\r\n" : "");
    if (*operation->tag)
        to += sprintf(to, "If-None-Match: %s\r\n", operation->tag);
    if (operation->is_reload)
        to += sprintf(to, "Cache-Control: no-cache\r\n");
    if (operation->wants_close)
        to += sprintf(to, "Connection: close\r\n");
    to += sprintf(to, "\r\n");
    return (size_t)(to - out);
}

// ---- heads ----

// Whose content it is, and whether it may still be shown.
static enum verdict check_place(struct client *client, struct operation *operation) {
    struct world *world = client->world;
    const char *tag = wire_field(&client->wire, "ETag"), *stamp = wire_field(&client->wire, "X-Stamp");
    struct place *place = &operation->place;
    if (!tag || sscanf(tag, "\"%u-%u-%u\"", &place->url, &place->version, &place->variant) != 3)
        return wrong(client, operation, "no ETag");
    if (place->url != operation->url || place->variant != operation->variant)
        return wrong(client, operation, "of another URL or variant");
    if (!stamp)
        return wrong(client, operation, "no X-Stamp");
    operation->stamp = strtod(stamp, NULL);
    unsigned then = place_version(world, place->url, operation->stamp - 1e-6);
    if (place->version < then || place->version > place_version(world, place->url, operation->stamp + 1e-6))
        return wrong(client, operation, "version %u, but %u stood there then", place->version, then);
    double lifetime = operation->is_reload ? 0 : place_lifetime_s(world, place);
    double age = operation->began - operation->stamp;
    const char *told = wire_field(&client->wire, "Cache-Status");
    bool stands_in = told && strstr(told, "detail=disconnected") && !operation->is_reload &&
                     !operation->is_calm && place_may_stand_in(world, place);
    if (age > lifetime + SLACK_S && !stands_in)
        return wrong(client, operation, "%.1f s old, and may be %.0f", age, lifetime);
    if (operation->stamp < operation->purged)
        return wrong(client, operation,
                "purged %.3f s before it was asked for, and given by the origin %.3f s before that",
                operation->began - operation->purged, operation->purged - operation->stamp);
    world_count(world, operation->stamp < operation->began ? COUNT_stored : COUNT_stale,
            operation->stamp < operation->began);
    return VERDICT_OVER;
}

// ---- content ----

static bool is_excused(const struct client *client, const struct operation *operation) {
    return atomic_load(&client->world->outage_until) >= operation->began;
}

static enum verdict check_bytes(struct client *client, const struct operation *operation, uint64_t at,
        const unsigned char *bytes, size_t length) {
    const unsigned char *body = place_body(client->world, &operation->place);
    uint64_t size = place_size(client->world, &operation->place);
    if (at + length > size)
        return wrong(client, operation, "%zu bytes at %" PRIu64 " of %" PRIu64, length, at, size);
    if (memcmp(body + at, bytes, length) == 0)
        return VERDICT_OVER;
    size_t i = 0;
    while (body[at + i] == bytes[i])
        i++;
    size_t others = 0;
    for (size_t k = i; k < length; k++)
        others += body[at + k] != bytes[k];
    return wrong(client, operation,
            "wrong byte at %" PRIu64 " of %" PRIu64 ": %02x, not %02x, and %zu more until %" PRIu64, at + i,
            size, bytes[i], body[at + i], others - 1, at + length);
}

static enum verdict ended(enum progress result) {
    return result == WIRE_HANGS ? VERDICT_HANGS : VERDICT_CUT;
}

// Content that must be the bytes from `first` on, `length` of them.
static enum verdict take_bytes(
        struct client *client, const struct operation *operation, uint64_t first, uint64_t length) {
    uint64_t done = 0;
    double until = world_now() + OPERATION_S;
    unsigned pauses = 40;
    for (;;) {
        const unsigned char *bytes;
        size_t count;
        enum progress result =
                wire_content(&client->wire, operation->is_slow ? 16384 : WIRE_BYTES, &bytes, &count);
        if (result == WIRE_BAD)
            return wrong(client, operation, "bad framing after %" PRIu64 " bytes", done);
        if (result == WIRE_END && done != length)
            return wrong(client, operation, "over after %" PRIu64 " bytes of %" PRIu64, done, length);
        if (result == WIRE_END)
            return VERDICT_OVER;
        if (result != WIRE_OK)
            return ended(result);
        if (done + count > length)
            return wrong(client, operation, "more than %" PRIu64 " bytes", length);
        enum verdict verdict = check_bytes(client, operation, first + done, bytes, count);
        if (verdict != VERDICT_OVER)
            return verdict;
        done += count;
        world_count(client->world, COUNT_bytes, count);
        if (done > operation->leave_at)
            return VERDICT_LEFT;
        if (world_now() > until)
            return VERDICT_HANGS;
        if (operation->is_slow && pauses > 0)
            pause_ms(50), pauses--;
    }
}

static enum verdict take_whole(struct client *client, const struct operation *operation) {
    uint64_t size = place_size(client->world, &operation->place);
    const char *length = wire_field(&client->wire, "Content-Length");
    if (length && strtoull(length, NULL, 10) != size)
        return wrong(client, operation, "Content-Length for %" PRIu64 " bytes", size);
    return operation->is_head ? VERDICT_OVER : take_bytes(client, operation, 0, size);
}

static bool read_range(const char *text, uint64_t *first, uint64_t *last, uint64_t *size) {
    return text && sscanf(text, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, first, last, size) == 3 &&
           *first <= *last && *last < *size;
}

static bool is_asked(const struct operation *operation, uint64_t first, uint64_t last, uint64_t size) {
    for (unsigned i = 0; i < operation->part_count; i++) {
        const struct part *part = operation->parts + i;
        if (operation->part_count > 1
                        ? first <= part->first && last >= (part->last < size ? part->last : size - 1)
                        : first == part->first && last == (part->last < size ? part->last : size - 1))
            return true;
    }
    return false;
}

// One part at `at`; returns how many bytes it takes with its head, 0 when it is none.
static size_t check_part(struct client *client, const struct operation *operation, const unsigned char *at,
        size_t room, enum verdict *verdict) {
    const unsigned char *end = memmem(at, room, "\r\n\r\n", 4);
    const char *range = end ? memmem(at, (size_t)(end - at), "Content-Range: ", 15) : NULL;
    uint64_t first, last, size, expected = place_size(client->world, &operation->place);
    if (!range || !read_range(range + 15, &first, &last, &size) || size != expected)
        return 0;
    size_t head = (size_t)(end + 4 - at);
    if (last - first + 1 > room - head || !is_asked(operation, first, last, size))
        return 0;
    *verdict = check_bytes(client, operation, first, end + 4, (size_t)(last - first + 1));
    return head + (size_t)(last - first + 1);
}

static enum verdict check_multipart(struct client *client, const struct operation *operation, size_t length) {
    const char *type = wire_field(&client->wire, "Content-Type");
    char boundary[96], delimiter[104];
    if (sscanf(strstr(type, "boundary="), "boundary=%95[^\r\n;]", boundary) != 1)
        return wrong(client, operation, "no boundary");
    size_t size = (size_t)snprintf(delimiter, sizeof delimiter, "--%s", boundary);
    unsigned char *at = client->multipart, *end = at + length;
    for (unsigned count = 0;; count++) {
        if (count == 0 && (size_t)(end - at) > 2 && memcmp(at, "\r\n", 2) == 0)
            at += 2;
        if ((size_t)(end - at) < size + 2 || memcmp(at, delimiter, size) != 0)
            return wrong(
                    client, operation, "no delimiter at %td of %zu bytes", at - client->multipart, length);
        at += size;
        if (memcmp(at, "--", 2) == 0)
            return count > 0 ? VERDICT_OVER : wrong(client, operation, "no part");
        enum verdict verdict = VERDICT_OVER;
        size_t taken = check_part(client, operation, at, (size_t)(end - at), &verdict);
        if (taken == 0 || verdict != VERDICT_OVER)
            return taken == 0 ? wrong(client, operation, "a bad part at %td", at - client->multipart)
                              : verdict;
        at += taken;
        if (end - at < 2 || memcmp(at, "\r\n", 2) != 0)
            return wrong(client, operation, "a part too long");
        at += 2;
    }
}

static enum verdict take_multipart(struct client *client, const struct operation *operation) {
    size_t done = 0;
    for (;;) {
        const unsigned char *bytes;
        size_t count;
        enum progress result = wire_content(&client->wire, WIRE_BYTES, &bytes, &count);
        if (result == WIRE_END)
            break;
        if (result == WIRE_BAD || (result == WIRE_OK && done + count > MULTIPART_BYTES))
            return wrong(client, operation, "bad framing or too long a multipart");
        if (result != WIRE_OK)
            return ended(result);
        memcpy(client->multipart + done, bytes, count);
        done += count;
        if (done > operation->leave_at)
            return VERDICT_LEFT;
    }
    world_count(client->world, COUNT_bytes, done);
    return check_multipart(client, operation, done);
}

static enum verdict take_ranges(struct client *client, const struct operation *operation) {
    const char *type = wire_field(&client->wire, "Content-Type");
    if (operation->part_count == 0)
        return wrong(client, operation, "206, and no range was asked for");
    if (type && strncmp(type, "multipart/byteranges", 20) == 0 && strstr(type, "boundary="))
        return take_multipart(client, operation);
    uint64_t first, last, size;
    if (!read_range(wire_field(&client->wire, "Content-Range"), &first, &last, &size) ||
            size != place_size(client->world, &operation->place) || !is_asked(operation, first, last, size))
        return wrong(client, operation, "not the range");
    return operation->is_head ? VERDICT_OVER : take_bytes(client, operation, first, last - first + 1);
}

static enum verdict take_nothing(struct client *client) {
    const unsigned char *bytes;
    size_t count;
    enum progress result;
    while ((result = wire_content(&client->wire, WIRE_BYTES, &bytes, &count)) == WIRE_OK)
        ;
    return result == WIRE_END ? VERDICT_OVER : ended(result);
}

// ---- responses ----

static enum verdict check_gateway(struct client *client, const struct operation *operation, int status) {
    if (wire_field(&client->wire, "X-Trouble"))
        world_count(client->world, COUNT_trouble, 1);
    else if (status == 502 || status == 503 || status == 504)
        world_count(client->world, COUNT_bad_gateway, 1);
    else
        return wrong(client, operation, "an odd status");
    enum verdict verdict = take_nothing(client);
    return operation->is_calm && verdict == VERDICT_OVER && !is_excused(client, operation) ? VERDICT_CUT
                                                                                           : verdict;
}

static enum verdict check_not_modified(struct client *client, struct operation *operation) {
    if (!*operation->tag)
        return wrong(client, operation, "304, and no condition");
    world_count(client->world, COUNT_not_modified, 1);
    enum verdict verdict = check_place(client, operation);
    return verdict != VERDICT_OVER ? verdict : take_nothing(client);
}

static enum verdict check_unsatisfiable(struct client *client, struct operation *operation) {
    const char *range = wire_field(&client->wire, "Content-Range");
    uint64_t size;
    if (operation->part_count == 0 || !range || sscanf(range, "bytes */%" SCNu64, &size) != 1)
        return wrong(client, operation, "416 without cause");
    for (unsigned i = 0; i < operation->part_count; i++)
        if (operation->parts[i].first < size)
            return wrong(client, operation, "416, and there is a range");
    world_count(client->world, COUNT_unsatisfiable, 1);
    return take_nothing(client);
}

static enum verdict check_response(struct client *client, struct operation *operation) {
    int status = wire_status(&client->wire);
    if (status == 416)
        return check_unsatisfiable(client, operation);
    if (status == 304)
        return check_not_modified(client, operation);
    if (status != 200 && status != 206)
        return check_gateway(client, operation, status);
    enum verdict verdict = check_place(client, operation);
    if (verdict != VERDICT_OVER)
        return verdict;
    if (status == 200) {
        world_count(client->world, COUNT_whole, 1);
        return take_whole(client, operation);
    }
    world_count(client->world, operation->part_count > 1 ? COUNT_multiparts : COUNT_ranges, 1);
    return take_ranges(client, operation);
}

static void note_purge(struct client *client, struct operation *operation) {
    struct purge *purge = &client->world->purges[operation->url];
    double done = atomic_load(&purge->done), from = atomic_load(&purge->from);
    operation->began = world_now();
    operation->purged = done == atomic_load(&purge->done) && done < operation->began ? from : -INFINITY;
}

static enum verdict exchange(struct client *client, struct operation *operation) {
    char request[2048];
    size_t length = write_request(client, operation, request);
    note_purge(client, operation);
    enum progress result = wire_send(&client->wire, request, length);
    if (result == WIRE_OK)
        result = wire_head(&client->wire, operation->is_head);
    if (result == WIRE_BAD)
        return wrong(client, operation, "no HTTP");
    if (result != WIRE_OK)
        return result == WIRE_HANGS ? VERDICT_HANGS : VERDICT_DROPPED;
    return check_response(client, operation);
}

// ---- operations ----

static bool connect_client(struct client *client, const struct operation *operation) {
    if (client->wire.fd >= 0 && !client->wire.ends && !operation->is_slow && !dice_chance(&client->dice, .05))
        return true;
    wire_close(&client->wire);
    if (wire_connect(&client->wire, client->proxy, operation->is_slow ? 8192 : 0))
        return true;
    pause_ms(20);
    return false;
}

static void judge(struct client *client, struct operation *operation, enum verdict verdict) {
    struct world *world = client->world;
    bool is_kept = !client->wire.is_first && verdict == VERDICT_DROPPED; // closed while nothing was asked
    if (verdict != VERDICT_OVER || client->wire.ends)
        wire_close(&client->wire);
    if (verdict == VERDICT_OVER)
        return;
    if (verdict == VERDICT_WRONG)
        world_count(world, COUNT_wrong, 1);
    else if (verdict == VERDICT_LEFT)
        world_count(world, COUNT_left, 1);
    else if (is_excused(client, operation))
        world_count(world, COUNT_excused, 1);
    else if (verdict == VERDICT_HANGS) {
        world_count(world, COUNT_hangs, 1);
        wrong(client, operation, "hangs since %.1f s", world_now() - operation->began);
    } else if (verdict == VERDICT_CUT) {
        world_count(world, COUNT_cut, 1);
        if (operation->is_calm && !atomic_load(&world->was_damaged))
            wrong(client, operation, "cut short while all is calm");
    } else if (!is_kept) {
        world_count(world, COUNT_refused, 1);
        wrong(client, operation, "closed without an answer");
    }
}

static bool operate(struct client *client, struct operation *operation) {
    operation->began = world_now();
    if (!connect_client(client, operation)) {
        if (!is_excused(client, operation)) {
            world_count(client->world, COUNT_refused, 1);
            wrong(client, operation, "connection refused");
            pause_ms(300);
        }
        return false;
    }
    world_count(client->world, COUNT_operations, 1);
    if (operation->is_slow)
        world_count(client->world, COUNT_slow, 1);
    enum verdict verdict = exchange(client, operation);
    judge(client, operation, verdict);
    client->wire.head[0] = 0;
    return verdict == VERDICT_OVER;
}

// Every URL, whole and in part, while nothing is in the way: a version may end in mid-transfer, but not
// often.
static void run_calm(struct client *client) {
    struct world *world = client->world;
    for (unsigned i = 0; i < URLS && atomic_load(&world->phase) == PHASE_CALM; i++) {
        unsigned tries = 0;
        for (bool is_right = false; !is_right && atomic_load(&world->phase) == PHASE_CALM; tries++) {
            struct operation operation = {
                    .url = (i + client->number * 7) % URLS, .leave_at = UINT64_MAX, .is_calm = true};
            operation.variant = url_varies(operation.url) ? client->number % VARIANTS : 0;
            struct place place = {
                    operation.url, place_version(world, operation.url, world_now()), operation.variant};
            if (client->number % 2 || place_size(world, &place) > (UINT64_C(1) << 20))
                choose_parts(client, &operation, place_size(world, &place));
            is_right = operate(client, &operation);
            if (!is_right && tries == 4) {
                wrong(client, &operation, "fails %u times while all is calm", tries + 1);
                world_count(world, COUNT_wrong, 1);
                break;
            }
        }
    }
}

static void *run(void *argument) {
    struct client *client = argument;
    struct world *world = client->world;
    bool was_calm = false;
    for (uint32_t phase; (phase = atomic_load(&world->phase)) != PHASE_END;) {
        if (phase == PHASE_QUIET || (phase == PHASE_CALM && was_calm)) {
            wire_close(&client->wire);
            pause_ms(10);
            was_calm = was_calm && phase == PHASE_CALM;
            continue;
        }
        atomic_fetch_add(&world->active, 1);
        if (phase == PHASE_CALM) {
            run_calm(client);
        } else if (atomic_load(&world->phase) == PHASE_RUN) {
            struct operation operation = {0};
            choose(client, &operation);
            operate(client, &operation);
        }
        was_calm = phase == PHASE_CALM;
        atomic_fetch_sub(&world->active, 1);
    }
    wire_close(&client->wire);
    return NULL;
}

void clients_run(struct world *world, uint16_t proxy, uint16_t origin, unsigned threads) {
    struct client *clients = calloc(threads, sizeof *clients);
    pthread_t *handles = calloc(threads, sizeof *handles);
    place_body(world, &(struct place){0});
    for (unsigned i = 0; i < threads; i++) {
        clients[i] = (struct client){.world = world,
                .dice = {world->seed * 7919 + i},
                .proxy = proxy,
                .origin = origin,
                .number = i,
                .multipart = malloc(MULTIPART_BYTES)};
        clients[i].wire.fd = -1;
        clients[i].wire.hang_s = world->hang_s;
        if (pthread_create(handles + i, NULL, run, clients + i) != 0)
            exit(1);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
}
