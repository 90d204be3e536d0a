#include "http/weight.h"

bool weight_parse(struct view text, unsigned *weight) {
    if (text.length == 0 || text.length > 5 || (text.data[0] != '0' && text.data[0] != '1') ||
            (text.length > 1 && text.data[1] != '.'))
        return false;
    *weight = text.data[0] == '1' ? WEIGHT_ONE : 0;
    unsigned unit = 100;
    for (size_t i = 2; i < text.length; i++, unit /= 10) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *weight += (unsigned)(text.data[i] - '0') * unit;
    }
    return *weight <= WEIGHT_ONE;
}

bool weight_next_part(struct view *rest, struct view *part) {
    size_t length = 0;
    bool is_quoted = false;
    if (rest->length == 0)
        return false;
    for (; length < rest->length && (is_quoted || rest->data[length] != ';'); length++) {
        if (is_quoted && rest->data[length] == '\\' && length + 1 < rest->length)
            length++;
        else
            is_quoted ^= rest->data[length] == '"';
    }
    *part = view_trim(view_take(*rest, length));
    *rest = view_skip(*rest, length + 1);
    return true;
}

bool weight_of_member(struct view member, struct view *name, unsigned *weight) {
    struct view part;
    bool has_weight = false;
    *weight = WEIGHT_ONE;
    *name = (struct view){"", 0};
    if (!weight_next_part(&member, name))
        return false;
    while (weight_next_part(&member, &part)) {
        if (!view_starts_fold(part, VIEW("q=")))
            continue;
        if (has_weight || !weight_parse(view_skip(part, 2), weight))
            return false;
        has_weight = true;
    }
    return true;
}
