"""Several responses of one URL [RFC 9111 §4.1]."""
import pytest

from play import ask, reply

MAX = "max-age=60"


def a(**fields):
    return ask("/a", **fields)


def by_language(seen):
    language = seen.get("Accept-Language")
    return reply(200, f"in {language}", vary="Accept-Language", cache_control=MAX, etag=f'"{language}"')


def test_each_has_its_own(play):
    languages = ("cs", "en", "de", None)
    for language in languages:
        assert play.exchange(a(accept_language=language), by_language).body == f"in {language}".encode()
    for language in reversed(languages):
        assert play.exchange(a(accept_language=language)).body == f"in {language}".encode()


# What the first request says, what the second does, whether its field selects the same [§4.1: "by normalising both in
# a way that is known to have identical semantics"].
SELECTION = {
    "equal": ("accept-language", ["cs, en"], ["cs, en"], True),
    "blanks": ("accept-language", ["cs, en"], ["cs,en"], True),
    "two lines": ("accept-language", ["cs, en"], ["cs", "en"], True),
    "letter case of a language": ("accept-language", ["cs"], ["CS"], True),
    "letter case of a coding": ("accept-encoding", ["gzip"], ["GZIP"], True),
    "order without weights": ("accept-encoding", ["gzip, br"], ["br, gzip"], True),
    "another value": ("accept-language", ["cs"], ["en"], False),
    "one more": ("accept-encoding", ["gzip"], ["gzip, br"], False),
    "other weights": ("accept-encoding", ["gzip;q=1, br;q=0.1"], ["gzip;q=0.1, br;q=1"], False),
    "absent": ("accept-language", [], [], True),
    "absent, then there": ("accept-language", [], ["cs"], False),
    "there, then absent": ("accept-language", ["cs"], [], False),
    "letter case of what we know nothing of": ("x-a", ["a"], ["A"], False),
}


@pytest.mark.parametrize("name", SELECTION)
def test_selection(play, name):
    field, first, second, same = SELECTION[name]
    play.exchange(ask("/a", fields=[(field, one) for one in first]), reply(200, "one", vary=field, cache_control=MAX))
    got = play.exchange(ask("/a", fields=[(field, one) for one in second]), None if same else reply(200, "two"))
    assert got.body == (b"one" if same else b"two")


@pytest.mark.parametrize("vary", [["X-A, X-B"], ["X-A", "X-B"], ["x-b,x-a"], [", X-A,, X-B"]])
def test_all_fields_select(play, vary):
    play.exchange(a(x_a="1", x_b="1"), reply(200, "11", vary=vary, cache_control=MAX))
    assert play.exchange(a(x_a="1", x_b="2"), reply(200, "12", vary=vary, cache_control=MAX)).body == b"12"
    assert play.exchange(a(x_a="2", x_b="1"), reply(200, "21", vary=vary, cache_control=MAX)).body == b"21"
    assert play.exchange(a(x_a="1", x_b="1", x_c="3")).body == b"11"


@pytest.mark.parametrize("vary", [["*"], ["X-A, *"], ["*, X-A"], ["X-A", "*"]])
def test_a_star_never_selects(play, vary):
    play.exchange(a(x_a="1"), reply(200, "one", vary=vary, cache_control=MAX))
    assert play.exchange(a(x_a="1"), reply(200, "two")).body == b"two"


def test_all_tags_are_asked_about(play):
    """§4.3.1: a request that selects none lists the tags of all; §4.3.4: the 304 says which one it is."""
    for language in ("cs", "en"):
        play.exchange(a(accept_language=language), by_language)
    got = play.exchange(a(accept_language="de"), reply(304, etag='"en"', vary="Accept-Language", cache_control=MAX))
    assert sorted(got.seen.get("If-None-Match").split(", ")) == ['"cs"', '"en"']
    assert (got.status, got.body) == (200, b"in en")
    assert play.exchange(a(accept_language="cs")).body == b"in cs"


def test_the_304_picks_the_right_one(play):
    for language in ("cs", "en"):
        play.exchange(a(accept_language=language), by_language)
    play.advance(60)
    got = play.exchange(a(accept_language="cs"), reply(304, etag='"cs"', cache_control=MAX))
    assert got.body == b"in cs"
    assert play.exchange(a(accept_language="cs")).body == b"in cs"
    got = play.exchange(a(accept_language="en"), reply(304, etag='"en"', cache_control=MAX))
    assert (bool(got.seen), got.body) == (True, b"in en")


def test_a_later_answer_without_vary(play):
    """The most recent one that is usable is taken [§4.1]: it stands for every request."""
    play.exchange(a(accept_language="cs"), by_language)
    play.exchange(a(accept_language="en"), reply(200, "for all", cache_control=MAX))
    assert play.exchange(a(accept_language="de")).body == b"for all"


def test_a_later_answer_with_vary(play):
    play.exchange(a(accept_language="cs"), reply(200, "for all", cache_control="max-age=1"))
    play.advance(1)
    play.exchange(a(accept_language="cs"), by_language)
    assert play.exchange(a(accept_language="cs")).body == b"in cs"
    assert play.exchange(a(accept_language="en"), by_language).body == b"in en"


def test_too_many_are_no_leak(play):
    """However many there are, what they take is bounded; each answer is right."""
    for number in range(200):
        got = play.exchange(a(x_a=str(number)), reply(200, f"{number}", vary="X-A", cache_control=MAX))
        assert got.body == str(number).encode()
    got = play.exchange(a(x_a="199"), reply(200, "again", vary="X-A", cache_control=MAX))
    assert got.body in (b"199", b"again")
    assert play.replay.stats()["objects"] <= 200
