#include "tests/unit/cache/disk_play.h"

#include "cache/vary.h"
#include "tests/unit/cache/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB (1 << 20)

static void note_change(void *owner) {
    struct play_disk *play = owner;
    atomic_fetch_add(&play->changed, 1);
}

void play_open(struct play_disk *play) {
    play->disk = disk_new(&play->settings);
    CU_ASSERT_PTR_NOT_NULL_FATAL(play->disk);
    for (unsigned i = 0; i < play->settings.count; i++)
        CU_ASSERT_TRUE(play_wait(play, i, DISK_READY));
}

void play_start(struct play_disk *play, unsigned count) {
    memset(play, 0, sizeof *play);
    for (unsigned i = 0; i < count; i++) {
        play->paths[i] = scratch_new();
        play->volumes[i] = (struct volume_settings){.path = play->paths[i],
                .bytes = 32 * MIB,
                .segment_bytes = MIB,
                .objects = 4096,
                .probe_ms = PLAY_PROBE_MS};
    }
    play->settings = (struct disk_settings){.volumes = play->volumes,
            .count = count,
            .slow_ms = 2000, // but for the tests of that
            .changed = note_change,
            .owner = play};
    play_open(play);
}

void play_close(struct play_disk *play) {
    disk_free(play->disk);
    play->disk = NULL;
}

void play_end(struct play_disk *play) {
    play_close(play);
    for (unsigned i = 0; i < PLAY_VOLUMES; i++)
        if (play->paths[i])
            scratch_free(play->paths[i]);
}

bool play_wait(struct play_disk *play, unsigned index, enum disk_state state) {
    struct disk_volume_stats stats[DISK_VOLUMES_MAX];
    for (int i = 0; i < 10000; i++) {
        unsigned count = disk_stats(play->disk, stats);
        for (unsigned j = 0; j < count; j++)
            if (strcmp(stats[j].path, play->paths[index]) == 0 && stats[j].state == state)
                return true;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

void play_name(struct play_name *name, unsigned number) {
    memset(name, 0, sizeof *name);
    snprintf(name->authority, sizeof name->authority, "%u.example", number % 10);
    snprintf(name->path, sizeof name->path, "/%u?%u", number % 100, number);
    address_parse(VIEW("192.0.2.1"), &name->destination.address);
    name->destination.port = 80;
    name->name = (struct disk_name){&name->destination, view_of(name->authority), view_of(name->path)};
}

struct stored_head *play_head(unsigned number, const char *variant, unsigned edition) {
    struct text_head text;
    char fields[256], selectors[64];
    snprintf(fields, sizeof fields, "Date: Tue, 14 Nov 2023 22:13:18 GMT\nX-Number: %u\nX-Edition: %u\n",
            number, edition);
    snprintf(selectors, sizeof selectors, "=%s\n", variant ? variant : "");
    struct stored_head_source source = {.head = text_response(&text, 200, fields), .date_s = -1};
    if (variant) {
        source.vary = VIEW("accept-language");
        source.selectors = view_of(selectors);
    }
    struct stored_head *head = stored_head_new(&source);
    head->freshness = (struct freshness){.lifetime_s = 3600,
            .explicit_s = 3600,
            .response_at = {PLAY_NOW + edition, 1000 + edition},
            .while_revalidate_s = -1,
            .if_error_s = -1,
            .has_date = true,
            .date_s = PLAY_NOW};
    head->content_length = -1;
    head->has_body = true;
    return head;
}

static unsigned field_of(const struct stored_head *head, const char *name) {
    uint64_t number;
    for (unsigned i = 0; i < head->http.field_count; i++)
        if (view_equal_fold(head->http.fields[i].name, view_of(name)) &&
                view_number(head->http.fields[i].value, &number))
            return (unsigned)number;
    return UINT32_MAX;
}

int play_edition(const struct stored_head *head, unsigned number, const char *variant) {
    struct stored_head *own = play_head(number, variant, 0);
    bool is_it = vary_is_same(own, head) && field_of(head, "X-Number") == number;
    free(own);
    return is_it ? (int)field_of(head, "X-Edition") : -1;
}

void play_fill(unsigned char *out, size_t length, uint64_t salt) {
    uint64_t state = salt * 77;
    for (size_t i = 0; i < length; i += sizeof state) {
        uint64_t bits = disk_random(&state);
        memcpy(out + i, &bits, length - i < sizeof bits ? length - i : sizeof bits);
    }
}

int play_put(struct play_disk *play, unsigned number, const char *variant, unsigned edition, int64_t bytes,
        struct disk_place *place, uint64_t *location) {
    struct play_name name;
    struct disk_place own_place = {0};
    uint64_t own_location;
    play_name(&name, number);
    struct head_record record = {.destination = name.destination,
            .authority = name.name.authority,
            .path = name.name.path,
            .body_length = bytes >= 0 ? bytes : 5 * MIB,
            .gives_ranges = true,
            .boot = 7};
    struct stored_head *head = play_head(number, variant, edition);
    unsigned char *content = malloc((size_t)(bytes > 0 ? bytes : 1));
    if (bytes > 0)
        play_fill(content, (size_t)bytes, edition);
    // In two pieces, as it may come.
    size_t half = bytes > 0 ? (size_t)bytes / 2 : 0;
    struct iovec parts[] = {{content, half}, {content + half, bytes > 0 ? (size_t)bytes - half : 0}};
    int error = disk_put_head(play->disk, &record, head, bytes >= 0, parts, bytes > 0 ? 2 : 0,
            place ? place : &own_place, location ? location : &own_location);
    disk_place_put(&own_place);
    free(content);
    free(head);
    return error;
}

int play_read(struct play_disk *play, unsigned number, bool may_wait, struct disk_head **heads) {
    struct play_name name;
    struct head_record_now now = {{PLAY_NOW + 1000, 2000}, 7};
    play_name(&name, number);
    return disk_read_heads(play->disk, &name.name, &now, may_wait, heads);
}

static bool has_right_content(const struct disk_head *head, unsigned salt) {
    unsigned char *wanted = malloc(head->content_bytes + 1);
    play_fill(wanted, head->content_bytes, salt);
    bool right = !head->has_content || head->content_bytes == 0 ||
                 memcmp(wanted, head->content, head->content_bytes) == 0;
    free(wanted);
    return right && (!head->has_content || head->content_bytes == (uint64_t)head->body_length);
}

int play_only(struct play_disk *play, unsigned number, const char *variant) {
    struct disk_head *heads;
    int edition = -1;
    if (play_read(play, number, true, &heads) == 0 && heads && !heads->next) {
        edition = play_edition(heads->head, number, variant);
        if (edition >= 0 && !has_right_content(heads, (unsigned)edition))
            edition = -1;
    }
    disk_heads_free(heads);
    return edition;
}
