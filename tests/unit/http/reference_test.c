#include "http/reference.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static void expect(const char *path, const char *reference, const char *authority, const char *resolved) {
    char buffer[REFERENCE_BYTES];
    struct reference_target target;
    bool is_resolved = reference_resolve(VIEW("a"), view_of(path), view_of(reference), buffer, &target);
    bool is_expected = resolved ? is_resolved && view_equal(target.authority, view_of(authority)) &&
                                          view_equal(target.path, view_of(resolved))
                                : !is_resolved;
    if (!is_expected)
        printf("\n    %s: " VIEW_FORMAT, reference,
                VIEW_ARGUMENT(is_resolved ? target.path : VIEW("(none)")));
    CU_ASSERT_TRUE(is_expected);
}

// [RFC 3986 §5.4], with what HTTP lets a target be: no fragment, and a path that begins with "/".
static void examples(void) {
    static const struct {
        const char *reference, *authority, *resolved;
    } rows[] = {
            {"g:h", "", NULL},
            {"g", "a", "/b/c/g"},
            {"./g", "a", "/b/c/g"},
            {"g/", "a", "/b/c/g/"},
            {"/g", "a", "/g"},
            {"//g", "g", "/"},
            {"?y", "a", "/b/c/d;p?y"},
            {"g?y", "a", "/b/c/g?y"},
            {"#s", "a", "/b/c/d;p?q"},
            {"g#s", "a", "/b/c/g"},
            {"g?y#s", "a", "/b/c/g?y"},
            {";x", "a", "/b/c/;x"},
            {"g;x", "a", "/b/c/g;x"},
            {"g;x?y#s", "a", "/b/c/g;x?y"},
            {"", "a", "/b/c/d;p?q"},
            {".", "a", "/b/c/"},
            {"./", "a", "/b/c/"},
            {"..", "a", "/b/"},
            {"../", "a", "/b/"},
            {"../g", "a", "/b/g"},
            {"../..", "a", "/"},
            {"../../", "a", "/"},
            {"../../g", "a", "/g"},
            {"../../../g", "a", "/g"},
            {"../../../../g", "a", "/g"},
            {"/./g", "a", "/g"},
            {"/../g", "a", "/g"},
            {"g.", "a", "/b/c/g."},
            {".g", "a", "/b/c/.g"},
            {"g..", "a", "/b/c/g.."},
            {"..g", "a", "/b/c/..g"},
            {"./../g", "a", "/b/g"},
            {"./g/.", "a", "/b/c/g/"},
            {"g/./h", "a", "/b/c/g/h"},
            {"g/../h", "a", "/b/c/h"},
            {"g;x=1/./y", "a", "/b/c/g;x=1/y"},
            {"g;x=1/../y", "a", "/b/c/y"},
            {"g?y/./x", "a", "/b/c/g?y/./x"},
            {"g?y/../x", "a", "/b/c/g?y/../x"},
            {"g#s/../x", "a", "/b/c/g"},
            {"http:g", "", NULL}, // no backward compatibility
            // absolute
            {"http://a/b", "a", "/b"},
            {"HTTP://A:80/b/../c?d", "a", "/c?d"},
            {"http://a:8080/b", "a:8080", "/b"},
            {"http://a?q", "a", "/?q"},
            {"http://a", "a", "/"},
            {"https://a/b", "", NULL},
            {"http:///b", "", NULL},
            {"http://user@a/b", "", NULL},
            {"//[::1]:80/x", "[::1]", "/x"},
            {"//a b/x", "", NULL},
            {"1:x", "a", "/b/c/1:x"}, // no scheme begins with a digit
            {"g//h", "a", "/b/c/g//h"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect("/b/c/d;p?q", rows[i].reference, rows[i].authority, rows[i].resolved);
    expect("/?x/y", "g", "a", "/g");
    expect("/", "", "a", "/");
}

static void bounded(void) {
    char buffer[REFERENCE_BYTES], text[REFERENCE_BYTES + 1];
    struct reference_target target;
    for (size_t length = 1; length < sizeof text; length += 97) {
        for (size_t i = 0; i < length; i++)
            text[i] = "/.a"[i * i % 7 % 3];
        if (reference_resolve(VIEW("a"), VIEW("/b/c"), (struct view){text, length}, buffer, &target))
            CU_ASSERT_TRUE(target.path.length >= 1 && target.path.data[0] == '/');
    }
    memset(text, 'x', sizeof text);
    CU_ASSERT_FALSE(
            reference_resolve(VIEW("a"), VIEW("/"), (struct view){text, sizeof text}, buffer, &target));
}

SUITE(reference, CASE(examples), CASE(bounded))
