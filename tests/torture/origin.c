// The origin: a thread a connection. What it says is decided by the world; how it says it, by its dice:
// framed this way or that, in one go, in pieces, slowly, or not to the end.
#include "tests/torture/load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES 16384

struct service {
    struct world *world;
    int fd;
    struct dice dice;
    bool is_broken; // off, or out of step
};

struct answer {
    struct place place;
    uint64_t first, length; // of the body
    int status;
    bool is_chunked;
};

static void sleep_s(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void put(struct service *service, const void *bytes, uint64_t length) {
    const unsigned char *from = bytes;
    while (length > 0 && !service->is_broken) {
        ssize_t sent = send(service->fd, from, length, MSG_NOSIGNAL);
        if (sent <= 0)
            service->is_broken = true;
        else
            from += sent, length -= (uint64_t)sent,
                    world_count(service->world, COUNT_origin_bytes, (uint64_t)sent);
    }
}

static void break_off(struct service *service) {
    struct linger hard = {1, 0};
    if (dice_chance(&service->dice, .5))
        setsockopt(service->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    service->is_broken = true;
}

// ---- requests ----

static const char *field(const char *head, const char *name) {
    const char *found = strcasestr(head, name); // with its "\r\n" before and its ": " behind
    return found ? found + strlen(name) : NULL;
}

static uint64_t number(const char **text, bool *is_there) {
    char *end;
    *is_there = **text >= '0' && **text <= '9';
    uint64_t value = *is_there ? strtoull(*text, &end, 10) : 0;
    if (*is_there)
        *text = end;
    return value;
}

static void tag_of(const struct place *place, char tag[static 64]) {
    snprintf(tag, 64, "\"%u-%u-%u\"", place->url, place->version, place->variant);
}

static bool names_tag(const char *list, const char *tag) {
    const char *end = strchr(list, '\r'), *found = strstr(list, tag);
    return found && found < end;
}

// 206 and the part, 416, or 200 and the whole.
static void choose_range(const char *head, const char *tag, uint64_t size, struct answer *answer) {
    const char *range = field(head, "\r\nRange: bytes="), *condition = field(head, "\r\nIf-Range: ");
    if (!range || memchr(range, ',', (size_t)(strchr(range, '\r') - range)) ||
            (condition && !names_tag(condition, tag)))
        return;
    bool has_first, has_last = false;
    uint64_t first = number(&range, &has_first), last = 0;
    if (*range == '-')
        range++, last = number(&range, &has_last);
    if (!has_first)
        first = last < size ? size - last : 0, has_last = has_last && last > 0, last = size - 1;
    else if (!has_last || last >= size)
        last = size - 1;
    if (!has_first && !has_last)
        return;
    bool is_there = first < size && first <= last;
    answer->status = is_there ? 206 : 416;
    answer->first = is_there ? first : 0;
    answer->length = is_there ? last - first + 1 : 0;
}

// ---- answers ----

static size_t write_head(struct service *service, const struct answer *answer, double stamp, char *out) {
    struct world *world = service->world;
    uint64_t size = place_size(world, &answer->place);
    char tag[64], date[64];
    tag_of(&answer->place, tag);
    time_t now = time(NULL);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &(struct tm){0}));
    const char *control = place_control(world, &answer->place);
    char *to = out + sprintf(out, "HTTP/1.1 %d X\r\nDate: %s\r\nETag: %s\r\nX-Stamp: %.6f\r\n",
                             answer->status, date, tag, stamp);
    if (*control)
        to += sprintf(to, "Cache-Control: %s\r\n", control);
    if (url_varies(answer->place.url))
        to += sprintf(to, "Vary: X-Variant\r\n");
    if (place_has_ranges(world, &answer->place))
        to += sprintf(to, "Accept-Ranges: bytes\r\n");
    if (answer->status == 206)
        to += sprintf(to, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", answer->first,
                answer->first + answer->length - 1, size);
    if (answer->status == 416)
        to += sprintf(to, "Content-Range: bytes */%" PRIu64 "\r\n", size);
    if (answer->is_chunked)
        to += sprintf(to, "Transfer-Encoding: chunked\r\n");
    else if (answer->status != 304)
        to += sprintf(to, "Content-Length: %" PRIu64 "\r\n", answer->length);
    to += sprintf(to, "\r\n");
    return (size_t)(to - out);
}

static void put_part(
        struct service *service, const struct answer *answer, const unsigned char *from, uint64_t length) {
    char line[32];
    if (answer->is_chunked && length > 0)
        put(service, line, (uint64_t)sprintf(line, "%" PRIx64 "\r\n", length));
    put(service, from, length);
    if (answer->is_chunked && length > 0)
        put(service, "\r\n", 2);
}

