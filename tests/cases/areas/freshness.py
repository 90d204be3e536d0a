"""Freshness: s-maxage, max-age, Expires, Date, Age, heuristics, and every spelling of them."""
from case import *  # noqa: F403

S11 = "9111 §5.2.2.1"    # max-age
S10 = "9111 §5.2.2.10"   # s-maxage
EXPIRES = "9111 §5.3"
LIFETIME = "9111 §4.2.1"
AGE = "9111 §4.2.3"
HEURISTIC = "9111 §4.2.2"
LATER, EARLIER = "{now+3600}", "{now-3600}"

# ---- plain ----
reused("fresh-max-age", S11, "Cache-Control: max-age=3600")
reused("fresh-s-maxage", S10, "Cache-Control: s-maxage=3600")
reused("fresh-expires", EXPIRES, f"Expires: {LATER}")
not_reused("fresh-max-age-0", S11, "Cache-Control: max-age=0")
not_reused("fresh-s-maxage-0", S10, "Cache-Control: s-maxage=0")
not_reused("fresh-expires-past", EXPIRES, f"Expires: {EARLIER}")
not_reused("fresh-expires-is-date", EXPIRES, "Expires: {now}", "Date: {now}")
not_reused("fresh-max-age-passes", S11, "Cache-Control: max-age=2", pause=3.2)
not_reused("fresh-s-maxage-passes", S10, "Cache-Control: s-maxage=2", pause=3.2)
not_reused("fresh-expires-passes", EXPIRES, "Expires: {now+2}", pause=3.2)
reused("fresh-max-age-not-yet", S11, "Cache-Control: max-age=30", pause=2)

for name in ("must-revalidate", "proxy-revalidate", "no-transform", "public", "immutable", "stale-if-error=60",
        "stale-while-revalidate=60"):
    reused(f"fresh-with-{name.partition('=')[0]}", S11, f"Cache-Control: max-age=3600, {name}")
# ---- precedence ----
reused("fresh-s-maxage-over-max-age", LIFETIME, "Cache-Control: max-age=0, s-maxage=3600")
reused("fresh-s-maxage-over-expires", LIFETIME, "Cache-Control: s-maxage=3600", f"Expires: {EARLIER}")
reused("fresh-max-age-over-expires", LIFETIME, "Cache-Control: max-age=3600", f"Expires: {EARLIER}")
reused("fresh-max-age-over-expires-garbage", LIFETIME, "Cache-Control: max-age=3600", "Expires: 0")
not_reused("fresh-s-maxage-0-over-max-age", LIFETIME, "Cache-Control: max-age=3600, s-maxage=0")
not_reused("fresh-s-maxage-0-over-expires", LIFETIME, "Cache-Control: s-maxage=0", f"Expires: {LATER}")
not_reused("fresh-max-age-0-over-expires", LIFETIME, "Cache-Control: max-age=0", f"Expires: {LATER}")
not_reused("fresh-s-maxage-first-passes", LIFETIME, "Cache-Control: s-maxage=2, max-age=3600", pause=3.2)

# ---- spellings of Cache-Control ----
for name, line in {
        "case": "Cache-Control: MaX-aGe=3600",
        "field-name-case": "cAcHe-CoNtRoL: max-age=3600",
        "extension": "Cache-Control: foobar, max-age=3600",
        "extension-argument": "Cache-Control: foobar=1, max-age=3600",
        "extension-quoted": 'Cache-Control: foobar="max-age=0, x", max-age=3600',
        "extension-quoted-escape": 'Cache-Control: foobar="a\\", max-age=0", max-age=3600',
        "quoted": 'Cache-Control: max-age="3600"',
        "empty-members": "Cache-Control: ,, max-age=3600 ,",
        "blanks": "Cache-Control:    public  ,\t max-age=3600\t ",
        "no-blanks": "Cache-Control:public,max-age=3600",
        "leading-zeros": "Cache-Control: max-age=003600",
        "large": "Cache-Control: max-age=2147483648",
        "larger": "Cache-Control: max-age=99999999999",
        "overflow-64": "Cache-Control: max-age=99999999999999999999999999",
        "public": "Cache-Control: public, max-age=3600",
        "immutable": "Cache-Control: max-age=3600, immutable"}.items():
    reused(f"spelling-max-age-{name}", S11 if "quoted" not in name else "9111 §5.2", line)
