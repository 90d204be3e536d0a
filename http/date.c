#include "http/date.h"

#include <stdio.h>

#define DAY_SECONDS 86400
#define SECONDS_MAX 253402300799 // the end of 9999

static const char *const months[] = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const days[] = {
        "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

struct civil {
    unsigned year, month, day, hour, minute, second; // month and day from 1
};

// Days since 1970-01-01 of a date in the Gregorian calendar, years from March on.
static int64_t days_of(unsigned year, unsigned month, unsigned day) {
    int64_t y = (int64_t)year - (month <= 2), m = month > 2 ? month - 3 : month + 9;
    int64_t of_year = (153 * m + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

static struct civil civil_of(int64_t days_since_1970) {
    int64_t z = days_since_1970 + 719468;
    int64_t era = z / 146097, of_era = z % 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
    unsigned month = (unsigned)(m < 10 ? m + 3 : m - 9);
    return (struct civil){.year = (unsigned)(y + era * 400 + (month <= 2)),
            .month = month,
            .day = (unsigned)(of_year - (153 * m + 2) / 5 + 1)};
}

// The take_* functions cut what they read off `text`, and say false for anything else.
static bool take_text(struct view *text, struct view expected) {
    if (!view_starts_fold(*text, expected))
        return false;
    *text = view_skip(*text, expected.length);
    return true;
}

static bool take_number(struct view *text, size_t digits, unsigned *number) {
    uint64_t value;
    if (text->length < digits || !view_number(view_take(*text, digits), &value))
        return false;
    *number = (unsigned)value;
    *text = view_skip(*text, digits);
    return true;
}

static bool take_month(struct view *text, unsigned *month) {
    for (unsigned i = 0; i < 12; i++)
        if (take_text(text, view_of(months[i]))) {
            *month = i + 1;
            return true;
        }
    return false;
}

static bool take_time(struct view *text, struct civil *civil) {
    return take_number(text, 2, &civil->hour) && take_text(text, VIEW(":")) &&
           take_number(text, 2, &civil->minute) && take_text(text, VIEW(":")) &&
           take_number(text, 2, &civil->second);
}

// "06 Nov 1994 08:49:37 GMT"
static bool take_fixdate(struct view *text, struct civil *civil) {
    return take_number(text, 2, &civil->day) && take_text(text, VIEW(" ")) &&
           take_month(text, &civil->month) && take_text(text, VIEW(" ")) &&
           take_number(text, 4, &civil->year) && take_text(text, VIEW(" ")) && take_time(text, civil) &&
           take_text(text, VIEW(" GMT"));
}

// "06-Nov-94 08:49:37 GMT"; more than 50 years ahead means the past [RFC 9110 §5.6.7].
static bool take_rfc850(struct view *text, struct civil *civil, int64_t now_s) {
    unsigned year, now_year = civil_of((now_s > 0 ? now_s : 0) / DAY_SECONDS).year;
    if (!take_number(text, 2, &civil->day) || !take_text(text, VIEW("-")) ||
            !take_month(text, &civil->month) || !take_text(text, VIEW("-")) || !take_number(text, 2, &year))
        return false;
    civil->year = now_year - now_year % 100 + 100 + year;
    while (civil->year > now_year + 50)
        civil->year -= 100;
    return take_text(text, VIEW(" ")) && take_time(text, civil) && take_text(text, VIEW(" GMT"));
}

// "Nov  6 08:49:37 1994"
static bool take_asctime(struct view *text, struct civil *civil) {
    if (!take_month(text, &civil->month) || !take_text(text, VIEW(" ")))
        return false;
    size_t digits = take_text(text, VIEW(" ")) ? 1 : 2;
    return take_number(text, digits, &civil->day) && take_text(text, VIEW(" ")) && take_time(text, civil) &&
           take_text(text, VIEW(" ")) && take_number(text, 4, &civil->year);
}

// The day's name decides the form: "Sun, ", "Sunday, " or "Sun ".
static bool take_date(struct view *text, struct civil *civil, int64_t now_s) {
    for (unsigned i = 0; i < 7; i++) {
        struct view name = view_of(days[i]);
        if (!view_starts_fold(*text, view_take(name, 3)))
            continue;
        if (take_text(text, name))
            return take_text(text, VIEW(", ")) && take_rfc850(text, civil, now_s);
        *text = view_skip(*text, 3);
        if (take_text(text, VIEW(", ")))
            return take_fixdate(text, civil);
        return take_text(text, VIEW(" ")) && take_asctime(text, civil);
    }
    return false;
}

static bool is_date(const struct civil *civil) {
    static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (civil->year % 4 == 0 && civil->year % 100 != 0) || civil->year % 400 == 0;
    unsigned length = lengths[civil->month - 1] + (civil->month == 2 && is_leap);
    return civil->day >= 1 && civil->day <= length && civil->hour < 24 && civil->minute < 60 &&
           civil->second <= 60; // a leap second is one
}

int64_t date_parse(struct view text, int64_t now_s) {
    struct civil civil = {0};
    text = view_trim(text);
    if (!take_date(&text, &civil, now_s) || text.length > 0 || !is_date(&civil))
        return -1;
    int64_t seconds = days_of(civil.year, civil.month, civil.day) * DAY_SECONDS + (int64_t)civil.hour * 3600 +
                      (int64_t)civil.minute * 60 + civil.second;
    return seconds < 0 ? 0 : seconds;
}

char *date_print(int64_t seconds, char out[static DATE_BYTES]) {
    seconds = seconds < 0 ? 0 : seconds > SECONDS_MAX ? SECONDS_MAX : seconds;
    struct civil civil = civil_of(seconds / DAY_SECONDS);
    unsigned of_day = (unsigned)(seconds % DAY_SECONDS);
    snprintf(out, DATE_BYTES, "%.3s, %02u %s %04u %02u:%02u:%02u GMT", days[(seconds / DAY_SECONDS + 4) % 7],
            civil.day % 100, months[civil.month - 1], civil.year % 10000, of_day / 3600 % 24,
            of_day / 60 % 60, of_day % 60);
    return out;
}
