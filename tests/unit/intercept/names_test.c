// Look-ups against a name server of our own: a thread that answers by the first label of the name.
#include "intercept/names.h"

#include "admin/clock.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASKERS 300

struct result {
    bool answered;
    unsigned count;
    struct address addresses[16];
    const char *why;
    struct names_query *query;
};

static struct loop *loop;
static struct names *names;
static struct deadline limit;
static unsigned awaited;
static bool timed_out;
static int server = -1, stop_pipe[2];
static pthread_t server_thread;
static _Atomic int server_questions;

// ---- the name server ----

static size_t add_answer(unsigned char *packet, size_t length, int type) {
    static const unsigned char ipv4[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 33};
    static const unsigned char ipv6[] = {0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 60, 0, 16, 0x20, 1, 0xd, 0xb8, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0x33};
    const unsigned char *answer = type == 28 ? ipv6 : ipv4;
    size_t size = type == 28 ? sizeof ipv6 : sizeof ipv4;
    memcpy(packet + length, answer, size);
    packet[7] = 1; // one answer
    return length + size;
}

// "both." has both kinds, "four." IPv4 alone, "none." no address, "gone." does not exist, "mute." no answer.
static size_t answer_question(unsigned char *packet, size_t length) {
    const char *label = (const char *)packet + 13;
    size_t end = 12;
    while (end < length && packet[end])
        end += packet[end] + 1u;
    end += 5; // the root label, type and class
    int type = packet[end - 3];
    packet[2] = 0x84;
    packet[3] = memcmp(label, "gone", 4) == 0 ? 3 : 0;
    memset(packet + 6, 0, 6); // no answer, no additional record
    if (memcmp(label, "mute", 4) == 0)
        return 0;
    if (memcmp(label, "both", 4) == 0 || (memcmp(label, "four", 4) == 0 && type == 1))
        return add_answer(packet, end, type);
    return end;
}

static void *serve(void *context) {
    (void)context;
    struct pollfd wanted[2] = {{.fd = server, .events = POLLIN}, {.fd = stop_pipe[0], .events = POLLIN}};
    while (poll(wanted, 2, 20000) > 0 && !wanted[1].revents) {
        unsigned char packet[1024];
        struct sockaddr_storage peer;
        socklen_t peer_length = sizeof peer;
        ssize_t length = recvfrom(server, packet, 512, 0, (struct sockaddr *)&peer, &peer_length);
        if (length < 17)
            continue;
        server_questions++;
        size_t answer = answer_question(packet, (size_t)length);
        if (answer)
            sendto(server, packet, answer, 0, (struct sockaddr *)&peer, peer_length);
    }
    return NULL;
}

// ---- asking ----

static void limit_expired(struct deadline *deadline) {
    (void)deadline;
    timed_out = true;
    loop_stop(loop);
}

static void take(void *owner, const struct address *addresses, unsigned count, const char *why) {
    struct result *result = owner;
    CU_ASSERT_FALSE(result->answered);
    CU_ASSERT_TRUE(count <= 16 && (count > 0) == (why == NULL));
    result->answered = true;
    result->count = count;
    result->why = why;
    result->query = NULL;
    if (count)
        memcpy(result->addresses, addresses, count * sizeof *addresses);
    if (awaited && --awaited == 0)
        loop_stop(loop);
}

static void begin(int64_t timeout_ms) {
    char servers[64];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    loop = loop_new();
    names = names_new(loop, timeout_ms);
    CU_ASSERT_PTR_NOT_NULL_FATAL(names);
    deadline_init(&limit, loop, limit_expired);
    deadline_set(&limit, clock_monotonic_ms() + 20000);
    timed_out = false;
    server_questions = 0;
    server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(server, (struct sockaddr *)&address, sizeof address), 0);
    CU_ASSERT_EQUAL(getsockname(server, (struct sockaddr *)&address, &length), 0);
    CU_ASSERT_EQUAL(pipe(stop_pipe), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&server_thread, NULL, serve, NULL), 0);
    snprintf(servers, sizeof servers, "127.0.0.1:%d", ntohs(address.sin_port));
    CU_ASSERT_TRUE(names_set_servers(names, servers));
}

