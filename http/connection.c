#include "http/connection.h"

#include "http/list.h"

static void mark_hop(struct http_head *head, struct view name) {
    for (unsigned i = 0; i < head->field_count; i++)
        if (head->fields[i].id == FIELD_OTHER && view_equal_fold(head->fields[i].name, name))
            head->fields[i].hop = true;
}

bool connection_nominate(struct http_head *head) {
    struct list_walk walk = {.head = head, .id = FIELD_CONNECTION};
    struct view option;
    for (unsigned options = 0; list_walk_next(&walk, &option); options++) {
        if (options == CONNECTION_OPTIONS_MAX)
            return false;
        if (http_field_id(option) == FIELD_OTHER)
            mark_hop(head, option);
    }
    return true;
}

bool http_keeps_alive(const struct http_head *head) {
    if (http_field_has_token(head, FIELD_CONNECTION, VIEW("close")))
        return false;
    return head->minor_version >= 1 || http_field_has_token(head, FIELD_CONNECTION, VIEW("keep-alive"));
}

bool http_asks_for_upgrade(const struct http_head *head) {
    return http_field_has_token(head, FIELD_CONNECTION, VIEW("upgrade")) &&
           http_field_find(head, FIELD_UPGRADE, 0) && head->minor_version == 1 &&
           !http_field_has_token(head, FIELD_UPGRADE, VIEW("h2c"));
}
