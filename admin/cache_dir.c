#include "admin/cache_dir.h"

#include "admin/value.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

struct reading {
    const struct config *config;
    struct cache_dirs *dirs;
    struct config_errors *errors;
    bool good;
};

// ---- paths ----

// The next name of a path, taken off it; empty at its end.
static struct view next_name(struct view *path) {
    while (view_starts(*path, VIEW("/")))
        *path = view_skip(*path, 1);
    struct view name = view_take(*path, view_find(*path, '/'));
    *path = view_skip(*path, name.length);
    return name;
}

static bool has_dots(const char *path) {
    struct view rest = view_of(path), name;
    while ((name = next_name(&rest)).length)
        if (view_equal(name, VIEW(".")) || view_equal(name, VIEW("..")))
            return true;
    return false;
}

// How two directories lie: the same, or one within the other.
enum lie { LIE_APART, LIE_SAME, LIE_WITHIN, LIE_AROUND };

static enum lie lie_of(const char *a, const char *b) {
    struct view rest_a = view_of(a), rest_b = view_of(b);
    for (;;) {
        struct view name_a = next_name(&rest_a), name_b = next_name(&rest_b);
        if (!name_a.length || !name_b.length)
            return name_a.length ? LIE_WITHIN : name_b.length ? LIE_AROUND : LIE_SAME;
        if (!view_equal(name_a, name_b))
            return LIE_APART;
    }
}

// ---- one line ----

#define REFUSE(reading, directive, word, ...)                                                                \
    do {                                                                                                     \
        config_error((reading)->errors, directive, word, __VA_ARGS__);                                       \
        (reading)->good = false;                                                                             \
    } while (0)

static bool check_path(struct reading *reading, const struct directive *directive) {
    const char *path = directive->words[0].text;
    struct view rest = view_of(path);
    bool was_good = reading->good;
    reading->good = true;
    if (*path != '/')
        REFUSE(reading, directive, 0,
                "\"%.80s\" is relative, write cache_dir PATH SIZE, PATH from the root: /...", path);
    else if (!next_name(&rest).length)
        REFUSE(reading, directive, 0, "the root cannot be a volume, name a directory of its own");
    else if (strlen(path) > CACHE_DIR_PATH_BYTES)
        REFUSE(reading, directive, 0, "a path of more than %d bytes, choose a shorter one",
                CACHE_DIR_PATH_BYTES);
    else if (has_dots(path))
        REFUSE(reading, directive, 0, "\"%.80s\" has . or .. in it, write the path without", path);
    bool good = reading->good;
    reading->good = was_good && good;
    return good;
}

static bool check_place(struct reading *reading, const struct directive *directive) {
    static const char *const words[] = {
            [LIE_SAME] = "the same directory as", [LIE_WITHIN] = "inside of", [LIE_AROUND] = "around"};
    for (unsigned i = 0; i < reading->dirs->count; i++) {
        const struct cache_dir *other = &reading->dirs->dirs[i];
        enum lie lie = lie_of(directive->words[0].text, other->path);
        if (lie == LIE_APART)
            continue;
        REFUSE(reading, directive, 0,
                "this is %s cache_dir %.80s at %.255s:%u, give each volume a directory of its own",
                words[lie], other->path, other->directive->file, other->directive->line);
        return false;
    }
    return true;
}

// Of the line, or of cache_swap_size. False: there is none that could be used.
static bool read_size(struct reading *reading, const struct directive *directive, int64_t *bytes) {
    const struct config *config = reading->config;
    const char *text = directive->word_count > 1 ? directive->words[1].text : NULL;
    if (!text && config->cache_swap_size == 0) {
        REFUSE(reading, directive, -1, "the size is missing, write cache_dir PATH SIZE%s",
                config_comment_hint(directive));
        return false;
    }
    enum value_result result = text ? value_size(view_of(text), bytes) : VALUE_GOOD;
    if (!text)
        *bytes = config->cache_swap_size;
    if (result == VALUE_MALFORMED)
        REFUSE(reading, directive, 1, "\"%.80s\" is no size, write bytes, or a number with K, M, G or T",
                text);
    else if (result == VALUE_RANGE || *bytes < CACHE_DIR_BYTES_MINIMUM)
        REFUSE(reading, text ? directive : config->set_by[DIRECTIVE_cache_swap_size], text ? 1 : 0,
                "a volume of \"%.80s\" is out of range, write 4M to 8388607T",
                text ? text : config->set_by[DIRECTIVE_cache_swap_size]->words[0].text);
    else
        return true;
    return false;
}