static void end(void) {
    names_free(names);
    deadline_set(&limit, 0);
    loop_free(loop);
    CU_ASSERT_EQUAL(write(stop_pipe[1], "x", 1), 1);
    pthread_join(server_thread, NULL);
    close(server);
    close(stop_pipe[0]);
    close(stop_pipe[1]);
    CU_ASSERT_FALSE(timed_out);
}

static struct result ask(const char *name) {
    struct result result = {0};
    awaited = 1;
    result.query = names_resolve(names, view_of(name), take, &result);
    if (!result.answered)
        loop_run(loop, NULL, NULL);
    CU_ASSERT_TRUE(result.answered);
    return result;
}

static bool has_address(const struct result *result, const char *text) {
    struct address address;
    CU_ASSERT_TRUE(address_parse(view_of(text), &address));
    for (unsigned i = 0; i < result->count; i++)
        if (address_equal(&result->addresses[i], &address))
            return true;
    return false;
}

// ---- cases ----

static void literals_and_hosts_answer_at_once(void) {
    begin(5000);
    struct result result = ask("192.0.2.9");
    CU_ASSERT_TRUE(result.count == 1 && has_address(&result, "192.0.2.9"));
    result = ask("2001:db8::9");
    CU_ASSERT_TRUE(result.count == 1 && has_address(&result, "2001:db8::9"));
    result = ask("localhost");
    CU_ASSERT_TRUE(has_address(&result, "127.0.0.1") || has_address(&result, "::1"));
    CU_ASSERT_EQUAL(server_questions, 0);
    end();
}

static void the_server_is_asked(void) {
    begin(5000);
    struct result result = ask("both.example.");
    CU_ASSERT_EQUAL(result.count, 2);
    CU_ASSERT_TRUE(has_address(&result, "192.0.2.33") && has_address(&result, "2001:db8::33"));
    result = ask("four.example.");
    CU_ASSERT_TRUE(result.count == 1 && has_address(&result, "192.0.2.33"));
    CU_ASSERT_TRUE(server_questions >= 4);
    end();
}

static void failures_have_a_sentence(void) {
    begin(400);
    CU_ASSERT_STRING_EQUAL(ask("gone.example.").why, "the name does not exist");
    CU_ASSERT_STRING_EQUAL(ask("none.example.").why, "the name has no address");
    int64_t before = clock_monotonic_ms();
    CU_ASSERT_STRING_EQUAL(ask("mute.example.").why, "the resolver did not answer in time");
    int64_t took = clock_monotonic_ms() - before;
    CU_ASSERT_TRUE(took >= 380 && took < 5000);
    CU_ASSERT_STRING_EQUAL(ask("").why, "not a host name");
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CU_ASSERT_STRING_EQUAL(ask(longest).why, "not a host name");
    end();
}

static void cancelled_is_not_answered(void) {
    begin(5000);
    struct result cancelled = {0};
    awaited = 0;
    cancelled.query = names_resolve(names, VIEW("both.example."), take, &cancelled);
    CU_ASSERT_PTR_NOT_NULL(cancelled.query);
    names_cancel(cancelled.query);
    names_cancel(NULL);
    struct result result = ask("both.example.");
    CU_ASSERT_EQUAL(result.count, 2);
    CU_ASSERT_FALSE(cancelled.answered);
    end();
}

static void the_bound_is_said_and_free_answers_all(void) {
    static struct result results[ASKERS];
    unsigned refused = 0, open = 0;
    begin(15000);
    awaited = 0;
    memset(results, 0, sizeof results);
    for (int i = 0; i < ASKERS; i++)
        results[i].query = names_resolve(names, VIEW("mute.example."), take, &results[i]);
    for (int i = 0; i < ASKERS; i++) {
        refused += results[i].answered && strcmp(results[i].why, "too many names are being looked up") == 0;
        open += !results[i].answered;
    }
    CU_ASSERT_EQUAL(refused, ASKERS - 256);
    CU_ASSERT_EQUAL(open, 256);
    end();
    for (int i = 0; i < ASKERS; i++)
        CU_ASSERT_TRUE(results[i].answered);
}

SUITE(intercept_names, CASE(literals_and_hosts_answer_at_once), CASE(the_server_is_asked),
        CASE(failures_have_a_sentence), CASE(cancelled_is_not_answered),
        CASE(the_bound_is_said_and_free_answers_all))
