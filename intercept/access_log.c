#include "intercept/access_log.h"

#include "admin/check.h"
#include "admin/log.h"
#include "intercept/access_line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUTPUTS_MAXIMUM 16
#define QUEUE_BYTES (4 << 20)  // for each log; lines beyond it are lost, and counted
#define QUEUE_START (64 << 10) // what it has at first, and keeps when idle
#define BATCH_BYTES (64 << 10) // this much is written at once, less waits for BATCH_MS
#define BATCH_MS 50
#define WRITE_WAIT_MS 5000 // a pipe that takes nothing for so long loses the batch
#define REPORT_MS 60000

struct queue {
    char *bytes;
    size_t used, capacity;
    unsigned lines;
};

// One access_log directive.
struct output {
    char *path; // NULL: standard output
    enum access_format format;
    struct acl_mask *mask; // NULL: every request
    struct queue filling;  // under the lock
    struct queue writing;  // the writer's own
    int fd;                // the writer's own
    bool torn;             // the last write stopped within a line
    unsigned lost;         // under the lock: did not fit
    struct log_limit lost_limit, failed_limit;
};

struct access_log {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t writer;
    bool has_writer;
    bool idle; // the writer waits without a time limit
    bool stopping, reopening;
    size_t waiting;        // bytes in all queues
    _Atomic uint64_t lost; // lines, all logs together
    unsigned count;
    struct output outputs[OUTPUTS_MAXIMUM];
};

// ---- the directives ----

struct words {
    const char *mask, *path;
    enum access_format format;
    int path_index; // in the directive
};

static bool is_standard_output(const char *path) {
    return strcmp(path, "-") == 0 || strcmp(path, "stdout") == 0 || strcmp(path, "/dev/stdout") == 0;
}

static bool read_words(const struct directive *directive, struct words *words, struct config_errors *errors) {
    unsigned count = directive->word_count;
    *words = (struct words){.format = ACCESS_COMBINED};
    bool has_format = count > 1 && access_format_find(directive->words[count - 1].text, &words->format);
    unsigned rest = count - has_format;
    bool format_is_odd =
            rest == 2 && directive->words[0].text[0] == '/' && directive->words[1].text[0] != '/';
    if (rest > 2 || rest == 0 || format_is_odd) {
        config_error(errors, directive, (int)count - 1,
                "no access log format is called \"%.80s\", write common, combined, squid or json",
                directive->words[count - 1].text);
        return false;
    }
    words->mask = rest == 2 ? directive->words[0].text : NULL;
    words->path_index = (int)rest - 1;
    words->path = directive->words[rest - 1].text;
    if (words->path[0] == '/' || is_standard_output(words->path))
        return true;
    config_error(errors, directive, words->path_index,
            "\"%.80s\" is no path from the root, write access_log [MASK] /PATH [FORMAT], or - for standard "
            "output",
            words->path);
    return false;
}

static bool take_directive(
        const struct directive *directive, struct output *output, struct config_errors *errors) {
    struct words words;
    const char *why = NULL;
    *output = (struct output){.fd = -1};
    if (!read_words(directive, &words, errors))
        return false;
    output->format = words.format;
    if (words.mask && !(output->mask = acl_mask_new(words.mask, &why))) {
        config_error(errors, directive, 0, "%s: %s", words.mask, why);
        return false;
    }
    if (is_standard_output(words.path) || (output->path = strdup(words.path)))
        return true;
    acl_mask_free(output->mask);
    config_error(errors, directive, -1, "out of memory");
    return false;
}

// ---- files ----

// O_NONBLOCK for the call alone: a named pipe without a reader is an error, not a wait.
static int open_file(const char *path) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
    return fd < 0 ? -errno : fd;
}

