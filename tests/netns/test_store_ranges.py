"""Objects stored in parts: any range in, any range out, every byte once from the origin, and never two versions in one answer."""
import itertools
import random
import threading
import time

import pytest

from store_way import MIB, Asker, by_several, parts_of, standing

BACKINGS = {
    "memory": dict(config="cache_mem 512M\n"),
    "disk": dict(config="cache_mem 16M\n", volumes=[("store", "2G")]),
}
SIZE = 64 * MIB
NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=list(BACKINGS))
def store(request):
    with standing(**BACKINGS[request.param]) as way:
        way.settings = BACKINGS[request.param]["config"]
        yield way


@pytest.fixture
def way(store):
    yield store
    store.check()


def random_ranges(size, count, seed, bits=20):
    """Of all lengths up to 2^bits, and each kind of range."""
    dice = random.Random(seed)
    for _ in range(count):
        length = min(size, int(2 ** dice.uniform(0, bits)))
        first = dice.randrange(size - length + 1)
        yield dice.choice([f"bytes={first}-{first + length - 1}"] * 8 + [f"bytes=-{length}"]), length


def ask(way, origin, thing, ranges, threads=4):
    states = threading.local()

    def work(job):
        if not hasattr(states, "asker"):
            states.asker = Asker(way, origin)
        value, length = job
        answer = states.asker.get(thing, value)
        assert (answer.status, len(answer.body), answer.complete) == (206, length, True), answer
        return answer
    return by_several(ranges, work, threads)


@pytest.mark.parametrize("state", ["cold", "half", "full"])
def test_500_ranges_of_a_large_object(way, state):
    origin = way.exact()
    thing = origin.add("/object", SIZE)
    if state == "half":
        for first in range(0, SIZE, 8 * MIB):
            way.get(origin, thing, f"bytes={first}-{first + 4 * MIB - 1}")
    if state == "full":
        assert way.get(origin, thing).complete
    ask(way, origin, thing, random_ranges(SIZE, 500, 4, 23))
    assert thing.sent <= SIZE * 1.1
    if state == "full":
        assert len(thing.requests) == 1


def test_what_was_fetched_in_parts_is_whole_in_the_end(way):
    origin = way.exact()
    thing = origin.add("/object", 16 * MIB + 12345)
    ask(way, origin, thing, random_ranges(thing.size, 60, 5, 22), 1)
    assert way.get(origin, thing).status == 200
    assert thing.sent <= thing.size * 1.1
    thing.forget()
    assert way.get(origin, thing).cache == "hit"
    assert way.get(origin, thing, "bytes=5000000-9000000").cache == "hit"
    assert not thing.requests


@pytest.mark.parametrize("control", ["no-store", "private"])
def test_small_ranges_of_what_is_not_stored(way, control):
    origin = way.exact()
    thing = origin.add("/object", 100_000_000, control=control)
    dice, asked = random.Random(6), 0
    for _ in range(20):
        first, length = dice.randrange(thing.size - 20_000), dice.randrange(5_000, 20_000)
        answer = way.get(origin, thing, f"bytes={first}-{first + length - 1}")
        assert (answer.status, len(answer.body)) == (206, length)
        asked += length
    assert thing.sent <= asked * 1.2


def test_one_small_range_costs_its_chunk_and_no_more(way):
    origin = way.exact()
    thing = origin.add("/object", SIZE)
    for first in (10 * MIB + 77, 40 * MIB + 99):
        assert len(way.get(origin, thing, f"bytes={first}-{first + 99}").body) == 100
    assert thing.sent <= 2 * 2 * MIB


def test_a_plain_get_stays_plain_before_the_origin_has_shown_ranges(way):
    origin = way.exact()
    thing = origin.add("/object", 3 * MIB, says_ranges=False)
    assert way.get(origin, thing).status == 200
    assert thing.asked == [(None, None)]


@pytest.mark.parametrize("says", [False, True], ids=["silent", "lying"])
def test_an_origin_without_ranges(way, says):
    """It answers every range with the whole; so does one that says it has ranges."""
    way.daemon.reload(way.config(way.settings + "quick_abort_min 16M\n"))  # else a small range alone brings nothing to keep
    origin = way.exact()
    thing = origin.add("/object", 8 * MIB, ranges=False, says_ranges=says)
    for value, length in random_ranges(thing.size, 20, 7):
        answer = way.get(origin, thing, value)
        assert answer.complete and len(answer.body) == (length if answer.status == 206 else thing.size)
    assert way.get(origin, thing).complete
    assert says or thing.sent <= thing.size * 2.1  # one that asks for the end does not have to wait for all that is before
    thing.forget()
    assert way.get(origin, thing).cache == "hit" and not thing.requests


