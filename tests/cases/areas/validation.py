"""Validation: clients' conditions answered from the store, our own conditional requests, and what a 304 or a HEAD updates."""
from case import *  # noqa: F403

CLIENT = "9111 §4.3.2"
OWN = "9111 §4.3.1"
UPDATE = "9111 §4.3.4"
HEAD = "9111 §4.3.5"
HOUR = "Cache-Control: max-age=3600"
GONE = ("Cache-Control: max-age=1", "Age: 10")  # stale at once, but stored
MODIFIED = "{start-86400}"


def client(name, stored, condition, wanted, kind=MAY, section=CLIENT):
    """A client's conditional request that what is stored can answer."""
    case(kind, f"client-{name}", section, step(answer=answer(HOUR, *stored)),
        step(*condition, expect=(STORED, status(wanted), body(b"") if wanted == 304 else body_of(1))))


A = ('ETag: "a"',)
client("inm-match", A, ('If-None-Match: "a"',), 304)
client("inm-other", A, ('If-None-Match: "b"',), 200)
client("inm-list", A, ('If-None-Match: "x", "a", "y"',), 304)
client("inm-list-other", A, ('If-None-Match: "x", "y"',), 200)
client("inm-list-no-blanks", A, ('If-None-Match: "x","a"',), 304)
client("inm-lines", A, ('If-None-Match: "x"', 'If-None-Match: "a"'), 304)
client("inm-star", A, ("If-None-Match: *",), 304)
client("inm-star-without-tag", (), ("If-None-Match: *",), 304)
client("inm-weak-asked", A, ('If-None-Match: W/"a"',), 304)
client("inm-weak-stored", ('ETag: W/"a"',), ('If-None-Match: "a"',), 304)
client("inm-weak-both", ('ETag: W/"a"',), ('If-None-Match: W/"a"',), 304)
client("inm-comma-in-tag", ('ETag: "a,b"',), ('If-None-Match: "x", "a,b"',), 304)
client("inm-part-of-tag", ('ETag: "a"',), ('If-None-Match: "a,b"',), 200)
client("inm-case", ('ETag: "a"',), ('If-None-Match: "A"',), 200)
client("inm-empty-tag", ('ETag: ""',), ('If-None-Match: ""',), 304)
client("inm-backslash", ('ETag: "a\\"',), ('If-None-Match: "a\\"',), 304)
client("inm-without-tag", (), ('If-None-Match: "a"',), 200)
client("inm-unquoted-both", ("ETag: abc",), ("If-None-Match: abc",), 304)
client("inm-unquoted-asked", ('ETag: "abc"',), ("If-None-Match: abc",), 304)
client("inm-unquoted-stored", ("ETag: abc",), ('If-None-Match: "abc"',), 304)
client("ims-same", (f"Last-Modified: {MODIFIED}",), (f"If-Modified-Since: {MODIFIED}",), 304)
client("ims-later", (f"Last-Modified: {MODIFIED}",), ("If-Modified-Since: {start-3600}",), 304)
client("ims-earlier", (f"Last-Modified: {MODIFIED}",), ("If-Modified-Since: {start-90000}",), 200)
client("ims-rfc850", (f"Last-Modified: {MODIFIED}",), ("If-Modified-Since: {rfc850 start-86400}",), 304)
client("ims-asctime", (f"Last-Modified: {MODIFIED}",), ("If-Modified-Since: {asctime start-86400}",), 304)
client("ims-garbage", (f"Last-Modified: {MODIFIED}",), ("If-Modified-Since: yesterday",), 200)
client("ims-by-date", ("Date: {start-100}",), ("If-Modified-Since: {start-50}",), 304)
client("ims-before-date", ("Date: {start-100}",), ("If-Modified-Since: {start-200}",), 200)
BOTH = ('ETag: "a"', f"Last-Modified: {MODIFIED}")
must("client-inm-over-ims", "9110 §13.1.3", step(answer=answer(HOUR, *BOTH)),
    step('If-None-Match: "b"', f"If-Modified-Since: {MODIFIED}", given=STORED, expect=(status(200), body_of(1))))
