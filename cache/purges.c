// A volume's purges: the rules in memory and their journal.
#include "admin/log.h"
#include "cache/file.h"
#include "cache/memory.h"
#include "cache/volume_own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define JOURNAL_NAME "purge.log"
#define JOURNAL_NEW_NAME "purge.new"
#define JOURNAL_SHARE 1024 // of the volume
#define JOURNAL_LEAST_BYTES (UINT64_C(16) << 10)
#define JOURNAL_MOST_BYTES (UINT64_C(1) << 20)
#define RECORD_MAXIMUM (PURGE_UNIT_BYTES + PURGE_TEXT_MAXIMUM)

static uint64_t journal_bytes(uint64_t volume_bytes) {
    uint64_t bytes = volume_bytes / JOURNAL_SHARE / 4096 * 4096;
    return bytes < JOURNAL_LEAST_BYTES  ? JOURNAL_LEAST_BYTES
           : bytes > JOURNAL_MOST_BYTES ? JOURNAL_MOST_BYTES
                                        : bytes;
}

// One, and another while it is written anew.
uint64_t purges_overhead(const struct volume *volume) {
    return 2 * (volume->purges.bytes_most + VOLUME_SLACK_BYTES);
}

static void raise_newest(struct purges *purges, uint64_t sequence) {
    if (sequence > atomic_load(&purges->newest))
        atomic_store(&purges->newest, sequence);
}

// ---- the journal ----

static unsigned char *encode(struct volume *volume, uint64_t *bytes) {
    struct purges *purges = &volume->purges;
    pthread_rwlock_rdlock(&purges->lock);
    *bytes = purge_bytes(purges->rules);
    unsigned char *out = memory_new(*bytes);
    purge_encode(purges->rules, volume->super.uuid[0], out);
    pthread_rwlock_unlock(&purges->lock);
    return out;
}

static int write_new(struct volume *volume, const unsigned char *journal, uint64_t bytes, int *fd) {
    int error = file_open(volume->directory, JOURNAL_NEW_NAME, O_RDWR | O_CREAT | O_TRUNC, fd);
    if (error < 0)
        return error;
    // So that the next purges need no room.
    if ((error = file_allocate(*fd, volume->purges.bytes_most)) == 0 &&
            (error = file_write_bytes(*fd, 0, journal, bytes)) == 0 && (error = file_sync(*fd)) == 0)
        error = file_rename(volume->directory, JOURNAL_NEW_NAME, volume->directory, JOURNAL_NAME);
    if (error < 0)
        file_unlink(volume->directory, JOURNAL_NEW_NAME);
    return error == 0 ? file_sync(volume->directory) : error;
}

// Under purges.file.
static int rewrite(struct volume *volume) {
    struct purges *purges = &volume->purges;
    uint64_t bytes;
    int fd = -1;
    atomic_store(&purges->is_stale, false); // what comes meanwhile waits for the file
    unsigned char *journal = encode(volume, &bytes);
    int error = write_new(volume, journal, bytes, &fd);
    free(journal);
    if (error < 0) {
        atomic_store(&purges->is_stale, true);
        file_close(fd);
        return error;
    }
    file_close(purges->fd);
    purges->fd = fd;
    purges->at = bytes;
    return 0;
}

int purges_rewrite(struct volume *volume) {
    pthread_mutex_lock(&volume->purges.file);
    int error = rewrite(volume);
    pthread_mutex_unlock(&volume->purges.file);
    return error;
}

static int append(struct volume *volume, const unsigned char *record, uint64_t bytes) {
    struct purges *purges = &volume->purges;
    if (volume_state(volume) == VOLUME_BROKEN)
        return -EIO;
    if (purges->fd < 0 || atomic_load(&purges->is_stale) || purges->at + bytes > purges->bytes_most)
        return rewrite(volume);
    int error = file_write_bytes(purges->fd, purges->at, record, bytes);
    if (error == 0 && (error = file_sync_data(purges->fd)) == 0)
        purges->at += bytes;
    return error;
}

