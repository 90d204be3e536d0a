// Any bytes as a configuration: no crash, no leak, and what is said about errors is true. A good one prints,
// and each printed value reads back as itself; its rules of storing are built and asked.
#include "admin/config.h"
#include "admin/check.h"
#include "admin/option.h"
#include "intercept/store_rules.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned count_lines(const struct config_errors *errors) {
    unsigned lines = 0;
    for (size_t i = 0; i < errors->length; i++)
        lines += errors->text[i] == '\n';
    return lines;
}

static void check_errors(const struct config_errors *errors) {
    unsigned kept = errors->count < CONFIG_ERRORS_KEPT ? errors->count : CONFIG_ERRORS_KEPT;
    CHECK(count_lines(errors) == kept);
    CHECK(errors->length == 0 || strlen(errors->text) == errors->length);
    for (const char *line = errors->text; line && *line; line = strchr(line, '\n') + 1)
        CHECK(strncmp(line, "t:", 2) == 0 || strncmp(line, "(default):", 10) == 0);
}

static void check_values(struct config *config) {
    char text[VALUE_TEXT_BYTES], again[VALUE_TEXT_BYTES];
    for (int id = 0; id < DIRECTIVE_COUNT; id++) {
        const struct config_option *option = &option_table[id];
        if (option->type == OPTION_LIST)
            continue;
        const char *value = option_value(option, config, text);
        CHECK(option_set(option, config, value) == VALUE_GOOD);
        CHECK(strcmp(option_value(option, config, again), value) == 0);
    }
    for (int id = 0; id < TIMEOUT_COUNT; id++) {
        int64_t read = -1;
        CHECK(config_parse_time(view_of(value_print_time(config->timeout_ms[id], text)), &read));
        CHECK(read == config->timeout_ms[id]);
    }
}

static void check_rules(const struct config *config) {
    struct config_errors errors = {0};
    struct cache_rules found;
    struct store_rules *rules = store_rules_new(config, &errors);
    CHECK((rules == NULL) == (errors.count > 0));
    check_errors(&errors);
    if (rules && store_rules_find(rules, VIEW("www.example.com:81"), VIEW("/a/b.deb?c=d"), &found))
        CHECK(!found.refresh || (found.refresh->min_s >= 0 && found.refresh->max_s >= 0));
    store_rules_free(rules);
    config_errors_fini(&errors);
}

static void print(const struct config *config) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CHECK(out);
    config_print(config, out);
    config_print_json(config, out);
    CHECK(fclose(out) == 0);
    CHECK(strlen(text) == length);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct config_errors errors = {0};
    struct config *config = config_load_text("t", (struct view){(const char *)data, size}, &errors);
    CHECK((config == NULL) == (errors.count > 0));
    check_errors(&errors);
    if (config) {
        check_errors(&config->notes);
        print(config);
        check_values(config);
        check_rules(config);
    }
    config_free(config);
    config_errors_fini(&errors);
    return 0;
}