def test_a_version_that_changes_between_ranges_never_mixes(way):
    """checked() holds every byte against the version that the answer's own ETag names."""
    origin = way.exact()
    thing = origin.add("/object", 32 * MIB)
    cut, seen = 0, set()
    for number, (value, _) in enumerate(random_ranges(thing.size, 160, 9, 22)):
        if number % 10 == 9:
            thing.version += 1
        answer = way.get(origin, thing, value if number % 40 != 39 else None)
        assert answer.status in (200, 206)
        cut += not answer.complete
        seen.add(answer.get("ETag"))
        if number % 40 == 39:  # all of it is there, and fresh
            way.daemon.command("purge", f"http://{origin.address}{thing.path}")
    assert cut <= 16, "more were cut than there were new versions"
    assert len(seen) > 4


def test_a_version_that_changes_under_several_clients(way):
    origin = way.exact()
    thing = origin.add("/object", 12 * MIB)

    def work(job):
        number, (value, _) = job
        if number % 16 == 15:
            thing.version += 1
        return way.get(origin, thing, value if number % 5 else None)
    answers = by_several(enumerate(random_ranges(thing.size, 160, 10)), work)
    assert sum(answer.complete for answer in answers) >= 120


def test_a_length_that_changes_with_the_version(way):
    origin = way.exact()
    thing = origin.add("/object", 8 * MIB)
    way.get(origin, thing, "bytes=0-99999")
    thing.version, thing.size = 2, 5 * MIB
    answer = way.get(origin, thing, "bytes=4000000-4099999")
    assert (answer.status, answer.get("ETag"), len(answer.body)) == (206, '"v2"', 100_000)
    answer = way.get(origin, thing)
    assert (answer.get("ETag"), len(answer.body)) == ('"v2"', 5 * MIB)


def test_several_ranges_at_once_of_what_is_half_there(way):
    origin = way.exact()
    thing = origin.add("/object", 16 * MIB)
    way.get(origin, thing, f"bytes=0-{2 * MIB}")
    wanted = [(100, 199), (3 * MIB - 50, 3 * MIB + 50), (9 * MIB, 9 * MIB), (MIB, MIB + 70_000), (16 * MIB - 9, 16 * MIB - 1)]
    for _ in range(2):
        answer = way.get(origin, thing, "bytes=" + ",".join(f"{first}-{last}" for first, last in wanted))
        if answer.status == 206:
            assert sorted((first, last) for first, last, _ in parts_of(answer)) == sorted(wanted)
        assert answer.complete and answer.status in (200, 206)
    assert thing.sent <= thing.size * 1.1


def test_several_ranges_of_what_is_stored_whole(way):
    origin = way.exact()
    thing = origin.add("/object", 5 * MIB)
    way.get(origin, thing)
    answer = way.get(origin, thing, "bytes=5-6,4000000-4000999,-7")
    assert (answer.status, answer.cache) == (206, "hit")
    assert [(f, n) for f, n, _ in parts_of(answer)] == [(5, 6), (4000000, 4000999), (5 * MIB - 7, 5 * MIB - 1)]
    assert len(thing.requests) == 1


def test_suffix_ranges(way):
    origin = way.exact()
    thing = origin.add("/object", 20 * MIB + 1)
    for length in (1, 1000, 3 * MIB):
        answer = way.get(origin, thing, f"bytes=-{length}")
        assert (answer.status, len(answer.body)) == (206, length)
    assert way.get(origin, thing, "bytes=-500").cache == "hit"
    assert thing.sent <= 6 * MIB


@pytest.mark.parametrize("state", ["cold", "half", "full"])
def test_if_range(way, state):
    origin = way.exact()
    thing = origin.add("/object", 6 * MIB)
    if state != "cold":
        way.get(origin, thing, f"bytes=0-{3 * MIB}" if state == "half" else None)
    value = f"bytes={2 * MIB}-{4 * MIB}"
    for tag, status in (('"v1"', 206), ('"v0"', 200), ('W/"v1"', 200)):
        answer = way.get(origin, thing, value, **{"If-Range": tag})
        assert (answer.status, answer.complete) == (status, True)
        assert len(answer.body) == (2 * MIB + 1 if status == 206 else thing.size)
    assert thing.sent <= thing.size * 2.1