static unsigned char *read_journal(struct volume *volume, uint64_t *bytes) {
    struct purges *purges = &volume->purges;
    int error = file_open(volume->directory, JOURNAL_NAME, O_RDWR, &purges->fd);
    unsigned char *journal = NULL;
    *bytes = 0;
    if (error == 0 && (error = file_size(purges->fd, bytes)) == 0) {
        *bytes = *bytes > JOURNAL_MOST_BYTES ? JOURNAL_MOST_BYTES : *bytes;
        journal = memory_new(*bytes + 1);
        error = *bytes ? file_read(purges->fd, 0, journal, *bytes) : 0;
    }
    if (error == 0 || error == -ENOENT)
        return journal;
    free(journal);
    health_failed(volume, error, "reading the journal of purges");
    *bytes = 0;
    return NULL;
}

// Nobody knows what was purged: everything, then.
static void purge_all(struct purges *purges) {
    struct purge_rule everything = {
            .kind = VOLUME_PURGE_ALL, .sequence = PURGE_PENDING, .number = PURGE_PENDING};
    purge_add(purges->rules, &everything);
}

void purges_open(struct volume *volume) {
    struct purges *purges = &volume->purges;
    uint64_t bytes;
    pthread_mutex_init(&purges->file, NULL);
    pthread_mutex_init(&purges->carry, NULL);
    pthread_rwlock_init(&purges->lock, NULL);
    purges->fd = -1;
    purges->bytes_most = journal_bytes(volume->settings.bytes);
    purges->rules = purge_new(volume->super.seed, purges->bytes_most / 2);
    unsigned char *journal = read_journal(volume, &bytes);
    bool good = true;
    if (journal)
        good = purge_read(
                purges->rules, volume->super.uuid[0], (struct view){(char *)journal, bytes}, &purges->at);
    else if (purges->fd >= 0)
        purge_all(purges);
    free(journal);
    if (!good)
        log_warning("cache_dir %s: its journal of purges is damaged: what it cannot say counts as purged",
                volume->settings.path);
    atomic_store(&purges->newest, purge_newest(purges->rules));
    atomic_store(&volume->sequence, purge_settled(purges->rules));
    // What a power cut left behind the last record would stand before the next one's text.
    atomic_store(&purges->is_stale, purges->fd >= 0);
}

void purges_close(struct volume *volume) {
    struct purges *purges = &volume->purges;
    if (!purges->rules)
        return;
    file_close(purges->fd);
    purge_free(purges->rules);
    pthread_mutex_destroy(&purges->file);
    pthread_mutex_destroy(&purges->carry);
    pthread_rwlock_destroy(&purges->lock);
}

void purges_settle(struct volume *volume) {
    struct purges *purges = &volume->purges;
    pthread_mutex_lock(&purges->file);
    pthread_mutex_lock(&volume->lock);
    uint64_t number = volume->next_number;
    pthread_mutex_unlock(&volume->lock);
    pthread_rwlock_wrlock(&purges->lock);
    if (purge_settle(purges->rules, atomic_load(&volume->sequence), number))
        atomic_store(&purges->is_stale, true);
    atomic_store(&purges->newest, purge_newest(purges->rules));
    bool any = purge_count(purges->rules) > 0;
    pthread_rwlock_unlock(&purges->lock);
    int error = atomic_load(&purges->is_stale) && (any || purges->fd >= 0) ? rewrite(volume) : 0;
    pthread_mutex_unlock(&purges->file);
    if (error < 0)
        health_failed(volume, error, "writing the journal of purges");
}

static uint64_t oldest_number(struct volume *volume) {
    pthread_mutex_lock(&volume->lock);
    uint64_t oldest = volume->next_number;
    for (uint32_t slot = 0; slot < volume->pool.slot_count; slot++) {
        const struct segment *segment = atomic_load(&volume->pool.slots[slot].segment);
        if (segment && segment_label(segment)->number < oldest)
            oldest = segment_label(segment)->number;
    }
    pthread_mutex_unlock(&volume->lock);
    return oldest;
}

