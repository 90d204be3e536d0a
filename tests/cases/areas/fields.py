"""Fields on the way through: preserved ones, hop-by-hop, Via, Date, interim responses, and obsolete syntax."""
from case import *  # noqa: F403

HOUR = "Cache-Control: max-age=3600"

# ---- from the store as they came ----
PRESERVED = {
    "Accept-CH": "Sec-CH-UA-Mobile", "Accept-Ranges": "bytes", "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "X-One, X-Two", "Allow": "GET, HEAD",
    "Alt-Svc": 'h2="alt.example:443"; ma=60', "CDN-Cache-Control": "max-age=60", "Clear-Site-Data": '"storage"',
    "Content-Disposition": 'attachment; filename="a; b.txt"', "Content-Encoding": "x-own", "Content-Language": "cs, en",
    "Content-Location": "/elsewhere?x=1", "Content-MD5": "MDEyMzQ1Njc4OWFiY2RlZg==",
    "Content-Security-Policy": "default-src 'self'; img-src *", "Content-Type": "text/html; charset=iso-8859-2",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "cross-origin", "Digest": "SHA-256=abc=",
    "Repr-Digest": "sha-256=:YWJj:", "ETag": 'W/"x,y"', "Expect-CT": "max-age=0", "Expires": "{start+600}",
    "Feature-Policy": "camera 'none'", "Last-Modified": "{start-600}", "Link": '</a>; rel="next", </b>; rel="prev"',
    "Location": "/somewhere else", "NEL": '{"report_to": "a", "max_age": 1}', "Nokeepalive": "1", "P3P": 'CP="NOI"', "Permissions-Policy": "geolocation=()",
    "Pragma": "x", "Public-Key-Pins": 'pin-sha256="abc="; max-age=1', "Referrer-Policy": "no-referrer", "Refresh": "5; url=/x",
    "Report-To": '{"group": "a"}', "Retry-After": "120", "Server": "Origin/1.0 (comment; x)", "Server-Timing": "db;dur=53",
    "Set-Cookie2": "a=b; Version=1", "Content-Anything": "1", "X-Content-Anything": "1", "Trailing": "x",
    "Set-Cookie": "a=b; Path=/; Expires=Wed, 20 Jan 2038 03:14:07 GMT", "SourceMap": "/x.map",
    "Strict-Transport-Security": "max-age=31536000", "Surrogate-Control": "max-age=1", "Timing-Allow-Origin": "*", "Tk": "N",
    "WWW-Authenticate": 'Basic realm="a, b", Digest realm="c"', "Warning": '299 - "old"', "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN", "X-Powered-By": "tests", "X-XSS-Protection": "1; mode=block", "X-Cache": "HIT from origin",
    "X-Robots-Tag": "noindex, nofollow", "X-UA-Compatible": "IE=edge", "X-Anything": "a  b\tc", "X-Empty": "",
    "X-Quoted": '"a, b" , c;d="e"', "A": "one letter", "X_under.score~!#$": "token characters"}
for name, value in PRESERVED.items():
    wanted = field(name, value)
    must(f"keeps-{name.lower()}", "9111 §3.1", step(answer=answer("Cache-Control: public, max-age=3600", f"{name}: {value}"),
        expect=wanted), step(given=STORED, expect=wanted))
must("keeps-repeated-lines", "9110 §5.3", step(answer=answer("Cache-Control: public, max-age=3600", "X-Many: 1", "Set-Cookie: a=1",
    "X-Many: 2", "Set-Cookie: b=2", "X-Many: 3")), step(given=STORED,
    expect=(members("X-Many", "1", "2", "3"), field("Set-Cookie", "a=1", "b=2"))))
must("keeps-many-fields", "9111 §3.1", step(answer=answer(HOUR, *(f"X-F{n}: {n}" for n in range(60)))),
    step(given=STORED, expect=[field(f"X-F{n}", str(n)) for n in range(60)]))
must("keeps-long-value", "9111 §3.1", step(answer=answer(HOUR, "X-Long: " + "x" * 5000)),
    step(given=STORED, expect=field("X-Long", "x" * 5000)))
should("keeps-obs-text", "9110 §5.5", step(answer=answer(HOUR, "X-Text: caf\xe9 \xff")),
    step(given=STORED, expect=field("X-Text", "caf\xe9 \xff")))
