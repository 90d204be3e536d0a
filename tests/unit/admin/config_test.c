#include "admin/config.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct config *load(const char *text, struct config_errors *errors) {
    return config_load_text("t", view_of(text), errors);
}

// Each text is refused with exactly these lines.
static const struct {
    const char *text, *errors;
} bad[] = {
        {"wrokers 2\n",
                "t:1:1: no directive is called \"wrokers\" (did you mean workers?), correct it or take the "
                "line out\n"},
        {"\n  xyzzy 2 # c\n", "t:2:3: no directive is called \"xyzzy\", correct it or take the line out\n"},
        {"workers\n", "t:1:1: workers needs a value, write it behind the name (threads)\n"},
        {"workers 1 2\n", "t:1:11: workers takes one value, take the rest out or put it all in quotes\n"},
        {"workers many\n",
                "t:1:9: workers \"many\" is no number, write digits, or 0x and hexadecimal ones\n"},
        {"workers 257\n", "t:1:9: workers \"257\" is out of range, write 0 to 256\n"},
        {"workers -1\n", "t:1:9: workers \"-1\" is out of range, write 0 to 256\n"},
        {"workers 99999999999999999999\n",
                "t:1:9: workers \"99999999999999999999\" is out of range, write 0 to 256\n"},
        {"workers 1\n# between\nWORKERS 1\n",
                "t:3:1: workers is set already at t:1:1, take one of the two out\n"},
        {"head_bytes 1000\n", "t:1:12: head_bytes \"1000\" is out of range, write 1K to 1M\n"},
        {"head_bytes 64MB\n",
                "t:1:12: head_bytes \"64MB\" is no size, write bytes, or a number with K, M, G or T\n"},
        {"cache_mem -1\n",
                "t:1:11: cache_mem \"-1\" is no size, write bytes, or a number with K, M, G or T\n"},
        {"cache_mem 9999999T\n", "t:1:11: cache_mem \"9999999T\" is out of range, write 0 to 8388607T\n"},
        {"on_failure opne\n", "t:1:12: on_failure \"opne\" is none of open|closed, write one of these (did "
                              "you mean open?)\n"},
        {"spoof_client yes\n", "t:1:14: spoof_client \"yes\" is none of on|off, write one of these\n"},
        {"user \"\"\n", "t:1:6: user must not be empty, write one (user name)\n"},
        {"rule_mark 0x100000000\n",
                "t:1:11: rule_mark \"0x100000000\" is out of range, write 0x0 to 0xffffffff\n"},
        {"rule_mark 0x1\n", "t:1:11: rule_mark has bits outside rule_mask, choose a mark within the "
                            "mask\n"},
        {"rule_mark 0\n", "t:1:11: rule_mark is 0, which every unmarked packet has, choose another value "
                          "within rule_mask\n"},
        {"rule_mask 1\n", "t:1:1: rule_mark has bits outside rule_mask, choose a mark within the "
                          "mask\n"},
        {"rule_mark 1\nrule_mask 1\n", "t:1:11: rule_mask has one bit and weir needs two marks of its own, "
                                       "give it at least two bits\n"},
        {"rule_table 254\n",
                "t:1:12: rule_table 254 is the kernel's own (default, main, local), choose another\n"},
        {"minimum_object_size 2K\nmaximum_object_size 1K\n",
                "t:1:21: minimum_object_size is above maximum_object_size, nothing would be stored\n"},
        {"maximum_object_size 1G\n",
                "t:1:21: maximum_object_size is above cache_mem, lower it or raise cache_mem\n"},
        {"head_bytes 1K\ntarget_bytes 2K\n",
                "t:2:14: target_bytes is above head_bytes, lower it or raise head_bytes\n"},
        {"control run.sock\n", "t:1:9: control \"run.sock\" is relative, write it from the root: /...\n"},
        {"via_name \"a b\"\n",
                "t:1:10: via_name \"a b\" is no token, write letters, digits, - and . without blanks\n"},
        {"forward_default http://a/\n",
                "t:1:17: forward_default \"http://a/\" is no host, write HOST or HOST:PORT\n"},
        {"forward_default a:0\n", "t:1:17: forward_default \"a:0\" is no host, write HOST or HOST:PORT\n"},
        {"timeout conect 5s\n",
                "t:1:9: no timeout is called \"conect\" (did you mean connect?), weir config lists them\n"},
        {"timeout connect\n", "t:1:1: timeout needs more words, write timeout NAME TIME\n"},
        {"timeout connect 5s 6s\n", "t:1:20: too many words, write timeout NAME TIME\n"},
        {"timeout connect soon\n",
                "t:1:17: timeout connect \"soon\" is no time, write seconds, or a number with ms, s, m, h, d "
                "or w\n"},
        {"timeout connect 2h\n", "t:1:17: timeout connect \"2h\" is out of range, write 50ms to 1h\n"},
        {"timeout connect 1s\ntimeout Connect 1s\n",
                "t:2:1: connect is set already at t:1:1, take one of the two out\n"},
        {"listen 3128\n", "t:1:1: listen needs more words, write listen [ADDRESS:]PORT "
                          "redirect|tproxy|forward|any\n"},
        {"connect_ports 443 0 https\n",
                "t:1:19: \"0\" is no port, write 1 to 65535\nt:1:21: \"https\" is no port, write 1 to "
                "65535\n"},
        {"lan eth0 a-name-too-long-for-linux\n",
                "t:1:10: \"a-name-too-long-for-linux\" cannot be an interface, write a name as ip link "
                "shows it\n"},
        {"include other\n", "t:1:1: include works in files only, take it out\n"},
        {"redirect a b\n", "t:1:1: Redirect is not supported by this version, take the line out\n"},
        {"http_port 1\nhttp_port 2\n", "t:2:1: http_port is set already at t:1:1, take one of the two out\n"},
        {"BindAddress\n", "t:1:1: BindAddress takes one word, write listen [ADDRESS:]PORT any instead\n"},
        {"user \"a\n", "t:1:6: this quote is not closed, end the word with \"\n"},
        {"user a\"b\"\n", "t:1:7: a quote inside a word, put the whole word in quotes\n"},
        {"user \"a\"b\n", "t:1:9: text right after a closing quote, put a blank between them\n"},
        {"user a\x01\n", "t:1:7: a control byte, take it out\n"},
        {"# \x7f\n", "t:1:3: a control byte, take it out\n"},
        {"user a\rb\n", "t:1:7: a control byte, take it out\n"},
        {"workers x\nuser\n",
                "t:1:9: workers \"x\" is no number, write digits, or 0x and hexadecimal ones\nt:2:1: user "
                "needs a value, write it behind the name (user name)\n"},
};