for name, line in {
        "case": "Cache-Control: S-MaxAge=3600",
        "quoted": 'Cache-Control: s-maxage="3600"',
        "overflow": "Cache-Control: s-maxage=99999999999999999999"}.items():
    reused(f"spelling-s-maxage-{name}", S10, line)
reused("spelling-two-lines", "9110 §5.3", "Cache-Control: public", "Cache-Control: max-age=3600")
reused("spelling-two-lines-apart", "9110 §5.3", "Cache-Control: public", "X-Other: 1", "Cache-Control: max-age=3600")
not_reused("spelling-two-lines-no-store", "9110 §5.3", "Cache-Control: max-age=3600", "Cache-Control: no-store")

# An argument that is no delta-seconds makes the response stale: encouraged, not required.
for name, argument in {
        "empty": "=", "none": "", "word": "=abc", "float": "=0.5", "negative": "=-3600", "sign": "=+0",
        "quoted-empty": '=""', "quoted-word": '="abc"', "single-quotes": "='0'"}.items():
    not_reused(f"malformed-max-age-{name}", LIFETIME, f"Cache-Control: max-age{argument}", kind=SHOULD)
    not_reused(f"malformed-max-age-{name}-with-expires", LIFETIME, f"Cache-Control: max-age{argument}", "Expires: {now-1}", kind=SHOULD)
for name, argument in {"word": "=abc", "negative": "=-1", "none": "", "float": "=1.5"}.items():
    not_reused(f"malformed-s-maxage-{name}", LIFETIME, f"Cache-Control: s-maxage{argument}", kind=SHOULD)
for name, argument in {"trailing-letters": "=3600a", "trailing-word": "=3600 x", "float-large": "=3600.9",
        "hexadecimal": "=0x3600", "exponent": "=1e9", "negative-large": "=-3600"}.items():
    not_reused(f"malformed-max-age-{name}-is-stale", LIFETIME, f"Cache-Control: max-age{argument}", kind=SHOULD)
not_reused("malformed-max-age-blank-before", LIFETIME, "Cache-Control: max-age =0", kind=SHOULD)
not_reused("malformed-max-age-blank-behind", LIFETIME, "Cache-Control: max-age= 0", kind=SHOULD)

# Of several, the first counts, or the response is stale: "should".
not_reused("repeated-max-age-zeros", LIFETIME, "Cache-Control: max-age=0, max-age=0", kind=SHOULD)
reused("repeated-max-age-same", LIFETIME, "Cache-Control: max-age=3600, max-age=3600")
not_reused("repeated-max-age-first-is-0", LIFETIME, "Cache-Control: max-age=0, max-age=3600", kind=SHOULD)
not_reused("repeated-max-age-lines-first-is-0", LIFETIME, "Cache-Control: max-age=0", "Cache-Control: max-age=3600", kind=SHOULD)
not_reused("repeated-s-maxage-first-is-0", LIFETIME, "Cache-Control: s-maxage=0, s-maxage=3600", kind=SHOULD)
not_reused("repeated-expires-all-past", LIFETIME, "Expires: {now-10}", "Expires: {now-20}", kind=SHOULD)
not_reused("repeated-expires-first-is-past", LIFETIME, f"Expires: {EARLIER}", f"Expires: {LATER}", kind=SHOULD)

