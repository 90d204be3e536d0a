"""When what is stale may be used: RFC 9111 §4.2.4, RFC 5861."""
import pytest

from play import DROP, RESET, ask, reply

A = ask("/a")


def store(play, control, age, **named):
    play.exchange(A, reply(200, "old", cache_control=control, **({"etag": '"1"'} | named)))
    play.advance(age)


# ---- stale-while-revalidate [RFC 5861 §3] ----

SWR = "max-age=10, stale-while-revalidate=60"


def test_it_is_served_at_once_and_refreshed_behind(play):
    store(play, SWR, 30)
    client = play.start(A)
    response = client.take()
    assert (response.body, response.get("Age")) == (b"old", "30")
    arrived = play.arrived()
    assert arrived.get("If-None-Match") == '"1"' and play.arrived() is None
    arrived.answer(reply(200, "new", cache_control=SWR))
    play.settle()
    got = play.exchange(A)
    assert (got.body, got.age) == (b"new", 0)


def test_a_304_refreshes_too(play):
    store(play, SWR, 30)
    got = play.exchange(A, reply(304, etag='"1"', cache_control=SWR))
    assert (got.body, got.age, len(got.all_seen)) == (b"old", 30, 1)
    got = play.exchange(A)
    assert (got.body, got.age) == (b"old", 0)


def test_once_however_many_ask(play):
    store(play, SWR, 30)
    clients = [play.start(A) for _ in range(20)]
    assert [client.take().body for client in clients] == [b"old"] * 20
    play.advance(5)
    assert play.start(A).take().body == b"old"
    assert len(play.arrived_all()) == 1


def test_the_client_leaves_the_refreshing_goes_on(play):
    store(play, SWR, 30)
    client = play.start(A)
    assert client.take().body == b"old"
    client.reset()
    play.arrived().answer(reply(200, "new", cache_control=SWR))
    play.settle()
    assert play.exchange(A).body == b"new"


@pytest.mark.parametrize("age, served", [(70, True), (71, False), (700, False)])
def test_so_long_and_no_longer(play, age, served):
    """Up to 60 s after it became stale, which it did at 10."""
    store(play, SWR, age)
    client = play.start(A)
    arrived = play.arrived()
    response = client.take()
    assert arrived and (response.body if response else None) == (b"old" if served else None)
    arrived.answer(reply(200, "new"))
    if not served:
        assert client.take().body == b"new"


@pytest.mark.parametrize("control", ["must-revalidate", "proxy-revalidate", "s-maxage=10", "no-cache"])
def test_not_where_stale_is_forbidden(play, control):
    """RFC 9111 §4.2.4, §5.2.2."""
    store(play, f"{SWR}, {control}", 30)
    assert play.exchange(A, reply(200, "new")).body == b"new"


@pytest.mark.parametrize("answer", [reply(500, "sorry"), reply(503, "sorry"), DROP], ids=["500", "503", "dropped"])
def test_a_refreshing_that_fails_harms_nobody(play, answer):
    store(play, SWR, 30)
    assert play.exchange(A, answer).body == b"old"
    play.advance(20)
    assert play.exchange(A, answer).body == b"old"
    play.advance(21)
    assert play.exchange(A, reply(200, "new", cache_control=SWR)).body == b"new"


@pytest.mark.parametrize("control", ["no-cache", "max-age=5", "max-age=0"])
def test_a_client_that_insists_waits(play, control):
    store(play, SWR, 30)
    got = play.exchange(ask("/a", cache_control=control), reply(200, "new", cache_control=SWR))
    assert got.body == b"new"


def test_a_condition_of_the_client_during_it(play):
    store(play, SWR, 30)
    got = play.exchange(ask("/a", if_none_match='"1"'), reply(304, etag='"1"', cache_control=SWR))
    assert got.status == 304


def test_a_refreshing_that_never_answers_ends(play):
    store(play, SWR, 30)
    assert play.start(A).take().body == b"old"
    assert play.arrived()
    play.advance(3600)
    assert play.exchange(A, reply(200, "new", cache_control=SWR)).body == b"new"


# ---- stale-if-error [RFC 5861 §4] ----

SIE = "max-age=10, stale-if-error=60"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_is_stood_in_for(play, status):
    store(play, SIE, 30)
    got = play.exchange(A, reply(status, "sorry"))
    assert (got.status, got.body, got.age, bool(got.seen)) == (200, b"old", 30, True)


