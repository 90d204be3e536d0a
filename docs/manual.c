// Fills the tables of a manual page from the *.tbl files that the program itself is built from: copies
// standard input (mdoc) to standard output, and puts the rows of NAME in place of each line `.\" TABLE NAME`.
// A build tool; it links nothing of weir's.
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_COLUMNS 76

// ---- mdoc ----

static void put_word(const char *word, size_t length, bool starts_line) {
    if (starts_line && length && (*word == '.' || *word == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < length; i++)
        if (word[i] == '\\' || word[i] == '-')
            printf("\\%c", word[i] == '-' ? '-' : 'e');
        else
            putchar(word[i]);
}

// A sentence: with a capital at its start, a point at its end, broken into lines.
static void put_sentence(const char *text) {
    size_t column = 0;
    char first = (char)toupper((unsigned char)*text);
    for (const char *word = text; *word; word += *word == ' ') {
        size_t length = strcspn(word, " ");
        bool starts_line = column == 0 || column + 1 + length > LINE_COLUMNS;
        if (word != text)
            putchar(starts_line ? '\n' : ' ');
        if (word == text)
            put_word(&first, 1, true);
        put_word(word == text ? word + 1 : word, word == text ? length - 1 : length, starts_line);
        column = (starts_line ? 0 : column + 1) + length;
        word += length;
    }
    fputs(".\n", stdout);
}

static bool is_word(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || byte == '-';
}

static bool is_placeholder(const char *word, size_t length) {
    bool has_letter = false;
    for (size_t i = 0; i < length; i++) {
        if (islower((unsigned char)word[i]) || word[i] == '_')
            return false;
        has_letter = has_letter || isupper((unsigned char)word[i]);
    }
    return has_letter && length > 1;
}

// A grammar such as "[-c FILE] on|off" as arguments of a macro line: placeholders in capitals, the rest as it
// is typed. Every piece is its own argument, tied to the one before where no blank stands between them.
static void put_grammar(const char *text) {
    bool tied = false;
    while (*text) {
        if (*text == ' ') {
            tied = false;
            text++;
            continue;
        }
        size_t length = 1;
        bool word = is_word(*text);
        while (text[length] && text[length] != ' ' && is_word(text[length]) == word)
            length++;
        const char *macro = !word ? "No" : is_placeholder(text, length) ? "Ar" : "Cm";
        printf("%s %s \"\\&", tied ? " Ns" : "", macro);
        for (size_t i = 0; i < length; i++)
            printf(text[i] == '"' ? "\\(dq" : "%c", text[i]);
        fputs("\\&\"", stdout);
        text += length;
        tied = true;
    }
    putchar('\n');
}

static void put_item(const char *name, const char *grammar) {
    printf(".It Ic \"%s\"", name);
    put_grammar(grammar);
}

// ---- values ----

static void print_scaled(int64_t value, const char *const *units, const int64_t *worth, int count) {
    int best = 0;
    for (int i = 0; i < count; i++)
        if (value && value % worth[i] == 0)
            best = i;
    printf("%" PRId64 "%s", value / worth[best], value ? units[best] : "");
}

static void print_size(int64_t value) {
    static const char *const units[] = {"", "K", "M", "G", "T"};
    static const int64_t worth[] = {1, 1 << 10, 1 << 20, 1 << 30, 1LL << 40};
    print_scaled(value, units, worth, 5);
}

static void print_time(int64_t value) {
    static const char *const units[] = {"ms", "s", "m", "h", "d", "w"};
    static const int64_t worth[] = {1, 1000, 60000, 3600000, 86400000, 604800000};
    print_scaled(value, units, worth, 6);
}

// ---- tables ----

enum type { FLAG, CHOICE, NUMBER, SIZE, TIME, AGE, TEXT };

static void put_bound(enum type type, const char *default_text, int64_t value) {
    if (type == SIZE)
        print_size(value);
    else if (type == TIME || type == AGE)
        print_time(value);
    else
        printf(strncmp(default_text, "0x", 2) == 0 ? "0x%" PRIx64 : "%" PRId64, value);
}

static void put_range(enum type type, const char *default_text, int64_t minimum, int64_t maximum) {
    bool is_open = maximum == INT64_MAX;
    if ((is_open && minimum == 0) || type == FLAG || type == CHOICE || type == TEXT)
        return;
    fputs(is_open ? "At least " : "From ", stdout);
    put_bound(type, default_text, minimum);
    if (!is_open) {
        fputs(" to ", stdout);
        put_bound(type, default_text, maximum);
    }
    fputs(".\n", stdout);
}

static void put_default(const char *text) {
    if (!*text)
        return;
    fputs("Default:\n.Ql ", stdout);
    printf("\"%s\" .\n", text);
}

static void put_scalar(const char *name, enum type type, const char *default_text, int64_t minimum,
        int64_t maximum, const char *unit, const char *meaning) {
    static const char *const forms[] = {[NUMBER] = "NUMBER",
            [SIZE] = "SIZE",
            [TIME] = "TIME",
            [AGE] = "AGE",
            [FLAG] = NULL,
            [CHOICE] = NULL,
            [TEXT] = NULL};
    char form[64];
    bool has_word = strstr(unit, "|unlimited") != NULL;
    snprintf(form, sizeof form, "%s%s", forms[type] ? forms[type] : unit, has_word ? "|unlimited" : "");
    for (char *byte = form; type == TEXT && *byte; byte++)
        *byte = *byte == ' ' ? '-' : (char)toupper((unsigned char)*byte);
    put_item(name, form);
    put_sentence(meaning);
    put_range(type, default_text, minimum, maximum);
    put_default(default_text);
}

static void put_list(const char *name, const char *grammar, const char *default_text, const char *meaning) {
    put_item(name, grammar);
    put_sentence(meaning);
    put_default(default_text);
}

static void put_options(void) {
#define SCALAR(name, type, default_text, minimum, maximum, unit, meaning)                                    \
    put_scalar(#name, type, default_text, minimum, maximum, unit, meaning);
#define LIST(name, words_minimum, words_maximum, grammar, default_text, meaning)                             \
    put_list(#name, grammar, default_text, meaning);
#include "admin/option.tbl"
}

static void put_timeout(
        const char *name, int64_t default_ms, int64_t minimum_ms, int64_t maximum_ms, const char *meaning) {
    printf(".It Ic timeout Cm \"%s\" Ar TIME\n", name);
    put_sentence(meaning);
    put_range(TIME, "", minimum_ms, maximum_ms);
    fputs("Default:\n.Ql \"", stdout);
    print_time(default_ms);
    fputs("\" .\n", stdout);
}

static void put_timeouts(void) {
#define TIMEOUT(name, default_ms, minimum_ms, maximum_ms, meaning)                                           \
    put_timeout(#name, default_ms, minimum_ms, maximum_ms, meaning);
#include "admin/timeout.tbl"
}

static void put_commands(void) {
#define COMMAND(name, function, arguments, meaning)                                                          \
    put_item(#name, arguments);                                                                              \
    put_sentence(meaning);
#include "admin/command.tbl"
}

static void put_row(const char *name, const char *meaning) {
    printf(".It Cm \"%s\"\n", name);
    put_sentence(meaning);
}

static void put_counters(void) {
#define COUNTER(name, meaning) put_row(#name, meaning);
#define GAUGE(name, meaning) put_row(#name, meaning);
#include "admin/counter.tbl"
}

static void put_aliases(void) {
#define ALIAS(name, directive) printf(".It Ic \"%s\"\nThe same as\n.Ic %s .\n", #name, #directive);
#define LISTENER(name, field, default_text)                                                                  \
    printf(".It Ic \"%s\"\nA half of\n.Ic listen Ar ADDRESS Ns No \\&: Ns Ar PORT Cm any .\n", #name);       \
    put_default(default_text);
#define RETIRED(name, note)                                                                                  \
    printf(".It Ic \"%s\"\n", #name);                                                                        \
    put_sentence("accepted, does nothing: " note);
#include "admin/alias.tbl"
}

static void put_later(void) {
#define LATER(name, meanwhile)                                                                               \
    printf(".It Ic \"%s\"\n", #name);                                                                        \
    if (*(meanwhile))                                                                                        \
        put_sentence("meanwhile: " meanwhile);
#include "admin/later.tbl"
}

static void put_refresh_options(void) {
#if __has_include("cache/refresh_option.tbl")
#define REFRESH_OPTION(member, word, meaning) put_row(word, meaning);
#include "cache/refresh_option.tbl"
#endif
}

static void put_results(void) {
#if __has_include("intercept/result.tbl")
    fputs(".Pp\nThe results are:\n.Bl -tag -width REVALIDATED\n", stdout);
#define RESULT(id, word, meaning) put_row(word, meaning);
#include "intercept/result.tbl"
    fputs(".El\n", stdout);
#endif
}

static void put_reasons(void) {
    fputs(".Pp\nThe reasons are:\n.Bl -tag -width Ds -compact\n", stdout);
#define REASON(word, forward, meaning) put_row(word, meaning);
#include "cache/reason.tbl"
#define REASON(word, meaning) put_row(word, meaning);
#include "intercept/reason.tbl"
    fputs(".El\n", stdout);
}

static const struct table {
    const char *name;
    void (*put)(void);
} tables[] = {
        {"options", put_options},
        {"timeouts", put_timeouts},
        {"commands", put_commands},
        {"counters", put_counters},
        {"aliases", put_aliases},
        {"later", put_later},
        {"refresh_options", put_refresh_options},
        {"results", put_results},
        {"reasons", put_reasons},
};

static bool put_table(const char *name) {
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(tables[i].name, name) == 0) {
            tables[i].put();
            return true;
        }
    return false;
}

int main(void) {
    static const char mark[] = ".\\\" TABLE ";
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, mark, sizeof mark - 1) != 0) {
            fputs(line, stdout);
            continue;
        }
        char *name = line + sizeof mark - 1;
        name[strcspn(name, "\n")] = '\0';
        if (!put_table(name)) {
            fprintf(stderr, "manual: no table is called %s\n", name);
            return 1;
        }
    }
    return fflush(stdout) == 0 && !ferror(stdin) ? 0 : 1;
}
