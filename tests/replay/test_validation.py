"""Conditional requests: the clients' own [RFC 9110 §13], and ours [RFC 9111 §4.3]."""
import pytest

from play import At, ask, reply

A = ask("/a")
OLD = "Wed, 31 Dec 2025 00:00:00 GMT"
OLDER = "Tue, 30 Dec 2025 00:00:00 GMT"


def store(play, body="one", age=0, **named):
    play.exchange(A, reply(200, body, **({"cache_control": "max-age=60"} | named)))
    play.advance(age)


# ---- ours ----

def test_what_is_stale_is_asked_for_by_its_tag(play):
    store(play, etag='"1"', age=60)
    got = play.exchange(A, reply(304, etag='"1"', cache_control="max-age=60"))
    assert got.seen.all("If-None-Match") == ['"1"']
    assert (got.status, got.body, got.result) == (200, b"one", "REVALIDATED")
    play.advance(59)
    assert play.exchange(A).body == b"one"


def test_and_by_its_date(play):
    """§4.3.1: If-Modified-Since is Last-Modified, byte for byte."""
    store(play, last_modified=OLD, age=60)
    got = play.exchange(A, reply(304, cache_control="max-age=60"))
    assert got.seen.all("If-Modified-Since") == [OLD]
    assert (got.status, got.body) == (200, b"one")
    assert play.exchange(A).age == 0


def test_without_a_validator_it_is_asked_for_anew(play):
    store(play, age=60)
    got = play.exchange(A, reply(200, "two"))
    assert (got.seen.get("If-None-Match"), got.seen.get("If-Modified-Since"), got.body) == (None, None, b"two")


def test_a_full_answer_replaces(play):
    """§4.3.3."""
    store(play, etag='"1"', x_old="yes", age=60)
    assert play.exchange(A, reply(200, "two", etag='"2"', cache_control="max-age=60")).body == b"two"
    again = play.exchange(A)
    assert (again.body, again.get("ETag"), again.get("X-Old")) == (b"two", '"2"', None)


def test_a_304_updates_the_fields(play):
    """§3.2 and §4.3.4: each field of the 304 takes the place of all of that name; what says how the stored body is
    framed, coded or cut stays."""
    store(play, "0123456789", etag='"1"', content_encoding="x-none", x_same="a", x_change=["b", "c"], age=60)
    changed = reply(304, etag='"1"', cache_control="max-age=100", x_change="d", x_new=["e", "f"], content_length="3",
        content_encoding="gzip", content_range="bytes 0-2/3")
    for got in (play.exchange(A, changed), play.exchange(A)):
        assert (got.status, got.body) == (200, b"0123456789")
        assert [got.all(name) for name in ("Content-Length", "Content-Encoding", "X-Same", "X-Change", "X-New",
            "Cache-Control", "Content-Range")] == [["10"], ["x-none"], ["a"], ["d"], ["e", "f"], ["max-age=100"], []]
    play.advance(99)
    assert play.exchange(A).age == 99


def test_a_304_takes_its_date_along(play):
    store(play, etag='"1"', age=60)
    play.exchange(A, reply(304, etag='"1"', cache_control="max-age=60"))
    assert play.exchange(A).get("Date") == "Thu, 01 Jan 2026 00:01:00 GMT"


def test_a_304_with_age(play):
    """§4.2.3 for the confirmed response too: it was confirmed somewhere else a while ago."""
    store(play, etag='"1"', age=60)
    play.exchange(A, reply(304, etag='"1"', cache_control="max-age=60", age="50"))
    assert play.exchange(A).age == 50
    play.advance(10)
    assert play.exchange(A, reply(200, "two")).body == b"two"


def test_hop_by_hop_fields_of_a_304_are_not_taken(play):
    """§3.2."""
    store(play, etag='"1"', age=60)
    play.exchange(A, reply(304, etag='"1"', cache_control="max-age=60", connection="x-hop", x_hop="1"))
    got = play.exchange(A)
    assert (got.get("X-Hop"), got.body) == (None, b"one")


def test_no_cache_is_confirmed_each_time(play):
    """§5.2.2.4."""
    store(play, etag='"1"', cache_control="max-age=60, no-cache")
    for _ in range(3):
        got = play.exchange(A, reply(304, etag='"1"'))
        assert (got.status, got.body, got.seen.get("If-None-Match")) == (200, b"one", '"1"')