static int open_output(const struct output *output) {
    if (output->path)
        return open_file(output->path);
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

static const char *output_name(const struct output *output) {
    return output->path ? output->path : "standard output";
}

// A failure leaves the old file in use.
static void reopen(struct output *output) {
    int fd = open_output(output);
    if (fd < 0) {
        log_error("access log %s: cannot open it again: %s; writing to the old file", output_name(output),
                strerror(-fd));
        return;
    }
    close(output->fd);
    output->fd = fd;
    output->torn = false;
}

// ---- the writer ----

static int wait_writable(int fd) {
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    int ready = poll(&wanted, 1, WRITE_WAIT_MS);
    return ready > 0 ? 0 : ready == 0 ? -ETIMEDOUT : -errno;
}

// What was written before an error is told in *written.
static int write_all(int fd, const char *bytes, size_t length, size_t *written) {
    int result = 0;
    *written = 0;
    while (*written < length && result == 0) {
        ssize_t count = write(fd, bytes + *written, length - *written);
        if (count >= 0)
            *written += (size_t)count;
        else if (errno == EAGAIN)
            result = wait_writable(fd);
        else if (errno != EINTR)
            result = -errno;
    }
    return result;
}

static unsigned count_lines(const char *bytes, size_t length) {
    unsigned lines = 0;
    for (const char *end = bytes + length; (bytes = memchr(bytes, '\n', (size_t)(end - bytes))); bytes++)
        lines++;
    return lines;
}

static void write_batch(struct access_log *log, struct output *output) {
    struct queue *queue = &output->writing;
    size_t written = 0, ignored;
    int result = 0;
    if (output->torn)
        result = write_all(output->fd, "\n", 1, &ignored);
    if (result == 0) {
        output->torn = false;
        result = write_all(output->fd, queue->bytes, queue->used, &written);
    }
    if (result < 0) {
        output->torn = output->torn || (written > 0 && queue->bytes[written - 1] != '\n');
        unsigned lost = queue->lines - count_lines(queue->bytes, written);
        atomic_fetch_add(&log->lost, lost);
        log_limited(&output->failed_limit, REPORT_MS, "access log %s: %s: %u lines lost", output_name(output),
                strerror(-result), lost);
    }
    queue->used = queue->lines = 0;
    if (queue->capacity > QUEUE_START) { // a burst is over
        free(queue->bytes);
        *queue = (struct queue){0};
    }
}

static void wait_until(struct access_log *log, int64_t wait_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!log->stopping && !log->reopening && log->waiting < BATCH_BYTES)
        if (pthread_cond_timedwait(&log->wake, &log->lock, &until) == ETIMEDOUT)
            return;
}

static void wait_for_work(struct access_log *log) {
    while (!log->stopping && !log->reopening && log->waiting == 0) {
        log->idle = true;
        pthread_cond_wait(&log->wake, &log->lock);
    }
    log->idle = false;
}

static unsigned take_queue(struct output *output) {
    struct queue empty = output->writing;
    unsigned lost = output->lost;
    output->writing = output->filling;
    output->filling = empty;
    output->lost = 0;
    return lost;
}

// One round, entered and left with the lock held.
static void write_round(struct access_log *log) {
    unsigned lost[OUTPUTS_MAXIMUM] = {0};
    bool reopening = log->reopening;
    log->reopening = false;
    log->waiting = 0;
    for (unsigned i = 0; i < log->count; i++)
        lost[i] = take_queue(&log->outputs[i]);
    pthread_mutex_unlock(&log->lock);
    for (unsigned i = 0; i < log->count; i++) {
        struct output *output = &log->outputs[i];
        if (reopening)
            reopen(output);
        if (output->writing.used)
            write_batch(log, output);
        if (lost[i])
            log_limited(&output->lost_limit, REPORT_MS,
                    "access log %s: it takes lines too slowly: %u lines lost", output_name(output), lost[i]);
    }
    pthread_mutex_lock(&log->lock);
}

