"""Ranges [RFC 9110 §14], partial responses stored and combined [RFC 9111 §3.3, §3.4], incomplete responses."""
from case import *  # noqa: F403

RANGE = "9110 §14.2"
PARTIAL = "9111 §3.3"
COMBINE = "9111 §3.4"
HOUR = "Cache-Control: max-age=3600"
TEN = b"0123456789"
TAG = 'ETag: "a"'
WHOLE_STORED = step(answer=answer(HOUR, TAG, "Last-Modified: {start-86400}", "Content-Type: text/x", body=TEN))


def from_whole(name, spec, content, place, kind=MAY, section=RANGE, extra=()):
    case(kind, f"range-{name}", section, WHOLE_STORED, step(f"Range: {spec}", *extra,
        expect=(STORED, status(206), body(content), field("Content-Range", place), field("Content-Length", str(len(content))))))


def ignored(name, spec, *extra, method="GET", kind=MAY, section=RANGE):
    """Answered with all of it; best from the store."""
    case(kind, f"range-{name}", section, WHOLE_STORED, step(f"Range: {spec}", *extra, method=method, answer=answer(body=TEN),
        expect=((STORED,) if kind == MAY else ()) + (status(200), body(TEN if method == "GET" else b""), lacks("Content-Range"))))


from_whole("first", "bytes=0-1", b"01", "bytes 0-1/10")
from_whole("middle", "bytes=3-5", b"345", "bytes 3-5/10")
from_whole("open", "bytes=7-", b"789", "bytes 7-9/10")
from_whole("suffix", "bytes=-3", b"789", "bytes 7-9/10")
from_whole("suffix-too-long", "bytes=-50", TEN, "bytes 0-9/10")
from_whole("end-too-large", "bytes=8-100", b"89", "bytes 8-9/10")
from_whole("end-overflow", "bytes=8-99999999999999999999", b"89", "bytes 8-9/10")
from_whole("one-byte", "bytes=0-0", b"0", "bytes 0-0/10")
from_whole("all", "bytes=0-", TEN, "bytes 0-9/10")
from_whole("unit-case", "Bytes=0-1", b"01", "bytes 0-1/10")
# Ranges with a gap smaller than a part's own head may be sent as one.
BIG = bytes(range(256)) * 32
BIG_STORED = step(answer=answer(HOUR, TAG, body=BIG))
may("range-several", "9110 §15.3.7.2", BIG_STORED, step("Range: bytes=0-1,5000-5003",
    expect=(STORED, status(206), lacks("Content-Range"),
        parts(("bytes 0-1/8192", BIG[:2]), ("bytes 5000-5003/8192", BIG[5000:5004])))))
may("range-several-suffix", "9110 §15.3.7.2", BIG_STORED, step("Range: bytes=0-0 , -1",
    expect=(STORED, status(206), parts(("bytes 0-0/8192", BIG[:1]), ("bytes 8191-8191/8192", BIG[-1:])))))
may("range-several-order", "9110 §15.3.7.2", BIG_STORED, step("Range: bytes=5000-5003,0-1",
    expect=(STORED, status(206), parts(("bytes 5000-5003/8192", BIG[5000:5004]), ("bytes 0-1/8192", BIG[:2])))))
may("range-several-close", "9110 §15.3.7.2", WHOLE_STORED, step("Range: bytes=0-1,5-6", expect=(STORED, status(206), either(
    parts(("bytes 0-1/10", b"01"), ("bytes 5-6/10", b"56")), (body(b"0123456"), field("Content-Range", "bytes 0-6/10"))))))
may("range-one-of-two-satisfiable", "9110 §15.3.7", WHOLE_STORED, step("Range: bytes=0-1,50-60",
    expect=(STORED, status(206), either((body(b"01"), field("Content-Range", "bytes 0-1/10")), parts(("bytes 0-1/10", b"01"))))))