should("keeps-order", "9110 §5.3", step(answer=answer(HOUR, "X-Z: 1", "X-A: 2", "X-M: 3")), step(given=STORED,
    expect=Check("in order", lambda seen: None if [n for n, _ in seen.fields if n in ("X-Z", "X-A", "X-M")] == ["X-Z", "X-A", "X-M"]
        else f"order is {[n for n, _ in seen.fields]}")))
must("keeps-cache-control-unknown", "9111 §5.2", step(answer=answer("Cache-Control: max-age=3600, foobar=1, x=\"a, b\"")),
    step(given=STORED, expect=field("Cache-Control", 'max-age=3600, foobar=1, x="a, b"')))
must("keeps-body-binary", "9111 §3", step(answer=answer(HOUR, body=bytes(range(256)) * 40)),
    step(given=STORED, expect=body(bytes(range(256)) * 40)))
must("keeps-body-chunked", "9112 §7.1", step(answer=answer(HOUR, body=b"x" * 5000, framing="chunked"), expect=body(b"x" * 5000)),
    step(given=STORED, expect=body(b"x" * 5000)))
must("keeps-date", "9110 §6.6.1", step(answer=answer(HOUR, "Date: {start-100}"), expect=field("Date", "{start-100}")),
    step(given=STORED, expect=field("Date", "{start-100}")))
must("adds-date", "9110 §6.6.1", step(answer=answer(HOUR, date=False), expect=has("Date")), step(given=STORED, expect=has("Date")))
must("age-of-the-origin-passes", "9111 §5.1", step(answer=answer("Cache-Control: no-store", "Age: 123"),
    expect=Check("Age not smaller", lambda seen: None if not seen.lines("Age") or int(seen.lines("Age")[0]) >= 123 else
        f"Age is {seen.lines('Age')}")))
must("keeps-status", "9111 §4", step(answer=answer(HOUR, status=299)), step(given=STORED, expect=status(299)))
must("passes-request-fields", "9110 §5.1", step("X-Unknown: 1", "User-Agent: a b/1 (c)", "Cookie: a=b", "Accept: text/*;q=0.1",
    expect=(origin_field("X-Unknown", "1"), origin_field("User-Agent", "a b/1 (c)"), origin_field("Cookie", "a=b"),
        origin_field("Accept", "text/*;q=0.1"))))
must("passes-request-body", "9110 §6.4", step(method="POST", body=b"0123456789", expect=Check("the body arrives",
    lambda seen: None if seen.asked and seen.asked[-1].body == b"0123456789" else f"the origin got {seen.asked}")))

# ---- hop-by-hop ----
HOP = "9110 §7.6.1"
for name, value in {"Keep-Alive": "timeout=5, max=1000", "Proxy-Connection": "keep-alive", "TE": "trailers", "Upgrade": "h2c",
        "Proxy-Authenticate": 'Basic realm="a"', "Proxy-Authentication-Info": "x=y", "Proxy-Authorization": "Basic eDp5"}.items():
    section = "9111 §3.1"
    must(f"hop-{name.lower()}-not-from-the-store", section, step(answer=answer(HOUR, f"{name}: {value}")),
        step(given=STORED, expect=lacks(name, value)))
for name in ("Keep-Alive", "Proxy-Connection", "Upgrade"):
    should(f"hop-{name.lower()}-not-passed", HOP, step(answer=answer(HOUR, f"{name}: x-own"), expect=lacks(name, "x-own")))
    should(f"hop-{name.lower()}-not-sent", HOP, step(f"{name}: x-own", expect=(ASKED, origin_lacks(name, "x-own"))))
must("hop-te-not-sent", HOP, step("TE: x-own", "Connection: TE", expect=(ASKED, origin_lacks("TE", "x-own"))))
must("hop-connection-named-not-passed", HOP, step(answer=answer(HOUR, "Connection: X-Hop, x-HOP-2", "X-Hop: 1", "X-Hop-2: 1", "X-End: 1"),
    expect=(lacks("X-Hop"), lacks("X-Hop-2"), field("X-End", "1"), lacks("Connection", "X-Hop"))))
