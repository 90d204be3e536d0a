#include "cache/offline.h"

#include "cache/catalog.h"
#include "cache/file.h"
#include "cache/segment.h"
#include "cache/transfer.h"
#include "tests/unit/cache/disk.h"
#include "tests/unit/cache/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW 1700000000
#define COUNT 4
#define PATH_BYTES 512

static const struct head_record_now now = {{NOW + 50, 1050}, 0};

// ---- responses as a fill writes them ----

static struct stored_head *new_head(int64_t arrived_s) {
    struct text_head text;
    struct stored_head_source source = {
            .head = text_response(&text, 200, "Date: Tue, 14 Nov 2023 22:13:18 GMT\nETag: \"a\"\n"),
            .date_s = -1};
    struct stored_head *head = stored_head_new(&source);
    head->freshness = (struct freshness){.lifetime_s = 3600,
            .response_at = {arrived_s, 1000},
            .date_s = NOW,
            .while_revalidate_s = -1,
            .if_error_s = -1,
            .has_date = true};
    head->has_body = true;
    head->content_length = -1;
    return head;
}

static struct head_record new_record(const char *path, uint64_t generation, int64_t length) {
    struct head_record record = {.authority = VIEW("a.example"),
            .path = view_of(path),
            .generation = generation,
            .body_length = length};
    address_parse(VIEW("192.0.2.1"), &record.destination.address);
    record.destination.port = 80;
    return record;
}

static void put(struct volume *volume, struct record *record, void *head, void *body) {
    unsigned char crcs[64];
    record_set_head(record, head, record->head_bytes);
    record_write_crcs(body, record->body_bytes, crcs);
    struct iovec payload[] = {{head, record->head_bytes}, {crcs, record_crcs_bytes(record->body_bytes)},
            {body, record->body_bytes}};
    int error = -ENOSPC;
    for (int i = 0; i < 50 && (error == -ENOSPC || error == -EAGAIN); i++)
        error = volume_put(volume, record, payload, 3);
    CU_ASSERT_EQUAL(error, 0);
}

// With the content `body`, or in chunks when that is NULL.
static struct cache_key put_response(
        struct volume *volume, const char *path, uint64_t generation, int64_t length, char *body) {
    struct stored_head *head = new_head(NOW + (int64_t)generation);
    struct head_record own = new_record(path, generation, length);
    size_t bytes = head_record_encode(&own, head, NULL, 0);
    unsigned char *encoded = malloc(bytes + !bytes);
    CU_ASSERT_FATAL(bytes > 0);
    head_record_encode(&own, head, encoded, bytes);
    struct record record = {.type = RECORD_HEAD,
            .key = key_of(volume_seed(volume), &own.destination, own.authority, own.path),
            .generation = generation,
            .head_bytes = (uint32_t)bytes,
            .body_bytes = body ? (uint32_t)length : 0};
    put(volume, &record, encoded, body);
    free(encoded);
    free(head);
    return record.key;
}

static void put_chunk(
        struct volume *volume, struct cache_key key, uint64_t generation, uint32_t number, uint32_t bytes) {
    char *body = malloc(bytes);
    memset(body, (int)('a' + number), bytes);
    struct record record = {.type = RECORD_CHUNK,
            .key = key_of_chunk(key, generation, number),
            .generation = generation,
            .number = number,
            .body_bytes = bytes};
    put(volume, &record, NULL, body);
    free(body);
}

static struct volume *open_at(const char *path, uint64_t bytes) {
    return disk_open(&(struct volume_settings){.path = path, .bytes = bytes, .segment_bytes = 64 << 10});
}

static char *new_small(void) {
    char *path = scratch_new(), name[16], body[100];
    struct volume *volume = open_at(path, 8 << 20);
    memset(body, 'x', sizeof body);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "/%u", i);
        put_response(volume, name, i + 1, i == 0 ? 0 : 37 + (int64_t)i, body);
    }
    volume_close(volume);
    return path;
}