may("range-overlapping-coalesced", "9110 §15.3.7.2", WHOLE_STORED, step("Range: bytes=0-4,2-6", expect=(STORED, either(
    (status(206), body(b"0123456"), field("Content-Range", "bytes 0-6/10")), (status(206), parts(("bytes 0-6/10", b"0123456"))),
    (status(200), body(TEN))))))
for name, spec in {"beyond": "bytes=10-", "far-beyond": "bytes=50-60", "suffix-0": "bytes=-0"}.items():
    may(f"range-416-{name}", "9110 §15.5.17", WHOLE_STORED, step(f"Range: {spec}",
        expect=(STORED, status(416), field("Content-Range", "bytes */10"))))
ignored("backwards", "bytes=5-2")
ignored("garbage", "bytes=abc")
ignored("no-number", "bytes=-")
ignored("empty", "bytes=")
ignored("negative", "bytes=--1")
ignored("other-unit", "lines=0-1", kind=MUST)
ignored("head", "bytes=0-1", method="HEAD", kind=MUST)
ignored("several-one-bad", "bytes=0-1,5-2")
from_whole("if-range-tag", "bytes=0-1", b"01", "bytes 0-1/10", extra=('If-Range: "a"',), section="9110 §13.1.5")
from_whole("if-range-date", "bytes=0-1", b"01", "bytes 0-1/10", extra=("If-Range: {start-86400}",), section="9110 §13.1.5")
ignored("if-range-other-tag", "bytes=0-1", 'If-Range: "b"', kind=MUST, section="9110 §13.1.5")
ignored("if-range-weak", "bytes=0-1", 'If-Range: W/"a"', kind=MUST, section="9110 §13.1.5")
ignored("if-range-earlier", "bytes=0-1", "If-Range: {start-90000}", kind=MUST, section="9110 §13.1.5")
ignored("if-range-later", "bytes=0-1", "If-Range: {start-3600}", kind=MUST, section="9110 §13.1.5")
ignored("if-range-garbage", "bytes=0-1", "If-Range: abc", kind=MUST, section="9110 §13.1.5")
must("range-if-range-weak-stored", "9110 §13.1.5", step(answer=answer(HOUR, 'ETag: W/"a"', body=TEN)),
    step("Range: bytes=0-1", 'If-Range: W/"a"', given=STORED, expect=(status(200), body(TEN))))
must("range-inm-first", "9110 §13.2.2", WHOLE_STORED,
    step("Range: bytes=0-1", 'If-None-Match: "a"', given=STORED, expect=status(304)))
may("range-206-fields", "9110 §15.3.7", WHOLE_STORED, step("Range: bytes=0-1", expect=(STORED, status(206), field("ETag", '"a"'),
    has("Date"), field("Cache-Control", "max-age=3600"), field("Content-Type", "text/x"))))
may("range-without-tag", RANGE, step(answer=answer(HOUR, body=TEN)),
    step("Range: bytes=2-3", expect=(STORED, status(206), body(b"23"))))
may("range-of-404-is-404", RANGE, step(answer=answer(HOUR, status=404, body=TEN)),
    step("Range: bytes=2-3", expect=(STORED, status(404), body(TEN))))

# ---- the origin answers a range otherwise than asked ----
must("range-origin-says-200", "9110 §14.2", step("Range: bytes=2-3", answer=answer(HOUR, TAG, body=TEN),
    expect=either((status(200), body(TEN)), (status(206), body(b"23"), field("Content-Range", "bytes 2-3/10")))))
may("range-origin-says-200-stored", PARTIAL, step("Range: bytes=2-3", answer=answer(HOUR, TAG, body=TEN)),
    step(expect=(STORED, status(200), body(TEN))))
must("range-origin-says-other-range", "9110 §14.4", step("Range: bytes=2-3",
    answer=answer(HOUR, TAG, "Content-Range: bytes 4-5/10", status=206, body=b"45"),
    expect=either(status(502), (status(206), body(b"45"), field("Content-Range", "bytes 4-5/10")), (status(206), body(b"23")))))
must("range-origin-says-416", "9110 §15.5.17", step("Range: bytes=50-", answer=answer("Content-Range: bytes */10", status=416),
    expect=(status(416), field("Content-Range", "bytes */10"))))