must("hop-connection-named-not-from-the-store", "9111 §3.1", step(answer=answer(HOUR, "Connection: X-Hop", "X-Hop: 1", "X-End: 1")),
    step(given=STORED, expect=(lacks("X-Hop"), lacks("Connection", "X-Hop"), field("X-End", "1"))))
must("hop-connection-lines-not-from-the-store", "9111 §3.1", step(answer=answer(HOUR, "Connection: X-Hop", "Connection: X-Two", "X-Hop: 1", "X-Two: 1")),
    step(given=STORED, expect=(lacks("X-Hop"), lacks("X-Two"))))
must("hop-connection-named-not-sent", HOP, step("Connection: X-Hop", "X-Hop: 1", "X-End: 1",
    expect=(ASKED, origin_lacks("X-Hop"), origin_lacks("Connection", "X-Hop"), origin_field("X-End", "1"))))
must("hop-connection-names-age", HOP, step(answer=answer(HOUR, "Connection: Age", "Age: 100")), step(given=STORED, expect=has("Age")))
must("hop-transfer-encoding-not-from-the-store", "9111 §3.1", step(answer=answer(HOUR, framing="chunked")),
    step(given=STORED, expect=(WHOLE, body_of(1))))
must("via-request", "9110 §7.6.3", step(expect=(ASKED, origin_field("Via"))))
must("via-request-keeps", "9110 §7.6.3", step("Via: 1.0 earlier", expect=Check("earlier first", lambda seen:
    None if seen.asked and ", ".join(v for n, v in seen.asked[-1].fields if n.lower() == "via").startswith("1.0 earlier,")
    else "Via does not begin with the earlier one and go on")))
must("via-response-keeps", "9110 §7.6.3", step(answer=answer(HOUR, "Via: 1.0 earlier"), expect=Check("earlier first", lambda seen:
    None if ", ".join(seen.lines("Via")).startswith("1.0 earlier") else f"Via is {seen.lines('Via')}")))
for method in ("OPTIONS", "TRACE"):
    must(f"max-forwards-0-{method.lower()}", "9110 §7.6.2", step("Max-Forwards: 0", method=method, expect=asked(0)))
    must(f"max-forwards-2-{method.lower()}", "9110 §7.6.2", step("Max-Forwards: 2", method=method, given=ASKED,
        expect=origin_field("Max-Forwards", "1")))

must("hop-close-not-from-the-store", "9111 §3.1", step(answer=answer(HOUR, framing="close")),
    step(given=STORED, expect=(WHOLE, body_of(1), lacks("Connection", "X-"))))
must("hop-trailer-field-request", HOP, step("Connection: close, X-Hop", "X-Hop: 1", expect=(ASKED, origin_lacks("X-Hop"))))
# ---- interim ----
must("interim-103-passes", "9110 §15.2", step(answer=answer(HOUR, interim=((103, ("Link: </a>; rel=preload",)),)),
    expect=(status(200), interim(103, "Link: </a>; rel=preload"))))
must("interim-102-passes", "9110 §15.2", step(answer=answer(HOUR, interim=((102, ()),)), expect=(status(200), interim(102))))
must("interim-199-passes", "9110 §15.2", step(answer=answer(HOUR, interim=((199, ("X-Early: 1",)),)), expect=(status(200), interim(199))))
must("interim-several-pass", "9110 §15.2", step(answer=answer(HOUR, interim=((103, ("X-N: 1",)), (103, ("X-N: 2",)))),
    expect=(status(200), interim(103, "X-N: 1"), interim(103, "X-N: 2"))))
must("interim-is-not-stored", "9111 §3", step(answer=answer(HOUR, interim=((103, ("X-Early: 1",)),))),
    step(given=STORED, expect=(status(200), NO_INTERIM, lacks("X-Early"))))
may("interim-then-stored", "9111 §3", step(answer=answer(HOUR, interim=((103, ("X-Early: 1",)),))), step(expect=(STORED, body_of(1))))
must("interim-fields-stay-there", "9110 §15.2", step(answer=answer(HOUR, interim=((103, ("X-Early: 1", "Cache-Control: no-store")),)),
    expect=(status(200), lacks("X-Early"), field("Cache-Control", "max-age=3600"))))
may("interim-100-unasked", "9110 §15.2.1", step(answer=answer(HOUR, interim=((100, ()),)), expect=(status(200), body_of(1))))

