"""What settings change about it: `offline`, `cache_status` [RFC 9211], `refresh_pattern`, `no_cache`, sizes."""
import pytest

from play import At, Play, ask, reply

A = ask("/a")
MAX = "max-age=60"


@pytest.fixture
def status():
    with Play("cache_mem 16M\ncache_status on\n") as play:
        yield play


def member(got):
    """Our member of Cache-Status, the last: its parameters as a dictionary; that a word stands alone is True."""
    name, *parameters = (part.strip() for part in got.get("Cache-Status").split(",")[-1].split(";"))
    assert name == "weir"
    return {key: value or True for key, _, value in (parameter.partition("=") for parameter in parameters)}


def is_part(part, whole):
    return {key: whole.get(key) for key in part} == part


# ---- Cache-Status ----

def test_it_is_off_on_intercepted_connections(play):
    assert play.exchange(A, reply(200, "one", cache_control=MAX)).get("Cache-Status") is None
    assert play.exchange(A).get("Cache-Status") is None


def test_miss_and_hit(status):
    """RFC 9211 §2.1, §2.2, §2.4, §2.5."""
    told = member(status.exchange(A, reply(200, "one", cache_control=MAX)))
    assert is_part({"fwd": "uri-miss", "stored": True}, told) and "hit" not in told
    status.advance(10)
    told = member(status.exchange(A))
    assert is_part({"hit": True, "ttl": "50"}, told) and "fwd" not in told