void purges_retire(struct volume *volume) {
    struct purges *purges = &volume->purges;
    if (atomic_load(&purges->newest) == 0)
        return;
    // Before the file's lock: a rule that comes now has a higher number.
    uint64_t oldest = oldest_number(volume);
    pthread_rwlock_wrlock(&purges->lock);
    purge_retire(purges->rules, oldest);
    atomic_store(&purges->newest, purge_newest(purges->rules));
    uint64_t bytes = purge_bytes(purges->rules);
    pthread_rwlock_unlock(&purges->lock);
    if (pthread_mutex_trylock(&purges->file) != 0)
        return;
    int error = purges->at > 2 * bytes ? rewrite(volume) : 0;
    pthread_mutex_unlock(&purges->file);
    if (error < 0)
        health_failed(volume, error, "writing the journal of purges");
}

// ---- purging ----

// While nothing is being carried over. `sequence` 0: up to now.
static void remember(struct volume *volume, struct purge_rule *rule, uint64_t sequence) {
    pthread_mutex_lock(&volume->lock);
    bool is_loading = volume_state(volume) == VOLUME_LOADING;
    uint64_t now = is_loading ? PURGE_PENDING : atomic_load(&volume->sequence);
    rule->sequence = sequence ? sequence : now;
    rule->number = is_loading ? PURGE_PENDING : volume->next_number;
    pthread_mutex_unlock(&volume->lock);
}

static int add(struct volume *volume, struct purge_rule *rule, uint64_t sequence) {
    struct purges *purges = &volume->purges;
    unsigned char record[RECORD_MAXIMUM];
    pthread_mutex_lock(&purges->file);
    pthread_mutex_lock(&purges->carry);
    remember(volume, rule, sequence);
    uint64_t bytes = purge_rule_bytes(rule);
    purge_rule_encode(rule, record);
    pthread_rwlock_wrlock(&purges->lock);
    raise_newest(purges, rule->sequence);
    purge_add(purges->rules, rule);
    pthread_rwlock_unlock(&purges->lock);
    pthread_mutex_unlock(&purges->carry);
    int error = append(volume, record, bytes);
    if (error < 0)
        atomic_store(&purges->is_stale, true);
    pthread_mutex_unlock(&purges->file);
    if (error < 0 && volume_state(volume) != VOLUME_BROKEN)
        health_failed(volume, error, "writing the journal of purges");
    return error;
}

int volume_purge(struct volume *volume, enum volume_purge kind, struct view authority, struct view path) {
    struct purge_rule rule;
    if (kind == VOLUME_PURGE_KEY || (kind == VOLUME_PURGE_MASK && !volume->settings.matches))
        return -EINVAL;
    int error = purge_make(volume->purges.rules, &rule, kind, authority, path);
    return error < 0 ? error : add(volume, &rule, 0);
}

int volume_purge_key(struct volume *volume, struct cache_key key, uint64_t sequence) {
    struct purge_rule rule = {.kind = VOLUME_PURGE_KEY, .id = key};
    return add(volume, &rule, sequence);
}

bool purges_is_purged(struct volume *volume, const struct purge_asked *asked) {
    struct purges *purges = &volume->purges;
    if (atomic_load(&purges->newest) < asked->sequence)
        return false;
    pthread_rwlock_rdlock(&purges->lock);
    bool is_purged = purge_matches(purges->rules, asked, volume->settings.matches, volume->settings.context);
    pthread_rwlock_unlock(&purges->lock);
    return is_purged;
}

bool volume_is_purged(struct volume *volume, struct cache_key key, struct view authority, struct view path,
        uint64_t sequence) {
    struct purge_asked asked = {key, authority, path, sequence};
    return purges_is_purged(volume, &asked);
}
