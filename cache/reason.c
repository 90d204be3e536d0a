#include "cache/reason.h"

#include <stddef.h>
#include <string.h>

static const struct reason reasons[] = {
#define REASON(word, forward, meaning) {word, FORWARD_##forward, meaning},
#include "cache/reason.tbl"
};

const struct reason *reason_find(const char *word) {
    for (size_t i = 0; word && i < sizeof reasons / sizeof *reasons; i++)
        if (strcmp(reasons[i].word, word) == 0)
            return &reasons[i];
    return NULL;
}
