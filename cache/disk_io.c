// The threads of a volume, what waits for them, and the watchdog over all of them.
#include "admin/check.h"
#include "admin/log.h"
#include "cache/disk_own.h"
#include "cache/file.h"

#include <stdio.h>
#include <time.h>

#define LEAVING_MAX 64 // removed volumes that are watched
#define NEVER INT64_MAX

enum { JOB_WAITED_FOR, JOB_GIVEN_UP };

static __thread struct disk_volume *own;

struct disk_volume *disk_io_own(void) {
    return own;
}

// ---- jobs ----

static bool takes(const struct disk_volume *volume, const struct disk_queue *queue) {
    return volume->thread_count > 0 && !volume->is_stopping && queue->count < DISK_QUEUE_MAX &&
           !atomic_load_explicit(&volume->is_slow, memory_order_relaxed) &&
           !atomic_load_explicit(&volume->is_removed, memory_order_relaxed);
}

static void enqueue(struct disk_queue *queue, struct disk_job *job) {
    job->next = NULL;
    job->since_ms = file_now_ms();
    job->state = JOB_WAITED_FOR;
    *queue->end = job;
    queue->end = &job->next;
    queue->count++;
    pthread_cond_signal(&queue->work);
}

static struct disk_job *dequeue(struct disk_queue *queue) {
    struct disk_job *job = queue->first;
    if (!job)
        return NULL;
    queue->first = job->next;
    if (!queue->first)
        queue->end = &queue->first;
    queue->count--;
    return job;
}

bool disk_submit(struct disk_volume *volume, enum disk_kind kind, struct disk_job *job) {
    if (!disk_volume_try_get(volume))
        return false;
    struct disk *disk = volume->disk;
    pthread_mutex_lock(&volume->lock);
    bool taken = takes(volume, &volume->queues[kind]);
    if (taken)
        enqueue(&volume->queues[kind], job);
    pthread_mutex_unlock(&volume->lock);
    if (!taken)
        disk_volume_put(volume);
    else if (atomic_load(&disk->is_idle))
        disk_io_watch_now(disk);
    return taken;
}

// ---- threads ----

static void run(struct disk_thread *thread, struct disk_job *job) {
    struct disk_volume *volume = thread->volume;
    void (*done)(struct disk_job *) = job->done;
    pthread_mutex_unlock(&volume->lock);
    job->run(job);
    pthread_mutex_lock(&volume->lock);
    while (volume->giving_up == job)
        pthread_cond_wait(&volume->given_up, &volume->lock);
    thread->job = NULL;
    pthread_mutex_unlock(&volume->lock);
    if (done)
        done(job);
    atomic_fetch_add_explicit(
            thread->kind == DISK_READ ? &volume->reads : &volume->writes, 1, memory_order_relaxed);
    disk_volume_put(volume);
    pthread_mutex_lock(&volume->lock);
}

static void *serve(void *context) {
    struct disk_thread *thread = context;
    struct disk_volume *volume = thread->volume;
    struct disk_queue *queue = &volume->queues[thread->kind];
    own = volume;
    pthread_mutex_lock(&volume->lock);
    for (;;) {
        while (!queue->first && !volume->is_stopping)
            pthread_cond_wait(&queue->work, &volume->lock);
        thread->job = dequeue(queue);
        if (!thread->job)
            break;
        run(thread, thread->job);
    }
    pthread_mutex_unlock(&volume->lock);
    return NULL;
}

bool disk_io_start(struct disk_volume *volume) {
    unsigned count = 0;
    for (; count < DISK_THREADS; count++) {
        struct disk_thread *thread = &volume->threads[count];
        *thread = (struct disk_thread){
                .volume = volume, .kind = count + 1 < DISK_THREADS ? DISK_READ : DISK_WRITE};
        if (pthread_create(&thread->thread, NULL, serve, thread) != 0)
            break;
    }
    pthread_mutex_lock(&volume->lock);
    volume->thread_count = count;
    pthread_mutex_unlock(&volume->lock);
    if (count == DISK_THREADS)
        return true;
    disk_io_stop(volume);
    return false;
}

void disk_io_stop(struct disk_volume *volume) {
    pthread_mutex_lock(&volume->lock);
    unsigned count = volume->thread_count;
    volume->is_stopping = true;
    for (unsigned i = 0; i < DISK_KINDS; i++)
        pthread_cond_broadcast(&volume->queues[i].work);
    pthread_mutex_unlock(&volume->lock);
    for (unsigned i = 0; i < count; i++)
        pthread_join(volume->threads[i].thread, NULL);
    pthread_mutex_lock(&volume->lock);
    volume->thread_count = 0;
    volume->is_stopping = false;
    pthread_mutex_unlock(&volume->lock);
}

// ---- the watchdog ----

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// Since when the job has been there that was submitted first of all that somebody waits for.
static int64_t oldest(const struct disk_volume *volume) {
    int64_t since_ms = NEVER;
    for (unsigned i = 0; i < DISK_KINDS; i++)
        if (volume->queues[i].first)
            since_ms = earlier(since_ms, volume->queues[i].first->since_ms);
    for (unsigned i = 0; i < volume->thread_count; i++)
        if (volume->threads[i].job)
            since_ms = earlier(since_ms, volume->threads[i].job->since_ms);
    return since_ms;
}

