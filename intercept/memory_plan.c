#include "intercept/memory_plan.h"

#include "admin/cache_dir.h"
#include "admin/value.h"

#include <inttypes.h>

#define PROGRAM_BYTES (INT64_C(6) << 20)
#define WORKER_BYTES (INT64_C(1) << 20)
#define OBJECT_INDEX_BYTES 18
#define VOLUME_INDEX_BYTES (64 << 10)
#define VOLUME_DISK_BYTES (INT64_C(4) << 20)
#define WEAR_BYTES_MINIMUM (INT64_C(2) << 20) // a volume
#define WEAR_SHARE 4                          // of cache_mem
#define CONNECTION_BYTES (40 << 10)
#define BYTES_AN_OBJECT (8 << 10) // of a volume, for store_objects auto
#define OBJECTS_A_VOLUME_MINIMUM 1024
#define CONNECTIONS_MINIMUM 16
#define ENOUGH_STEPS_MAX 1000
#define SHARE 4 // of memory: the most that one default takes

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t objects_of(
        const struct config *config, const struct cache_dirs *dirs, const struct memory_facts *facts) {
    int64_t bound = config->memory ? config->memory : facts->machine_bytes;
    int64_t objects = dirs->bytes / BYTES_AN_OBJECT;
    if (dirs->count == 0)
        return 0;
    if (config->store_objects)
        return most(config->store_objects, dirs->count * OBJECTS_A_VOLUME_MINIMUM);
    if (bound)
        objects = least(objects, bound / SHARE / OBJECT_INDEX_BYTES);
    return most(objects, dirs->count * OBJECTS_A_VOLUME_MINIMUM);
}

static int64_t connections_of(const struct config *config, const struct memory_facts *facts) {
    if (config->client_connections)
        return config->client_connections;
    if (!config->memory)
        return facts->client_connections;
    int64_t fits = most(config->memory / SHARE / CONNECTION_BYTES, CONNECTIONS_MINIMUM);
    return least(facts->client_connections, fits);
}