def test_a_304_may_make_it_stale_at_once(play):
    store(play, etag='"1"', age=60)
    play.exchange(A, reply(304, etag='"1"', cache_control="max-age=0"))
    assert play.exchange(A, reply(304, etag='"1"', cache_control="max-age=0")).seen.get("If-None-Match") == '"1"'


def test_a_304_without_a_validator_confirms_the_only_one(play):
    """§4.3.4, third case: no validator in the 304, one stored response, ours was the only condition."""
    store(play, last_modified=OLD, age=60)
    got = play.exchange(A, reply(304, date=At()))
    assert (got.status, got.body) == (200, b"one")


def test_a_304_that_names_another_changes_nothing(play):
    """§4.3.4: no stored response matches: asked again, without a condition."""
    store(play, etag='"1"', age=60)
    got = play.exchange(A, [reply(304, etag='"9"', cache_control="max-age=600", x_new="1"), reply(200, "two",
        cache_control="max-age=60")])
    assert [one.get("If-None-Match") for one in got.all_seen] == ['"1"', None]
    assert (got.status, got.body, got.get("X-New")) == (200, b"two", None)
    assert play.exchange(A).body == b"two"


def test_a_304_nobody_asked_for_is_not_stored(play):
    got = play.exchange(ask("/a", if_none_match='"x"'), reply(304, etag='"x"', cache_control="max-age=60"))
    assert got.status == 304
    assert play.exchange(A, reply(200, "one")).body == b"one"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_in_answer_to_ours_leaves_what_is_stored(play, status):
    """§4.3.3: forwarded here (must-revalidate forbids the stale one); the next answer may still be a 304."""
    store(play, etag='"1"', cache_control="max-age=60, must-revalidate", age=60)
    assert play.exchange(A, reply(status, "sorry")).status == status
    got = play.exchange(A, reply(304, etag='"1"'))
    assert (got.status, got.body, got.seen.get("If-None-Match")) == (200, b"one", '"1"')


def test_a_304_to_our_condition_answers_a_client_without_one(play):
    store(play, etag='"1"', age=60)
    assert play.exchange(A, reply(304, etag='"1"')).status == 200


def test_the_clients_condition_and_ours(play):
    """§4.3.2: what we ask for is ours; whether the client gets 304 is decided by its own tags."""
    store(play, etag='"1"', age=60)
    got = play.exchange(ask("/a", if_none_match='"1"'), reply(304, etag='"1"', cache_control="max-age=60"))
    assert (got.status, got.body) == (304, b"")
    play.advance(60)
    got = play.exchange(ask("/a", if_none_match='"0"'), reply(304, etag='"1"', cache_control="max-age=60"))
    assert '"1"' in got.seen.get("If-None-Match")
    assert (got.status, got.body) == (200, b"one")


def test_the_clients_condition_and_a_new_response(play):
    store(play, etag='"1"', age=60)
    got = play.exchange(ask("/a", if_none_match='"2"'), reply(200, "two", etag='"2"', cache_control="max-age=60"))
    assert got.status in (200, 304)
    assert play.exchange(A).body == b"two"


# ---- the clients', answered from the store ----