// ---- what is asked ----

struct seen {
    uint64_t problems, records;
    char file[64];
};

static void tell(void *context, const char *file, uint64_t offset, const char *what) {
    struct seen *seen = context;
    (void)offset, (void)what;
    seen->problems++;
    snprintf(seen->file, sizeof seen->file, "%s", file);
}

static struct offline *open_offline(const char *path) {
    char error[512] = "";
    struct offline *offline = offline_open(path, error, sizeof error);
    if (!offline)
        fprintf(stderr, "%s\n", error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(offline);
    return offline;
}

static struct seen checked(const char *path) {
    struct seen seen = {0};
    struct offline_watch watch = {.tell = tell, .context = &seen};
    struct offline_count count;
    struct offline *offline = open_offline(path);
    CU_ASSERT_EQUAL(offline_check(offline, &watch, &count), 0);
    offline_close(offline);
    CU_ASSERT_EQUAL(count.problems, seen.problems);
    seen.records = count.records;
    return seen;
}

static void repair(const char *path) {
    struct seen seen = {0};
    struct offline_watch watch = {.tell = tell, .context = &seen};
    struct offline_count count;
    struct offline *offline = open_offline(path);
    CU_ASSERT_EQUAL(offline_repair(offline, &watch, &count), 0);
    CU_ASSERT_TRUE(count.problems > 0);
    offline_close(offline);
}

// The one segment that has the records.
static void find_segment(const char *path, char out[static PATH_BYTES]) {
    out[0] = '\0';
    for (unsigned i = 0; i < 16; i++) {
        char shelf[PATH_BYTES / 2];
        snprintf(shelf, sizeof shelf, "%s/seg/%02x", path, i);
        DIR *directory = opendir(shelf);
        for (struct dirent *entry; directory && (entry = readdir(directory));)
            if (entry->d_name[0] != '.')
                snprintf(out, PATH_BYTES, "%s/%.16s", shelf, entry->d_name);
        if (directory)
            closedir(directory);
    }
    CU_ASSERT_FATAL(out[0] != '\0');
}

static size_t load(const char *path, unsigned char *out, size_t room) {
    int fd = open(path, O_RDONLY);
    ssize_t got = read(fd, out, room);
    close(fd);
    CU_ASSERT_FATAL(got >= 0);
    return (size_t)got;
}

static void save(const char *path, const unsigned char *bytes, size_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    CU_ASSERT_EQUAL(write(fd, bytes, length), (ssize_t)length);
    close(fd);
}

// ---- cases ----

static void what_was_written_is_clean(void) {
    char *path = new_small();
    struct seen seen = checked(path);
    CU_ASSERT_EQUAL(seen.problems, 0);
    CU_ASSERT_EQUAL(seen.records, COUNT);
    scratch_free(path);
}

static int sync_nothing(int fd) {
    (void)fd;
    return 0;
}

// Each byte of the segment in turn: it is noticed, costs one record at most, and a repair leaves it clean.
static void every_flipped_byte_is_found_and_mended(void) {
    struct file_calls unsynced = file_system; // thousands of times
    unsynced.fsync = unsynced.fdatasync = sync_nothing;
    file_use(&unsynced);
    char *path = new_small(), segment[PATH_BYTES];
    static unsigned char bytes[64 << 10], flipped[64 << 10];
    find_segment(path, segment);
    size_t length = load(segment, bytes, sizeof bytes);
    CU_ASSERT_FATAL(length > 500 && length < sizeof bytes);
    unsigned unseen = 0, lost = 0, unmended = 0;
    for (size_t i = 0; i < length; i++) {
        memcpy(flipped, bytes, length);
        flipped[i] ^= (unsigned char)(1 << i % 8);
        save(segment, flipped, length);
        unseen += checked(path).problems == 0;
        repair(path);
        struct seen after = checked(path);
        unmended += after.problems > 0;
        lost += after.records + 1 < COUNT;
        save(segment, bytes, length);
    }
    file_use(NULL);
    CU_ASSERT_EQUAL(unseen, 0);
    CU_ASSERT_EQUAL(lost, 0);
    CU_ASSERT_EQUAL(unmended, 0);
    CU_ASSERT_EQUAL(checked(path).problems, 0);
    scratch_free(path);
}

// Cut off anywhere: what is whole before stays, and weir reads what was mended.
static void every_length_is_mended(void) {
    char *path = new_small(), segment[PATH_BYTES];
    static unsigned char bytes[64 << 10];
    find_segment(path, segment);
    size_t length = load(segment, bytes, sizeof bytes);
    uint64_t before = 0;
    for (size_t i = 0; i <= length; i += 16) {
        save(segment, bytes, i);
        struct seen seen = checked(path);
        if (seen.problems > 0)
            repair(path);
        struct seen after = checked(path);
        CU_ASSERT_EQUAL(after.problems, 0);
        CU_ASSERT_EQUAL(after.records, seen.records);
        CU_ASSERT_TRUE(after.records >= before);
        before = after.records;
    }
    CU_ASSERT_EQUAL(before, COUNT);
    scratch_free(path);
}

static void a_broken_copy_of_the_super_block_is_mended(void) {
    char *path = new_small(), super[PATH_BYTES];
    unsigned char bytes[SUPER_COPY_AT + SUPER_BYTES];
    snprintf(super, sizeof super, "%s/super", path);
    CU_ASSERT_EQUAL_FATAL(load(super, bytes, sizeof bytes), sizeof bytes);
    bytes[SUPER_COPY_AT + 40] ^= 1;
    save(super, bytes, sizeof bytes);
    CU_ASSERT_EQUAL(checked(path).problems, 1);
    repair(path);
    CU_ASSERT_EQUAL(checked(path).problems, 0);
    scratch_free(path);
}

static void a_volume_in_use_is_left_alone(void) {
    char *path = scratch_new(), error[512] = "";
    struct volume *volume = open_at(path, 8 << 20);
    CU_ASSERT_PTR_NULL(offline_open(path, error, sizeof error));
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "another process"));
    volume_close(volume);
    scratch_free(path);
}