@pytest.mark.parametrize("status", [400, 403, 404, 410, 501])
def test_other_statuses_are_the_answer(play, status):
    store(play, SIE, 30)
    assert play.exchange(A, reply(status, "no")).status == status


@pytest.mark.parametrize("age, status", [(70, 200), (71, 503), (700, 503)])
def test_error_so_long_and_no_longer(play, age, status):
    store(play, SIE, age)
    assert play.exchange(A, reply(503, "sorry")).status == status


def test_without_the_directive_an_error_is_the_answer(play):
    store(play, "max-age=10", 30)
    assert play.exchange(A, reply(503, "sorry")).status == 503


def test_the_request_may_ask_for_it(play):
    """RFC 5861 §4: the directive stands in requests too."""
    store(play, "max-age=10", 30)
    got = play.exchange(ask("/a", cache_control="stale-if-error=60"), reply(503, "sorry"))
    assert (got.status, got.body) == (200, b"old")
    got = play.exchange(ask("/a", cache_control="stale-if-error=5"), reply(503, "sorry"))
    assert got.status == 503


@pytest.mark.parametrize("control", ["must-revalidate", "proxy-revalidate", "s-maxage=10", "no-cache"])
def test_an_error_where_stale_is_forbidden(play, control):
    store(play, f"{SIE}, {control}", 30)
    assert play.exchange(A, reply(503, "sorry")).status == 503


def test_the_stored_one_outlives_the_error(play):
    store(play, SIE, 30)
    play.exchange(A, reply(500, "sorry"))
    got = play.exchange(A, reply(304, etag='"1"', cache_control=SIE))
    assert (got.body, got.seen.get("If-None-Match")) == (b"old", '"1"')


def test_everybody_who_waits_gets_it(play):
    store(play, SIE, 30)
    clients = [play.start(A) for _ in range(5)]
    arrived = play.arrived_all()
    assert len(arrived) == 1
    arrived[0].answer(reply(500, "sorry"))
    assert [client.take().body for client in clients] == [b"old"] * 5
    assert play.arrived() is None


# ---- disconnected [RFC 9111 §4.2.4] ----

FAILURES = ["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"]


@pytest.mark.parametrize("error", FAILURES)
@pytest.mark.parametrize("control", ["max-age=10", SIE])
def test_who_cannot_connect_may_serve_stale(play, error, control):
    store(play, control, 30)
    play.cut(error)
    got = play.exchange(A)
    assert (got.status, got.body, got.age, len(play.replay.dials)) == (200, b"old", 30, 2)
    play.mend()
    assert play.exchange(A, reply(304, etag='"1"')).seen


@pytest.mark.parametrize("answer", [DROP, RESET], ids=["closed", "reset"])
def test_a_connection_that_drops(play, answer):
    store(play, "max-age=10", 30)
    got = play.exchange(A, answer)
    assert (got.status, got.body, got.age) == (200, b"old", 30)


def test_an_origin_that_does_not_answer(play):
    store(play, "max-age=10", 30)
    client = play.start(A)
    assert play.arrived() and client.take() is None
    play.advance(3600)
    assert client.take().body == b"old"


@pytest.mark.parametrize("control", ["must-revalidate", "proxy-revalidate", "s-maxage=10", "no-cache",
    "must-revalidate, stale-if-error=600"])
def test_not_where_it_is_forbidden(play, control):
    """§5.2.2.2: an error, and 504 is what it SHOULD be."""
    store(play, f"max-age=10, {control}", 30)
    play.cut("ECONNREFUSED")
    assert play.exchange(A).status == 504


def test_what_is_absent_is_an_error(play):
    play.cut("ECONNREFUSED")
    assert play.exchange(A).status == 502


def test_fresh_needs_no_origin(play):
    store(play, "max-age=60, must-revalidate", 30)
    play.cut("ENETUNREACH")
    assert play.exchange(A).body == b"old"


def test_a_client_that_insists_gets_the_error(play):
    """§5.2.1.4: a no-cache in the request forbids the stored one without confirmation."""
    store(play, "max-age=60", 30)
    play.cut("ECONNREFUSED")
    assert play.exchange(ask("/a", cache_control="no-cache")).status >= 500