static void refused(void) {
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct config_errors errors = {0};
        struct config *config = load(bad[i].text, &errors);
        CU_ASSERT_PTR_NULL(config);
        CU_ASSERT_TRUE(errors.count > 0);
        bool same = errors.text && strcmp(errors.text, bad[i].errors) == 0;
        if (!same)
            fprintf(stderr, "%s gives\n%s instead of\n%s", bad[i].text, errors.text, bad[i].errors);
        CU_ASSERT_TRUE(same);
        config_errors_fini(&errors);
        config_free(config);
    }
}

static void nul_byte(void) {
    struct config_errors errors = {0};
    CU_ASSERT_PTR_NULL(config_load_text("t", VIEW("user a\0b\n"), &errors));
    CU_ASSERT_STRING_EQUAL(errors.text, "t:1:7: a NUL byte, take it out\n");
    config_errors_fini(&errors);
}

static struct config *accepted(const char *text) {
    struct config_errors errors = {0};
    struct config *config = load(text, &errors);
    if (!config)
        fprintf(stderr, "%s gives\n%s", text, errors.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_EQUAL(errors.count, 0);
    CU_ASSERT_PTR_NULL(errors.text);
    return config;
}

static void defaults(void) {
    struct config_errors errors = {0};
    struct config *config = config_load(NULL, &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_STRING_EQUAL(config->file, "(defaults)");
    CU_ASSERT_EQUAL(config->workers, 0);
    CU_ASSERT_EQUAL(config->cache_mem, 64 << 20);
    CU_ASSERT_EQUAL(config->on_failure, 0);
    CU_ASSERT_FALSE(config->spoof_client);
    CU_ASSERT_EQUAL(config->rule_mark, 0x57000000);
    CU_ASSERT_STRING_EQUAL(config->user, "weir");
    CU_ASSERT_EQUAL(config->timeout_ms[TIMEOUT_connect], 10000);
    CU_ASSERT_EQUAL_FATAL(config->directive_count, 2);
    CU_ASSERT_EQUAL(config->directives[0].id, DIRECTIVE_listen);
    CU_ASSERT_EQUAL(config->directives[0].word_count, 2);
    CU_ASSERT_STRING_EQUAL(config->directives[0].words[0].text, "3129");
    CU_ASSERT_STRING_EQUAL(config->directives[0].words[1].text, "redirect");
    CU_ASSERT_STRING_EQUAL(config->directives[0].file, "(default)");
    CU_ASSERT_EQUAL(config->directives[1].id, DIRECTIVE_connect_ports);
    config_free(config);
}

static void scalars(void) {
    struct config *config = accepted("\xef\xbb\xbfWorkers 4 # four\r\n"
                                     "\tcache_mem\t128m\n"
                                     "user \"proxy\"#x\n"
                                     "on_failure CLOSED\n"
                                     "spoof_client on\n"
                                     "timeout connect 1500ms\n"
                                     "timeout TOTAL 2d\n"
                                     "timeout first_byte 7\n"
                                     "upstream_connections auto\n"
                                     "rule_mask 0xFF\n"
                                     "rule_mark 16\n"
                                     "via_name \"\"\n"
                                     "forward_default [2001:db8::1]:8080");
    CU_ASSERT_EQUAL(config->workers, 4);
    CU_ASSERT_EQUAL(config->cache_mem, 128 << 20);
    CU_ASSERT_STRING_EQUAL(config->user, "proxy");
    CU_ASSERT_EQUAL(config->on_failure, 1);
    CU_ASSERT_TRUE(config->spoof_client);
    CU_ASSERT_EQUAL(config->timeout_ms[TIMEOUT_connect], 1500);
    CU_ASSERT_EQUAL(config->timeout_ms[TIMEOUT_total], 2 * 86400 * 1000);
    CU_ASSERT_EQUAL(config->timeout_ms[TIMEOUT_first_byte], 7000);
    CU_ASSERT_EQUAL(config->upstream_connections, 0);
    CU_ASSERT_EQUAL(config->rule_mark, 16);
    CU_ASSERT_STRING_EQUAL(config->via_name, "");
    CU_ASSERT_STRING_EQUAL(config->forward_default, "[2001:db8::1]:8080");
    CU_ASSERT_EQUAL(config->set_by[DIRECTIVE_workers]->line, 1);
    CU_ASSERT_EQUAL(config->timeout_set_by[TIMEOUT_total]->line, 7);
    CU_ASSERT_PTR_NULL(config->set_by[DIRECTIVE_fields]);
    config_free(config);
}

static void lists(void) {
    struct config *config = accepted("allow 10.0.0.0/8  192.168.0.0/16\n"
                                     "Block \"a b#c\" \"say \\\"x\\\"\" back\\slash\n"
                                     "allow 172.16.0.0/12\n"
                                     "access_log *.example.com /var/log/a json\n"
                                     "access_log *.example.com /var/log/a\n"
                                     "access_log /var/log/a Squid\n"
                                     "access_log /var/log/a\n"
                                     "connect_ports 443 8443\n");
    CU_ASSERT_EQUAL_FATAL(config->directive_count, 9); // and the default listen
    const struct directive *block = &config->directives[1];
    CU_ASSERT_EQUAL(config->directives[0].id, DIRECTIVE_allow);
    CU_ASSERT_EQUAL(config->directives[0].words[1].column, 19);
    CU_ASSERT_EQUAL(block->id, DIRECTIVE_block);
    CU_ASSERT_EQUAL(block->line, 2);
    CU_ASSERT_EQUAL_FATAL(block->word_count, 3);
    CU_ASSERT_STRING_EQUAL(block->words[0].text, "a b#c");
    CU_ASSERT_EQUAL(block->words[0].column, 7);
    CU_ASSERT_STRING_EQUAL(block->words[1].text, "say \"x\"");
    CU_ASSERT_STRING_EQUAL(block->words[2].text, "back\\slash");
    CU_ASSERT_EQUAL(config->directives[2].id, DIRECTIVE_allow);
    CU_ASSERT_EQUAL(config->directives[8].id, DIRECTIVE_listen);
    config_free(config);
}

// What is written, and the listen line it makes.
static const struct {
    const char *text, *words[2];
    unsigned line, column;
} listeners[] = {
        {"BindAddress *\nhttp_port 3128\n", {"3128", "any"}, 2, 11},
        {"http_port 3128\nBindAddress 192.0.2.1\n", {"192.0.2.1:3128", "any"}, 1, 11},
        {"bindaddress 2001:db8::1\n", {"[2001:db8::1]:8080", "any"}, 1, 13},
        {"HTTP_PORT 81\n", {"81", "any"}, 1, 11},
};

static void smart_cache_listeners(void) {
    for (size_t i = 0; i < LENGTH(listeners); i++) {
        struct config *config = accepted(listeners[i].text);
        const struct directive *listen = &config->directives[0];
        CU_ASSERT_EQUAL(config->directive_count, 2);
        CU_ASSERT_EQUAL(listen->id, DIRECTIVE_listen);
        CU_ASSERT_EQUAL_FATAL(listen->word_count, 2);
        CU_ASSERT_STRING_EQUAL(listen->words[0].text, listeners[i].words[0]);
        CU_ASSERT_STRING_EQUAL(listen->words[1].text, listeners[i].words[1]);
        CU_ASSERT_EQUAL(listen->line, listeners[i].line);
        CU_ASSERT_EQUAL(listen->words[0].column, listeners[i].column);
        config_free(config);
    }
}

static void smart_cache_names(void) {
    struct config *config = accepted("Fail */ads/*\nPass good.example\nNoCaching *.cgi\n"
                                     "default_forward_for www.example\ngcarraysize 1 2 3\n"
                                     "swap_level1_dirs 4\nswap_level2_dirs 4\n");
    CU_ASSERT_EQUAL(config->directives[0].id, DIRECTIVE_block);
    CU_ASSERT_EQUAL(config->directives[1].id, DIRECTIVE_pass);
    CU_ASSERT_EQUAL(config->directives[2].id, DIRECTIVE_no_cache);
    CU_ASSERT_STRING_EQUAL(config->forward_default, "www.example");
    CU_ASSERT_EQUAL(config->notes.count, 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(config->notes.text, "t:6:1: swap_level1_dirs does nothing here: "));
    config_free(config);
}

static void many_errors(void) {
    char text[4096] = "";
    struct config_errors errors = {0};
    for (int i = 0; i < 60; i++)
        strcat(text, "nonsense\n");
    CU_ASSERT_PTR_NULL(load(text, &errors));
    CU_ASSERT_EQUAL(errors.count, 60);
    size_t lines = 0;
    for (size_t i = 0; i < errors.length; i++)
        lines += errors.text[i] == '\n';
    CU_ASSERT_EQUAL(lines, CONFIG_ERRORS_KEPT);
    CU_ASSERT_EQUAL(strlen(errors.text), errors.length);
    config_errors_fini(&errors);
}

static char *filled(char byte, size_t length, const char *start) {
    char *text = malloc(length + strlen(start) + 1);
    strcpy(text, start);
    memset(text + strlen(start), byte, length);
    text[length + strlen(start)] = '\0';
    return text;
}

static void long_lines(void) {
    struct config_errors errors = {0};
    char *fits = filled('x', 16384 - 6, "block ");
    struct config *config = load(fits, &errors);
    CU_ASSERT_PTR_NOT_NULL(config);
    config_free(config);
    char *longer = filled('x', 16384 - 5, "block ");
    CU_ASSERT_PTR_NULL(load(longer, &errors));
    CU_ASSERT_STRING_EQUAL(errors.text, "t:1:16385: a line of more than 16384 bytes, split it\n");
    config_errors_fini(&errors);
    char *unknown = filled('x', 16000, "");
    CU_ASSERT_PTR_NULL(load(unknown, &errors));
    CU_ASSERT_TRUE(errors.length < 200);
    config_errors_fini(&errors);
    free(fits);
    free(longer);
    free(unknown);
}

static void many_words(void) {
    struct config_errors errors = {0};
    char text[6 + 2 * 1024 + 1] = "block";
    for (int i = 0; i < 1023; i++)
        strcat(text, " x");
    struct config *config = load(text, &errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(config);
    CU_ASSERT_EQUAL(config->directives[0].word_count, 1023);
    config_free(config);
    strcat(text, " x");
    CU_ASSERT_PTR_NULL(load(text, &errors));
    CU_ASSERT_STRING_EQUAL(errors.text, "t:1:2053: more than 1024 words, spread them over several lines\n");
    config_errors_fini(&errors);
}

static const struct {
    const char *text;
    int64_t value; // -1: refused
} sizes[] = {{"0", 0}, {"1", 1}, {"64M", 64 << 20}, {"3k", 3072}, {"1G", 1 << 30}, {"2T", 2LL << 40},
        {"1.5G", -1}, {"", -1}, {"K", -1}, {"1KB", -1}, {"1 K", -1}, {"-1", -1}, {"+1", -1}, {"0x10", -1},
        {"9223372036854775807", INT64_MAX}, {"9223372036854775808", -1}, {"8388608T", -1},
        {"8388607T", 8388607LL << 40}},
  times[] = {{"0", 0}, {"30", 30000}, {"30s", 30000}, {"500ms", 500}, {"5m", 300000}, {"2h", 7200000},
          {"1d", 86400000}, {"1w", 604800000}, {"1.5s", -1}, {"5M", -1}, {"s", -1}, {"", -1}, {"5sec", -1},
          {"9223372036854775807ms", INT64_MAX}, {"9223372036854775807", -1}};

static void parsing_values(void) {
    int64_t value;
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        value = -1;
        CU_ASSERT_EQUAL(config_parse_size(view_of(sizes[i].text), &value), sizes[i].value >= 0);
        CU_ASSERT_EQUAL(value, sizes[i].value);
    }
    for (size_t i = 0; i < LENGTH(times); i++) {
        value = -1;
        CU_ASSERT_EQUAL(config_parse_time(view_of(times[i].text), &value), times[i].value >= 0);
        CU_ASSERT_EQUAL(value, times[i].value);
    }
}

static void one_error_is_one_line(void) {
    struct config_errors errors = {0};
    const struct config_word words[] = {{"w", 9}};
    const struct directive place = {.file = "f\n", .line = 3, .column = 2, .word_count = 1, .words = words};
    config_error(&errors, &place, 0, "a\nb%c", 0x7f);
    config_error(&errors, &place, -1, "%01000d", 1);
    config_error(&errors, &place, 1, "no such word");
    CU_ASSERT_EQUAL(errors.count, 3);
    CU_ASSERT_EQUAL(strncmp(errors.text, "f?:3:9: a?b?\nf?:3:2: 0000", 24), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(errors.text, "\nf?:3:2: no such word\n"));
    CU_ASSERT_EQUAL(strlen(errors.text), errors.length);
    config_errors_fini(&errors);
    CU_ASSERT_EQUAL(errors.count, 0);
}

SUITE(admin_config, CASE(refused), CASE(nul_byte), CASE(defaults), CASE(scalars), CASE(lists),
        CASE(smart_cache_listeners), CASE(smart_cache_names), CASE(many_errors), CASE(long_lines),
        CASE(many_words), CASE(parsing_values), CASE(one_error_is_one_line))
