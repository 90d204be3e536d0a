#include "admin/mark.h"

static uint32_t mask_of(const struct config *config) {
    return (uint32_t)config->rule_mask;
}

static uint32_t lowest_bit(uint32_t bits) {
    return bits & (~bits + 1);
}

uint32_t mark_intercept(const struct config *config) {
    return (uint32_t)config->rule_mark;
}

uint32_t mark_upstream(const struct config *config) {
    uint32_t low = lowest_bit(mask_of(config));
    uint32_t mark = mark_intercept(config) ^ low;
    return mark ? mark : lowest_bit(mask_of(config) ^ low);
}

const char *mark_problem(const struct config *config) {
    uint32_t mask = mask_of(config), mark = mark_intercept(config);
    if (mark & ~mask)
        return "rule_mark has bits outside rule_mask, choose a mark within the mask";
    if (mark == 0)
        return "rule_mark is 0, which every unmarked packet has, choose another value within rule_mask";
    if ((mask ^ lowest_bit(mask)) == 0)
        return "rule_mask has one bit and weir needs two marks of its own, give it at least two bits";
    return NULL;
}
