#include "http/compose.h"

#include "tests/unit/unit.h"

#include <string.h>

static const char whole[] = "HTTP/1.1 404 Not Found\r\nA: b\r\nC: \r\nAge: 7\r\nx\r\n\r\n";

static void write_all(struct composer *composer) {
    compose_status_line(composer, 404, VIEW(""));
    compose_field(composer, VIEW("A"), VIEW("b"));
    compose_field(composer, VIEW("C"), (struct view){NULL, 0});
    compose_format(composer, "Age: %d\r\n", 7);
    compose_text(composer, "x");
    compose_view(composer, VIEW("\r\n"));
    compose_end(composer);
}

static void writing(void) {
    char data[200];
    struct composer composer;
    compose_init(&composer, data, sizeof data);
    write_all(&composer);
    CU_ASSERT_FALSE(composer.overflow);
    CU_ASSERT(view_equal((struct view){data, composer.length}, view_of(whole)));
    compose_init(&composer, data, sizeof data);
    compose_status_line(&composer, 299, VIEW("So so"));
    CU_ASSERT(view_equal((struct view){data, composer.length}, VIEW("HTTP/1.1 299 So so\r\n")));
}

// Whatever the room, what is written is a beginning of the whole, and nothing is written beyond the room.
static void overflowing(void) {
    for (size_t size = 0; size < sizeof whole + 2; size++) {
        char data[200];
        struct composer composer;
        memset(data, '#', sizeof data);
        compose_init(&composer, data, size);
        write_all(&composer);
        CU_ASSERT_EQUAL(composer.overflow, size < sizeof whole - 1);
        CU_ASSERT(composer.length <= size);
        CU_ASSERT_EQUAL(memcmp(data, whole, composer.length), 0);
        CU_ASSERT_EQUAL(data[size], '#');
    }
}

static void reasons(void) {
    CU_ASSERT_STRING_EQUAL(http_reason(200), "OK");
    CU_ASSERT_STRING_EQUAL(http_reason(431), "Request Header Fields Too Large");
    CU_ASSERT_STRING_EQUAL(http_reason(299), "Unknown");
    CU_ASSERT_STRING_EQUAL(http_reason(-1), "Unknown");
}

SUITE(http_compose, CASE(writing), CASE(overflowing), CASE(reasons))
