// What a single value cannot show: options that contradict one another, and words of lists whose form is
// plain enough to be held against a rule right here.
#include "admin/cache_dir.h"
#include "admin/config_loader.h"
#include "admin/mark.h"
#include "admin/value.h"

#include <net/if.h>
#include <string.h>
#include <sys/un.h>

struct check {
    const struct config *config;
    struct config_errors *errors;
};

// Where an option was set, or the file itself for one that has its default.
static const struct directive *place_of(
        const struct check *check, enum directive_id id, struct directive *start) {
    *start = (struct directive){.file = check->config->file, .line = 1, .column = 1};
    return check->config->set_by[id] ? check->config->set_by[id] : start;
}

#define CONTRADICTION(check, option, ...)                                                                    \
    do {                                                                                                     \
        struct directive start;                                                                              \
        config_error((check)->errors, place_of(check, DIRECTIVE_##option, &start), 0, __VA_ARGS__);          \
    } while (0)

static void check_marks(const struct check *check) {
    const struct config *config = check->config;
    const char *problem = mark_problem(config);
    if (problem)
        CONTRADICTION(check, rule_mark, "%s", problem);
    if (config->rule_table >= 253 && config->rule_table <= 255)
        CONTRADICTION(check, rule_table,
                "rule_table %d is the kernel's own (default, main, local), choose another",
                (int)config->rule_table);
}

static void check_sizes(const struct check *check) {
    const struct config *config = check->config;
    if (config->maximum_object_size && config->minimum_object_size > config->maximum_object_size)
        CONTRADICTION(check, minimum_object_size,
                "minimum_object_size is above maximum_object_size, nothing would be stored");
    if (config->set_by[DIRECTIVE_target_bytes] && config->target_bytes > config->head_bytes)
        CONTRADICTION(check, target_bytes, "target_bytes is above head_bytes, lower it or raise head_bytes");
    if (config->client_connections && config->client_connections_per_host > config->client_connections)
        CONTRADICTION(check, client_connections_per_host,
                "client_connections_per_host is above client_connections, lower it");
}

static void check_volumes(const struct check *check) {
    const struct config *config = check->config;
    struct cache_dirs dirs;
    if (!cache_dirs_read(config, &dirs, check->errors))
        return;
    int64_t largest = 0;
    for (unsigned i = 0; i < dirs.count; i++)
        largest = dirs.dirs[i].bytes > largest ? dirs.dirs[i].bytes : largest;
    if (dirs.count && config->maximum_object_size > largest)
        CONTRADICTION(check, maximum_object_size,
                "maximum_object_size is above the size of every cache_dir, lower it");
    if (!dirs.count && config->cache_mem && config->maximum_object_size > config->cache_mem &&
            !config->memory)
        CONTRADICTION(check, maximum_object_size,
                "maximum_object_size is above cache_mem, lower it or raise cache_mem");
    if (dirs.count && config->cache_mem == 0)
        CONTRADICTION(check, cache_mem,
                "cache_mem 0 stores nothing, on disk neither: what is stored passes through memory, write 8M "
                "or more, or take the cache_dir lines out");
}

static void check_control(const struct check *check) {
    const char *path = check->config->control;
    struct sockaddr_un address;
    if (*path != '/')
        CONTRADICTION(check, control, "control \"%.80s\" is relative, write it from the root: /...", path);
    else if (strlen(path) >= sizeof address.sun_path)
        CONTRADICTION(check, control, "control has more than %zu bytes, choose a shorter path",
                sizeof address.sun_path - 1);
}

// [RFC 9110 §5.6.2]
static bool is_token(const char *text) {
    return *text &&
           strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") ==
                   strlen(text);
}

static bool is_port(const char *text) {
    int64_t number;
    return strspn(text, "0123456789") == strlen(text) && value_number(view_of(text), &number) == VALUE_GOOD &&
           number >= 1 && number <= 65535;
}

// HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT.
static bool is_authority(const char *text) {
    const char *end = *text == '[' ? strchr(text, ']') : text + strcspn(text, ":");
    if (!end || end == text || strpbrk(text, "/@?# \t"))
        return false;
    end += *end == ']';
    return *end == '\0' || (*end == ':' && is_port(end + 1));
}

static void check_names(const struct check *check) {
    const struct config *config = check->config;
    if (*config->via_name && !is_token(config->via_name))
        CONTRADICTION(check, via_name,
                "via_name \"%.80s\" is no token, write letters, digits, - and . without blanks",
                config->via_name);
    if (*config->forward_default && !is_authority(config->forward_default))
        CONTRADICTION(check, forward_default, "forward_default \"%.80s\" is no host, write HOST or HOST:PORT",
                config->forward_default);
}

static void check_ports(const struct check *check, const struct directive *directive) {
    for (int i = 0; i < (int)directive->word_count; i++)
        if (!is_port(directive->words[i].text))
            config_error(check->errors, directive, i, "\"%.80s\" is no port, write 1 to 65535",
                    directive->words[i].text);
}

static void check_interfaces(const struct check *check, const struct directive *directive) {
    for (int i = 0; i < (int)directive->word_count; i++) {
        const char *name = directive->words[i].text;
        if (!*name || strlen(name) >= IFNAMSIZ || strpbrk(name, "/ \t:\""))
            config_error(check->errors, directive, i,
                    "\"%.80s\" cannot be an interface, write a name as ip link shows it", name);
    }
}

void config_check(const struct config *config, struct config_errors *errors) {
    const struct check check = {config, errors};
    check_marks(&check);
    check_sizes(&check);
    check_volumes(&check);
    check_control(&check);
    check_names(&check);
    for (size_t i = 0; i < config->directive_count; i++) {
        const struct directive *directive = &config->directives[i];
        if (directive->id == DIRECTIVE_connect_ports)
            check_ports(&check, directive);
        else if (directive->id == DIRECTIVE_lan)
            check_interfaces(&check, directive);
    }
}
