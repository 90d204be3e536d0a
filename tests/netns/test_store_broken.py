"""An origin that breaks off in the middle: the transfer goes on where it stopped, or is seen to be cut."""
import itertools

import pytest

from store_way import MIB, by_several, standing

SIZE = 8 * MIB


@pytest.fixture(scope="module", params=["memory", "disk"])
def store(request):
    volumes = [("store", "1G")] if request.param == "disk" else []
    with standing("cache_mem 64M\n", volumes) as way:
        yield way


@pytest.fixture
def way(store):
    yield store
    store.check()


@pytest.mark.parametrize("breaks", [[3 * MIB], [65536], [2 * MIB, MIB], [3 * MIB, MIB, MIB]],
    ids=["once", "early", "twice", "thrice"])
def test_the_transfer_goes_on(way, breaks):
    origin = way.exact()
    thing = origin.add("/object", SIZE, breaks=breaks, rate=64 * MIB)
    answer = way.get(origin, thing)
    assert (answer.status, answer.complete, len(answer.body)) == (200, True, SIZE)
    assert thing.sent <= SIZE * 1.1
    positions = list(itertools.accumulate(breaks))
    assert thing.asked[0] == (None, None) and len(thing.asked) == 1 + len(breaks)
    for (range_, if_range), position in zip(thing.asked[1:], positions):
        first = int(range_.removeprefix("bytes=").split("-")[0])
        assert if_range == thing.tag and position - MIB <= first <= position
    thing.forget()
    assert way.get(origin, thing).cache == "hit" and not thing.requests


def test_all_who_read_it_go_on(way):
    origin = way.exact()
    thing = origin.add("/object", SIZE, breaks=[3 * MIB], rate=16 * MIB)
    answers = by_several(range(10), lambda _: way.get(origin, thing), 10)
    assert all(answer.complete for answer in answers) and len(thing.requests) == 2


def test_a_range_goes_on(way):
    origin = way.exact()
    thing = origin.add("/object", SIZE, breaks=[2 * MIB])
    answer = way.get(origin, thing, f"bytes={MIB}-{6 * MIB}")
    assert (answer.status, answer.complete, len(answer.body)) == (206, True, 5 * MIB + 1)


@pytest.mark.parametrize("etag", ["weak", None])
def test_without_a_strong_validator_it_is_seen_to_be_cut(way, etag):
    origin = way.exact()
    thing = origin.add("/object", SIZE, breaks=[3 * MIB], etag=etag)
    answer = way.get(origin, thing)
    assert (answer.status, answer.complete) == (200, False)
    assert not any(range_ for range_, _ in thing.asked)
    answer = way.get(origin, thing)
    assert (answer.complete, answer.cache != "hit") == (True, True)


def test_a_version_that_changed_meanwhile_is_not_appended(way):
    origin = way.exact()
    thing = origin.add("/object", SIZE, breaks=[3 * MIB], rate=16 * MIB)
    send = thing._send

    def send_and_change(*arguments):
        goes_on = send(*arguments)
        if not goes_on:
            thing.version = 2
        return goes_on
    thing._send = send_and_change
    answer = way.get(origin, thing)
    assert (answer.complete, answer.get("ETag")) == (False, '"v1"')
    answer = way.get(origin, thing)
    assert (answer.complete, answer.get("ETag")) == (True, '"v2"')


def test_an_origin_that_stays_broken_ends_the_transfer():
    """It is asked a few times more, over some seconds."""
    with standing("cache_mem 64M\n") as way:
        origin = way.exact()
        thing = origin.add("/object", SIZE, breaks=[3 * MIB] + [0] * 100)
        answer = way.get(origin, thing)
        assert (answer.status, answer.complete) == (200, False) and len(answer.body) <= 3 * MIB
        assert len(thing.requests) <= 20
        way.check()
