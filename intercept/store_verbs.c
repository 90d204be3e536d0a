// check, repair, list, export and import, each directory by itself.
#include "admin/json.h"
#include "cache/saved_index.h"
#include "cache/transfer.h"
#include "intercept/store_command.h"
#include "intercept/url_mask.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOADING_SECONDS_MAX 600
#define TICK_NS 10000000

static struct head_record_now now_of_start(void) {
    return (struct head_record_now){moment_of_ms(clock_wall_ms(), clock_monotonic_ms()), 0};
}

bool store_matches(void *context, struct view mask, struct view authority, struct view path) {
    char text[4097];
    const char *why;
    (void)context;
    if (mask.length >= sizeof text)
        return false;
    memcpy(text, mask.data, mask.length);
    text[mask.length] = '\0';
    struct acl_mask *compiled = acl_mask_new(text, &why);
    bool matches = compiled && url_mask_matches(compiled, authority, path);
    acl_mask_free(compiled);
    return matches;
}

bool store_is_wanted(const struct store_call *call, const struct head_record *record) {
    return !call->mask || url_mask_matches(call->mask, record->authority, record->path);
}

// ---- check and repair ----

static void tell(void *context, const char *file, uint64_t offset, const char *what) {
    const char *path = context;
    printf("%s/%s:%" PRIu64 ": %s\n", path, file, offset, what);
}

static int for_each(const struct store_call *call,
        int act(const struct store_call *call, const struct store_directory *directory,
                struct offline *offline)) {
    int status = COMMAND_DONE;
    for (unsigned i = 0; i < call->count; i++) {
        struct offline *offline = store_open(&call->directories[i]);
        int one = offline ? act(call, &call->directories[i], offline) : COMMAND_PROBLEM;
        if (offline)
            offline_close(offline);
        if (one != COMMAND_DONE)
            status = one;
    }
    return status;
}

static int failed(const struct store_directory *directory, int error, const char *doing) {
    fprintf(stderr, "weir store: %s: %s: %s\n", directory->path, doing, strerror(-error));
    return COMMAND_PROBLEM;
}

static int check_one(
        const struct store_call *call, const struct store_directory *directory, struct offline *offline) {
    struct offline_watch watch = {.tell = tell, .context = (void *)directory->path};
    struct offline_count count;
    (void)call;
    int error = offline_check(offline, &watch, &count);
    if (error < 0)
        return failed(directory, error, "listing its files");
    printf("%s: %" PRIu64 " segments, %" PRIu64 " good records, %" PRIu64 " bytes read, %" PRIu64
           " problem%s\n",
            directory->path, count.segments, count.records, count.bytes, count.problems,
            count.problems == 1 ? "" : "s");
    return count.problems == 0 ? COMMAND_DONE : COMMAND_PROBLEM;
}

int store_check(const struct store_call *call) {
    return for_each(call, check_one);
}

static int repair_one(
        const struct store_call *call, const struct store_directory *directory, struct offline *offline) {
    struct offline_watch watch = {.tell = tell, .context = (void *)directory->path};
    struct offline_count count;
    (void)call;
    int error = offline_repair(offline, &watch, &count);
    printf("%s: %" PRIu64 " segments, %" PRIu64 " good records kept, %" PRIu64 " problem%s found\n",
            directory->path, count.segments, count.records, count.problems, count.problems == 1 ? "" : "s");
    return error < 0 ? failed(directory, error, "not all of it could be mended") : COMMAND_DONE;
}

int store_repair(const struct store_call *call) {
    return for_each(call, repair_one);
}

// ---- list ----

struct listing {
    const struct store_call *call;
    const char *path;
    const struct saved_index *index;
    struct moment now;
    bool *is_first;
};

struct line { // what is said of one
    char destination[ADDRESS_TEXT_BYTES];
    int64_t size, age_s, left_s; // size -1: not known; of the lifetime
    int hits;
    struct view etag, modified;
};

static struct view field_of(const struct stored_head *head, enum field_id id) {
    const struct http_field *field = http_field_find(&head->http, id, 0);
    return field ? field->value : (struct view){0};
}

