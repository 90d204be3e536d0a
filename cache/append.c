// Writing records to the open segment of a queue.
#include "admin/check.h"
#include "cache/volume_own.h"

#include <errno.h>
#include <time.h>

#define CLOSING_BYTES (8 << 20) // of segments that wait to be sealed, or 2; then puts wait
#define CLOSING_MAX 8

uint64_t append_reserve(const struct volume *volume) {
    return volume->settings.segment_bytes + VOLUME_SLACK_BYTES;
}

unsigned append_closing_max(const struct volume *volume) {
    uint64_t most = CLOSING_BYTES / volume->settings.segment_bytes;
    return most < 2 ? 2 : most > CLOSING_MAX ? CLOSING_MAX : (unsigned)most;
}

bool append_is_alone(const struct volume *volume, uint64_t record_bytes) {
    return segment_bytes_for(record_bytes) > volume->settings.segment_bytes;
}

static uint32_t take_slot(struct volume *volume, uint64_t bytes, bool is_keeper, uint64_t *number) {
    pthread_mutex_lock(&volume->lock);
    uint32_t slot = SEGMENTS_SLOT_NONE;
    if (is_keeper || volume->pool.closing < append_closing_max(volume))
        slot = segments_take(
                &volume->pool, bytes + VOLUME_SLACK_BYTES, is_keeper ? 0 : append_reserve(volume));
    if (slot != SEGMENTS_SLOT_NONE)
        *number = volume->next_number++;
    pthread_cond_signal(&volume->work);
    pthread_mutex_unlock(&volume->lock);
    return slot;
}

static int new_segment(
        struct volume *volume, enum segments_queue queue, uint64_t bytes, bool is_keeper, uint32_t *slot) {
    struct segment_label label = {.volume = volume->super.uuid[0], .queue = (uint8_t)queue};
    int error = 0;
    *slot = take_slot(volume, bytes, is_keeper, &label.number);
    if (*slot == SEGMENTS_SLOT_NONE)
        return -EAGAIN;
    int shelf = volume->shelves[label.number % VOLUME_SHELVES];
    struct segment *segment = segment_create(shelf, &label, bytes, &error);
    pthread_mutex_lock(&volume->lock);
    if (segment)
        segments_enter(&volume->pool, *slot, segment, queue, SEGMENTS_OPEN);
    else
        segments_give_back(&volume->pool, *slot);
    pthread_mutex_unlock(&volume->lock);
    if (!segment) {
        *slot = SEGMENTS_SLOT_NONE;
        health_failed(volume, error, "making a segment");
    }
    return error;
}

static void close_slot(struct volume *volume, uint32_t slot) {
    pthread_mutex_lock(&volume->lock);
    segments_set_state(&volume->pool, slot, SEGMENTS_CLOSING);
    pthread_cond_signal(&volume->work);
    pthread_mutex_unlock(&volume->lock);
}

void append_close(struct volume *volume, enum segments_queue queue) {
    if (volume->open[queue] != SEGMENTS_SLOT_NONE)
        close_slot(volume, volume->open[queue]);
    volume->open[queue] = SEGMENTS_SLOT_NONE;
}

// While append is held: the segment cannot be reclaimed before the entry is there.
static void enter(struct volume *volume, const struct append *append, uint64_t location) {
    uint64_t lost, bytes = record_bytes(append->record->head_bytes, append->record->body_bytes);
    if (append->is_carried) {
        atomic_fetch_add_explicit(&volume->carried, 1, memory_order_relaxed);
        table_move(volume->table, append->record->key, append->from, location, append->hits);
    } else {
        atomic_fetch_add_explicit(&volume->bytes_put, bytes, memory_order_relaxed);
        table_add(volume->table, append->record->key, location, &lost);
    }
    atomic_fetch_add_explicit(&volume->bytes_written, bytes, memory_order_relaxed);
}

static int append_to(struct volume *volume, uint32_t slot, const struct append *append) {
    uint64_t offset;
    if (!append->is_carried)
        append->record->sequence = atomic_fetch_add(&volume->sequence, 1) + 1;
    struct segment *segment = atomic_load_explicit(&volume->pool.slots[slot].segment, memory_order_relaxed);
    int error = segment_append(segment, append->record, append->payload, append->count, &offset);
    if (error == 0)
        enter(volume, append, segments_location(slot, offset));
    else if (error != -EFBIG) {
        health_failed(volume, error, "writing to a segment");
        pthread_mutex_lock(&volume->lock);
        volume->pool.slots[slot].is_doomed = !health_is_space(error);
        pthread_mutex_unlock(&volume->lock);
    }
    return error;
}

static int append_alone(struct volume *volume, enum segments_queue queue, const struct append *append) {
    uint64_t bytes = record_bytes(append->record->head_bytes, append->record->body_bytes);
    uint32_t slot;
    int error = new_segment(volume, queue, segment_bytes_for(bytes), append->is_keeper, &slot);
    if (error < 0)
        return error;
    error = append_to(volume, slot, append);
    close_slot(volume, slot);
    return error;
}

static int append_open(struct volume *volume, enum segments_queue queue, const struct append *append) {
    uint32_t *open = &volume->open[queue];
    int error = -EFBIG;
    for (int i = 0; i < 2 && error == -EFBIG; i++) {
        if (*open == SEGMENTS_SLOT_NONE)
            error = new_segment(volume, queue, volume->settings.segment_bytes, append->is_keeper, open);
        if (*open == SEGMENTS_SLOT_NONE)
            return error;
        error = append_to(volume, *open, append);
        if (error < 0)
            append_close(volume, queue);
    }
    CHECK(error != -EFBIG);
    return error;
}

// For as long as a put may take: whoever has it may be writing to a disk that hangs. Of the wall clock,
// whose steps then make one wait longer or shorter.
static bool lock_soon(pthread_mutex_t *lock) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += VOLUME_PUT_WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_mutex_timedlock(lock, &until) == 0;
}

int append_record(struct volume *volume, enum segments_queue queue, const struct append *append) {
    uint64_t bytes = record_bytes(append->record->head_bytes, append->record->body_bytes);
    if (append->is_keeper)
        pthread_mutex_lock(&volume->append[queue]);
    else if (!lock_soon(&volume->append[queue]))
        return -EAGAIN;
    int error = append_is_alone(volume, bytes) ? append_alone(volume, queue, append)
                                               : append_open(volume, queue, append);
    pthread_mutex_unlock(&volume->append[queue]);
    return error;
}
