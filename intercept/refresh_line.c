#include "intercept/refresh_line.h"

#include "admin/nearest.h"

#include <stdio.h>
#include <string.h>

struct reader {
    const struct directive *directive;
    struct config_errors *errors;
    unsigned bad;
};

static const char *word_of(const struct reader *reader, unsigned word) {
    return reader->directive->words[word].text;
}

#define REFUSE(reader, word, ...)                                                                            \
    ((reader)->bad++, config_error((reader)->errors, (reader)->directive, (int)(word), __VA_ARGS__))

// ---- numbers ----

// Minutes, or a time with its unit. Seconds, or -1 when it is neither.
static int64_t parse_minutes(const char *text) {
    uint64_t minutes;
    int64_t ms;
    if (view_number(view_of(text), &minutes))
        return minutes > REFRESH_MINUTES_MAX ? INT64_MAX : (int64_t)minutes * 60;
    return config_parse_time(view_of(text), &ms) ? ms / 1000 : -1;
}

static int64_t read_minutes(struct reader *reader, unsigned word, const char *text, const char *name) {
    int64_t seconds = parse_minutes(text);
    if (seconds < 0)
        REFUSE(reader, word, "%s \"%.80s\" is no time, write minutes, or a number with s, m, h, d or w", name,
                text);
    else if (seconds > (int64_t)REFRESH_MINUTES_MAX * 60)
        REFUSE(reader, word, "%s \"%.80s\" is over ten years, write %d minutes or less", name, text,
                REFRESH_MINUTES_MAX);
    return seconds;
}

static unsigned read_percent(struct reader *reader, unsigned word) {
    struct view text = view_of(word_of(reader, word));
    uint64_t percent = 0;
    if (text.length && text.data[text.length - 1] == '%')
        text.length--;
    if (!view_number(text, &percent))
        REFUSE(reader, word, "PERCENT \"%.80s\" is no number, write 20%%", word_of(reader, word));
    else if (percent > REFRESH_PERCENT_MAX)
        REFUSE(reader, word, "PERCENT \"%.80s\" is out of range, write 0%% to %d%%", word_of(reader, word),
                REFRESH_PERCENT_MAX);
    return percent > REFRESH_PERCENT_MAX ? 0 : (unsigned)percent;
}

// "0.2", ".2", "1": in hundredths; -1 when it is no fraction or has more than two decimals.
static int64_t parse_hundredths(struct view text) {
    size_t point = view_find(text, '.');
    struct view decimals = view_skip(text, point + 1);
    uint64_t whole = 0, rest = 0;
    if (text.length == 0 || (point == 0 && decimals.length == 0) || decimals.length > 2 ||
            (point > 0 && !view_number(view_take(text, point), &whole)) ||
            (decimals.length > 0 && !view_number(decimals, &rest)))
        return -1;
    if (whole > REFRESH_PERCENT_MAX)
        return INT64_MAX;
    return (int64_t)(whole * 100 + (decimals.length == 1 ? rest * 10 : rest));
}

static unsigned read_factor(struct reader *reader, unsigned word) {
    int64_t percent = parse_hundredths(view_of(word_of(reader, word)));
    if (percent < 0)
        REFUSE(reader, word, "FACTOR \"%.80s\" is no fraction with up to two decimals, write 0.2",
                word_of(reader, word));
    else if (percent > REFRESH_PERCENT_MAX)
        REFUSE(reader, word, "FACTOR \"%.80s\" is out of range, write 0 to %d", word_of(reader, word),
                REFRESH_PERCENT_MAX / 100);
    return percent < 0 || percent > REFRESH_PERCENT_MAX ? 0 : (unsigned)percent;
}

// ---- options ----

#define MAX_STALE "max-stale="

// Squid had them once, and the files that say so are still about.
static const struct {
    const char *word, *cure;
} dropped[] = {
        {"ignore-no-cache", "such a response is stored, and confirmed before each use; take it out, or see "
                            "pragma_no_cache"},
        {"ignore-must-revalidate", "such a response is stored, and confirmed once it is stale; take it out"},
        {"ignore-auth", "what may be shared among users says so itself (public, s-maxage, "
                        "must-revalidate); take it out"},
        {"ignore-cc", "write ignore-no-store or ignore-private for what is meant"},
};

// " override-expire, override-lastmod, ...,"
static const char *list_options(char *out, size_t size) {
    size_t used = 0;
    for (unsigned option = 0; option < REFRESH_OPTION_COUNT && used < size; option++)
        used += (size_t)snprintf(out + used, size - used, " %s,", rules_option_word(option));
    return out;
}

static void unknown_option(struct reader *reader, unsigned word) {
    const char *text = word_of(reader, word);
    char hint[NEAREST_HINT_BYTES], options[256];
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (strcmp(text, dropped[i].word) == 0) {
            REFUSE(reader, word, "%s is no option any more: %s", text, dropped[i].cure);
            return;
        }
    struct nearest nearest = nearest_to(text);
    for (unsigned option = 0; option < REFRESH_OPTION_COUNT; option++)
        nearest_offer(&nearest, rules_option_word(option));
    nearest_offer(&nearest, MAX_STALE);
    REFUSE(reader, word, "\"%.80s\" is no option of refresh_pattern%s, write one of%s or max-stale=MINUTES",
            text, nearest_hint(&nearest, hint), list_options(options, sizeof options));
}

