"""How long a response is fresh, and how old it is [RFC 9111 §4.2], over time."""
import pytest

from play import At, ask, reply

A = ask("/a")
YEAR = 365 * 86400
MAX = "max-age=60"


def line(value):
    return {"cache_control": value}


# What the response says, and how many seconds it may be used from the moment it arrives.
LIFETIMES = {
    "max-age": (line("max-age=60"), 60),                                                    # §5.2.2.1
    "s-maxage before max-age": (line("max-age=10, s-maxage=60"), 60),                       # §5.2.2.10
    "s-maxage shorter": (line("s-maxage=60, max-age=600"), 60),
    "max-age before Expires": (line("max-age=60") | {"expires": At(600)}, 60),              # §5.3
    "max-age before a past Expires": (line("max-age=60") | {"expires": At(-600)}, 60),
    "s-maxage before Expires": (line("s-maxage=60") | {"expires": At(6)}, 60),
    "Expires": ({"expires": At(60)}, 60),
    "Expires against Date": ({"expires": At(60), "date": At(-40)}, 60),                     # lives 100, is 40 old
    "Expires with a fast Date": ({"expires": At(160), "date": At(100)}, 60),
    "Expires without Date": ({"expires": At(60), "date": None}, 60),
    "Last-Modified": ({"last_modified": At(-1000)}, 100),                                   # §4.2.2
    "Last-Modified against Date": ({"last_modified": At(-1400), "date": At(-400)}, None),   # a tenth of 1000, is 400
    "letter case": (line("MAX-age=60"), 60),                                                # §5.2
    "quoted": (line('max-age="60"'), 60),
    "among others": (line('foo, bar="a, max-age=1", max-age=60,, baz=1'), 60),
    "in a second line": ({"cache_control": ["foo=1", "max-age=60"]}, 60),
    "leading zeros": (line("max-age=0060"), 60),
    "an extension beside it": (line("max-age=60, unheard-of=3"), 60),
    "Age": (line("max-age=100") | {"age": "40"}, 60),                                       # §4.2.3
    "the first of several Age": (line("max-age=100") | {"age": "40, 90"}, 60),              # §5.1
    "Age that is no number": (line("max-age=60") | {"age": "abc"}, 60),
    "a slow Date": (line("max-age=100") | {"date": At(-40)}, 60),
    "Age greater than a slow Date": (line("max-age=100") | {"age": "40", "date": At(-20)}, 60),
    "a fast Date": (line("max-age=60") | {"date": At(500)}, 60),
    "no Date": (line("max-age=60") | {"date": None}, 60),
    "asctime dates": ({"expires": "Thu Jan  1 00:01:00 2026"}, 60),                         # RFC 9110 §5.6.7
    "RFC 850 dates": ({"expires": "Thursday, 01-Jan-26 00:01:00 GMT"}, 60),
}


@pytest.mark.parametrize("name", LIFETIMES)
def test_fresh_so_long_and_no_longer(play, name):
    named, seconds = LIFETIMES[name]
    first = play.exchange(A, reply(200, "one", **named))
    assert (first.status, first.body) == (200, b"one")
    if seconds:
        assert play.exchange(A).body == b"one"
        play.advance(seconds - 1)
        assert play.exchange(A).body == b"one"
        play.advance(1)
    assert play.exchange(A, reply(200, "two")).seen


# §4.2.1, §5.3: what is past, invalid or not said is not fresh.
NOT_FRESH = {
    "nothing said": {},                                                                      # §4.2.2: no basis
    "max-age=0": line("max-age=0"),
    "s-maxage=0": line("s-maxage=0, max-age=60"),
    "no-cache": line("max-age=60, no-cache"),                                                # §5.2.2.4
    "no-store": line("max-age=60, no-store"),                                                # §5.2.2.5
    "private": line("max-age=60, private"),                                                  # §5.2.2.7
    "NO-Store": line("max-age=60, NO-Store"),
    "no-store in a second line": {"cache_control": ["max-age=60", "no-store"]},
    "past Expires": {"expires": At(-1)},
    "Expires is Date": {"expires": At(0)},
    "Expires: 0": {"expires": "0", "last_modified": At(-100000)},
    "Expires without its zone": {"expires": "Thu, 01 Jan 2099 00:00:00"},
    "Expires in another zone": {"expires": "Thu, 01 Jan 2099 00:00:00 CET"},
    "negative": line("max-age=-60"),
    "a fraction": line("max-age=60.5"),
    "garbage": line("max-age=60s"),
    "nothing given": line("max-age="),
    "no argument": line("max-age"),
    "a blank before the value": line("max-age= 60"),
    "in quotes of another": line('foo="max-age=60"'),
    "Age reaches the lifetime": line("max-age=60") | {"age": "60"},
    "Age overflows": line("max-age=60") | {"age": "99999999999999999999"},
    "Date is old": line("max-age=60") | {"date": At(-60)},
    "Last-Modified in the future": {"last_modified": At(1000)},
    "Vary: *": line("max-age=60") | {"vary": "*"},                                           # §4.1
}


@pytest.mark.parametrize("name", NOT_FRESH)
def test_not_fresh(play, name):
    play.exchange(A, reply(200, "one", **NOT_FRESH[name]))
    again = play.exchange(A, reply(200, "two"))
    assert again.seen and again.body == b"two"


