"""Vary: which stored response a request selects."""
from case import *  # noqa: F403

KEY = "9111 §4.1"
HOUR = "Cache-Control: max-age=3600"


def pair(kind, name, vary, first, second, section=KEY):
    """Two requests to what varies; `vary`, `first`, `second` are lists of lines."""
    vary = [f"Vary: {one}" for one in ([vary] if isinstance(vary, str) else vary)]
    first, second = ([one] if isinstance(one, str) else one for one in (first, second))
    case(kind, f"vary-{name}", section, step(*first, answer=answer(HOUR, *vary)),
        step(*second, expect=(STORED, body_of(1)) if kind == MAY else (ASKED, body_of(2))))


pair(MAY, "match", "Foo", "Foo: 1", "Foo: 1")
pair(MAY, "match-absent", "Foo", [], [])
pair(MAY, "match-two", "Foo, Bar", ["Foo: 1", "Bar: 2"], ["Bar: 2", "Foo: 1"])
pair(MAY, "match-two-lines", ["Foo", "Bar"], ["Foo: 1", "Bar: 2"], ["Foo: 1", "Bar: 2"])
pair(MAY, "match-other-field", "Foo", ["Foo: 1", "Baz: 1"], ["Foo: 1", "Baz: 2"])
pair(MAY, "match-names-case", "fOO", "Foo: 1", "foO: 1")
pair(MAY, "match-names-blanks", "  Foo ,\tBar ", ["Foo: 1", "Bar: 2"], ["Foo: 1", "Bar: 2"])
pair(MAY, "match-empty-members", ", Foo,,", "Foo: 1", "Foo: 1")
pair(MAY, "match-repeated-name", "Foo, Foo", "Foo: 1", "Foo: 1")
pair(MAY, "match-empty", "", "Foo: 1", "Foo: 2")
pair(MAY, "match-cookie", "Cookie", "Cookie: a=1; b=2", "Cookie: a=1; b=2")
pair(MAY, "match-list", "Foo", "Foo: 1, 2", "Foo: 1, 2")
pair(MAY, "match-blanks-around-value", "Foo", "Foo: 1", "Foo:   1  ")
pair(MAY, "match-lines-combined", "Foo", ["Foo: 1", "Foo: 2"], "Foo: 1, 2")
pair(MAY, "match-list-blanks", "Accept-Language", "Accept-Language: en, de", "Accept-Language: en,de")
pair(MAY, "match-language-case", "Accept-Language", "Accept-Language: en, de", "Accept-Language: EN, De")
pair(MAY, "match-language-q-order", "Accept-Language", "Accept-Language: de, en;q=0.5", "Accept-Language: en;q=0.5, de")
pair(MAY, "match-language-q-form", "Accept-Language", "Accept-Language: de, en;q=0.5", "Accept-Language: de;q=1.0,en; q=0.500")
pair(MAY, "match-encoding-order", "Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br, gzip")
pair(MAY, "match-encoding-case", "Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: GZIP, BR")
pair(MAY, "match-encoding-blanks", "Accept-Encoding", "Accept-Encoding: gzip,br", "Accept-Encoding: gzip ,  br")
pair(MAY, "match-encoding-lines", "Accept-Encoding", ["Accept-Encoding: gzip", "Accept-Encoding: br"], "Accept-Encoding: gzip, br")
pair(MAY, "match-accept-order", "Accept", "Accept: text/html, text/plain;q=0.5", "Accept: text/plain;q=0.5, text/html")

pair(MUST, "differs", "Foo", "Foo: 1", "Foo: 2")
pair(MUST, "differs-absent-then", "Foo", [], "Foo: 1")
pair(MUST, "differs-then-absent", "Foo", "Foo: 1", [])
pair(MUST, "differs-second-name", "Foo, Bar", ["Foo: 1", "Bar: 1"], ["Foo: 1", "Bar: 2"])
pair(MUST, "differs-second-line", ["Foo", "Bar"], ["Foo: 1", "Bar: 1"], ["Foo: 1", "Bar: 2"])
pair(MUST, "differs-value-case", "Foo", "Foo: abc", "Foo: ABC")
pair(MUST, "differs-swapped", "Foo, Bar", ["Foo: 1", "Bar: 2"], ["Foo: 2", "Bar: 1"])
pair(MUST, "differs-list-order", "Foo", "Foo: 1, 2", "Foo: 2, 1")
pair(MUST, "differs-prefix", "Foo", "Foo: ab", "Foo: a")
pair(MUST, "differs-inner-blanks", "Foo", 'Foo: "a b"', 'Foo: "a  b"')
pair(MUST, "differs-names-case", "FOO", "foo: 1", "Foo: 2")
pair(MUST, "differs-cookie", "Cookie", "Cookie: a=1", "Cookie: a=2")
pair(MUST, "differs-language", "Accept-Language", "Accept-Language: de, en;q=0.5", "Accept-Language: en, de;q=0.5")
pair(MUST, "differs-language-absent", "Accept-Language", "Accept-Language: de", [])
pair(MUST, "differs-encoding-absent", "Accept-Encoding", "Accept-Encoding: gzip", [])
pair(MUST, "differs-encoding-forbidden", "Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0")
pair(MUST, "differs-user-agent", "User-Agent", "User-Agent: a/1", "User-Agent: a/2")
pair(MUST, "differs-authorization", "Authorization", [], "Authorization: Basic eDp5")
for name, lines in {"": "*", "-in-list": "Foo, *", "-first": "*, Foo", "-blanks": "  *  ", "-line": ["Foo", "*"],
        "-line-first": ["*", "Foo"], "-behind-empty": ", *",
        "-behind-empty-line": ["", "*"], "-twice": "*, *", "-before-comma": "*,"}.items():
    pair(MUST, f"star{name}", lines, "Foo: 1", "Foo: 1")