static void *run_writer(void *context) {
    struct access_log *log = context;
    sigset_t broken_pipe; // a reader that left is a failed write
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    pthread_mutex_lock(&log->lock);
    do {
        wait_for_work(log);
        write_round(log);
        wait_until(log, BATCH_MS);
    } while (!log->stopping || log->waiting);
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

// ---- the façade ----

static void close_outputs(struct access_log *log) {
    for (unsigned i = 0; i < log->count; i++) {
        struct output *output = &log->outputs[i];
        if (output->fd >= 0)
            close(output->fd);
        free(output->filling.bytes);
        free(output->writing.bytes);
        free(output->path);
        acl_mask_free(output->mask);
    }
}

static bool open_directive(
        struct access_log *log, const struct directive *directive, struct config_errors *errors) {
    if (log->count == OUTPUTS_MAXIMUM) {
        config_error(errors, directive, -1, "more than %d access logs; remove some", OUTPUTS_MAXIMUM);
        return false;
    }
    struct output *output = &log->outputs[log->count];
    if (!take_directive(directive, output, errors))
        return false;
    log->count++;
    output->fd = open_output(output);
    if (output->fd >= 0)
        return true;
    config_error(errors, directive, -1,
            "cannot write %s: %s; the folder must exist and user id %u may write there", output_name(output),
            strerror(-output->fd), (unsigned)geteuid());
    return false;
}

static bool start_writer(struct access_log *log, struct config_errors *errors) {
    int error = log->count ? pthread_create(&log->writer, NULL, run_writer, log) : 0;
    log->has_writer = log->count && error == 0;
    if (error)
        config_error(errors, &(struct directive){.file = "access_log"}, -1, "no thread: %s", strerror(error));
    return error == 0;
}

static void init_lock(struct access_log *log) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct access_log *access_log_new(const struct config *config, struct config_errors *errors) {
    struct access_log *log = calloc(1, sizeof *log);
    bool good = true;
    tzset(); // reads its file here, not on a worker
    if (!log) {
        config_error(errors, &(struct directive){.file = config->file}, -1, "out of memory");
        return NULL;
    }
    init_lock(log);
    for (size_t i = 0; i < config->directive_count; i++)
        if (config->directives[i].id == DIRECTIVE_access_log)
            good = open_directive(log, &config->directives[i], errors) && good;
    if (good && start_writer(log, errors))
        return log;
    access_log_free(log);
    return NULL;
}

void access_log_free(struct access_log *log) {
    if (!log)
        return;
    if (log->has_writer) {
        pthread_mutex_lock(&log->lock);
        log->stopping = true;
        pthread_cond_signal(&log->wake);
        pthread_mutex_unlock(&log->lock);
        pthread_join(log->writer, NULL);
    }
    close_outputs(log);
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

void access_log_reopen(struct access_log *log) {
    pthread_mutex_lock(&log->lock);
    log->reopening = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
}

uint64_t access_log_lost(const struct access_log *log) {
    return atomic_load(&log->lost);
}

// Folders are not made: what could not be opened is told beforehand.
static bool has_folder(
        const struct directive *directive, const struct output *output, struct config_errors *errors) {
    const char *slash = output->path ? strrchr(output->path, '/') : NULL;
    if (!slash || slash == output->path)
        return true;
    char *folder = strndup(output->path, (size_t)(slash - output->path));
    bool there = folder && access(folder, F_OK) == 0;
    if (!there)
        config_error(errors, directive, -1, "the folder of %s is not there, make it", output->path);
    free(folder);
    return there;
}

bool access_log_validate(const struct config *config, struct config_errors *errors) {
    bool good = true;
    for (size_t i = 0; i < config->directive_count; i++) {
        struct output output;
        if (config->directives[i].id != DIRECTIVE_access_log)
            continue;
        if (!take_directive(&config->directives[i], &output, errors)) {
            good = false;
            continue;
        }
        good = has_folder(&config->directives[i], &output, errors) && good;
        free(output.path);
        acl_mask_free(output.mask);
    }
    return good;
}

// ---- the workers' side ----

static bool make_room(struct queue *queue, size_t length) {
    size_t capacity = queue->capacity ? queue->capacity : QUEUE_START;
    while (capacity < queue->used + length)
        capacity *= 2;
    if (capacity > QUEUE_BYTES)
        return false;
    if (capacity == queue->capacity)
        return true;
    char *grown = realloc(queue->bytes, capacity);
    if (!grown)
        return false;
    queue->bytes = grown;
    queue->capacity = capacity;
    return true;
}

static void enqueue(struct access_log *log, struct output *output, const char *line, size_t length) {
    pthread_mutex_lock(&log->lock);
    struct queue *queue = &output->filling;
    if (make_room(queue, length)) {
        memcpy(queue->bytes + queue->used, line, length);
        queue->used += length;
        queue->lines++;
        bool enough = log->waiting < BATCH_BYTES && log->waiting + length >= BATCH_BYTES;
        log->waiting += length;
        if (log->idle || enough)
            pthread_cond_signal(&log->wake);
    } else {
        output->lost++;
        atomic_fetch_add(&log->lost, 1);
    }
    pthread_mutex_unlock(&log->lock);
}

void access_log_write(
        struct access_log *log, const struct access_entry *entry, const struct acl_request *request) {
    char line[ACCESS_LINE_BYTES];
    for (unsigned i = 0; i < log->count; i++) {
        struct output *output = &log->outputs[i];
        if (output->mask && !acl_mask_matches(output->mask, request))
            continue;
        enqueue(log, output, line, access_line_format(output->format, entry, line));
    }
}
