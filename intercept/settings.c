#include "intercept/settings.h"

#include "admin/cache_dir.h"
#include "admin/check.h"
#include "admin/log.h"
#include "http/target.h"
#include "intercept/listen.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONNECTIONS_MAXIMUM 65536
#define PER_HOST_LEAST 8
#define OWN_DESCRIPTORS 24     // standard streams, control, netlink, signals, configuration files being read
#define DESCRIPTORS_A_WORKER 4 // epoll, eventfd, a resolver's socket or two
#define DESCRIPTORS_A_SESSION 3u // client, upstream, and a share of the tunnels' pipes
#define WORKERS_MAXIMUM 256

unsigned settings_workers(const struct config *config) {
    cpu_set_t processors;
    if (config->workers > 0)
        return (unsigned)config->workers;
    int count = sched_getaffinity(0, sizeof processors, &processors) == 0
                        ? CPU_COUNT(&processors)
                        : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count > WORKERS_MAXIMUM ? WORKERS_MAXIMUM : (unsigned)count;
}

// ---- limits ----

static unsigned count_directives(const struct config *config, enum directive_id id) {
    unsigned count = 0;
    for (size_t i = 0; i < config->directive_count; i++)
        count += config->directives[i].id == id;
    return count;
}

static uint64_t free_descriptors(const struct config *config) {
    struct rlimit files = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &files);
    unsigned points = count_directives(config, DIRECTIVE_listen);
    uint64_t used = OWN_DESCRIPTORS + count_directives(config, DIRECTIVE_access_log) +
                    (uint64_t)settings_workers(config) * (DESCRIPTORS_A_WORKER + (points ? points : 1));
    return files.rlim_cur > used + DESCRIPTORS_A_SESSION ? files.rlim_cur - used : DESCRIPTORS_A_SESSION;
}

static unsigned limit_of(int64_t configured, uint64_t possible, const char *name) {
    if (configured == 0)
        return possible < CONNECTIONS_MAXIMUM ? (unsigned)possible : CONNECTIONS_MAXIMUM;
    if ((uint64_t)configured > possible)
        log_warning("%s %u is more than the descriptor limit can hold (about %u); raise LimitNOFILE", name,
                (unsigned)configured, (unsigned)possible);
    return (unsigned)configured;
}

static int64_t machine_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages * page : 0;
}

static bool plan_memory(const struct config *config, unsigned connections, struct memory_plan *plan,
        struct config_errors *errors) {
    struct memory_facts facts = {.machine_bytes = machine_bytes(),
            .workers = settings_workers(config),
            .client_connections = connections};
    return memory_plan_make(plan, config, &facts, errors);
}

bool settings_validate(const struct config *config, struct config_errors *errors) {
    struct memory_plan plan;
    uint64_t possible = free_descriptors(config) / DESCRIPTORS_A_SESSION;
    if (config->client_connections)
        possible = (uint64_t)config->client_connections;
    return plan_memory(
            config, possible < CONNECTIONS_MAXIMUM ? (unsigned)possible : CONNECTIONS_MAXIMUM, &plan, errors);
}

static bool set_limits(struct settings *settings, struct config_errors *errors) {
    const struct config *config = settings->config;
    uint64_t possible = free_descriptors(config) / DESCRIPTORS_A_SESSION;
    settings->client_connections = limit_of(config->client_connections, possible, "client_connections");
    bool good = plan_memory(config, settings->client_connections, &settings->memory, errors);
    settings->client_connections = (unsigned)settings->memory.client_connections;
    settings->upstream_connections = limit_of(config->upstream_connections, possible, "upstream_connections");
    unsigned per_host = (unsigned)config->client_connections_per_host;
    if (per_host == 0) {
        per_host = settings->client_connections / 4;
        per_host = per_host < PER_HOST_LEAST ? PER_HOST_LEAST : per_host;
    }
    if (per_host > settings->client_connections)
        per_host = settings->client_connections;
    settings->client_connections_per_host = per_host;
    return good;
}

static void set_quick_abort(struct settings *settings) {
    settings->quick_abort = (struct quick_abort){
            .minimum_bytes = (uint64_t)settings->config->quick_abort_min,
            .maximum_bytes = (uint64_t)settings->config->quick_abort_max,
            .percent = (unsigned)settings->config->quick_abort_pct,
    };
}

// ---- our name ----

static size_t read_machine_id(char *out, size_t size) {
    int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, out, size);
    if (fd >= 0)
        close(fd);
    if (length > 0)
        return (size_t)length;
    return gethostname(out, size) == 0 ? strnlen(out, size) : 0;
}