must("client-inm-over-ims-match", "9110 §13.1.3", step(answer=answer(HOUR, *BOTH)),
    step('If-None-Match: "a"', "If-Modified-Since: {start-90000}", given=STORED, expect=status(304)))
may("client-inm-head", CLIENT, step(answer=answer(HOUR, *A)),
    step('If-None-Match: "a"', method="HEAD", expect=(STORED, status(304))))
for name, line in {"if-match": 'If-Match: "b"', "if-unmodified-since": "If-Unmodified-Since: {start-90000}"}.items():
    must(f"client-{name}-not-judged", CLIENT, step(answer=answer(HOUR, *BOTH)),
        step(line, answer=answer(status=412), expect=either(ASKED, status(200))))
for name in ("Cache-Control", "Content-Location", "Date", "ETag", "Expires", "Vary"):
    value = {"Cache-Control": "max-age=3600", "Content-Location": "{path}/x", "Date": "{start-10}", "ETag": '"a"',
        "Expires": "{start+3600}", "Vary": "Foo"}[name]
    fields = [HOUR, *A] + [f"{name}: {value}"] * (name not in ("Cache-Control", "ETag"))
    must(f"client-304-has-{name.lower()}", "9110 §15.4.5", step(answer=answer(*fields)),
        step('If-None-Match: "a"', given=(STORED, status(304)), expect=has(name) if name == "Date" else field(name, value)))
must("client-304-has-age", "9111 §4", step(answer=answer(HOUR, *A, "Age: 100")),
    step('If-None-Match: "a"', given=(STORED, status(304)), expect=age(100, 110)))
must("client-304-no-body-length", "9110 §8.6", step(answer=answer(HOUR, *A, body=b"0123456789")),
    step('If-None-Match: "a"', given=(STORED, status(304)), expect=lacks("Content-Length", "0")))

# ---- a client's condition where the store must ask ----
must("client-304-from-the-origin", OWN, step('If-None-Match: "a"', answer=answer(HOUR, *A, status=304), expect=(ASKED, status(304))))
must("client-304-is-not-stored", "9111 §3", step('If-None-Match: "a"', answer=answer(HOUR, *A, status=304)),
    step(answer=answer(HOUR), expect=(ASKED, status(200), body_of(2))))
must("client-other-tag-304", UPDATE, step(answer=answer(*GONE, *A)),
    step('If-None-Match: "b"', answer=answer(HOUR, 'ETag: "b"', honest=True, on_condition=answer(HOUR, 'ETag: "b"', status=304)),
        expect=either(status(304), body_of(2))))
may("client-same-tag-304-freshens", UPDATE, step(answer=answer(*GONE, *A)),
    step('If-None-Match: "a"', answer=answer(HOUR, *A, on_condition=answer(HOUR, *A, status=304)), expect=status(304)),
    step(expect=(STORED, body_of(1))))
may("client-condition-full-answer-is-stored", OWN, step(answer=answer(*GONE, *A)),
    step('If-None-Match: "a"', answer=answer(HOUR, 'ETag: "b"'), expect=(status(200), body_of(2))),
    step(expect=(STORED, body_of(2))))
must("client-stale-old-tag-confirmed-new", OWN, step(answer=answer(*GONE, 'ETag: "new"')),
    step('If-None-Match: "old"', answer=answer(HOUR, 'ETag: "new"', honest=True, on_condition=answer(HOUR, 'ETag: "new"', status=304)),
        expect=either((status(200), body_of(1)), (status(200), body_of(2)))))

must("client-304-unasked-is-not-stored", "9111 §4.3.3", step(answer=answer(HOUR, *A, status=304)),
    step(answer=answer(HOUR), expect=(ASKED, status(200), body_of(2))))
must("client-condition-reaches-the-origin", "9110 §13.2", step('If-None-Match: "x"', "If-Modified-Since: {start-500}",
    answer=answer(HOUR), expect=(origin_members("If-None-Match", '"x"'), status(200), body_of(1))))
may("client-condition-with-no-cache", OWN, step(answer=answer(HOUR, *A)),
    step('If-None-Match: "a"', "Cache-Control: no-cache", answer=answer(HOUR, *A, on_condition=answer(HOUR, *A, status=304)),
        expect=(CONDITIONAL, status(304))))
