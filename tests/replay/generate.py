"""Sequences of requests, origin behaviours and time, all from a seed. A sequence is a list of steps that stand alone: any
of them can be dropped, and what is left still means the same.

    ("advance", seconds)
    ("wall", seconds)          somebody sets the wall clock
    ("fetch", fetch)           one request, and how the origin behaves should it be asked
    ("crowd", (fetch, others)) several at once; `others`: the fields of those beside the first

Values of fields may be ("date", base, offset): base "now" is the origin's clock, "zero" where all began."""
import random

HOSTS = ["a.example", "b.example"]
DESTINATIONS = ["192.0.2.1", "192.0.2.2"]
PATHS = ["/one", "/two?q=1"]

# What an origin may say of freshness, and how often. Each entry: lines of Cache-Control.
CONTROL = [
    (12, ["max-age=10"]), (6, ["max-age=60"]), (4, ["max-age=3600"]), (4, ["public, max-age=60"]), (3, ["max-age=0"]),
    (4, ["s-maxage=10"]), (2, ["s-maxage=60, max-age=1"]), (2, ["max-age=60", "s-maxage=5"]), (2, ["public"]),
    (3, ["no-cache"]), (2, ["no-cache, max-age=60"]), (4, ["no-store"]), (2, ["no-store, max-age=60"]), (3, ["private"]),
    (2, ["private, max-age=60"]), (4, ["max-age=10, must-revalidate"]), (3, ["max-age=10, proxy-revalidate"]),
    (5, ["max-age=10, stale-while-revalidate=20"]), (4, ["max-age=10, stale-if-error=60"]),
    (2, ["max-age=5, stale-while-revalidate=10, stale-if-error=30"]), (2, ["max-age=10, must-revalidate, stale-if-error=60"]),
    (2, ["max-age=60, immutable"]), (2, ["must-understand, no-store, max-age=60"]), (1, ["must-understand, max-age=60"]),
    (2, ["no-transform, max-age=60"]), (2, ["max-age=\"60\""]), (2, ["MAX-AGE=60"]), (1, ["Max-Age=60,PUBLIC"]),
    (1, ["max-age=-1"]), (1, ["max-age=1.5"]), (1, ["max-age=abc"]), (1, ["max-age"]), (1, ["max-age="]), (1, ["max-age=60s"]),
    (2, ["max-age=99999999999"]), (1, ["max-age=2147483648"]), (1, ["max-age=10, max-age=60"]), (1, ["max-age=60, max-age=60"]),
    (1, ["max-age=60", "max-age=10"]), (1, ["s-maxage=abc, max-age=60"]), (1, ["max-age = 60"]), (1, [",, max-age=60 ,"]),
    (1, ["max-age='60'"]), (1, ["max-age=0060"]), (2, ["community=\"a, no-store, b\", max-age=60"]), (1, ["max-age=60, foo=bar"]),
    (1, ["private=\"X-Private\", max-age=60"]), (1, ["no-cache=\"X-Flavour\", max-age=60"]), (1, ["private=, max-age=60"]),
    (1, ["no-store=x, max-age=60"]), (1, ["public=x, max-age=60"]), (1, [""]), (1, ["max-age=60;no-store"]),
    (1, ["stale-while-revalidate=20"]), (1, ["max-age=10, stale-if-error=abc"]), (1, ["max-age=10, stale-while-revalidate"]),
    (22, []),
]
EXPIRES = [(14, []), (4, [60]), (2, [3600]), (1, [-60]), (1, [0]), (1, ["0"]), (1, ["-1"]), (1, ["tomorrow"]),
    (1, ["Thu, 18 Aug 2050 02:01:18 UTC"]), (1, ["Thu 18 Aug 2050 02:01:18 GMT"]), (1, ["Thu, 18 Aug 2050 2:01:18 GMT"]),
    (1, ["Thu, 18-Aug-50 02:01:18 GMT"]), (1, ["Thursday, 18-Aug-50 02:01:18 GMT"]), (1, ["Thu Aug 18 02:01:18 2050"]),
    (1, ["THU, 18 AUG 2050 02:01:18 GMT"]), (1, [60, 120]), (1, ["Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT"]),
    (1, ["Thu, 18 Aug 2050 25:01:18 GMT"]), (1, ["Thu,  18  Aug  2050  02:01:18  GMT"])]