FORWARDS = {
    "method": (ask("/a", "POST", "x"), reply(200), "method"),
    "vary-miss": (ask("/a", x_a="2"), reply(200, "two", vary="X-A", cache_control=MAX), "vary-miss"),
    "request": (ask("/a", x_a="1", cache_control="no-cache"), reply(200, "two", cache_control=MAX), "request"),
    "uri-miss": (ask("/b"), reply(200, "two"), "uri-miss"),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_why_it_was_forwarded(status, name):
    request, answer, reason = FORWARDS[name]
    status.exchange(ask("/a", x_a="1"), reply(200, "one", vary="X-A", cache_control=MAX))
    assert member(status.exchange(request, answer))["fwd"] == reason


def test_what_was_stale(status):
    """RFC 9211 §2.3: fwd-status is the status of the answer to the forwarded request."""
    status.exchange(A, reply(200, "one", cache_control=MAX, etag='"1"'))
    status.advance(60)
    told = member(status.exchange(A, reply(304, etag='"1"', cache_control=MAX)))
    assert is_part({"fwd": "stale", "fwd-status": "304"}, told)


def test_collapsed(status):
    """RFC 9211 §2.6."""
    clients = [status.start(A) for _ in range(3)]
    status.arrived().answer(reply(200, "one", cache_control=MAX))
    assert ["collapsed" in member(client.take()) for client in clients] == [False, True, True]


def test_stale_is_said(status):
    """A negative ttl [RFC 9211 §2.4]."""
    status.exchange(A, reply(200, "one", cache_control="max-age=10, stale-while-revalidate=60"))
    status.advance(30)
    told = member(status.exchange(A, reply(200, "two", cache_control=MAX)))
    assert is_part({"hit": True, "ttl": "-20"}, told)


def test_other_caches_stand_before_it(status):
    got = status.exchange(A, reply(200, "one", cache_control=MAX, cache_status="other; hit"))
    assert got.get("Cache-Status").startswith("other; hit")
    assert is_part({"fwd": "uri-miss"}, member(got))
    got = status.exchange(A)
    assert got.get("Cache-Status").startswith("other; hit") and member(got)["hit"]


# ---- offline ----

OFFLINE = "cache_mem 16M\noffline on\n"


def test_offline_asks_nobody(play):
    """RFC 9111 §4.2.4: disconnected by the admin's word; Age is honest."""
    play.exchange(A, reply(200, "one", cache_control=MAX))
    play.reload(OFFLINE)
    dialled = len(play.replay.dials)
    play.advance(1000)
    got = play.exchange(A)
    assert (got.status, got.body, got.age, got.get("Warning")) == (200, b"one", 1000, None)
    for request in (ask("/b"), ask("/a", "POST", "x"), ask("/b", cache_control="no-cache")):
        assert play.exchange(request).status == 504
    assert len(play.replay.dials) == dialled
    play.reload("cache_mem 16M\n")
    assert play.exchange(A, reply(200, "two", cache_control=MAX)).body == b"two"


@pytest.mark.parametrize("control", ["must-revalidate", "no-cache", "s-maxage=60", "max-age=0"])
def test_offline_serves_whatever_is_stored(play, control):
    """The admin has said that nobody is to be asked: that goes beyond RFC 9111 §4.2.4, and only this setting does."""
    play.exchange(A, reply(200, "one", cache_control=f"max-age=60, {control}", etag='"1"'))
    play.advance(100)
    play.reload(OFFLINE)
    got = play.exchange(A)
    assert (got.status, got.body, got.age, got.result, got.reason) == (200, b"one", 100, "STALE", "offline")


# ---- offline auto ----

AUTO = "cache_mem 16M\noffline auto\n"
STALE = "max-age=10"


def is_offline(play):
    """Nothing is dialled for what is absent."""
    dialled = len(play.replay.dials)
    got = play.exchange(ask("/absent", cache_control="no-store"), reply(200, "there"))
    assert got.status == 200 and len(got.all_seen) == 1 or got.status == 504 and len(play.replay.dials) == dialled
    return got.status == 504


def test_offline_auto_follows_the_default_route():
    """With hysteresis: gone for 2 s, back for 1 s."""
    with Play(AUTO) as play:
        play.advance(1)
        play.exchange(A, reply(200, "one", cache_control=STALE))
        play.advance(20)
        play.replay.route(False)
        play.advance(1)
        assert not is_offline(play)
        play.cut("ENETUNREACH")
        play.advance(2)
        assert is_offline(play)
        got = play.exchange(A)
        assert (got.body, got.age, got.reason) == (b"one", 23, "offline")
        play.replay.route(True)  # probes still fail
        play.advance(0.5)
        assert is_offline(play)
        play.advance(2)
        play.mend()
        assert not is_offline(play)
        assert play.exchange(A, reply(200, "two", cache_control=STALE)).body == b"two"


def test_a_way_without_a_default_route_is_a_way():
    with Play(AUTO) as play:
        play.advance(1)
        play.exchange(A, reply(200, "one"))
        play.cut("EHOSTUNREACH")
        play.replay.route(False)
        play.advance(10)
        assert is_offline(play)
        play.mend()
        play.advance(6)  # a probe succeeds
        while play.replay.accept():
            pass
        play.advance(10)
        assert not is_offline(play)


def test_offline_auto_after_unrelated_failures():
    """Four networks one after another; a probe finds the way again."""
    with Play(AUTO) as play:
        play.advance(1)
        play.exchange(A, reply(200, "one", cache_control=STALE))
        play.advance(20)
        play.cut("EHOSTUNREACH")
        for number in range(4):
            assert not play.log[-1]["reason"] == "offline"
            play.exchange(ask("/", to=f"198.51.{number}.1:80"))
        play.advance(3)  # what answered before is tried three times more
        dialled = len(play.replay.dials)
        assert play.exchange(A).reason == "offline" and play.exchange(ask("/b")).status == 504
        assert len(play.replay.dials) == dialled
        play.advance(60)
        assert len(play.replay.dials) - dialled in range(10, 14)  # probes, one in 5 s
        play.mend()
        play.advance(6)
        while play.replay.accept():
            pass  # the probe's
        assert play.exchange(A, reply(200, "two", cache_control=STALE)).body == b"two"


def test_one_network_that_is_down_is_no_reason():
    with Play(AUTO) as play:
        play.advance(1)
        play.cut("EHOSTUNREACH")
        for number in range(20):
            play.exchange(ask("/", to=f"198.51.100.{number + 1}:80"))
        play.mend()
        assert not is_offline(play)


# ---- what is stored ----

def configured(config, first, seconds, request=A):
    """Whether a response is used again after so many seconds."""
    with Play("cache_mem 16M\n" + config) as play:
        play.exchange(request, first)
        play.advance(seconds)
        return play.exchange(request, reply(200, "two")).body != b"two"


@pytest.mark.parametrize("config, seconds, used", [
    ("", 0, False),
    ("refresh_pattern . 1 20% 10", 59, True),       # MIN: minutes without an explicit lifetime
    ("refresh_pattern . 1 20% 10", 601, False),
    ("refresh_pattern /b 1 20% 10", 1, False),      # another URL
    ("refresh_pattern /A 1 20% 10", 1, False),
    ("refresh_pattern -i /A 1 20% 10", 1, True),
])
def test_refresh_pattern_of_what_says_nothing(config, seconds, used):
    assert configured(config + "\n", reply(200, "one"), seconds) == used


@pytest.mark.parametrize("seconds, used", [(99, True), (301, False)])
def test_refresh_pattern_percent(seconds, used):
    """A share of Last-Modified's age, here a tenth of 1000 s, within MIN and MAX."""
    assert configured("refresh_pattern . 0 10% 5\n", reply(200, "one", last_modified=At(-1000)), seconds) == used


@pytest.mark.parametrize("option, answer, used", [
    ("", reply(200, "one", cache_control="max-age=1"), False),
    ("override-expire", reply(200, "one", cache_control="max-age=1"), True),
    ("", reply(200, "one", cache_control="no-store"), False),
    ("ignore-no-store", reply(200, "one", cache_control="no-store"), True),
    ("", reply(200, "one", cache_control="private"), False),
    ("ignore-private", reply(200, "one", cache_control="private"), True),
])
def test_refresh_pattern_options(option, answer, used):
    """Each off unless named."""
    assert configured(f"refresh_pattern . 1 20% 10 {option}\n", answer, 30) == used


@pytest.mark.parametrize("config, used", [("", True), ("no_cache */a*", False), ("no_cache */b*", True),
    ("maximum_object_size 9", False), ("maximum_object_size 10", True), ("minimum_object_size 11", False),
    ("minimum_object_size 10", True)])
def test_what_the_admin_keeps_out(config, used):
    assert configured(config + "\n", reply(200, "0123456789", cache_control=MAX), 1) == used
