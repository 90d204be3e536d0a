#include "http/field.h"

#include "admin/check.h"
#include "http/octet.h"

struct known_field {
    struct view name;
    unsigned flags;
};

static const struct known_field known_fields[FIELD_COUNT] = {
#define FIELD(id, text, bits) [FIELD_##id] = {.name = {text, sizeof text - 1}, .flags = bits},
#include "http/field.tbl"
};

// Ids by a hash of the name. Filled before main, never written again.
#define SLOTS 256
static uint8_t slots[SLOTS];

// Name octets are folded by one bit: good enough to find a slot, the name is compared after.
static unsigned slot_of(struct view name) {
    size_t first = name.data[0] | 0x20, last = name.data[name.length - 1] | 0x20,
           middle = name.data[name.length / 2] | 0x20;
    return (unsigned)((name.length + first * 2 + middle * 10 + last) % SLOTS);
}

__attribute__((constructor)) static void fill_slots(void) {
    for (unsigned id = FIELD_OTHER + 1; id < FIELD_COUNT; id++) {
        unsigned slot = slot_of(known_fields[id].name);
        while (slots[slot] != FIELD_OTHER)
            slot = (slot + 1) % SLOTS;
        slots[slot] = (uint8_t)id;
    }
}

_Static_assert(FIELD_COUNT < SLOTS / 2, "the table of field names has room, so that look-ups end");

enum field_id http_field_id(struct view name) {
    if (name.length == 0)
        return FIELD_OTHER;
    for (unsigned slot = slot_of(name); slots[slot] != FIELD_OTHER; slot = (slot + 1) % SLOTS)
        if (view_equal_fold(name, known_fields[slots[slot]].name))
            return (enum field_id)slots[slot];
    return FIELD_OTHER;
}

unsigned field_flags(enum field_id id) {
    CHECK((unsigned)id < FIELD_COUNT);
    return known_fields[id].flags;
}

static const char *fault_of_name(struct view line, size_t token_length) {
    if (token_length < line.length && octet_is_blank(line.data[token_length]))
        return token_length == 0 ? "a folded field line" : "a blank before the colon of a field";
    return token_length == line.length ? "a field line without a colon"
                                       : "a field name with an invalid character";
}

const char *field_parse(struct view line, struct http_field *field) {
    size_t length = octet_run(line, OCTET_TOKEN);
    if (length == line.length || line.data[length] != ':')
        return fault_of_name(line, length);
    if (length == 0)
        return "a field without a name";
    struct view value = view_skip(line, length + 1);
    if (!octet_all_text(value))
        return "a control character in a field value";
    field->name = view_take(line, length);
    field->value = view_trim(value);
    field->id = http_field_id(field->name);
    field->hop = known_fields[field->id].flags & FIELD_HOP;
    return NULL;
}

const struct http_field *http_field_find(const struct http_head *head, enum field_id id, unsigned from) {
    for (unsigned i = from; i < head->field_count; i++)
        if (head->fields[i].id == id)
            return &head->fields[i];
    return NULL;
}

unsigned http_field_total(const struct http_head *head, enum field_id id) {
    unsigned total = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        total += head->fields[i].id == id;
    return total;
}
