#include "admin/value.h"

#include "admin/config.h"

#include <inttypes.h>
#include <stdio.h>

struct unit {
    const char *name;
    int64_t worth;
};

// Both from small to large.
static const struct unit size_units[] = {
        {"", 1}, {"K", 1LL << 10}, {"M", 1LL << 20}, {"G", 1LL << 30}, {"T", 1LL << 40}, {NULL, 0}};
static const struct unit time_units[] = {{"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000},
        {"d", 24 * 3600 * 1000}, {"w", 7 * 24 * 3600 * 1000}, {NULL, 0}};
static const struct unit age_units[] = {{"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000},
        {"d", 24 * 3600 * 1000}, {"w", 7 * 24 * 3600 * 1000}, {"y", INT64_C(365) * 24 * 3600 * 1000},
        {NULL, 0}};

static int digit_of(char byte) {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte = view_lower(byte);
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : 16;
}

// The digits at the start of `text`, which it takes off. VALUE_RANGE once they leave int64.
static enum value_result take_digits(struct view *text, int base, int64_t *number) {
    enum value_result result = text->length && digit_of(text->data[0]) < base ? VALUE_GOOD : VALUE_MALFORMED;
    *number = 0;
    for (; text->length && digit_of(text->data[0]) < base; *text = view_skip(*text, 1))
        if (__builtin_mul_overflow(*number, base, number) ||
                __builtin_add_overflow(*number, digit_of(text->data[0]), number))
            result = VALUE_RANGE;
    return result;
}

enum value_result value_number(struct view text, int64_t *number) {
    int64_t value;
    bool is_negative = view_starts(text, VIEW("-"));
    int base = view_starts_fold(text, VIEW("0x")) ? 16 : 10;
    text = view_skip(text, base == 16 ? 2 : is_negative);
    enum value_result result = take_digits(&text, base, &value);
    if (result == VALUE_MALFORMED || text.length)
        return VALUE_MALFORMED;
    if (is_negative)
        return VALUE_RANGE;
    if (result == VALUE_GOOD)
        *number = value;
    return result;
}

static enum value_result scaled(
        struct view text, const struct unit *units, const struct unit *bare, bool fold, int64_t *out) {
    int64_t value;
    enum value_result result = take_digits(&text, 10, &value);
    if (result == VALUE_MALFORMED)
        return result;
    const struct unit *unit = text.length ? units : bare;
    while (text.length && unit->name && !(fold ? view_equal_fold : view_equal)(text, view_of(unit->name)))
        unit++;
    if (!unit->name)
        return VALUE_MALFORMED;
    if (result == VALUE_RANGE || __builtin_mul_overflow(value, unit->worth, &value))
        return VALUE_RANGE;
    *out = value;
    return VALUE_GOOD;
}

enum value_result value_size(struct view text, int64_t *bytes) {
    return scaled(text, size_units, size_units, true, bytes);
}

enum value_result value_time(struct view text, int64_t *milliseconds) {
    return scaled(text, time_units, time_units + 1, false, milliseconds);
}

enum value_result value_age(struct view text, int64_t *milliseconds) {
    return scaled(text, age_units, age_units + 3, false, milliseconds);
}

bool config_parse_size(struct view text, int64_t *bytes) {
    return value_size(text, bytes) == VALUE_GOOD;
}

bool config_parse_time(struct view text, int64_t *milliseconds) {
    return value_time(text, milliseconds) == VALUE_GOOD;
}

static char *print_scaled(int64_t value, const struct unit *units, char *out) {
    const struct unit *best = units;
    for (const struct unit *unit = units; unit->name; unit++)
        if (value != 0 && value % unit->worth == 0)
            best = unit;
    snprintf(out, VALUE_TEXT_BYTES, "%" PRId64 "%s", value / best->worth, value ? best->name : "");
    return out;
}

char *value_print_size(int64_t bytes, char out[static VALUE_TEXT_BYTES]) {
    return print_scaled(bytes, size_units, out);
}

char *value_print_time(int64_t milliseconds, char out[static VALUE_TEXT_BYTES]) {
    return print_scaled(milliseconds, time_units, out);
}