# ---- dates ----
reused("date-rfc850", "9110 §5.6.7", "Expires: {rfc850 now+3600}")
reused("date-asctime", "9110 §5.6.7", "Expires: {asctime now+3600}")
reused("date-rfc850-both", "9110 §5.6.7", "Expires: {rfc850 now+3600}", "Date: {rfc850 now}")
reused("date-asctime-both", "9110 §5.6.7", "Expires: {asctime now+3600}", "Date: {asctime now}")
reused("date-lower-case", "9111 §4.2", "Expires: wed, 20 jan 2038 03:14:07 gmt")
reused("date-far-future", EXPIRES, "Expires: Thu, 31 Dec 9999 23:59:59 GMT")
reused("date-2038", EXPIRES, "Expires: Wed, 20 Jan 2038 03:14:07 GMT")
not_reused("date-rfc850-past", "9110 §5.6.7", "Expires: {rfc850 now-3600}")
not_reused("date-asctime-past", "9110 §5.6.7", "Expires: {asctime now-3600}")
not_reused("date-rfc850-50-years", "9110 §5.6.7", "Expires: Thursday, 18-Aug-94 02:01:18 GMT")
not_reused("date-1969", EXPIRES, "Expires: Wed, 31 Dec 1969 23:59:59 GMT")
not_reused("date-year-1", EXPIRES, "Expires: Mon, 01 Jan 0001 00:00:00 GMT")
for name, value in {
        "zero": "0", "minus-one": "-1", "word": "never", "empty": "", "number": "3600", "epoch": "4102444800",
        "other-zone": "Thu, 18 Aug 2050 02:01:18 AEST", "utc": "Thu, 18 Aug 2050 02:01:18 UTC",
        "offset": "Thu, 18 Aug 2050 02:01:18 +0000", "no-zone": "Thu, 18 Aug 2050 02:01:18",
        "no-comma": "Thu 18 Aug 2050 02:01:18 GMT", "two-digit-year": "Thu, 18 Aug 50 02:01:18 GMT",
        "five-digit-year": "Thu, 18 Aug 20500 02:01:18 GMT",
        "two-blanks": "Thu,  18  Aug  2050  02:01:18  GMT", "hyphens": "Thu, 18-Aug-2050 02:01:18 GMT",
        "no-day-name": "18 Aug 2050 02:01:18 GMT", "dots": "Thu, 18 Aug 2050 02.01.18 GMT",
        "one-digit-hour": "Thu, 18 Aug 2050 2:01:18 GMT", "no-seconds": "Thu, 18 Aug 2050 02:01 GMT",
        "one-digit-day": "Thu, 8 Aug 2050 02:01:18 GMT", "month-word": "Thu, 18 August 2050 02:01:18 GMT",
        "hour-24": "Thu, 18 Aug 2050 24:01:18 GMT", "day-32": "Thu, 32 Aug 2050 02:01:18 GMT",
        "iso": "2050-08-18T02:01:18Z", "list": "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
        "quoted": '"Thu, 18 Aug 2050 02:01:18 GMT"', "trailing": "Thu, 18 Aug 2050 02:01:18 GMT x"}.items():
    not_reused(f"malformed-expires-{name}", EXPIRES, f"Expires: {value}")
reused("date-missing", "9110 §6.6.1", "Cache-Control: max-age=3600", date=False)
reused("date-missing-expires", LIFETIME, "Expires: {now+3600}", date=False)
reused("date-garbage", "9110 §6.6.1", "Cache-Control: max-age=3600", "Date: yesterday")
reused("date-in-future", AGE, "Cache-Control: max-age=3600", "Date: {now+120}")
reused("date-expires-relative", LIFETIME, "Date: {now-10}", "Expires: {now+3600}")
not_reused("date-expires-is-measured-from-date", LIFETIME, "Date: {now+3600}", "Expires: {now+3600}")
not_reused("date-expires-before-future-date", LIFETIME, "Date: {now+7200}", "Expires: {now+3600}")
not_reused("date-old", AGE, "Cache-Control: max-age=3600", "Date: {now-3700}")
reused("date-old-not-too-old", AGE, "Cache-Control: max-age=3600", "Date: {now-1800}")

# ---- Age ----
not_reused("age-above-lifetime", AGE, "Cache-Control: max-age=3600", "Age: 7200")
not_reused("age-is-lifetime", AGE, "Cache-Control: max-age=3600", "Age: 3600")
not_reused("age-above-s-maxage", AGE, "Cache-Control: s-maxage=3600", "Age: 3601")
not_reused("age-above-expires", AGE, "Expires: {now+3600}", "Age: 3700")
not_reused("age-passes", AGE, "Cache-Control: max-age=3600", "Age: 3598", pause=3.2)
not_reused("age-overflow", "9111 §1.2.2", "Cache-Control: max-age=3600", "Age: 99999999999999999999")
not_reused("age-31-bits", "9111 §1.2.2", "Cache-Control: max-age=3600", "Age: 2147483648")
not_reused("age-32-bits", "9111 §1.2.2", "Cache-Control: max-age=3600", "Age: 4294967297")
not_reused("age-list-first", "9111 §5.1", "Cache-Control: max-age=3600", "Age: 7200, 0", kind=SHOULD)
not_reused("age-lines-first", "9111 §5.1", "Cache-Control: max-age=3600", "Age: 7200", "Age: 0", kind=SHOULD)
reused("age-below-lifetime", AGE, "Cache-Control: max-age=3600", "Age: 1800")
for name, value in {"word": "abc", "negative": "-7200", "float": "7200.0", "empty": "", "letters": "7200s",
        "quoted": '"7200"', "parameter": "7200;a=b", "word-first": "x, 7200", "word-behind": "7200 x"}.items():
    reused(f"age-malformed-{name}", "9111 §5.1", "Cache-Control: max-age=3600", f"Age: {value}")