DATE = [(30, 0), (2, -5), (1, -3600), (2, 5), (1, 3600), (2, None), (1, "yesterday"), (1, "Mon, 30 Feb 2026 00:00:00 GMT")]
AGE = [(24, []), (2, ["0"]), (2, ["5"]), (1, ["100"]), (1, ["99999999999"]), (1, ["-5"]), (1, ["1.5"]), (1, ["abc"]), (1, ["5, 7"]),
    (1, ["5", "100"]), (1, ["abc, 100"]), (1, [" 5"])]
STATUS = [(60, 200), (2, 203), (2, 204), (2, 300), (3, 301), (2, 302), (1, 303), (1, 307), (1, 308), (4, 404), (2, 410), (1, 403),
    (1, 400), (1, 405), (1, 414), (3, 500), (4, 503), (1, 502), (1, 501), (1, 599), (1, 299), (1, 499), (1, 429)]
ETAG = [(6, "strong"), (3, "weak"), (3, "none"), (1, "bare")]
MODIFIED = [(4, "days"), (2, "recent"), (4, "none"), (1, "future"), (1, "bad")]
VARY = [(22, []), (5, ["Accept-Encoding"]), (4, ["Accept-Language"]), (3, ["X-Flavour"]), (1, ["Accept-Encoding, x-flavour"]),
    (1, ["Accept-Encoding", "Accept-Language"]), (2, ["*"]), (1, ["X-Flavour, *"]), (1, [""])]
FRAMING = [(6, "length"), (3, "chunked"), (2, "close")]
CONDITION = [(20, "honest"), (2, "ignore"), (2, "bare"), (2, "other"), (1, "weakened"), (1, "length"), (1, "spurious")]
RANGE = [(10, "honest"), (3, "ignore"), (2, "other"), (1, "bad"), (1, "fewer"), (1, "bare")]
FAILURE = [(50, None), (3, "none"), (2, "refuse"), (3, "cut"), (2, "reset"), (1, "head")]

REQUEST_CONTROL = [(60, []), (3, ["no-cache"]), (2, ["no-store"]), (4, ["max-age=0"]), (3, ["max-age=5"]), (1, ["max-age=100"]),
    (2, ["min-fresh=5"]), (1, ["min-fresh=50"]), (4, ["max-stale"]), (3, ["max-stale=10"]), (1, ["max-stale=1000"]),
    (3, ["only-if-cached"]), (1, ["max-stale, only-if-cached"]), (1, ["MAX-STALE"]), (1, ["No-Cache"]), (1, ["foo, bar=1"]),
    (1, ["max-age=abc"]), (1, ["min-fresh=-1"]), (1, ["max-age=3, max-stale=100"]), (1, ["stale-if-error=60"]), (1, ["no-transform"])]
ENCODINGS = [(6, None), (4, "gzip"), (2, "gzip, br"), (2, "br, gzip"), (1, "GZIP"), (1, "gzip;q=0.5, br"), (1, "br,gzip;q=0.5"),
    (1, ""), (1, "identity")]
LANGUAGES = [(8, None), (3, "cs"), (3, "en"), (1, "cs, en;q=0.5"), (1, "en;q=0.5,cs"), (1, "EN")]
FLAVOURS = [(8, None), (3, "sweet"), (2, "sour"), (1, "Sweet"), (1, "sweet, sour"), (1, "sweet,sour"), (1, "")]
RANGES = ["bytes=0-9", "bytes=10-19", "bytes=5-", "bytes=-7", "bytes=0-0", "bytes=30-20", "bytes=0-99999", "bytes=90000-",
    "bytes=0-3,10-14", "bytes=0-3, 2-9", "bytes=-1,0-0", "items=0-1", "bytes=a-b", "BYTES=0-4", "bytes=-0", "bytes=0-9,99999-"]
PAUSES = [(8, 0), (6, 1), (4, 4), (4, 9), (3, 10), (3, 11), (3, 25), (2, 61), (1, 200), (1, 4000), (1, 100000)]


def pick(rng, table):
    return rng.choices([value for _, value in table], [weight for weight, _ in table])[0]