# The stored one has ETag "1" (or as said) and Last-Modified OLD. [RFC 9110 §13.1, §13.2.2]
CONDITIONS = {
    "equal": ({}, {"if_none_match": '"1"'}, 304),
    "weak in the request": ({}, {"if_none_match": 'W/"1"'}, 304),
    "weak in the store": ({"etag": 'W/"1"'}, {"if_none_match": '"1"'}, 304),
    "weak in both": ({"etag": 'W/"1"'}, {"if_none_match": 'W/"1"'}, 304),
    "other": ({}, {"if_none_match": '"2"'}, 200),
    "letter case": ({"etag": '"a"'}, {"if_none_match": '"A"'}, 200),
    "one of a list": ({}, {"if_none_match": '"0", "1"'}, 304),
    "none of a list": ({}, {"if_none_match": '"0", "2"'}, 200),
    "in a second line": ({}, {"if_none_match": ['"0"', '"1"']}, 304),
    "with a comma in it": ({"etag": '"1,2"'}, {"if_none_match": '"0", "1,2"'}, 304),
    "part of one with a comma": ({}, {"if_none_match": '"0,1"'}, 200),
    "empty members": ({}, {"if_none_match": ', ,"1"'}, 304),
    "star": ({}, {"if_none_match": "*"}, 304),
    "star without a tag": ({"etag": None}, {"if_none_match": "*"}, 304),
    "a tag where none is": ({"etag": None}, {"if_none_match": '"1"'}, 200),
    "date equal": ({}, {"if_modified_since": OLD}, 304),
    "date later": ({}, {"if_modified_since": "Wed, 31 Dec 2025 12:00:00 GMT"}, 304),
    "date earlier": ({}, {"if_modified_since": OLDER}, 200),
    "date in the RFC 850 form": ({}, {"if_modified_since": "Wednesday, 31-Dec-25 00:00:00 GMT"}, 304),
    "no date": ({}, {"if_modified_since": "yesterday"}, 200),
    "tag before date: other": ({}, {"if_none_match": '"2"', "if_modified_since": OLD}, 200),
    "tag before date: equal": ({}, {"if_none_match": '"1"', "if_modified_since": OLDER}, 304),
}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_is_answered_from_the_store(play, name, method):
    stored, condition, status = CONDITIONS[name]
    store(play, **({"etag": '"1"', "last_modified": OLD} | stored))
    got = play.exchange(ask("/a", method, **condition))
    assert (got.status, got.body) == (status, b"one" if status == 200 and method == "GET" else b"")


def test_what_a_304_from_the_store_carries(play):
    """RFC 9110 §15.4.5: what a 200 would have said of these, and Age [RFC 9111 §4]; nothing of the content."""
    store(play, etag='"1"', vary="X-A", expires=At(60), content_location="/b", content_type="text/plain", age=5)
    got = play.exchange(ask("/a", if_none_match='"1"'))
    assert got.status == 304
    for name in ("ETag", "Vary", "Expires", "Content-Location", "Cache-Control", "Date"):
        assert len(got.all(name)) == 1, name
    assert (got.age, got.get("Content-Length") in (None, "3"), got.get("Transfer-Encoding")) == (5, True, None)


# ---- HEAD [§4.3.5] ----

HEAD = ask("/a", "HEAD", cache_control="no-cache")


def test_a_head_that_agrees_freshens(play):
    store(play, etag='"1"', x_old="a", age=50)
    play.exchange(HEAD, reply(200, "one", etag='"1"', cache_control="max-age=60", x_old="b"))
    play.advance(59)
    got = play.exchange(A)
    assert (got.body, got.get("X-Old"), got.age) == (b"one", "b", 59)


@pytest.mark.parametrize("named", [{"etag": '"2"', "body": "one"}, {"etag": '"1"', "body": "longer"},
    {"etag": '"1"', "body": "one", "last_modified": OLDER}], ids=["ETag", "Content-Length", "Last-Modified"])
def test_a_head_that_differs_makes_it_stale(play, named):
    store(play, etag='"1"', last_modified=OLD)
    play.exchange(HEAD, reply(200, cache_control="max-age=60", **({"last_modified": OLD} | named)))
    assert play.exchange(A, reply(200, "two", etag='"2"', cache_control="max-age=60")).body == b"two"


def test_a_head_is_answered_from_a_stored_get(play):
    """§4: and says how long the content is."""
    store(play, "0123456789", etag='"1"', age=7)
    got = play.exchange(ask("/a", "HEAD"))
    assert (got.status, got.body, got.get("Content-Length"), got.age) == (200, b"", "10", 7)


def test_what_answered_a_head_answers_no_get(play):
    play.exchange(ask("/a", "HEAD"), reply(200, "one", cache_control="max-age=60"))
    assert play.exchange(A, reply(200, "one")).body == b"one"


def test_a_stale_one_is_confirmed_for_a_head(play):
    store(play, etag='"1"', age=60)
    got = play.exchange(ask("/a", "HEAD"), lambda seen: reply(304, etag='"1"', cache_control="max-age=60")
        if seen.get("If-None-Match") else reply(200, "one", etag='"1"', cache_control="max-age=60"))
    assert (got.status, got.body, got.get("Content-Length")) == (200, b"", "3")
    assert play.exchange(A).body == b"one"  # fresh anew by either [§4.3.4, §4.3.5]