// In how many pieces, with what pauses, and whether to the end.
static void put_body(struct service *service, const struct answer *answer) {
    struct dice *dice = &service->dice;
    bool is_mean = atomic_load(&service->world->mischief);
    const unsigned char *from = place_body(service->world, &answer->place) + answer->first;
    uint64_t left = answer->length;
    bool breaks = is_mean && dice_chance(dice, .02);
    uint64_t stop = breaks ? dice_below(dice, left + 1) : 0;
    double pause = is_mean && dice_chance(dice, .03) ? (double)dice_below(dice, 1000) / 1000 : 0;
    unsigned pauses = 3;
    while (left > stop && !service->is_broken) {
        uint64_t piece = 1 + dice_below(dice, pause > 0            ? left
                                              : answer->is_chunked ? 300000
                                                                   : UINT64_C(1) << 40);
        piece = piece < left - stop ? piece : left - stop;
        put_part(service, answer, from, piece);
        from += piece, left -= piece;
        if (pause > 0 && pauses > 0)
            sleep_s(pause), pauses--;
    }
    if (breaks)
        break_off(service);
    else if (answer->is_chunked)
        put(service, "0\r\n\r\n", 5);
}

static void put_trouble(struct service *service) {
    static const char trouble[] = "HTTP/1.1 503 Trouble\r\nX-Trouble: yes\r\nContent-Length: 4\r\n\r\nwait";
    put(service, trouble, sizeof trouble - 1);
}

static void serve(struct service *service, const char *head) {
    struct world *world = service->world;
    struct answer answer = {.status = 200};
    unsigned folder;
    bool is_head = strncmp(head, "HEAD ", 5) == 0;
    if (sscanf(head, is_head ? "HEAD /d%u/u%u " : "GET /d%u/u%u ", &folder, &answer.place.url) != 2 ||
            answer.place.url >= URLS) {
        service->is_broken = true;
        return;
    }
    world_count(world, COUNT_asked, 1);
    bool is_mean = atomic_load(&world->mischief);
    if (is_mean && dice_chance(&service->dice, .02))
        sleep_s((double)dice_below(&service->dice, 400) / 1000);
    if (is_mean && dice_chance(&service->dice, .01) && !is_head) {
        put_trouble(service);
        return;
    }
    const char *variant = field(head, "\r\nX-Variant: ");
    if (url_varies(answer.place.url) && variant)
        answer.place.variant = (unsigned)atoi(variant);
    double stamp = world_now();
    answer.place.version = place_version(world, answer.place.url, stamp);
    uint64_t size = answer.length = place_size(world, &answer.place);
    char tag[64], out[1024];
    tag_of(&answer.place, tag);
    const char *condition = field(head, "\r\nIf-None-Match: ");
    if (condition && names_tag(condition, tag))
        answer.status = 304, answer.length = 0;
    else if (!is_head && place_has_ranges(world, &answer.place))
        choose_range(head, tag, size, &answer);
    answer.is_chunked = answer.status == 200 && !is_head && dice_chance(&service->dice, .3);
    put(service, out, write_head(service, &answer, stamp, out));
    if (!is_head && answer.status != 304)
        put_body(service, &answer);
}

static void *serve_connection(void *argument) {
    struct service *service = argument;
    char head[HEAD_BYTES + 1];
    size_t length = 0;
    while (!service->is_broken && length < HEAD_BYTES) {
        ssize_t got = recv(service->fd, head + length, HEAD_BYTES - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
        head[length] = 0;
        for (char *end; !service->is_broken && (end = strstr(head, "\r\n\r\n"));) {
            end[2] = 0; // one line end stays, for what looks for the end of a field
            serve(service, head);
            length -= (size_t)(end + 4 - head);
            memmove(head, end + 4, length + 1);
        }
    }
    close(service->fd);
    free(service);
    return NULL;
}

static void start_connection(struct world *world, int fd, uint64_t serial) {
    struct service *service = calloc(1, sizeof *service);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){60, 0}, sizeof(struct timeval));
    *service = (struct service){world, fd, {world->seed * 1000003 + serial}, false};
    if (pthread_create(&thread, &attributes, serve_connection, service) != 0) {
        close(fd);
        free(service);
    }
    pthread_attr_destroy(&attributes);
}

void origin_run(struct world *world, uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t length = sizeof address;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 4096) < 0 ||
            getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
        perror("origin");
        exit(1);
    }
    place_body(world, &(struct place){0});
    printf("port %d\n", ntohs(address.sin_port));
    for (uint64_t serial = 1; atomic_load(&world->phase) != PHASE_END;) {
        struct pollfd poller = {fd, POLLIN, 0};
        int client = poll(&poller, 1, 200) > 0 ? accept4(fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client >= 0)
            start_connection(world, client, serial++);
    }
    close(fd);
}