static void describe(
        const struct listing *listing, const struct catalog_response *response, struct line *line) {
    const struct stored_head *head = response->head;
    const struct offline_record *found = response->found;
    line->size = response->record->body_length;
    line->age_s = freshness_age(&head->freshness, listing->now);
    line->left_s = freshness_lifetime(&head->freshness, NULL) - line->age_s;
    line->hits = listing->index
                         ? saved_index_hits(listing->index, found->record.key, found->segment, found->offset)
                         : -1;
    line->etag = field_of(head, FIELD_ETAG);
    line->modified = field_of(head, FIELD_LAST_MODIFIED);
    endpoint_print(&response->record->destination, line->destination);
}

static void print_field(const char *name, struct view value) {
    if (value.length == 0)
        return;
    printf("\t%s=", name);
    json_print(value, stdout);
}

static void print_text(const struct catalog_response *response, const struct line *line) {
    const struct head_record *record = response->record;
    const struct stored_head *head = response->head;
    printf("http://" VIEW_FORMAT VIEW_FORMAT "\t%s\t%d\t", VIEW_ARGUMENT(record->authority),
            VIEW_ARGUMENT(record->path), line->destination, head->http.status);
    if (line->size < 0)
        printf("%" PRIu64 " of ? bytes", response->bytes_there);
    else if ((uint64_t)line->size == response->bytes_there || !head->has_body)
        printf("%" PRId64 " bytes", line->size);
    else
        printf("%" PRIu64 " of %" PRId64 " bytes", response->bytes_there, line->size);
    printf("\tage %" PRId64 " s\t%s %" PRId64 " s", line->age_s,
            line->left_s > 0 ? "fresh for" : "expired since",
            line->left_s > 0 ? line->left_s : -line->left_s);
    if (line->hits >= 0)
        printf("\t%d%s hits", line->hits, line->hits == TABLE_HITS_MAXIMUM ? " or more" : "");
    print_field("etag", line->etag);
    print_field("last-modified", line->modified);
    print_field("vary", head->vary);
    print_field("selectors", head->selectors);
    putchar('\n');
}

static void print_member(const char *name, struct view value) {
    printf(",\"%s\":", name);
    json_print(value, stdout);
}

static void print_url_json(const struct head_record *record) {
    size_t length = 7 + record->authority.length + record->path.length;
    char *url = malloc(length + 1);
    if (!url)
        return;
    snprintf(url, length + 1, "http://" VIEW_FORMAT VIEW_FORMAT, VIEW_ARGUMENT(record->authority),
            VIEW_ARGUMENT(record->path));
    print_member("url", (struct view){url, length});
    free(url);
}

static void print_json(
        const struct listing *listing, const struct catalog_response *response, const struct line *line) {
    const struct stored_head *head = response->head;
    printf("%s\n{\"directory\":", *listing->is_first ? "" : ",");
    *listing->is_first = false;
    json_print(view_of(listing->path), stdout);
    print_url_json(response->record);
    print_member("destination", view_of(line->destination));
    printf(",\"status\":%d,\"bytes\":", head->http.status);
    printf(line->size < 0 ? "null" : "%" PRId64, line->size);
    printf(",\"bytes_there\":%" PRIu64 ",\"age_s\":%" PRId64 ",\"lifetime_s\":%" PRId64
           ",\"fresh\":%s,\"hits\":",
            response->bytes_there, line->age_s, line->left_s + line->age_s,
            line->left_s > 0 ? "true" : "false");
    printf(line->hits < 0 ? "null" : "%d", line->hits);
    print_member("etag", line->etag);
    print_member("last_modified", line->modified);
    print_member("vary", head->vary);
    print_member("selectors", head->selectors);
    putchar('}');
}

static bool list_response(void *context, const struct catalog_response *response) {
    const struct listing *listing = context;
    struct line line;
    if (!store_is_wanted(listing->call, response->record))
        return true;
    describe(listing, response, &line);
    if (listing->call->json)
        print_json(listing, response, &line);
    else
        print_text(response, &line);
    return !ferror(stdout);
}

