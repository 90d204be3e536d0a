"""What a request's Cache-Control may ask for [RFC 9111 §5.2.1], Pragma [§5.4]."""
import pytest

from play import ask, reply

A = ask("/a")


def store(play, control="max-age=60", age=0, **named):
    play.exchange(A, reply(200, "old", cache_control=control, etag='"1"', **named))
    play.advance(age)


# What is asked of a response that is 30 s old, and may be used for 60 or 20 s: whether the store answers.
ASKED = {
    "max-age above": (60, "max-age=31", True),                 # §5.2.1.1
    "max-age equal": (60, "max-age=30", True),
    "max-age below": (60, "max-age=29", False),
    "max-age of nothing": (60, "max-age=0", False),
    "Max-Age": (60, "Max-Age=29", False),
    "max-age quoted": (60, 'max-age="29"', False),
    "max-age does not prolong": (20, "max-age=600", False),
    "min-fresh below": (60, "min-fresh=29", True),             # §5.2.1.3
    "min-fresh equal": (60, "min-fresh=30", True),
    "min-fresh above": (60, "min-fresh=31", False),
    "max-stale enough": (20, "max-stale=11", True),            # §5.2.1.2
    "max-stale equal": (20, "max-stale=10", True),
    "max-stale too little": (20, "max-stale=9", False),
    "max-stale without an end": (20, "max-stale", True),
    "MAX-STALE": (20, "MAX-STALE=11", True),
    "max-stale with max-age": (20, "max-stale=100, max-age=29", False),
    "max-stale with enough max-age": (20, "max-stale=100, max-age=40", True),
    "max-age does not hinder min-fresh": (60, "max-age=100, min-fresh=40", False),
    "no-cache": (60, "no-cache", False),                       # §5.2.1.4
    "NO-CACHE": (60, "NO-CACHE", False),
    "no-cache among others": (60, "foo, no-cache", False),
    "an unknown directive": (60, "unheard-of=1, no-transform", True),
    "a word within a word": (60, "x-no-cache", True),
    "only-if-cached": (60, "only-if-cached", True),            # §5.2.1.7
    "only-if-cached with max-stale": (20, "only-if-cached, max-stale=100", True),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked(play, name):
    lifetime, asked, stored = ASKED[name]
    store(play, f"max-age={lifetime}", 30)
    got = play.exchange(ask("/a", cache_control=asked), None if stored else reply(200, "new"))
    assert (got.body, bool(got.seen)) == ((b"old", False) if stored else (b"new", True))


def test_no_cache_is_answered_by_a_confirmation(play):
    store(play, age=30)
    got = play.exchange(ask("/a", cache_control="no-cache"), reply(304, etag='"1"', cache_control="max-age=60"))
    assert (got.status, got.body, got.seen.get("If-None-Match")) == (200, b"old", '"1"')
    assert play.exchange(A).age == 0


@pytest.mark.parametrize("control", ["must-revalidate", "proxy-revalidate", "s-maxage=20", "no-cache"])
def test_max_stale_does_not_override(play, control):
    """§5.2.2.2, §5.2.2.8, §5.2.2.10."""
    store(play, f"max-age=20, {control}", 30)
    assert play.exchange(ask("/a", cache_control="max-stale=1000"), reply(200, "new")).body == b"new"


def test_no_store_in_a_request(play):
    """§5.2.1.5: nothing of this request or of any answer to it is stored."""
    asked = ask("/a", cache_control="no-store")
    play.exchange(asked, reply(200, "one", cache_control="max-age=60"))
    assert play.exchange(A, reply(200, "two", cache_control="max-age=60")).body == b"two"
    assert play.exchange(A).body == b"two"


@pytest.mark.parametrize("age", [None, 60], ids=["absent", "stale"])
def test_only_if_cached_is_a_504(play, age):
    if age:
        store(play, age=age)
    assert play.exchange(ask("/a", cache_control="only-if-cached")).status == 504


def test_pragma_alone(play):
    """§5.4: as no-cache, where no Cache-Control stands beside it."""
    store(play)
    assert play.exchange(ask("/a", pragma="no-cache"), reply(200, "new", cache_control="max-age=60")).body == b"new"
    assert play.exchange(ask("/a", pragma="no-cache", cache_control="max-age=60")).body == b"new"
    assert play.exchange(ask("/a", pragma="foo")).body == b"new"


def test_pragma_in_a_response_means_nothing(play):
    store(play, pragma="no-cache")
    assert play.exchange(A).body == b"old"


def test_authorization(play):
    """§3.5."""
    def twice(target, control):
        request = ask(target, authorization="Basic eDp5")
        play.exchange(request, reply(200, "old", cache_control=control))
        return play.exchange(request, reply(200, "new", cache_control=control)).body == b"old"
    assert [twice(f"/{number}", control) for number, control in enumerate(["max-age=60", "max-age=60, public",
        "s-maxage=60", "max-age=60, must-revalidate", "max-age=60, proxy-revalidate"])] == [False, True, True, True,
        False]


def test_authorization_may_be_answered_by_what_is_for_all(play):
    """§3.5 is about storing; what another request stored answers this one too."""
    store(play)
    assert play.exchange(ask("/a", authorization="Basic eDp5")).body == b"old"


@pytest.mark.parametrize("asked, stored", [("max-age=0", True), ("no-cache", False)])
def test_immutable(play, asked, stored):
    """RFC 8246 §2: a reload needs no confirmation of it while it is fresh; an explicit no-cache does."""
    store(play, "max-age=60, immutable", 30)
    got = play.exchange(ask("/a", cache_control=asked), None if stored else reply(304, etag='"1"'))
    assert (got.body, bool(got.seen)) == (b"old", not stored)


def test_immutable_is_not_for_ever(play):
    store(play, "max-age=60, immutable", 60)
    assert play.exchange(A, reply(304, etag='"1"')).seen