static void refuse_twice(struct reader *reader, unsigned word) {
    REFUSE(reader, word, "%.80s stands twice, take one of them out", word_of(reader, word));
}

static void read_option(struct reader *reader, unsigned word, struct refresh_rule *rule) {
    const char *text = word_of(reader, word);
    enum refresh_option option = rules_option(text);
    if (strncmp(text, MAX_STALE, strlen(MAX_STALE)) == 0) {
        if (rule->max_stale_s >= 0)
            refuse_twice(reader, word);
        rule->max_stale_s = read_minutes(reader, word, text + strlen(MAX_STALE), "max-stale");
    } else if (option == REFRESH_OPTION_COUNT) {
        unknown_option(reader, word);
    } else if (rule->options[option]) {
        refuse_twice(reader, word);
    } else {
        rule->options[option] = true;
    }
}

// ---- lines ----

static const struct refresh_rule nothing_said = {
        .max_stale_s = -1, .reload_s = -1, .expire_s = -1, .redirect_s = -1};

static void check_order(struct reader *reader, unsigned word, const struct refresh_rule *rule) {
    if (reader->bad == 0 && rule->min_s > rule->max_s && !rule->options[REFRESH_OPTION_override_expire])
        REFUSE(reader, word, "MIN is above MAX, after which nothing is fresh: lower MIN or raise MAX");
}

static bool is_lifetime(const struct reader *reader, unsigned word) {
    struct view percent = view_of(word_of(reader, word + 1));
    uint64_t number;
    if (percent.length && percent.data[percent.length - 1] == '%')
        percent.length--;
    return parse_minutes(word_of(reader, word)) >= 0 && view_number(percent, &number) &&
           parse_minutes(word_of(reader, word + 2)) >= 0;
}

// MIN PERCENT MAX stand further on than behind one word: what stands before them is no one expression.
static bool is_one_expression(struct reader *reader, unsigned first) {
    unsigned at = first + 1;
    if (parse_minutes(word_of(reader, at)) >= 0)
        return true;
    while (at + 3 <= reader->directive->word_count && !is_lifetime(reader, at))
        at++;
    if (at + 3 > reader->directive->word_count)
        return true;
    const char *text = word_of(reader, first);
    if (*text == '-' || *text == '+')
        REFUSE(reader, first, "\"%.80s\" is no flag of refresh_pattern, write -i or +i, or only REGEX", text);
    else
        REFUSE(reader, first,
                "%u words stand before MIN PERCENT MAX where REGEX is one, put an expression with blanks in "
                "quotes: \"%.80s %.80s\"",
                at - first, text, word_of(reader, first + 1));
    return false;
}

bool refresh_line_read(
        const struct directive *directive, struct refresh_line *line, struct config_errors *errors) {
    struct reader reader = {directive, errors, 0};
    unsigned first = 0;
    *line = (struct refresh_line){.rule = nothing_said};
    while (first < directive->word_count &&
            (strcmp(word_of(&reader, first), "-i") == 0 || strcmp(word_of(&reader, first), "+i") == 0))
        line->ignore_case = *word_of(&reader, first++) == '-';
    if (directive->word_count < first + 4) {
        config_error(errors, directive, -1,
                "refresh_pattern has too few words, write [-i] REGEX MIN PERCENT MAX [OPTION...]%s",
                config_comment_hint(directive));
        return false;
    }
    if (!is_one_expression(&reader, first)) {
        line->expression = directive->word_count;
        return false;
    }
    line->expression = first;
    line->rule.min_s = read_minutes(&reader, first + 1, word_of(&reader, first + 1), "MIN");
    line->rule.percent = read_percent(&reader, first + 2);
    line->rule.max_s = read_minutes(&reader, first + 3, word_of(&reader, first + 3), "MAX");
    for (unsigned word = first + 4; word < directive->word_count; word++)
        read_option(&reader, word, &line->rule);
    check_order(&reader, first + 1, &line->rule);
    return reader.bad == 0;
}

bool refresh_line_read_default(
        const struct directive *directive, struct refresh_rule *rule, struct config_errors *errors) {
    struct reader reader = {directive, errors, 0};
    *rule = nothing_said;
    if (directive->word_count != 4 && directive->word_count != 6) {
        config_error(errors, directive, -1,
                "default_refresh_pattern has %u words, write RELOAD MIN FACTOR MAX, and EXPIRE REDIRECT or "
                "neither%s",
                directive->word_count, config_comment_hint(directive));
        return false;
    }
    rule->reload_s = read_minutes(&reader, 0, word_of(&reader, 0), "RELOAD");
    rule->min_s = read_minutes(&reader, 1, word_of(&reader, 1), "MIN");
    rule->percent = read_factor(&reader, 2);
    rule->max_s = read_minutes(&reader, 3, word_of(&reader, 3), "MAX");
    if (directive->word_count == 6) {
        rule->expire_s = read_minutes(&reader, 4, word_of(&reader, 4), "EXPIRE");
        rule->redirect_s = read_minutes(&reader, 5, word_of(&reader, 5), "REDIRECT");
    }
    check_order(&reader, 1, rule);
    return reader.bad == 0;
}