bool disk_io_is_stuck(struct disk_volume *volume, int64_t now_ms) {
    pthread_mutex_lock(&volume->lock);
    int64_t since_ms = oldest(volume);
    pthread_mutex_unlock(&volume->lock);
    return since_ms != NEVER && now_ms - since_ms > atomic_load(&volume->disk->slow_ms);
}

void disk_io_slow(struct disk_volume *volume, int64_t ms) {
    pthread_mutex_lock(&volume->lock);
    bool was_slow = atomic_exchange(&volume->is_slow, true);
    if (!was_slow) {
        volume->is_given_up = false;
        snprintf(volume->trouble, sizeof volume->trouble, "something took %lld ms", (long long)ms);
        pthread_cond_broadcast(&volume->wake);
    }
    pthread_mutex_unlock(&volume->lock);
    if (was_slow)
        return;
    log_warning("cache_dir %s: something took %lld ms: not used until it is faster; it is tried every %u ms",
            volume->settings.path, (long long)ms, volume->settings.probe_ms);
    disk_io_watch_now(volume->disk);
}

static struct disk_job *find_waited_for(const struct disk_volume *volume) {
    for (unsigned i = 0; i < volume->thread_count; i++)
        if (volume->threads[i].job && volume->threads[i].job->state == JOB_WAITED_FOR)
            return volume->threads[i].job;
    for (unsigned i = 0; i < DISK_KINDS; i++)
        for (struct disk_job *job = volume->queues[i].first; job; job = job->next)
            if (job->state == JOB_WAITED_FOR)
                return job;
    return NULL;
}

// Under the lock, which it gives back meanwhile: whoever runs the job waits for the end of this.
static void give_up_all(struct disk_volume *volume) {
    struct disk_job *job;
    while ((job = find_waited_for(volume))) {
        job->state = JOB_GIVEN_UP;
        volume->giving_up = job;
        pthread_mutex_unlock(&volume->lock);
        if (job->give_up)
            job->give_up(job);
        atomic_fetch_add_explicit(&volume->gave_up, 1, memory_order_relaxed);
        pthread_mutex_lock(&volume->lock);
        volume->giving_up = NULL;
        pthread_cond_broadcast(&volume->given_up);
    }
    volume->is_given_up = true;
}

// When to look again; NEVER: when there is something new.
static int64_t watch(struct disk_volume *volume, int64_t now_ms, bool is_end) {
    int64_t slow_ms = atomic_load(&volume->disk->slow_ms);
    pthread_mutex_lock(&volume->lock);
    int64_t since_ms = oldest(volume);
    bool is_slow = atomic_load(&volume->is_slow);
    if (!is_slow && since_ms != NEVER && now_ms - since_ms > slow_ms) {
        pthread_mutex_unlock(&volume->lock);
        disk_io_slow(volume, now_ms - since_ms);
        pthread_mutex_lock(&volume->lock);
        is_slow = atomic_load(&volume->is_slow);
    }
    if ((is_slow && !volume->is_given_up) || is_end)
        give_up_all(volume);
    pthread_mutex_unlock(&volume->lock);
    return is_slow || since_ms == NEVER ? NEVER : since_ms + slow_ms + 1;
}

// Counted. Those that are closed have no jobs.
static unsigned list_leaving(struct disk *disk, struct disk_volume **volumes) {
    unsigned count = 0;
    pthread_mutex_lock(&disk->lock);
    for (struct disk_volume *volume = disk->leaving; volume && count < LEAVING_MAX; volume = volume->next)
        if (disk_volume_try_get(volume))
            volumes[count++] = volume;
    pthread_mutex_unlock(&disk->lock);
    return count;
}

static int64_t watch_each(struct disk_volume *const *volumes, unsigned count, bool is_end) {
    int64_t next_ms = NEVER, now_ms = file_now_ms();
    for (unsigned i = 0; i < count; i++) {
        next_ms = earlier(next_ms, watch(volumes[i], now_ms, is_end));
        disk_volume_put(volumes[i]);
    }
    return next_ms;
}

static int64_t watch_all(struct disk *disk, bool is_end) {
    struct disk_volume *volumes[DISK_VOLUMES_MAX], *leaving[LEAVING_MAX];
    int64_t next_ms = watch_each(volumes, disk_list(disk, volumes), is_end);
    return earlier(next_ms, watch_each(leaving, list_leaving(disk, leaving), is_end));
}

void disk_io_watch_now(struct disk *disk) {
    pthread_mutex_lock(&disk->lock);
    disk->is_woken = true;
    pthread_cond_signal(&disk->watch);
    pthread_mutex_unlock(&disk->lock);
}

static void sleep_until(struct disk *disk, int64_t until_ms) {
    struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    int timeout = 0;
    pthread_mutex_lock(&disk->lock);
    while (!disk->is_woken && timeout == 0)
        timeout = until_ms == NEVER ? pthread_cond_wait(&disk->watch, &disk->lock)
                                    : pthread_cond_timedwait(&disk->watch, &disk->lock, &until);
    disk->is_woken = false;
    pthread_mutex_unlock(&disk->lock);
}

// Whoever submits once is_idle is set wakes it; what was submitted before is seen by the look that follows.
void *disk_io_watch(void *context) {
    struct disk *disk = context;
    while (!atomic_load(&disk->is_stopping)) {
        atomic_store(&disk->is_idle, true);
        int64_t next_ms = watch_all(disk, false);
        if (next_ms != NEVER)
            atomic_store(&disk->is_idle, false);
        sleep_until(disk, next_ms);
    }
    watch_all(disk, true);
    return NULL;
}