must("range-416-is-not-the-resource", "9111 §3", step("Range: bytes=50-", answer=answer("Content-Range: bytes */10", status=416)),
    step(answer=answer(HOUR, body=TEN), expect=(ASKED, status(200), body(TEN))))
must("range-multipart-passes", "9110 §15.3.7.2", step("Range: bytes=0-0,9-9", answer=answer(HOUR, TAG,
    "Content-Type: multipart/byteranges; boundary=B", status=206,
    body=b"--B\r\nContent-Range: bytes 0-0/10\r\n\r\n0\r\n--B\r\nContent-Range: bytes 9-9/10\r\n\r\n9\r\n--B--\r\n"),
    expect=(status(206, 200), parts(("bytes 0-0/10", b"0"), ("bytes 9-9/10", b"9")))))


# ---- 206 stored ----
def part(first, last, *fields, tag=TAG, content=TEN, **options):
    """The client asks for first-last, and gets it (or all of it, where the range does not reach the origin)."""
    tag = [tag] if tag else []
    options.setdefault("expect", either((status(206), body(content[first:last + 1])), (status(200), body(content))))
    return step(f"Range: bytes={first}-{last}", *fields, answer=answer(HOUR, *tag, body=content,
        on_range=answer(HOUR, *tag, f"Content-Range: bytes {first}-{last}/10", status=206, body=content[first:last + 1])),
        **options)


LETTERS = b"abcdefghij"
MISSING = either(origin_field("Range", "bytes=5-9"), origin_field("Range", "bytes=5-"))
must("partial-is-not-whole", PARTIAL, part(0, 4), step(answer=answer(HOUR, TAG, body=TEN,
    on_range=answer(HOUR, TAG, "Content-Range: bytes 5-9/10", status=206, body=b"56789")), expect=(status(200), WHOLE, body(TEN))))
must("partial-is-not-another-part", PARTIAL, part(0, 4), part(5, 9, content=LETTERS,
    expect=either((ASKED, status(206), body(LETTERS[5:])), (STORED, body(TEN[5:])), body(LETTERS))))
must("partial-all-but-one-byte", PARTIAL, part(0, 8), step(answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij"),
    expect=(status(200), WHOLE, body(b"abcdefghij"))))
may("partial-same", PARTIAL, part(2, 6), part(2, 6, expect=(STORED, status(206), body(b"23456"), field("Content-Range", "bytes 2-6/10"))))
may("partial-within", PARTIAL, part(2, 6), step("Range: bytes=3-5",
    expect=(STORED, status(206), body(b"345"), field("Content-Range", "bytes 3-5/10"))))
may("partial-end-open", PARTIAL, part(5, 9), step("Range: bytes=7-", expect=(STORED, status(206), body(b"789"))))
may("partial-end-suffix", PARTIAL, part(5, 9), step("Range: bytes=-2", expect=(STORED, status(206), body(b"89"))))
must("partial-passes", PARTIAL, part(2, 6), part(2, 6, pause=0, given=STORED, expect=(status(206), age(0, 6))))
must("partial-no-store", "9111 §5.2.2.5", step("Range: bytes=0-1", answer=answer("Cache-Control: no-store",
    on_range=answer("Cache-Control: no-store", TAG, "Content-Range: bytes 0-1/10", status=206, body=b"01"))), part(0, 1, expect=ASKED))