pair(MUST, "empty-members-differ", ", ,Foo", "Foo: 1", "Foo: 2")


# What is selected by a preference is another response than what is selected by another preference, whatever came.
for name, tag, first, second in (("language-turned", "Content-Language: de", "Accept-Language: de, en;q=0.5", "Accept-Language: en, de;q=0.5"),
        ("language-other", "Content-Language: de", "Accept-Language: de, en;q=0.5", "Accept-Language: fr"),
        ("encoding-less", "Content-Encoding: gzip", "Accept-Encoding: gzip, br", "Accept-Encoding: gzip"),
        ("encoding-other", "Content-Encoding: gzip", "Accept-Encoding: gzip", "Accept-Encoding: br")):
    must(f"vary-differs-{name}", KEY, step(first, answer=answer(HOUR, "Vary: " + first.partition(":")[0], tag)),
        step(second, expect=(ASKED, body_of(2))))
may("vary-preferred-language", KEY, step("Accept-Language: en, de", answer=answer(HOUR, "Vary: Accept-Language", "Content-Language: de")),
    step("Accept-Language: fr;q=0.5, de", expect=(STORED, body_of(1))))


def variant(value, **options):
    return step(f"Foo: {value}", answer=answer(HOUR, "Vary: Foo", f'ETag: "{value}"', f"X-Variant: {value}"), **options)


may("vary-two-variants", KEY, variant(1), variant(2), variant(1, expect=(STORED, body_of(1))),
    variant(2, expect=(STORED, body_of(2))))
may("vary-five-variants", KEY, *map(variant, range(5)), *(variant(n, expect=(STORED, body_of(n + 1))) for n in range(5)))
must("vary-third-variant", KEY, variant(1), variant(2), variant(3, expect=(ASKED, body_of(3))))
must("vary-variants-keep-apart", KEY, variant(1), variant(2), variant(1, expect=field("X-Variant", "1")),
    variant(2, expect=field("X-Variant", "2")))
may("vary-variant-replaced-alone", KEY, variant(1), variant(2),
    step("Foo: 1", "Cache-Control: no-cache", answer=answer(HOUR, "Vary: Foo"), expect=body_of(3)),
    variant(1, expect=(STORED, body_of(3))), variant(2, expect=(STORED, body_of(2))))
# The tags of all variants are offered when none is selected; the origin picks one of them by 304 [RFC 9111 §4.1, §4.3.1].
may("vary-tags-of-all-variants", "9111 §4.3.1", variant(1), variant(2),
    step("Foo: 3", answer=answer(HOUR, "Vary: Foo"), expect=origin_members("If-None-Match", '"1"', '"2"')))
may("vary-304-picks-variant", "9111 §4.3.4", variant(1), variant(2),
    step("Foo: 3", answer=answer(HOUR, "Vary: Foo", on_condition=answer('ETag: "2"', HOUR, "Vary: Foo", status=304)),
        given=CONDITIONAL, expect=(status(200), body_of(2))))
must("vary-304-picks-right-variant", "9111 §4.3.4", variant(1), variant(2),
    step("Foo: 3", answer=answer(HOUR, "Vary: Foo", on_condition=answer('ETag: "1"', HOUR, "Vary: Foo", status=304)),
        given=(CONDITIONAL, origin_members("If-None-Match", '"1"', '"2"')), expect=(status(200), body_of(1))))
# Vary that comes, goes or changes.
must("vary-appears", KEY, step("Foo: 1", answer=answer("Cache-Control: max-age=1", "Age: 5")),
    step("Foo: 1", answer=answer(HOUR, "Vary: Foo")), step("Foo: 2", expect=ASKED))
must("vary-changes", KEY, step("Foo: 1", "Bar: 1", answer=answer("Cache-Control: max-age=1", "Age: 5", "Vary: Foo")),
    step("Foo: 1", "Bar: 1", answer=answer(HOUR, "Vary: Bar")), step("Foo: 1", "Bar: 2", expect=ASKED))
may("vary-disappears", KEY, step("Foo: 1", answer=answer("Cache-Control: max-age=1", "Age: 5", "Vary: Foo")),
    step("Foo: 1", answer=answer(HOUR)), step("Foo: 2", expect=(STORED, body_of(2))))
must("vary-head-selects", KEY, variant(1), step("Foo: 2", method="HEAD", expect=ASKED))
must("vary-validates-its-own-variant", "9111 §4.3.1", step("Foo: 1", answer=answer("Cache-Control: max-age=1", "Age: 10", "Vary: Foo", 'ETag: "1"')),
    step("Foo: 2", answer=answer("Cache-Control: max-age=1", "Age: 10", "Vary: Foo", 'ETag: "2"')),
    step("Foo: 1", answer=answer(HOUR, "Vary: Foo", honest=True, on_condition=answer(HOUR, "Vary: Foo", 'ETag: "1"', status=304)),
        given=CONDITIONAL, expect=(status(200), body_of(1))))
must("vary-is-sent", KEY, step("Foo: 1", answer=answer(HOUR, "Vary: Foo")),
    step("Foo: 1", given=STORED, expect=members("Vary", "Foo")))