def behaviour(rng, path, previous):
    """How the origin answers for a path: mostly as before, so that what is stored meets what confirms it."""
    if previous and rng.random() < 0.6:
        now = dict(previous)
    else:
        now = {"control": pick(rng, CONTROL), "expires": pick(rng, EXPIRES), "age": pick(rng, AGE), "date": pick(rng, DATE),
            "etag": pick(rng, ETAG), "modified": pick(rng, MODIFIED), "vary": pick(rng, VARY), "framing": pick(rng, FRAMING),
            "cookie": rng.random() < 0.08, "hop": rng.random() < 0.15, "encoded": rng.random() < 0.3, "version": 1}
        if previous:
            now["version"] = previous["version"] + 1
    if rng.random() < 0.15:
        now["version"] += 1
    now["status"] = pick(rng, STATUS) if rng.random() < 0.3 else 200
    now["condition"], now["range"] = pick(rng, CONDITION), pick(rng, RANGE)
    now["failure"] = pick(rng, FAILURE)
    now["cut_at"] = rng.random()
    now["interim"] = rng.random() < 0.04
    now["location"] = rng.choice([None, None, "/one", "/two?q=1", "http://b.example/one", "http://A.example:80/two?q=1"])
    now["content_location"] = rng.choice([None, None, None, path, "/one"])
    return now


def conditions(rng, version):
    kind = rng.random()
    tags = [f'"{version}"', f'W/"{version}"', '"0"', f'"0", "{version}"', "*", f'"0" "{version}"', f'{version}']
    if kind < 0.6:
        fields = [("If-None-Match", rng.choice(tags))]
        if rng.random() < 0.2:
            fields.append(("If-Modified-Since", ("date", "now", 0)))
        return fields
    return [("If-Modified-Since", rng.choice([("date", "now", 0), ("date", "zero", -864000 + 100 * version),
        ("date", "zero", -900000), "garbage"]))]


def request_fields(rng, version):
    fields = [("Cache-Control", line) for line in pick(rng, REQUEST_CONTROL)]
    for name, table in (("Accept-Encoding", ENCODINGS), ("Accept-Language", LANGUAGES), ("X-Flavour", FLAVOURS)):
        value = pick(rng, table)
        if value is not None:
            fields.append((name, value))
    if rng.random() < 0.04:
        fields.append(("Pragma", "no-cache"))
    if rng.random() < 0.06:
        fields.append(("Authorization", "Basic eDp5"))
    if rng.random() < 0.05:
        fields.append(("Cookie", "a=b"))
    if rng.random() < 0.05:
        fields += [("Connection", "X-Once"), ("X-Once", "1")]
    if rng.random() < 0.18:
        fields += conditions(rng, version)
    if rng.random() < 0.16:
        fields.append(("Range", rng.choice(RANGES)))
        if rng.random() < 0.35:
            fields.append(("If-Range", rng.choice([f'"{version}"', f'W/"{version}"', '"0"',
                ("date", "zero", -864000 + 100 * version), "garbage"])))
    if rng.random() < 0.02:
        fields.append(rng.choice([("If-Match", f'"{version}"'), ("If-Unmodified-Since", ("date", "now", 0))]))
    rng.shuffle(fields)
    return fields


def crowd_fields(rng, version, first):
    """Of those who ask at the same time: mostly the same."""
    return [first if rng.random() < 0.6 else request_fields(rng, version) for _ in range(rng.randint(1, 3))]


def sequence(seed):
    rng = random.Random(seed)
    hosts = HOSTS[:rng.choice([1, 1, 1, 2])]
    destinations = DESTINATIONS[:rng.choice([1, 1, 1, 1, 2])]
    paths = PATHS[:rng.choice([1, 1, 2])]
    origins, steps = {}, []
    methods = [(40, "GET"), (3, "HEAD"), (1, "POST"), (1, "PUT"), (1, "DELETE"), (1, "BREW"), (1, "OPTIONS"), (1, "PATCH")]
    for _ in range(rng.randint(2, 12)):
        place = rng.choice(hosts), rng.choice(destinations), rng.choice(paths)
        origins[place] = behaviour(rng, place[2], origins.get(place))
        version = max(1, origins[place]["version"] - rng.choice([0, 0, 0, 1]))
        method = pick(rng, methods)
        fetch = {"host": place[0], "destination": place[1], "path": place[2], "method": method,
            "fields": request_fields(rng, version), "origin": origins[place]}
        if method in ("GET", "HEAD") and rng.random() < 0.12:
            steps.append(("crowd", (fetch, crowd_fields(rng, version, fetch["fields"]))))
        else:
            steps.append(("fetch", fetch))
        pause = pick(rng, PAUSES)
        if pause:
            steps.append(("advance", pause))
        if rng.random() < 0.02:
            steps.append(("wall", rng.choice([-86400, -100, 100, 86400])))
    return steps