# ---- obsolete and broken syntax ----
def raw(*lines, body="0123456789", start="HTTP/1.1 200 OK", end="\r\n"):
    return answer(raw=end.join([start, "Date: {now}", *lines, f"Content-Length: {len(body)}", "", ""]) + body)


must("syntax-fold", "9112 §5.2", step(answer=raw(HOUR, "X-Fold: a\r\n  b"), expect=either(status(502),
    Check("unfolded", lambda seen: None if [" ".join(v.split()) for v in seen.lines("X-Fold")] == ["a b"] else f"{seen.lines('X-Fold')}"))))
must("syntax-fold-no-store", "9112 §5.2", step(answer=raw("Cache-Control: max-age=3600,\r\n no-store")), step(expect=ASKED))
must("syntax-blank-before-colon", "9112 §5.1", step(answer=raw(HOUR, "X-Blank : 1"), expect=either(status(502), field("X-Blank", "1"))))
must("syntax-request-blank-before-colon", "9112 §5.1", step("X-Blank : 1", expect=status(400)))
must("syntax-two-lengths", "9112 §6.3", step(answer=raw(HOUR, "Content-Length: 5"), expect=BROKEN))
must("syntax-two-lengths-not-stored", "9112 §6.3", step(answer=raw(HOUR, "Content-Length: 5")), step(answer=answer(HOUR), expect=body_of(2)))
must("syntax-same-length-twice", "9112 §6.3", step(answer=raw(HOUR, "Content-Length: 10"), expect=either(status(502), body(b"0123456789"))))
must("syntax-length-garbage", "9112 §6.3", step(answer=answer(raw="HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nx"), expect=BROKEN))
must("syntax-chunked-and-length", "9112 §6.3", step(answer=answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nTransfer-Encoding: chunked\r\n"
    "Content-Length: 3\r\n\r\n5\r\n01234\r\n0\r\n\r\n"), expect=either(BROKEN, (body(b"01234"), lacks("Content-Length", "3")))))
may("syntax-no-reason", "9112 §4", step(answer=raw(HOUR, start="HTTP/1.1 200 "), expect=(status(200), body(b"0123456789"))), step(expect=STORED))
may("syntax-no-blank-behind-status", "9112 §4", step(answer=raw(HOUR, start="HTTP/1.1 200"), expect=(status(200), body(b"0123456789"))))
may("syntax-bare-lf", "9112 §2.2", step(answer=raw(HOUR, end="\n"), expect=(status(200), body(b"0123456789"))))
may("syntax-http-10", "9111 §3", step(answer=raw(HOUR, start="HTTP/1.0 200 OK"), expect=body(b"0123456789")), step(expect=STORED))
may("syntax-http-10-expires", "9111 §3", step(answer=raw("Expires: {now+3600}", start="HTTP/1.0 200 OK")), step(expect=STORED))
must("syntax-http-10-answer-is-11", "9110 §2.5", step(answer=raw(HOUR, start="HTTP/1.0 200 OK"), expect=(WHOLE, body(b"0123456789"))))
may("syntax-chunk-extension", "9112 §7.1.1", step(answer=answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nCache-Control: max-age=3600\r\n"
    "Transfer-Encoding: chunked\r\n\r\n5;a=b;c=\"d\"\r\n01234\r\n0\r\n\r\n"), expect=body(b"01234")), step(expect=(STORED, body(b"01234"))))
must("syntax-trailer-is-no-header", "9110 §6.5.1", step(answer=answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nCache-Control: max-age=3600\r\n"
    "Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n5\r\n01234\r\n0\r\nX-Late: 1\r\nCache-Control: no-store\r\n\r\n")),
    step(given=STORED, expect=(lacks("X-Late"), field("Cache-Control", "max-age=3600"))))
must("syntax-more-than-length", "9112 §6.3", step(answer=answer(raw="HTTP/1.1 200 OK\r\nDate: {now}\r\nCache-Control: max-age=3600\r\n"
    "Content-Length: 5\r\n\r\n0123456789"), expect=(WHOLE, body(b"01234"))))
should("syntax-no-status-line", "9112 §4", step(answer=answer(raw="this is no HTTP\r\n\r\n"), expect=BROKEN))
must("syntax-bad-host", "9112 §3.2", step("Host: a b", expect=status(400)))