def test_an_unsatisfiable_range_of_what_is_half_there(way):
    origin = way.exact()
    thing = origin.add("/object", 3 * MIB)
    way.get(origin, thing, "bytes=0-9")
    answer = way.get(origin, thing, f"bytes={3 * MIB}-")
    assert (answer.status, answer.get("Content-Range")) == (416, f"bytes */{3 * MIB}")


def test_holes_are_fetched_several_at_once(way):
    """Every second mebibyte is there; a round trip takes 150 ms, so one hole after the other would take 1.2 s."""
    origin = way.exact()
    thing = origin.add("/object", 16 * MIB, tight=False)
    for first in range(0, thing.size, 2 * MIB):
        way.get(origin, thing, f"bytes={first}-{first + MIB - 1}")
    thing.forget()
    thing.delay = 0.15
    begin = time.monotonic()
    assert way.get(origin, thing).complete
    taken = time.monotonic() - begin
    assert thing.most_at_once > 1 and taken < 0.9, (taken, thing.asked)
    assert thing.sent <= 8 * MIB * 1.1


def test_one_fetch_for_all_who_want_the_same_hole(way):
    origin = way.exact()
    thing = origin.add("/object", 16 * MIB)
    way.get(origin, thing, "bytes=0-99")
    thing.forget()
    thing.delay = 0.3
    value = f"bytes={8 * MIB + 5}-{8 * MIB + 200_000}"
    by_several([value] * 12, lambda one: way.get(origin, thing, one), 12)
    assert len(thing.requests) == 1 and thing.sent <= 2 * MIB


def test_a_range_far_ahead_does_not_wait_for_a_download_that_runs(way):
    """At the download's pace it would come after five seconds."""
    origin = way.exact()
    thing = origin.add("/object", 12 * MIB, rate=2 * MIB)
    with way.connect(origin) as client:
        client.request("GET", thing.path, {"Host": origin.address})
        client.read_until(b"\r\n\r\n")
        assert client.read(100) == thing.content(0, 100)
        begin = time.monotonic()
        answer = way.get(origin, thing, f"bytes={11 * MIB}-{11 * MIB + 999}")
        assert (answer.status, len(answer.body)) == (206, 1000) and time.monotonic() - begin < 2
        thing.rate = None
        assert client.read(thing.size - 100) == thing.content(100)
    assert thing.sent <= thing.size + 2 * MIB
    assert way.get(origin, thing).cache == "hit"


def test_a_client_resumes_what_it_broke_off(way):
    """As curl -C - and browsers do: Range and If-Range, the end open."""
    origin = way.exact()
    thing = origin.add("/object", 8 * MIB)
    way.get(origin, thing, f"bytes=0-{3 * MIB - 1}")
    answer = way.get(origin, thing, f"bytes={2 * MIB + 1}-", **{"If-Range": thing.tag})
    assert (answer.status, len(answer.body)) == (206, 6 * MIB - 1)
    assert thing.sent <= thing.size * 1.1


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 262_143, 262_144, 262_145, MIB - 1, MIB, MIB + 1, 2 * MIB])
def test_sizes_at_the_borders(way, size):
    origin = way.exact()
    thing = origin.add("/object", size)
    assert len(way.get(origin, thing).body) == size
    answer = way.get(origin, thing)
    assert (answer.cache, len(answer.body)) == ("hit", size)
    for first in {0, size // 2, size - 1} if size else ():
        answer = way.get(origin, thing, f"bytes={first}-")
        assert (answer.status, answer.cache, len(answer.body)) == (206, "hit", size - first)
    assert len(thing.requests) == 1


def test_what_was_evicted_in_part_is_fetched_in_part():
    """Memory alone, and two objects that do not fit together: each is whole whenever it is asked for."""
    with standing("cache_mem 32M\nmaximum_object_size 24M\n") as way:
        origin = way.exact()
        things = [origin.add(f"/object/{n}", 20 * MIB + n) for n in range(2)]
        for thing in things * 3:
            assert way.get(origin, thing).complete
            assert way.get(origin, thing, f"bytes={thing.size // 2}-").complete
        assert all(thing.sent <= 4 * thing.size for thing in things)
        way.check()