static void add_line(struct reading *reading, const struct directive *directive) {
    struct cache_dirs *dirs = reading->dirs;
    int64_t bytes = 0, sum;
    if (dirs->count == CACHE_DIRS_MAX) {
        REFUSE(reading, directive, -1, "more than %d volumes, take some out", CACHE_DIRS_MAX);
        return;
    }
    if (!check_path(reading, directive) || !check_place(reading, directive) ||
            !read_size(reading, directive, &bytes))
        return;
    if (__builtin_add_overflow(dirs->bytes, bytes, &sum)) {
        REFUSE(reading, directive, 1, "together the volumes are too large, make them smaller");
        return;
    }
    dirs->bytes = sum;
    dirs->smallest = dirs->count == 0 || bytes < dirs->smallest ? bytes : dirs->smallest;
    dirs->dirs[dirs->count++] = (struct cache_dir){directive->words[0].text, bytes, directive};
}

// ---- all of them ----

static const struct directive *next_line(const struct config *config, size_t *at) {
    while (*at < config->directive_count)
        if (config->directives[(*at)++].id == DIRECTIVE_cache_dir)
            return &config->directives[*at - 1];
    return NULL;
}

bool cache_dirs_read(const struct config *config, struct cache_dirs *dirs, struct config_errors *errors) {
    struct reading reading = {config, dirs, errors, true};
    const struct directive *line, *sizeless = NULL;
    *dirs = (struct cache_dirs){0};
    for (size_t at = 0; (line = next_line(config, &at));) {
        if (line->word_count == 1 && sizeless && config->cache_swap_size)
            REFUSE(&reading, line, -1,
                    "cache_swap_size is the size of one volume, and the one at %.255s:%u has it already, "
                    "write "
                    "cache_dir PATH SIZE",
                    sizeless->file, sizeless->line);
        else
            add_line(&reading, line);
        if (line->word_count == 1)
            sizeless = line;
    }
    return reading.good;
}

// ---- notes ----

static void note_size(const struct config *config, unsigned count, struct config_errors *notes) {
    const struct directive *line, *swap = config->set_by[DIRECTIVE_cache_swap_size];
    if (!swap || config->cache_swap_size == 0)
        return;
    for (size_t at = 0; (line = next_line(config, &at));)
        if (line->word_count == 1)
            return;
    config_error(notes, swap, -1, "cache_swap_size does nothing here: %s",
            count ? "every cache_dir line has a size of its own"
                  : "without a cache_dir line the store is in memory, and cache_mem is its size");
}

void cache_dirs_note(const struct config *config, struct config_errors *notes) {
    const struct directive *wear = config->set_by[DIRECTIVE_wear];
    const struct directive *memory = config->set_by[DIRECTIVE_cache_mem];
    unsigned count = 0;
    for (size_t at = 0; next_line(config, &at);)
        count++;
    note_size(config, count, notes);
    if (wear && config->wear && !count)
        config_error(notes, wear, -1, "wear does nothing here: without a cache_dir line nothing is written");
    if (memory && config->cache_mem && count && config->cache_mem < CACHE_MEM_BYTES_ADVISED)
        config_error(notes, memory, 0,
                "cache_mem \"%.80s\" is little before a disk: what is stored passes through memory, and what "
                "finds no room there is not stored; write 8M or more",
                memory->words[0].text);
}

int64_t cache_dir_room(const struct cache_dir *dir) {
    char path[CACHE_DIR_PATH_BYTES + 1];
    struct statvfs system;
    char *end = path + snprintf(path, sizeof path, "%s", dir->path);
    while (statvfs(path, &system) < 0) { // not made yet: that of the folder above
        if (end == path + 1)
            return 0;
        do
            end--;
        while (end > path + 1 && *end != '/');
        *end = '\0';
    }
    uint64_t bytes = (uint64_t)system.f_blocks * system.f_frsize;
    return bytes < (uint64_t)dir->bytes ? (int64_t)bytes : 0;
}

void cache_dirs_note_rooms(const struct config *config, struct config_errors *notes) {
    struct config_errors none = {0}; // were told when the file was read
    struct cache_dirs dirs;
    char size[VALUE_TEXT_BYTES];
    cache_dirs_read(config, &dirs, &none);
    config_errors_fini(&none);
    for (unsigned i = 0; i < dirs.count; i++) {
        const struct cache_dir *dir = &dirs.dirs[i];
        int64_t room = cache_dir_room(dir);
        if (room)
            config_error(notes, dir->directive, (int)dir->directive->word_count - 1,
                    "a volume of %s, but its file system has %" PRId64 "M: it keeps to what there is",
                    value_print_size(dir->bytes, size), room >> 20);
    }
}
