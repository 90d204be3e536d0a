"""Downloads that break off: how far the store goes on for nobody, and where the next client resumes."""
import time

import pytest

from store_way import MIB, standing, wait_for

SIZE = 16 * MIB
RATE = 8 * MIB
BACKINGS = {
    "memory": dict(config="cache_mem 128M\n"),
    "disk": dict(config="cache_mem 32M\n", volumes=[("store", "1G")]),
}
STOP = "quick_abort_min 0\nquick_abort_max 0\nquick_abort_pct 100\n"
SLACK = 2 * MIB  # what lies in sockets between the origin and a client


@pytest.fixture(scope="module", params=list(BACKINGS))
def store(request):
    with standing(**BACKINGS[request.param]) as way:
        way.memory = BACKINGS[request.param]["config"]
        yield way


@pytest.fixture
def way(store):
    yield store
    store.check()


def set_abort(way, lines):
    way.daemon.reload(way.config(way.memory + lines))


def leave_after(way, origin, thing, count, reset=False, range_=None):
    """A client that reads so much of the content and goes."""
    with way.connect(origin) as client:
        client.request("GET", thing.path, {"Host": origin.address, **({"Range": range_} if range_ else {})})
        client.read_until(b"\r\n\r\n")
        assert client.read(count) == thing.content(0, count)
        if reset:
            client.reset()


def settled(thing):
    """How much the origin has sent once it sends no more."""
    wait_for(lambda: not thing.running, what="the end of the response")
    time.sleep(0.1)
    return thing.sent


@pytest.mark.parametrize("lines, whole", [
    (STOP, False),
    ("quick_abort_min 32M\nquick_abort_max 0\nquick_abort_pct 100\n", True),      # less than the minimum is left
    ("quick_abort_min 1M\nquick_abort_max 1M\nquick_abort_pct 5\n", False),       # more than the maximum is left
    ("quick_abort_min 1M\nquick_abort_max 64M\nquick_abort_pct 90\n", False),     # neither, and not far enough yet
    ("quick_abort_min 1M\nquick_abort_max 64M\nquick_abort_pct 10\n", True),      # neither, and far enough
], ids=["never", "min", "max", "before-pct", "beyond-pct"])
def test_how_far_it_goes_on(way, lines, whole):
    set_abort(way, lines)
    origin = way.exact()
    thing = origin.add("/object", SIZE, rate=RATE)
    leave_after(way, origin, thing, 4 * MIB)
    sent = settled(thing)
    assert sent == SIZE if whole else 4 * MIB <= sent <= 4 * MIB + SLACK
    if whole:
        assert way.get(origin, thing).cache == "hit" and len(thing.requests) == 1


def test_it_goes_on_while_another_reads(way):
    set_abort(way, STOP)
    origin = way.exact()
    thing = origin.add("/object", 6 * MIB, rate=RATE)
    with way.connect(origin) as second:
        with way.connect(origin) as first:
            for client in (first, second):
                client.request("GET", thing.path, {"Host": origin.address})
                client.read_until(b"\r\n\r\n")
            first.read(MIB)
        assert second.read(thing.size) == thing.content()
    assert len(thing.requests) == 1


def resumes(way, origin, thing, count):
    """The rest, and only that, is asked of the origin, under the validator."""
    thing.forget()
    thing.rate = None
    answer = way.get(origin, thing)
    assert (answer.status, answer.complete) == (200, True)
    assert thing.sent <= thing.size - count + SLACK, (thing.sent, thing.asked)
    assert all(range_ and if_range == thing.tag for range_, if_range in thing.asked), thing.asked
    thing.forget()
    assert way.get(origin, thing).cache == "hit" and not thing.requests


@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
def test_the_next_client_resumes(way, reset):
    set_abort(way, STOP)
    origin = way.exact()
    thing = origin.add("/object", SIZE, rate=RATE)
    leave_after(way, origin, thing, 5 * MIB, reset)
    settled(thing)
    resumes(way, origin, thing, 5 * MIB)


def test_resuming_an_object_that_has_changed(way):
    set_abort(way, STOP)
    origin = way.exact()
    thing = origin.add("/object", SIZE, rate=RATE)
    leave_after(way, origin, thing, 3 * MIB)
    settled(thing)
    thing.version, thing.rate = 2, None
    answer = way.get(origin, thing)
    if not answer.complete:  # what had been sent was of the old version: cut, and seen to be
        answer = way.get(origin, thing)
    assert (answer.get("ETag"), answer.complete) == ('"v2"', True)


def test_what_has_no_strong_validator_begins_anew(way):
    set_abort(way, STOP)
    origin = way.exact()
    thing = origin.add("/object", 8 * MIB, rate=RATE, etag="weak")
    leave_after(way, origin, thing, 2 * MIB)
    settled(thing)
    thing.version += 1
    answer = way.get(origin, thing)
    assert (answer.get("ETag"), answer.complete) == (thing.tag, True)


@pytest.mark.parametrize("says", [False, True], ids=["silent", "lying"])
@pytest.mark.parametrize("range_", [None, f"bytes={6 * MIB}-{6 * MIB + 999}", f"bytes={MIB}-{3 * MIB}"])
def test_resuming_at_an_origin_that_ignores_ranges(way, says, range_):
    """It may, whatever it says [RFC 9110 14.2]; the whole it sends is of the same version, and what is missing is in it."""
    set_abort(way, STOP)
    origin = way.exact()
    thing = origin.add("/object", 8 * MIB, rate=RATE, ranges=False, says_ranges=says)
    leave_after(way, origin, thing, 2 * MIB)
    settled(thing)
    thing.rate = None
    answer = way.get(origin, thing, range_)
    assert answer.complete and answer.status in (200, 206)
    answer = way.get(origin, thing)
    assert answer.complete and len(answer.body) == thing.size


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_next_client_resumes_after_a_restart(how):
    with standing(BACKINGS["disk"]["config"] + STOP, BACKINGS["disk"]["volumes"]) as way:
        origin = way.exact()
        thing = origin.add("/object", SIZE, rate=RATE)
        leave_after(way, origin, thing, 5 * MIB)
        settled(thing)
        time.sleep(2 if how == "kill" else 0)
        way.daemon.restart(how)
        resumes(way, origin, thing, 5 * MIB)
        way.check()


def test_a_transfer_that_runs_while_the_daemon_stops_is_resumed():
    with standing(BACKINGS["disk"]["config"] + STOP, BACKINGS["disk"]["volumes"]) as way:
        origin = way.exact()
        thing = origin.add("/object", SIZE, rate=RATE)
        with way.connect(origin) as client:
            client.request("GET", thing.path, {"Host": origin.address})
            client.read_until(b"\r\n\r\n")
            client.read(6 * MIB)
            way.daemon.process.terminate()
            client.close()
        way.daemon.process.wait(15)
        way.daemon.start()
        settled(thing)
        resumes(way, origin, thing, 6 * MIB)