// ---- transport ----

struct bytes {
    unsigned char *data;
    size_t length, at, end; // `end`: where reading breaks off
};

static int append(void *context, const void *data, size_t length) {
    struct bytes *bytes = context;
    bytes->data = realloc(bytes->data, bytes->length + length + 1);
    memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    return 0;
}

static int64_t take(void *context, void *out, size_t length) {
    struct bytes *bytes = context;
    size_t left = bytes->end - bytes->at, most = left < length ? left : length;
    memcpy(out, bytes->data + bytes->at, most);
    bytes->at += most;
    return (int64_t)most;
}

static struct bytes exported(const char *path, struct transfer_count *count) {
    struct bytes bytes = {0};
    struct seen seen = {0};
    struct offline_watch watch = {.tell = tell, .context = &seen};
    struct offline_count read;
    int error;
    struct offline *offline = open_offline(path);
    struct catalog *catalog = catalog_read(offline, &watch, NULL, &read, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(catalog);
    CU_ASSERT_EQUAL(transfer_export(catalog, &now, NULL, append, &bytes, count), 0);
    CU_ASSERT_EQUAL(seen.problems, 0);
    catalog_free(catalog);
    offline_close(offline);
    bytes.end = bytes.length;
    return bytes;
}

static int imported(const char *path, struct bytes *bytes, struct transfer_count *count) {
    struct offline_watch watch = {0};
    struct offline_count read;
    struct parcel_reader reader;
    struct catalog *there = NULL;
    int error;
    bytes->at = 0;
    *count = (struct transfer_count){0};
    if (!offline_is_empty(path)) {
        struct offline *offline = open_offline(path);
        there = catalog_read(offline, &watch, NULL, &read, &error);
        offline_close(offline);
    }
    error = parcel_reader_init(&reader, take, bytes);
    struct volume *volume = open_at(path, 32 << 20);
    if (error == 0)
        error = transfer_import(volume, there, &reader, &now, count);
    volume_close(volume);
    parcel_reader_fini(&reader);
    catalog_free(there);
    return error;
}

static char *new_mixed(void) {
    char *path = new_small(), body[64] = "old";
    struct volume *volume = open_at(path, 32 << 20);
    put_response(volume, "/3", 20, sizeof body, body); // a newer one
    struct cache_key key = put_response(volume, "/large", 30, 5 * RECORD_CHUNK_BYTES / 2, NULL);
    put_chunk(volume, key, 30, 0, RECORD_CHUNK_BYTES); // and a hole at 1
    put_chunk(volume, key, 30, 2, RECORD_CHUNK_BYTES / 2);
    volume_close(volume);
    return path;
}

static void what_moves_arrives_once(void) {
    char *from = new_mixed(), *to = scratch_new();
    struct transfer_count out, in, again;
    struct bytes bytes = exported(from, &out);
    CU_ASSERT_EQUAL(out.responses, COUNT + 1);
    CU_ASSERT_EQUAL(out.bytes, 38 + 39 + 64 + RECORD_CHUNK_BYTES * 3 / 2);
    CU_ASSERT_EQUAL(imported(to, &bytes, &in), 0);
    CU_ASSERT_EQUAL(in.responses, out.responses);
    CU_ASSERT_EQUAL(in.bytes, out.bytes);
    CU_ASSERT_EQUAL(checked(to).problems, 0);
    struct bytes second = exported(to, &again);
    CU_ASSERT_EQUAL(again.responses, out.responses);
    CU_ASSERT_EQUAL(again.bytes, out.bytes);
    CU_ASSERT_EQUAL(imported(to, &bytes, &in), 0);
    CU_ASSERT_EQUAL(in.responses, 0);
    CU_ASSERT_EQUAL(in.skipped, out.responses);
    free(bytes.data);
    free(second.data);
    scratch_free(from);
    scratch_free(to);
}

static void a_parcel_cut_off_or_broken_is_told_of(void) {
    char *from = new_small(), *to = scratch_new();
    struct transfer_count count;
    struct bytes bytes = exported(from, &count);
    for (size_t end = 0; end < bytes.length; end += 61) {
        bytes.end = end;
        CU_ASSERT_EQUAL(imported(to, &bytes, &count), -EBADMSG);
    }
    bytes.end = bytes.length;
    for (size_t i = 0; i < bytes.length; i += 37) {
        bytes.data[i] ^= 4;
        CU_ASSERT_EQUAL(imported(to, &bytes, &count), -EBADMSG);
        bytes.data[i] ^= 4;
    }
    CU_ASSERT_EQUAL(checked(to).problems, 0);
    free(bytes.data);
    scratch_free(from);
    scratch_free(to);
}

static int not_allowed(int directory, const char *name, int flags, mode_t mode) {
    (void)directory, (void)name, (void)flags, (void)mode;
    errno = EACCES;
    return -1;
}

static void others_are_told_who_may(void) {
    char *path = scratch_new(), error[512];
    struct file_calls calls = file_system;
    calls.openat = not_allowed;
    file_use(&calls);
    CU_ASSERT_PTR_NULL(offline_open(path, error, sizeof error));
    file_use(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "Permission denied; run it as root or as the directory's owner"));
    scratch_free(path);
}

SUITE(cache_offline, CASE(what_was_written_is_clean), CASE(every_flipped_byte_is_found_and_mended),
        CASE(every_length_is_mended), CASE(a_broken_copy_of_the_super_block_is_mended),
        CASE(a_volume_in_use_is_left_alone), CASE(what_moves_arrives_once),
        CASE(a_parcel_cut_off_or_broken_is_told_of), CASE(others_are_told_who_may))