static void tell_on_error(void *context, const char *file, uint64_t offset, const char *what) {
    fprintf(stderr, "%s/%s:%" PRIu64 ": %s\n", (const char *)context, file, offset, what);
}

// What is broken is told on standard error, and left out. NULL: told, too.
static struct catalog *read_catalog(
        const struct store_directory *directory, struct offline *offline, struct offline_count *count) {
    struct offline_watch watch = {.tell = tell_on_error, .context = (void *)directory->path};
    int error;
    struct catalog *catalog = catalog_read(offline, &watch, store_matches, count, &error);
    if (!catalog)
        failed(directory, error, "listing its files");
    return catalog;
}

static bool is_first_listed;

static int list_one(
        const struct store_call *call, const struct store_directory *directory, struct offline *offline) {
    struct head_record_now now = now_of_start();
    struct offline_count count;
    struct catalog *catalog = read_catalog(directory, offline, &count);
    int error;
    if (!catalog)
        return COMMAND_PROBLEM;
    struct saved_index *index =
            saved_index_read(offline_directory(offline), offline_super(offline)->uuid[0], &error);
    struct listing listing = {call, directory->path, index, now.moment, &is_first_listed};
    error = catalog_walk(catalog, &now, list_response, &listing);
    saved_index_free(index);
    catalog_free(catalog);
    if (error < 0)
        return failed(directory, error, "listing its files");
    return count.problems == 0 ? COMMAND_DONE : COMMAND_PROBLEM;
}

int store_list(const struct store_call *call) {
    is_first_listed = true;
    if (call->json)
        putchar('[');
    int status = for_each(call, list_one);
    if (call->json)
        puts("\n]");
    return fflush(stdout) == 0 && !ferror(stdout) ? status : COMMAND_PROBLEM;
}

// ---- export ----

int store_open_file(struct store_call *call, bool writes) {
    if (strcmp(call->file, "-") == 0)
        call->stream = writes ? stdout : stdin;
    else
        call->stream = fopen(call->file, writes ? "we" : "re");
    if (call->stream)
        return COMMAND_DONE;
    fprintf(stderr, "weir store: %s: %s\n", call->file, strerror(errno));
    return COMMAND_PROBLEM;
}

static int write_bytes(void *context, const void *data, size_t length) {
    const struct store_call *call = context;
    errno = 0;
    return fwrite(data, 1, length, call->stream) == length ? 0 : errno ? -errno : -EIO;
}

static bool is_exported(void *context, const struct catalog_response *response) {
    return store_is_wanted(context, response->record);
}

static int export_one(
        const struct store_call *call, const struct store_directory *directory, struct offline *offline) {
    struct head_record_now now = now_of_start();
    struct offline_count count;
    struct transfer_count moved;
    struct catalog *catalog = read_catalog(directory, offline, &count);
    if (!catalog)
        return COMMAND_PROBLEM;
    int error = transfer_export(catalog, &now, is_exported, write_bytes, (void *)call, &moved);
    catalog_free(catalog);
    if (error == 0 && fflush(call->stream) != 0)
        error = -errno;
    if (error == 0 && call->stream != stdout && fsync(fileno(call->stream)) < 0 && errno != EINVAL &&
            errno != EROFS)
        error = -errno;
    if (error < 0)
        return failed(directory, error, "writing what is exported");
    fprintf(stderr, "%s: %" PRIu64 " responses with %" PRIu64 " bytes of content exported\n", directory->path,
            moved.responses, moved.bytes);
    return count.problems == 0 ? COMMAND_DONE : COMMAND_PROBLEM;
}

int store_export(const struct store_call *call) {
    if (call->count > 1)
        return command_usage_error(call->words, "a file takes one directory, name it");
    if (call->stream == stdout && isatty(STDOUT_FILENO))
        return command_usage_error(call->words, "this is nothing for a terminal: name a file, or a pipe");
    return for_each(call, export_one);
}