may("client-condition-max-age-0", OWN, step(answer=answer(HOUR, *A, "Age: 5")),
    step('If-None-Match: "a"', "Cache-Control: max-age=0", answer=answer(HOUR, *A, on_condition=answer(HOUR, *A, status=304)),
        expect=(CONDITIONAL, status(304))))
must("client-condition-unquoted-reaches-the-origin", "9110 §13.1.2", step("If-None-Match: abc", answer=answer(HOUR, "ETag: abc"),
    expect=(origin_field("If-None-Match", "abc"), status(200), body_of(1))))
may("client-ims-stale", OWN, step(answer=answer(*GONE, f"Last-Modified: {MODIFIED}")), step(f"If-Modified-Since: {MODIFIED}",
    answer=answer(HOUR, on_condition=answer(HOUR, f"Last-Modified: {MODIFIED}", status=304)), expect=(CONDITIONAL, status(304))),
    step(expect=(STORED, status(200), body_of(1))))

# ---- our own condition ----
def own(kind, name, stored, *expect):
    confirmed = answer(HOUR, *stored, status=304)
    case(kind, f"own-{name}", OWN, step(answer=answer(*GONE, *stored)), step(
        answer=answer(HOUR, on_condition=confirmed), given=() if kind == MAY else CONDITIONAL, expect=expect))


own(MAY, "by-tag", A, origin_field("If-None-Match", '"a"'), status(200), body_of(1))
own(MAY, "by-weak-tag", ('ETag: W/"a"',), origin_field("If-None-Match", 'W/"a"'), status(200), body_of(1))
own(MAY, "by-date", (f"Last-Modified: {MODIFIED}",), origin_field("If-Modified-Since", MODIFIED), status(200), body_of(1))
own(MUST, "tag-when-there-is-one", BOTH, origin_field("If-None-Match", '"a"'))
own(SHOULD, "date-beside-the-tag", BOTH, origin_field("If-Modified-Since", MODIFIED))
own(MAY, "obsolete-tag", ("ETag: abc",), status(200))
own(MAY, "tag-with-comma", ('ETag: "a,b"',), origin_field("If-None-Match", '"a,b"'), body_of(1))
must("own-none-without-validator", OWN, step(answer=answer(*GONE)), step(answer=answer(HOUR), expect=(UNCONDITIONAL, body_of(2))))
must("own-200-replaces", OWN, step(answer=answer(*GONE, *A, "X-Old: 1")),
    step(answer=answer(HOUR, 'ETag: "b"'), expect=(status(200), body_of(2), lacks("X-Old"))),
    step(given=STORED, expect=(body_of(2), field("ETag", '"b"'), lacks("X-Old"))))
must("own-200-forbids-storing", OWN, step(answer=answer(*GONE, *A)),
    step(answer=answer("Cache-Control: no-store"), expect=body_of(2)), step(expect=(ASKED, body_of(3))))
must("own-404-is-passed", OWN, step(answer=answer(*GONE, *A)), step(answer=answer(status=404), expect=(status(404), body_of(2))))
may("own-404-replaces", OWN, step(answer=answer(*GONE, *A)), step(answer=answer(HOUR, status=404), expect=status(404)),
    step(expect=(STORED, status(404), body_of(2))))
may("own-304-freshens", UPDATE, step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, status=304)), expect=(status(200), body_of(1))),
    step(expect=(STORED, body_of(1))))
may("own-304-freshens-by-expires", UPDATE, step(answer=answer("Expires: {now-10}", *A)),
    step(answer=answer(HOUR, on_condition=answer("Expires: {now+3600}", *A, status=304)), expect=body_of(1)),
    step(expect=(STORED, body_of(1))))
may("own-304-without-validator", UPDATE, step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, on_condition=answer(HOUR, status=304)), expect=(CONDITIONAL, status(200), body_of(1))))
may("own-304-weak", UPDATE, step(answer=answer(*GONE, 'ETag: W/"a"')),
    step(answer=answer(HOUR, on_condition=answer(HOUR, 'ETag: W/"a"', status=304)), expect=(status(200), body_of(1))),
    step(expect=(STORED, body_of(1))))