// FNV-1a: the machine id itself is nobody's business.
static uint32_t machine_hash(void) {
    char id[64];
    uint32_t hash = 2166136261u;
    size_t length = read_machine_id(id, sizeof id);
    if (length == 0 && getrandom(&hash, sizeof hash, 0) == sizeof hash)
        return hash;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)id[i]) * 16777619u;
    return hash;
}

// An error about an option that has one place, or none.
#define OPTION_ERROR(config, errors, option, ...)                                                            \
    do {                                                                                                     \
        struct directive start = {.file = (config)->file, .line = 1, .column = 1};                           \
        const struct directive *place = (config)->set_by[DIRECTIVE_##option];                                \
        config_error(errors, place ? place : &start, place ? 0 : -1, __VA_ARGS__);                           \
    } while (0)

static bool set_via_name(struct settings *settings, struct config_errors *errors) {
    const char *configured = settings->config->via_name;
    size_t length = configured ? strlen(configured) : 0;
    if (length >= sizeof settings->via_name) {
        OPTION_ERROR(settings->config, errors, via_name, "via_name is longer than %zu bytes; shorten it",
                sizeof settings->via_name - 1);
        return false;
    }
    if (length > 0)
        memcpy(settings->via_name, configured, length + 1);
    else
        snprintf(settings->via_name, sizeof settings->via_name, "weir-%08x", machine_hash());
    return true;
}

// ---- ports and places ----

static void set_connect_ports(struct settings *settings) {
    const struct config *config = settings->config;
    for (size_t i = 0; i < config->directive_count; i++) {
        const struct directive *directive = &config->directives[i];
        for (unsigned w = 0; directive->id == DIRECTIVE_connect_ports && w < directive->word_count; w++) {
            uint64_t port;
            if (view_number(view_of(directive->words[w].text), &port) && port > 0 && port < 65536)
                settings->connect_ports[port] = true;
        }
    }
}

void settings_cache_limits(const struct settings *settings, struct cache_limits *limits) {
    const struct config *config = settings->config;
    struct config_errors none = {0};
    struct cache_dirs dirs;
    cache_dirs_read(config, &dirs, &none);
    config_errors_fini(&none);
    uint64_t maximum = (uint64_t)config->maximum_object_size;
    if (maximum == 0 && dirs.count)
        maximum = (uint64_t)dirs.smallest / 4;
    *limits = (struct cache_limits){
            .memory_bytes = (uint64_t)settings->memory.cache_bytes,
            .minimum_object_bytes = (uint64_t)config->minimum_object_size,
            .maximum_object_bytes = maximum,
            .has_disk = dirs.count > 0,
    };
}

// ---- the whole ----

static void settings_free(struct settings *settings) {
    access_log_free(settings->access_log);
    penalty_lines_free(settings->penalties);
    store_rules_free(settings->store_rules);
    acl_free(settings->acl);
    config_free(settings->config);
    free(settings);
}

struct settings *settings_build(struct config *config, struct config_errors *errors) {
    struct settings *settings = calloc(1, sizeof *settings);
    if (!settings) {
        config_error(errors, &(struct directive){.file = config->file}, -1, "out of memory");
        config_free(config);
        return NULL;
    }
    settings->config = config;
    atomic_init(&settings->references, 1);
    bool good = set_limits(settings, errors);
    set_quick_abort(settings);
    set_connect_ports(settings);
    good = set_via_name(settings, errors) && good;
    good = listen_validate(config, errors) && good;
    settings->acl = acl_new(config, errors);
    settings->store_rules = store_rules_new(config, errors);
    settings->penalties = penalty_lines_new(config, errors);
    settings->access_log = access_log_new(config, errors);
    if (good && settings->acl && settings->store_rules && settings->penalties && settings->access_log)
        return settings;
    settings_free(settings);
    return NULL;
}

struct settings *settings_load(const char *file, struct config_errors *errors) {
    struct config *config = config_load(file, errors);
    return config ? settings_build(config, errors) : NULL;
}

struct settings *settings_get(struct settings *settings) {
    CHECK(atomic_fetch_add(&settings->references, 1) > 0);
    return settings;
}

bool settings_is_last(const struct settings *settings) {
    return atomic_load(&settings->references) == 1;
}

void settings_put(struct settings *settings) {
    if (!settings)
        return;
    unsigned before = atomic_fetch_sub(&settings->references, 1);
    CHECK(before > 0);
    if (before == 1)
        settings_free(settings);
}
