// Something that runs on a worker when it is marked: sessions and fetches. The worker runs each marked task
// once a round, after the round's events.
#pragma once

#include <stdbool.h>

struct worker;

struct task {
    struct task *next;
    struct task **link; // NULL while not marked
    unsigned round;     // the round it is to run in
    void (*run)(struct task *task);
};

void worker_mark(struct worker *worker, struct task *task);   // marking a marked one does nothing
void worker_unmark(struct worker *worker, struct task *task); // before its owner goes
