// Fills a volume as the daemon would, with responses of 8 KiB under http://HOST/all/1 to .../all/OBJECTS,
// faster than they could be fetched. tests/bench/store.py starts the daemon on it.
//     bench-fill DIRECTORY MEGABYTES RECORDS HOST OBJECTS
#include "cache/disk.h"
#include "cache/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BODY_BYTES 8192
#define FIELDS 8

static const char response[] = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nContent-Type: text/plain\r\n"
                               "Cache-Control: max-age=3600\r\nContent-Length: 8192\r\n\r\n";

static struct stored_head *make_head(void) {
    static const struct http_limits limits = {65536, 8192, FIELDS};
    struct http_field fields[FIELDS];
    struct http_head head = {.fields = fields, .field_capacity = FIELDS};
    struct http_error error;
    if (http_parse_response((struct view){response, sizeof response - 1}, 0, &limits, &head, &error) !=
            PARSE_DONE)
        return NULL;
    int64_t now_s = time(NULL);
    struct stored_head_source source = {.head = &head, .date_s = now_s};
    struct stored_head *stored = stored_head_new(&source);
    stored->freshness = (struct freshness){.lifetime_s = 3600,
            .explicit_s = 3600,
            .response_at = {.wall_s = now_s},
            .while_revalidate_s = -1,
            .if_error_s = -1,
            .has_date = true,
            .is_explicit = true,
            .date_s = now_s};
    stored->content_length = BODY_BYTES;
    stored->has_body = true;
    return stored;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void put(struct disk *disk, const struct stored_head *head, const char *host, unsigned long number) {
    static unsigned char body[BODY_BYTES];
    char path[32];
    struct iovec content = {body, sizeof body};
    struct head_record record = {.authority = {host, strlen(host)}, .path = {path, 0}};
    struct disk_place place = {.volume = NULL};
    uint64_t location;
    record.path.length = (size_t)snprintf(path, sizeof path, "/all/%lu", number);
    memset(body, (int)(number * 2654435761U >> 24), sizeof body);
    record.destination.port = 80;
    int error = address_parse(record.authority, &record.destination.address) ? -EAGAIN : -EINVAL;
    for (int i = 0; i < 10000 && (error == -EAGAIN || error == -ENOSPC || error == -EIO); i++) {
        if (i > 0)
            pause_ms(2);
        error = disk_put_head(disk, &record, head, true, &content, 1, &place, &location);
    }
    disk_place_put(&place);
    if (error < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(-error));
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 6)
        return fprintf(stderr, "bench-fill DIRECTORY MEGABYTES RECORDS HOST OBJECTS\n"), 2;
    struct volume_settings volume = {.path = argv[1],
            .bytes = strtoull(argv[2], NULL, 10) << 20,
            .objects = strtoull(argv[3], NULL, 10)};
    struct disk_settings settings = {.volumes = &volume, .count = 1, .slow_ms = 60000};
    struct disk *disk = disk_new(&settings);
    struct stored_head *head = make_head();
    if (!disk || !head)
        return fprintf(stderr, "cannot begin\n"), 1;
    unsigned long objects = strtoul(argv[5], NULL, 10);
    for (unsigned long number = 1; number <= objects; number++)
        put(disk, head, argv[4], number);
    free(head);
    disk_free(disk);
    return 0;
}