may("own-304-by-last-modified", UPDATE, step(answer=answer(*GONE, f"Last-Modified: {MODIFIED}")),
    step(answer=answer(HOUR, on_condition=answer(HOUR, f"Last-Modified: {MODIFIED}", status=304)), expect=body_of(1)),
    step(expect=(STORED, body_of(1))))
must("own-304-of-another-tag", UPDATE, step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, 'ETag: "b"', on_condition=answer(HOUR, 'ETag: "b"', "X-New: 1", status=304)), given=ASKED,
        expect=lacks("X-New")),
    step(expect=lacks("X-New")))
may("own-304-of-another-tag-asks-again", UPDATE, step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, 'ETag: "b"', on_condition=answer(HOUR, 'ETag: "b"', status=304)),
        expect=(status(200), body_of(2))),
    step(expect=(STORED, body_of(2))))
must("own-304-forbids-reuse", UPDATE, step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, on_condition=answer("Cache-Control: no-cache", *A, status=304)), given=CONDITIONAL),
    step(expect=ASKED))
must("own-304-without-freshness-is-not-fresh", UPDATE, step(answer=answer("Cache-Control: max-age=1", "Age: 10", *A)),
    step(answer=answer(HOUR, on_condition=answer(*A, "Age: 10", status=304)), given=CONDITIONAL), step(expect=ASKED))

# ---- what a 304 updates ----
UPDATED = {
    "Cache-Control": "max-age=7200", "Expires": "{start+7200}", "Date": "{start-5}", "Content-Language": "cs",
    "Content-Location": "{path}/new", "Last-Modified": "{start-600}", "Link": "</new>; rel=next", "X-Anything": "new",
    "Set-Cookie": "new=1", "Content-Security-Policy": "default-src 'none'", "Access-Control-Allow-Origin": "https://new.example",
    "Server": "new/2", "Allow": "GET, HEAD", "Vary": "Foo", "Via": "1.1 new", "Warning": '299 - "new"', "X-Frame-Options": "DENY",
    "Strict-Transport-Security": "max-age=2", "Content-Disposition": "attachment", "Content-MD5": "bmV3bmV3bmV3bmV3bmV3bg==",
    "Clear-Site-Data": '"cache"', "X-XSS-Protection": "0", "Retry-After": "5", "Accept-Ranges": "none", "Content-Type": "text/new",
    "Content-Anything": "new", "X-Content-Anything": "new", "Set-Cookie2": "new=1", "Public-Key-Pins": 'pin-sha256="new="'}
for name, value in UPDATED.items():
    old = [] if name in ("Cache-Control", "Date", "Via") else [f"{name}: {'{start-700}' if name in ('Expires', 'Last-Modified') else 'old'}"]
    if name == "Vary":
        old = []
    confirm = [f"{name}: {value}"] if name == "Cache-Control" else [HOUR, f"{name}: {value}"]
    wanted = members(name, *([one.strip() for one in value.split(",")] if name == "Allow" else [value])) \
        if name in ("Allow", "Vary") else field(name, value)
    if name == "Via":  # our own member comes behind
        wanted = Check("Via begins with the new one", lambda seen: None if ", ".join(seen.lines("Via")).startswith("1.1 new")
            else f"Via is {seen.lines('Via')}")
    must(f"update-{name.lower()}", "9111 §3.2", step(answer=answer(*GONE, *A, *old)),
        step(answer=answer(HOUR, on_condition=answer(*confirm, *A, status=304)), given=(CONDITIONAL, status(200)), expect=wanted),
        step(given=STORED, expect=wanted))
must("update-adds", "9111 §3.2", step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, "X-Added: 1", status=304)), given=CONDITIONAL,
        expect=field("X-Added", "1")), step(given=STORED, expect=field("X-Added", "1")))
