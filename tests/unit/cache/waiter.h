// A thread that waits until somebody wakes it, whether before or after it begins to wait.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define WAITER_SECONDS 20 // only a lost wake lets it pass

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t signal;
    bool woken;
};

static inline void waiter_wake(struct waiter *waiter) {
    pthread_mutex_lock(&waiter->lock);
    waiter->woken = true;
    pthread_cond_signal(&waiter->signal);
    pthread_mutex_unlock(&waiter->lock);
}

// False: nobody woke it.
static inline bool waiter_wait(struct waiter *waiter) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAITER_SECONDS;
    int result = 0;
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->woken && result == 0)
        result = pthread_cond_timedwait(&waiter->signal, &waiter->lock, &until);
    bool woken = waiter->woken;
    waiter->woken = false;
    pthread_mutex_unlock(&waiter->lock);
    return woken;
}