@pytest.mark.parametrize("status", [201, 202, 302, 307, 400, 403, 500, 502, 503])
def test_no_heuristic_for_other_statuses(play, status):
    """§4.2.2: only for statuses that RFC 9110 §15.1 names heuristically cacheable."""
    play.exchange(A, reply(status, "one", last_modified=At(-100000)))
    assert play.exchange(A, reply(status, "two", last_modified=At(-100000))).seen


@pytest.mark.parametrize("status", [200, 203, 300, 301, 308, 404, 405, 410, 414, 501])
def test_heuristic_statuses(play, status):
    """RFC 9110 §15.1 (204 aside, which has no content to tell apart)."""
    play.exchange(A, reply(status, "one", last_modified=At(-100000)))
    again = play.exchange(A)
    assert (again.status, again.body) == (status, b"one")


@pytest.mark.parametrize("status", [200, 201, 202, 203, 204, 299, 302, 303, 307, 400, 403, 404, 410, 451, 499, 500, 503,
    599])
def test_explicit_freshness_of_any_status(play, status):
    """§3: a final status, understood or not (no must-understand), with an explicit lifetime."""
    play.exchange(A, reply(status, "one", cache_control=MAX))
    play.advance(59)
    again = play.exchange(A)
    assert (again.status, again.body, again.age) == (status, b"" if status == 204 else b"one", 59)


@pytest.mark.parametrize("seconds", ["2147483647", "2147483648", "4294967296", "9223372036854775808", "9" * 40])
def test_an_overflow_saturates(play, seconds):
    """§1.2.2: greater than 2^31 counts as 2^31."""
    play.exchange(A, reply(200, "one", cache_control=f"max-age={seconds}"))
    play.advance(50 * YEAR)
    again = play.exchange(A)
    assert (again.body, again.age) == (b"one", 50 * YEAR)


# ---- Age [§4.2.3, §5.1] ----

def test_age_is_what_a_hit_carries(play):
    """§4: MUST generate Age when answering from the store; the first delivery passes on what came."""
    assert play.exchange(A, reply(200, "one", cache_control=MAX)).age is None
    assert play.exchange(A).age == 0
    play.advance(1.5)
    assert play.exchange(A).age == 1
    play.advance(10.5)
    assert play.exchange(A).age == 12


def test_age_that_came_is_added_to(play):
    first = play.exchange(A, reply(200, "one", cache_control=MAX, age="7"))
    assert first.age >= 7
    play.advance(5)
    assert play.exchange(A).age == 12


def test_apparent_age(play):
    play.exchange(A, reply(200, "one", cache_control="max-age=100", date=At(-30)))
    play.advance(5)
    assert play.exchange(A).age == 35


def test_the_response_delay_counts(play):
    """corrected_age_value = age_value + response_delay."""
    client = play.start(A)
    arrived = play.arrived()
    play.advance(20)
    arrived.answer(reply(200, "one", cache_control=MAX, age="10"))
    assert client.take().body == b"one"
    assert play.exchange(A).age == 30
    play.advance(29)
    assert play.exchange(A).age == 59
    play.advance(1)
    assert play.exchange(A, reply(200, "two")).body == b"two"


def test_age_of_a_slow_body_begins_with_the_head(play):
    client = play.start(A)
    arrived = play.arrived()
    arrived.answer(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nab")
    play.advance(20)
    arrived.answer(b"cd")
    assert client.take().body == b"abcd"
    assert play.exchange(A).age == 20


def test_date_stays_as_it_came(play):
    first = play.exchange(A, reply(200, "one", cache_control=MAX, date="Thu, 01 Jan 2026 00:00:00 GMT"))
    play.advance(30)
    assert play.exchange(A).all("Date") == first.all("Date") == ["Thu, 01 Jan 2026 00:00:00 GMT"]


# ---- the wall clock is set ----

@pytest.mark.parametrize("step", [-10 * YEAR, -86400, -3600, -61, 61, 3600, 86400, 10 * YEAR])
@pytest.mark.parametrize("named", [{"cache_control": MAX}, {"expires": At(60)}], ids=["max-age", "Expires"])
def test_a_step_of_the_wall_clock_changes_no_age(play, step, named):
    """§4.2.3 counts time that passes; how the clock is set has no part in it."""
    play.exchange(A, reply(200, "one", **named))
    play.advance(10)
    play.step_wall(step)
    assert play.exchange(A).age == 10
    play.advance(49)
    assert play.exchange(A).age == 59
    play.advance(1)
    assert play.exchange(A, reply(200, "two", **named)).body == b"two"
    assert play.exchange(A).age == 0


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_step_while_the_origin_thinks(play, step):
    """The Date was written with the clock before or after it; it must not make the response older than an hour, nor
    younger than the delay."""
    client = play.start(A)
    arrived = play.arrived()
    play.advance(5)
    play.step_wall(step)
    arrived.answer(reply(200, "one", cache_control=MAX))
    assert client.take().body == b"one"
    assert play.exchange(A).age == 5


def test_a_step_back_and_a_validation(play):
    """§4.3.4: the confirmed response is fresh anew, by the same arithmetic."""
    play.exchange(A, reply(200, "one", cache_control=MAX, etag='"1"'))
    play.advance(70)
    play.step_wall(-86400)
    assert play.exchange(A, reply(304, cache_control=MAX, etag='"1"')).body == b"one"
    play.advance(59)
    assert play.exchange(A).age == 59