may("combine-two", COMBINE, part(0, 4), part(5, 9), step(expect=(STORED, status(200), body(TEN), lacks("Content-Range"))))
may("combine-overlapping", COMBINE, part(0, 6), part(4, 9), step(expect=(STORED, status(200), body(TEN))))
may("combine-backwards", COMBINE, part(5, 9), part(0, 4), step(expect=(STORED, status(200), body(TEN))))
may("combine-a-part-of-it", COMBINE, part(0, 4), part(5, 9), step("Range: bytes=3-6", expect=(STORED, status(206), body(b"3456"))))
# What does not belong together: 5-9 came from another representation, so "01234" and "fghij" must not meet.
for name, first, second in (("other-tag", TAG, 'ETag: "b"'), ("weak-tag", 'ETag: W/"a"', 'ETag: W/"a"'), ("no-tag", None, None)):
    new = answer(HOUR, *([second] if second else []), body=LETTERS)
    must(f"combine-not-{name}", COMBINE, part(0, 4, tag=first), part(5, 9, tag=second, content=LETTERS), step(answer=new,
        expect=(status(200), WHOLE, either(body(TEN), body(LETTERS)))))
    must(f"combine-not-{name}-part", COMBINE, part(0, 4, tag=first), part(5, 9, tag=second, content=LETTERS),
        step("Range: bytes=3-6", answer=new, expect=either(body(TEN[3:7]), body(LETTERS[3:7]), body(TEN), body(LETTERS))))
may("partial-completed-by-range", PARTIAL, part(0, 4), step(answer=answer(HOUR, TAG, body=TEN,
    on_range=answer(HOUR, TAG, "Content-Range: bytes 5-9/10", status=206, body=b"56789")),
    expect=(MISSING, status(200), body(TEN))))
must("partial-completed-with-if-range", "9111 §4.3.1", part(0, 4), step(answer=answer(HOUR, TAG, body=TEN,
    on_range=answer(HOUR, TAG, "Content-Range: bytes 5-9/10", status=206, body=b"56789")), given=origin_field("Range"),
    expect=origin_field("If-Range", '"a"')))
must("partial-completed-by-other", PARTIAL, part(0, 4), step(answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij"),
    given=origin_field("Range"), expect=(status(200), WHOLE, body(b"abcdefghij"))))
must("partial-completed-by-wrong-tag", PARTIAL, part(0, 4), step(answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij",
    on_range=answer(HOUR, 'ETag: "b"', "Content-Range: bytes 5-9/10", status=206, body=b"fghij")),
    expect=either(body(b"abcdefghij"), BROKEN)))
may("whole-replaces-part", PARTIAL, part(0, 4), step("Cache-Control: no-cache", answer=answer(HOUR, 'ETag: "b"', body=TEN)),
    step("Range: bytes=3-6", expect=(STORED, status(206), body(b"3456"))))

may("range-of-stale-confirmed", "9111 §4.3.3", step(answer=answer("Cache-Control: max-age=1", "Age: 10", TAG, body=TEN)),
    step("Range: bytes=2-3", answer=answer(HOUR, TAG, body=TEN, on_condition=answer(HOUR, TAG, status=304)),
        expect=(status(206), body(b"23"), field("Content-Range", "bytes 2-3/10"))))
must("range-of-stale-replaced", "9111 §4.3.3", step(answer=answer("Cache-Control: max-age=1", "Age: 10", TAG, body=TEN)),
    step("Range: bytes=2-3", answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij", on_range=answer(HOUR, 'ETag: "b"',
        "Content-Range: bytes 2-3/10", status=206, body=b"cd")), expect=either((status(206), body(b"cd")), (status(200), body(b"abcdefghij")))))
may("range-swr", "5861 §3", step(answer=answer("Cache-Control: max-age=1, stale-while-revalidate=60", "Age: 10", TAG, body=TEN)),
    step("Range: bytes=2-3", answer=answer(HOUR, TAG, body=TEN, delay=1), expect=(status(206), body(b"23"), age(10, 20))))
may("range-sie", "5861 §4", step(answer=answer("Cache-Control: max-age=1, stale-if-error=60", "Age: 10", TAG, body=TEN)),
    step("Range: bytes=2-3", answer=answer(status=503), expect=(status(206), body(b"23"))))
must("range-conditions-reach-the-origin", "9110 §13.1.5", step("Range: bytes=2-3", 'If-Range: "a"', answer=answer(HOUR, TAG, body=TEN,
    on_range=answer(HOUR, TAG, "Content-Range: bytes 2-3/10", status=206, body=b"23")),
    expect=either((origin_field("Range", "bytes=2-3"), origin_field("If-Range", '"a"'), status(206), body(b"23")),
        (origin_lacks("Range"), origin_lacks("If-Range"), either((status(206), body(b"23")), (status(200), body(TEN)))))))
