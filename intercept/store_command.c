// The command `weir store ...`. All but `status` work on directories that no weir has.
#include "intercept/store_command.h"

#include "admin/cache_dir.h"
#include "admin/value.h"
#include "intercept/store_status.h"
#include "intercept/store_volumes.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct verb {
    const char *name;
    int (*run)(const struct store_call *call);
    bool lists; // --json, --url
    unsigned files;
};

static const struct verb verbs[] = {
        {"check", store_check, false, 0},
        {"repair", store_repair, false, 0},
        {"list", store_list, true, 0},
        {"export", store_export, true, 1},
        {"import", store_import, false, 1},
};

static const struct verb *find_verb(const char *name) {
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

// ---- words ----

static int take_option(struct store_call *call, const struct verb *verb, int *at) {
    const struct command_call *words = call->words;
    const char *word = words->argv[*at];
    if (strcmp(word, "--json") == 0 && strcmp(verb->name, "list") == 0)
        return call->json = true, COMMAND_DONE;
    bool is_url = strcmp(word, "--url") == 0 && verb->lists;
    bool is_size = strcmp(word, "--size") == 0 && strcmp(verb->name, "import") == 0;
    if (!is_url && !is_size)
        return command_usage_error(words, "%s has no option \"%s\"", verb->name, word);
    const char *value = words->argv[*at + 1], *why;
    if (!value || !*value)
        return command_usage_error(words, "%s needs a value behind it", word);
    ++*at;
    if (is_size && value_size(view_of(value), &call->bytes) == VALUE_GOOD &&
            call->bytes >= CACHE_DIR_BYTES_MINIMUM)
        return COMMAND_DONE;
    if (is_size)
        return command_usage_error(words, "--size \"%.80s\": write a size of 4M at least, 10G", value);
    acl_mask_free(call->mask);
    call->mask = acl_mask_new(value, &why);
    return call->mask ? COMMAND_DONE : command_usage_error(words, "--url \"%.80s\": %s", value, why);
}

static int take_words(struct store_call *call, const struct verb *verb) {
    const struct command_call *words = call->words;
    unsigned files = 0;
    for (int i = 1; i < words->argc; i++) {
        const char *word = words->argv[i];
        if (word[0] == '-' && word[1]) {
            int status = take_option(call, verb, &i);
            if (status != COMMAND_DONE)
                return status;
        } else if (files < verb->files) {
            call->file = word;
            files++;
        } else if (call->count == CACHE_DIRS_MAX)
            return command_usage_error(words, "name at most %d directories", CACHE_DIRS_MAX);
        else
            call->directories[call->count++].path = word;
    }
    if (files < verb->files)
        return command_usage_error(words, "%s needs the name of a file, or -", verb->name);
    return COMMAND_DONE;
}

// ---- directories ----

// Those of the configuration, when the call names none; and the sizes of those that it does.
static int take_config(struct store_call *call, struct config *config) {
    struct cache_dirs *dirs = malloc(sizeof *dirs);
    struct config_errors errors = {0};
    if (!dirs || !cache_dirs_read(config, dirs, &errors)) {
        config_errors_print(&errors, stderr);
        config_errors_fini(&errors);
        free(dirs);
        return COMMAND_PROBLEM;
    }
    bool takes_all = call->count == 0;
    for (unsigned i = 0; i < dirs->count; i++) {
        if (takes_all)
            call->directories[call->count++] =
                    (struct store_directory){dirs->dirs[i].path, dirs->dirs[i].bytes};
        for (unsigned j = 0; j < call->count; j++)
            if (strcmp(call->directories[j].path, dirs->dirs[i].path) == 0)
                call->directories[j].bytes = dirs->dirs[i].bytes;
    }
    free(dirs);
    if (call->count > 0)
        return COMMAND_DONE;
    fprintf(stderr, "weir store: %s has no cache_dir; name a directory\n", call->words->config_file);
    return COMMAND_PROBLEM;
}

static int find_directories(struct store_call *call, bool needs_size) {
    bool needs_config = call->count == 0 || (needs_size && call->bytes == 0) || call->words->has_config_file;
    if (!needs_config)
        return COMMAND_DONE;
    struct config *config = command_load_config(call->words);
    if (!config)
        return COMMAND_PROBLEM;
    call->config = config; // paths are its
    return take_config(call, config);
}

struct owner {
    const char *path; // of the first directory that is there; NULL: none is
    uid_t user;
    gid_t groups[CACHE_DIRS_MAX];
    unsigned count;
};

// False: two have different ones, said. Which is not there is told when it is opened.
static bool find_owner(const struct store_call *call, struct owner *owner) {
    for (unsigned i = 0; i < call->count; i++) {
        struct stat status;
        const char *path = call->directories[i].path;
        if (stat(path, &status) < 0)
            continue;
        if (owner->path && status.st_uid != owner->user) {
            fprintf(stderr,
                    "weir store: %s belongs to user %u and %s to user %u; chown one of them, or name one "
                    "directory after the other\n",
                    owner->path, (unsigned)owner->user, path, (unsigned)status.st_uid);
            return false;
        }
        owner->path = owner->path ? owner->path : path;
        owner->user = status.st_uid;
        owner->groups[owner->count++] = status.st_gid;
    }
    return true;
}

// What is made in a directory is to be its owner's, who weir runs as; the groups of all of them let it in.
static bool become_owner(const struct store_call *call) {
    struct owner owner = {0};
    if (geteuid() != 0)
        return true;
    if (!find_owner(call, &owner))
        return false;
    if (owner.user == 0)
        return true;
    if (setgroups(owner.count, owner.groups) == 0 && setegid(owner.groups[0]) == 0 &&
            seteuid(owner.user) == 0)
        return true;
    perror("weir store: cannot become the owner of the directory");
    return false;
}

// A new directory is to be weir's, not root's.
static void make_directories(const struct store_call *call) {
    struct config_errors errors = {0}; // a file that cannot be read says no user
    struct config *config = call->config ? NULL : config_load(call->words->config_file, &errors);
    const struct config *known = call->config ? call->config : config;
    for (unsigned i = 0; i < call->count; i++) {
        const char *path = call->directories[i].path;
        if (known && !store_directory_make(path, known->user))
            fprintf(stderr, "weir store: there is no user %s: give %s to who weir runs as\n", known->user,
                    path);
        else if (!known && access(path, F_OK) < 0)
            fprintf(stderr, "weir store: %s is made for root: give it to who weir runs as\n", path);
    }
    config_free(config);
    config_errors_fini(&errors);
}

struct offline *store_open(const struct store_directory *directory) {
    char error[1024];
    struct offline *offline = offline_open(directory->path, error, sizeof error);
    if (!offline)
        fprintf(stderr, "weir store: %s\n", error);
    return offline;
}

static int run(struct store_call *call, const struct verb *verb) {
    int status = take_words(call, verb);
    bool imports = verb->run == store_import, exports = verb->run == store_export;
    if (status == COMMAND_DONE)
        status = find_directories(call, imports);
    if (status == COMMAND_DONE && (imports || exports))
        status = store_open_file(call, exports); // as whoever calls
    if (status == COMMAND_DONE && imports && geteuid() == 0)
        make_directories(call);
    if (status == COMMAND_DONE)
        status = become_owner(call) ? verb->run(call) : COMMAND_PROBLEM;
    if (call->stream && call->stream != stdout && call->stream != stdin)
        fclose(call->stream);
    acl_mask_free(call->mask);
    config_free(call->config);
    return status;
}

// Of the running daemon.
static int ask_status(const struct command_call *words) {
    struct command_call rest = *words;
    rest.argc--;
    rest.argv++;
    return store_status_command(&rest);
}

int store_command(const struct command_call *words) {
    struct store_call call = {.words = words};
    if (words->argc > 0 && strcmp(words->argv[0], "status") == 0)
        return ask_status(words);
    if (words->argc == 0)
        return command_usage_error(words, "say what: status, check, repair, list, export or import");
    const struct verb *verb = find_verb(words->argv[0]);
    if (!verb)
        return command_usage_error(
                words, "\"%.80s\" is none of status, check, repair, list, export, import", words->argv[0]);
    return run(&call, verb);
}