reused("age-list-first-is-small", "9111 §5.1", "Cache-Control: max-age=3600", "Age: 0, 7200")
must("age-is-sent", "9111 §4", step(answer=answer("Cache-Control: max-age=3600")),
    step(pause=2, expect=age(1, 5), given=STORED))
must("age-adds-to-received", AGE, step(answer=answer("Cache-Control: max-age=3600", "Age: 1000")),
    step(pause=2, expect=age(1001, 1006), given=STORED))
must("age-from-date", AGE, step(answer=answer("Cache-Control: max-age=3600", "Date: {now-100}")),
    step(expect=age(99, 106), given=STORED))
must("age-larger-of-date-and-age", AGE, step(answer=answer("Cache-Control: max-age=3600", "Date: {now-100}", "Age: 300")),
    step(expect=age(300, 306), given=STORED))
must("age-counts-the-delay", AGE, step(answer=answer("Cache-Control: max-age=3600", "Age: 100", delay=2.2)),
    step(expect=age(102, 107), given=STORED))
must("age-date-in-future-is-0", AGE, step(answer=answer("Cache-Control: max-age=3600", "Date: {now+1000}")),
    step(expect=age(0, 6), given=STORED))
must("age-malformed-is-not-added", "9111 §5.1", step(answer=answer("Cache-Control: max-age=3600", "Age: abc")),
    step(expect=age(0, 6), given=STORED))
must("age-first-of-list", "9111 §5.1", step(answer=answer("Cache-Control: max-age=3600", "Age: 100, 200")),
    step(expect=age(100, 106), given=STORED))
for kind, name, line in ((MUST, "date", "Date: {now-1000}"), (SHOULD, "age", "Age: 1000")):
    case(kind, f"age-restarts-after-validation-{name}", "9111 §4.3.4",
        step(answer=answer("Cache-Control: max-age=1", line, 'ETag: "a"')),
        step(answer=answer("Cache-Control: max-age=3600", 'ETag: "a"', status=304), given=(CONDITIONAL, status(200))),
        step(expect=age(0, 20), given=STORED))

# ---- heuristics ----
for number in (200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501):
    reused(f"heuristic-{number}", "9110 §15.1", "Last-Modified: {now-864000}", "Date: {now}", status=number)
for number in (201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 299, 499, 599):
    not_reused(f"heuristic-not-{number}", HEURISTIC, "Last-Modified: {now-864000}", "Date: {now}", status=number)
reused("heuristic-public-201", HEURISTIC, "Cache-Control: public", "Last-Modified: {now-864000}", status=201)
reused("heuristic-public-599", HEURISTIC, "Cache-Control: public", "Last-Modified: {now-864000}", status=599)
not_reused("heuristic-just-modified", HEURISTIC, "Last-Modified: {now-3}", pause=3.2, kind=SHOULD)
not_reused("heuristic-not-with-max-age-0", HEURISTIC, "Cache-Control: max-age=0", "Last-Modified: {now-864000}")
not_reused("heuristic-not-with-expires-invalid", HEURISTIC, "Expires: 0", "Last-Modified: {now-864000}")
not_reused("heuristic-not-with-max-age-invalid", HEURISTIC, "Cache-Control: max-age=abc", "Last-Modified: {now-864000}", kind=SHOULD)
reused("heuristic-last-modified-rfc850", HEURISTIC, "Last-Modified: {rfc850 now-864000}")
reused("heuristic-last-modified-asctime", HEURISTIC, "Last-Modified: {asctime now-864000}")
reused("heuristic-other-directives", HEURISTIC, "Cache-Control: foobar", "Last-Modified: {now-864000}")