must("partial-unasked-is-not-whole", PARTIAL, step(answer=answer(HOUR, TAG, "Content-Range: bytes 0-4/10", status=206, body=b"01234")),
    step(answer=answer(HOUR, TAG, body=TEN), expect=either((status(200), body(TEN)), (status(206), body(b"01234")), BROKEN)))
must("partial-length-unknown", PARTIAL, step("Range: bytes=0-4", answer=answer(HOUR, TAG, body=TEN, on_range=answer(HOUR, TAG,
    "Content-Range: bytes 0-4/*", status=206, body=b"01234")), expect=(status(206), body(b"01234"))),
    step(answer=answer(HOUR, TAG, body=TEN), expect=(status(200), body(TEN))))
must("partial-head-is-not-fooled", PARTIAL, part(0, 4), step(method="HEAD", answer=answer(HOUR, TAG, body=TEN),
    expect=(status(200), lacks("Content-Range"), either(field("Content-Length", "10"), lacks("Content-Length")))))
# ---- incomplete responses ----
INCOMPLETE = "9112 §8"
CUTS = {
    "length": answer(HOUR, body=TEN, cut=5), "length-0": answer(HOUR, body=TEN, cut=0),
    "length-tag": answer(HOUR, TAG, body=TEN, cut=5), "chunked": answer(HOUR, body=TEN, framing="chunked", cut=5),
    "chunked-between": answer(HOUR, body=TEN, framing="chunked", cut=10),
    "chunk-half": answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\na\r\n01234"),
    "chunk-size-garbage": answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\nxyz\r\n"),
    "trailer-half": answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nCache-Control: max-age=3600\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n")}
for name, cut in CUTS.items():
    must(f"incomplete-{name}-is-seen", INCOMPLETE, step(answer=cut, expect=BROKEN))
    must(f"incomplete-{name}-is-not-reused", PARTIAL, step(answer=cut), step(answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij"),
        expect=(WHOLE, status(200), body(b"abcdefghij"))))
for name, raw in {"head": "HTTP/1.1 200 OK\r\nCache-Con", "status-line": "HTTP/1.1 2", "nothing": ""}.items():
    must(f"incomplete-{name}-is-seen", "9112 §8", step(answer=answer(raw=raw), expect=BROKEN))
    must(f"incomplete-{name}-is-not-reused", PARTIAL, step(answer=answer(raw=raw)), step(answer=answer(HOUR), expect=body_of(2)))
may("incomplete-completed-by-range", PARTIAL, step(answer=answer(HOUR, TAG, "Accept-Ranges: bytes", body=TEN, cut=5), expect=BROKEN),
    step(answer=answer(HOUR, TAG, body=TEN, on_range=answer(HOUR, TAG, "Content-Range: bytes 5-9/10", status=206, body=b"56789")),
        expect=(MISSING, status(200), body(TEN))), step(expect=(STORED, body(TEN))))
may("incomplete-serves-what-it-has", PARTIAL, step(answer=answer(HOUR, TAG, body=TEN, cut=5), expect=BROKEN),
    step("Range: bytes=1-3", expect=(STORED, status(206), body(b"123"))))
must("incomplete-other-tag-is-not-joined", PARTIAL, step(answer=answer(HOUR, TAG, body=TEN, cut=5)),
    step(answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij",
        on_range=answer(HOUR, 'ETag: "b"', "Content-Range: bytes 5-9/10", status=206, body=b"fghij")),
        expect=either(body(b"abcdefghij"), BROKEN)))
may("incomplete-keeps-the-old", PARTIAL, step(answer=answer(HOUR, TAG, body=TEN)),
    step("Cache-Control: no-cache", answer=answer(HOUR, 'ETag: "b"', body=b"abcdefghij", cut=4)),
    step(expect=(STORED, body(TEN))))
