// `weir store check|repair|list|export|import`: the words of a call, and the verbs.
#pragma once

#include "acl/acl.h"
#include "admin/cache_dir.h"
#include "admin/command.h"
#include "cache/head_record.h"
#include "cache/offline.h"

#include <stdio.h>

struct store_directory {
    const char *path;
    int64_t bytes; // that it may hold; 0: the configuration does not say
};

struct store_call {
    const struct command_call *words;
    struct config *config; // NULL: not read
    bool json;
    struct acl_mask *mask; // NULL: everything
    int64_t bytes;         // --size; 0: not given
    const char *file;      // of export and import
    FILE *stream;
    unsigned count;
    struct store_directory directories[CACHE_DIRS_MAX];
};

// All return enum command_exit.
int store_check(const struct store_call *call);
int store_repair(const struct store_call *call);
int store_list(const struct store_call *call);
int store_export(const struct store_call *call);
int store_import(const struct store_call *call);

int store_open_file(struct store_call *call, bool writes);
struct offline *store_open(const struct store_directory *directory); // NULL: why is on standard error
// Of a purge's mask, and of --url.
bool store_matches(void *context, struct view mask, struct view authority, struct view path);
bool store_is_wanted(const struct store_call *call, const struct head_record *record);