// ---- import ----

static int64_t read_bytes(void *context, void *out, size_t length) {
    const struct store_call *call = context;
    errno = 0;
    size_t got = fread(out, 1, length, call->stream);
    return got > 0 || !ferror(call->stream) ? (int64_t)got : errno ? -errno : -EIO;
}

// What is there already. A directory without a volume has nothing: volume_open makes one.
static bool look_at(
        const struct store_directory *directory, struct catalog **there, uint64_t *segment_bytes) {
    char error[1024];
    struct offline_count count;
    *there = NULL;
    *segment_bytes = 0;
    struct offline *offline = offline_open(directory->path, error, sizeof error);
    if (!offline) {
        if (offline_is_empty(directory->path))
            return true;
        fprintf(stderr, "weir store: %s\n", error);
        return false;
    }
    *there = read_catalog(directory, offline, &count);
    *segment_bytes = offline_super(offline)->segment_bytes;
    offline_close(offline);
    return *there != NULL;
}

static struct volume *open_volume(const struct store_directory *directory, uint64_t segment_bytes) {
    char error[1024];
    struct volume_stats stats;
    struct volume_settings settings = {.path = directory->path,
            .bytes = (uint64_t)directory->bytes,
            .segment_bytes = segment_bytes,
            .matches = store_matches};
    struct volume *volume = volume_open(&settings, error, sizeof error);
    if (!volume) {
        fprintf(stderr, "weir store: %s\n", error);
        return NULL;
    }
    for (int64_t i = 0; i < LOADING_SECONDS_MAX * INT64_C(1000000000) / TICK_NS; i++) {
        volume_stats(volume, &stats);
        if (stats.state != VOLUME_LOADING)
            break;
        nanosleep(&(struct timespec){.tv_nsec = TICK_NS}, NULL);
    }
    return volume;
}

static int tell_import(const struct store_call *call, const struct store_directory *directory,
        const struct parcel_reader *reader, const struct transfer_count *count, int error) {
    printf("%s: %" PRIu64 " responses with %" PRIu64 " bytes of content imported, %" PRIu64
           " skipped for what is there, %" PRIu64 " refused\n",
            directory->path, count->responses, count->bytes, count->skipped, count->refused);
    if (error == 0)
        return count->refused == 0 ? COMMAND_DONE : COMMAND_PROBLEM;
    if (error == -EBADMSG && reader->what)
        fprintf(stderr, "weir store: %s:%" PRIu64 ": %s; what stands before it was imported\n", call->file,
                reader->offset, reader->what);
    else
        fprintf(stderr, "weir store: import ended at byte %" PRIu64 " of %s: %s\n", reader->offset,
                call->file, strerror(-error));
    return COMMAND_PROBLEM;
}

static int import_into(const struct store_call *call, const struct store_directory *directory) {
    struct head_record_now now = now_of_start();
    struct parcel_reader reader;
    struct transfer_count count = {0};
    struct catalog *there;
    uint64_t segment_bytes;
    if (!look_at(directory, &there, &segment_bytes))
        return COMMAND_PROBLEM;
    int error = parcel_reader_init(&reader, read_bytes, (void *)call);
    struct volume *volume = error == 0 ? open_volume(directory, segment_bytes) : NULL;
    if (volume) {
        error = transfer_import(volume, there, &reader, &now, &count);
        volume_close(volume);
    }
    catalog_free(there);
    int status =
            error == 0 && !volume ? COMMAND_PROBLEM : tell_import(call, directory, &reader, &count, error);
    parcel_reader_fini(&reader);
    return status;
}

int store_import(const struct store_call *call) {
    struct store_directory directory = call->directories[0];
    if (call->count > 1)
        return command_usage_error(call->words, "an import goes into one directory, name it");
    if (call->bytes > 0)
        directory.bytes = call->bytes;
    if (directory.bytes == 0)
        return command_usage_error(call->words,
                "no cache_dir line says how much %.200s may hold: give it with --size", directory.path);
    return import_into(call, &directory);
}