static int64_t add(int64_t a, int64_t b) {
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

// All but the memory tier and what grows with it.
static int64_t sum_fixed(const struct memory_plan *plan) {
    return plan->program_bytes + plan->index_bytes + plan->disk_bytes + plan->connection_bytes;
}

int64_t memory_plan_sum(const struct memory_plan *plan) {
    return add(sum_fixed(plan) + plan->wear_bytes, plan->cache_bytes);
}

// What the memory tier gets of `bytes`, with its share for wear beside it.
static int64_t cache_within(const struct config *config, int64_t bytes, unsigned volumes) {
    if (!config->wear || volumes == 0)
        return bytes;
    int64_t least_wear = volumes * WEAR_BYTES_MINIMUM;
    return least(bytes - least_wear, bytes / (WEAR_SHARE + 1) * WEAR_SHARE);
}

static void set_cache(struct memory_plan *plan, const struct config *config, unsigned volumes) {
    plan->cache_bytes = config->cache_mem;
    if (config->memory && !config->set_by[DIRECTIVE_cache_mem])
        plan->cache_bytes = most(cache_within(config, config->memory - sum_fixed(plan), volumes), 0);
    if (config->wear && volumes)
        plan->wear_bytes = most(plan->cache_bytes / WEAR_SHARE, volumes * WEAR_BYTES_MINIMUM);
}

// ---- as text ----

static int64_t unit_of(int64_t bytes) {
    return bytes >= 10 << 20 ? 1 << 20 : 1 << 10;
}

// Rounded up, so that what fits is not told to be less than it is.
static const char *print_rounded(int64_t bytes, char *out) {
    int64_t unit = unit_of(bytes);
    snprintf(out, VALUE_TEXT_BYTES, "%" PRId64 "%c", bytes / unit + (bytes % unit != 0),
            unit == 1 << 20 ? 'M' : 'K');
    return out;
}

const char *memory_plan_print(const struct memory_plan *plan, char out[static MEMORY_PLAN_TEXT_BYTES]) {
    char memory[VALUE_TEXT_BYTES + 3] = "", program[VALUE_TEXT_BYTES], cache[VALUE_TEXT_BYTES],
                                   index[VALUE_TEXT_BYTES], wear[VALUE_TEXT_BYTES], disk[VALUE_TEXT_BYTES],
                                   connections[VALUE_TEXT_BYTES], volumes[128] = "";
    if (plan->memory_bytes)
        snprintf(memory, sizeof memory, "%s: ", print_rounded(plan->memory_bytes, index));
    if (plan->objects)
        snprintf(volumes, sizeof volumes, " + %s index of %" PRId64 " objects + %s disks",
                print_rounded(plan->index_bytes, index), plan->objects,
                print_rounded(plan->disk_bytes, disk));
    snprintf(out, MEMORY_PLAN_TEXT_BYTES,
            "%s%s program + %s cache_mem%s%s%s + %s for %" PRId64 " client_connections = ", memory,
            print_rounded(plan->program_bytes, program), print_rounded(plan->cache_bytes, cache), volumes,
            plan->wear_bytes ? " + wear " : "", plan->wear_bytes ? print_rounded(plan->wear_bytes, wear) : "",
            print_rounded(plan->connection_bytes, connections), plan->client_connections);
    size_t length = view_of(out).length;
    snprintf(out + length, MEMORY_PLAN_TEXT_BYTES - length, "%s",
            print_rounded(memory_plan_sum(plan), program));
    return out;
}

// ---- the sum ----

static int64_t least_cache_of(const struct config *config) {
    return config->set_by[DIRECTIVE_cache_mem] ? 0 : MEMORY_PLAN_CACHE_MINIMUM;
}

static void fill(struct memory_plan *plan, const struct config *config, const struct cache_dirs *dirs,
        const struct memory_facts *facts) {
    *plan = (struct memory_plan){.memory_bytes = config->memory};
    plan->program_bytes = PROGRAM_BYTES + (int64_t)facts->workers * WORKER_BYTES;
    plan->objects = objects_of(config, dirs, facts);
    plan->index_bytes = plan->objects * OBJECT_INDEX_BYTES + dirs->count * VOLUME_INDEX_BYTES;
    plan->disk_bytes = dirs->count * VOLUME_DISK_BYTES;
    plan->client_connections = connections_of(config, facts);
    plan->connection_bytes = plan->client_connections * CONNECTION_BYTES;
    set_cache(plan, config, dirs->count);
}

static bool holds(const struct memory_plan *plan, const struct config *config) {
    return plan->cache_bytes >= least_cache_of(config) && memory_plan_sum(plan) <= config->memory;
}

// What would be enough: the shares of what is not set grow with it.
static int64_t enough(const struct memory_plan *plan, const struct config *config,
        const struct cache_dirs *dirs, const struct memory_facts *facts) {
    struct memory_plan wanted = *plan;
    struct config raised = *config;
    for (unsigned i = 0; i < ENOUGH_STEPS_MAX; i++) {
        wanted.cache_bytes = most(wanted.cache_bytes, least_cache_of(config));
        int64_t sum = memory_plan_sum(&wanted), unit = unit_of(sum);
        if (sum > INT64_MAX - unit)
            return sum;
        raised.memory = (sum + unit - 1) / unit * unit;
        fill(&wanted, &raised, dirs, facts);
        if (holds(&wanted, &raised))
            break;
    }
    return raised.memory;
}

static void refuse(const struct memory_plan *plan, const struct config *config, const struct cache_dirs *dirs,
        const struct memory_facts *facts, struct config_errors *errors) {
    char sum[MEMORY_PLAN_TEXT_BYTES], needed[VALUE_TEXT_BYTES];
    struct memory_plan wanted = *plan;
    wanted.cache_bytes = most(plan->cache_bytes, least_cache_of(config));
    config_error(errors, config->set_by[DIRECTIVE_memory], 0,
            "memory cannot hold what is to be in it (%s), raise it to %s, or lower %s%sclient_connections",
            memory_plan_print(&wanted, sum), print_rounded(enough(plan, config, dirs, facts), needed),
            !config->set_by[DIRECTIVE_cache_mem] ? ""
            : dirs->count                        ? "cache_mem, "
                                                 : "cache_mem or ",
            dirs->count ? "store_objects or " : "");
}

bool memory_plan_make(struct memory_plan *plan, const struct config *config, const struct memory_facts *facts,
        struct config_errors *errors) {
    struct config_errors none = {0}; // what is wrong with the lines was said when they were read
    struct cache_dirs dirs;
    cache_dirs_read(config, &dirs, &none);
    config_errors_fini(&none);
    fill(plan, config, &dirs, facts);
    if (!config->memory || holds(plan, config))
        return true;
    refuse(plan, config, &dirs, facts, errors);
    return false;
}