# Last-Modified is a strong validator when it is so much older than Date [RFC 9110 §8.8.2.2].
may("update-adds-tag", "9111 §4.3.4", step(answer=answer(*GONE, f"Last-Modified: {MODIFIED}")),
    step(answer=answer(HOUR, on_condition=answer(HOUR, f"Last-Modified: {MODIFIED}", 'ETag: "new"', status=304)),
        expect=(CONDITIONAL, body_of(1), field("ETag", '"new"'))), step(expect=(STORED, field("ETag", '"new"'))))
must("update-keeps-others", "9111 §3.2", step(answer=answer(*GONE, *A, "X-Kept: 1", "Content-Type: text/x")),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, status=304)), given=CONDITIONAL,
        expect=(field("X-Kept", "1"), field("Content-Type", "text/x"))), step(given=STORED, expect=field("X-Kept", "1")))
must("update-all-lines", "9111 §3.2", step(answer=answer(*GONE, *A, "X-Many: 1", "X-Other: 0", "X-Many: 2")),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, "X-Many: 3", "X-Many: 4", status=304)), given=CONDITIONAL,
        expect=members("X-Many", "3", "4")), step(given=STORED, expect=members("X-Many", "3", "4")))
must("update-name-case", "9111 §3.2", step(answer=answer(*GONE, *A, "X-Name: 1")),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, "x-nAME: 2", status=304)), given=CONDITIONAL,
        expect=field("X-Name", "2")))
must("update-not-content-length", "9111 §3.2", step(answer=answer(*GONE, *A, body=b"0123456789")),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, "Content-Length: 3", status=304)), given=CONDITIONAL,
        expect=(WHOLE, body(b"0123456789"))), step(given=STORED, expect=body(b"0123456789")))
must("update-not-hop-by-hop", "9111 §3.1", step(answer=answer(*GONE, *A)),
    step(answer=answer(HOUR, on_condition=answer(HOUR, *A, "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", status=304)),
        given=CONDITIONAL, expect=lacks("X-Hop")), step(given=STORED, expect=(lacks("X-Hop"), lacks("Keep-Alive", "timeout=5"))))
# Left out of the update, exceptionally, where it would break what is stored.
for name, old, new in (("Content-Encoding", "identity", "gzip"), ("Content-Range", "", "bytes 0-1/10")):
    may(f"update-not-{name.lower()}", "9111 §3.2", step(answer=answer(*GONE, *A, *([f"{name}: {old}"] if old else []))),
        step(answer=answer(HOUR, on_condition=answer(HOUR, *A, f"{name}: {new}", status=304)),
            expect=(CONDITIONAL, field(name, *([old] if old else [])))))

# ---- HEAD ----
LONG = {"body": b"0123456789"}
OTHER = {"body": b"0123"}
may("head-freshens", HEAD, step(answer=answer(*GONE, *A, **LONG)), step(method="HEAD", answer=answer(HOUR, *A, **LONG), expect=ASKED),
    step(expect=(STORED, body(b"0123456789"))))
may("head-updates-fields", HEAD, step(answer=answer(*GONE, *A, "X-Kind: old", **LONG)),
    step(method="HEAD", answer=answer(HOUR, *A, "X-Kind: new", **LONG)), step(expect=(STORED, field("X-Kind", "new"))))
REFRESH = "Cache-Control: no-cache"
for name, fields, options in (("tag", (HOUR, 'ETag: "b"'), LONG), ("length", (HOUR, *A), OTHER)):
    should(f"head-other-{name}-makes-stale", HEAD, step(answer=answer(HOUR, *A, **LONG)),
        step(REFRESH, method="HEAD", answer=answer(*fields, **options), given=UNCONDITIONAL), step(expect=ASKED))
should("head-other-last-modified-makes-stale", HEAD, step(answer=answer(HOUR, f"Last-Modified: {MODIFIED}", **LONG)),
    step(REFRESH, method="HEAD", answer=answer(HOUR, "Last-Modified: {start-60}", **LONG), given=UNCONDITIONAL), step(expect=ASKED))
may("head-same-keeps", HEAD, step(answer=answer(HOUR, *A, **LONG)),
    step(REFRESH, method="HEAD", answer=answer(HOUR, *A, **LONG), expect=ASKED), step(expect=(STORED, body(b"0123456789"))))
