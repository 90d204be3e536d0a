"""What is stored with holes is delivered whole: the missing bytes are fetched while the client reads, and bytes of two
representations never mix [RFC 9110 §15.3.7.3, RFC 9111 §3.4]."""
import re

import pytest

from play import Play, ask, reply

CHUNK = 1 << 20
SIZE = 9 * CHUNK + 12345
MAX = "max-age=600"
A = ask("/a")
CONFIG = "cache_mem 128M\n"


def make(version):
    """Each 16 bytes tell the version and where they are."""
    return b"".join(b"%d:%013d\n" % (version, place) for place in range(0, SIZE + 16, 16))[:SIZE]


WHOLE = {version: make(version) for version in (1, 2)}


class Origin:
    """Has the representation `version`, and knows single ranges and If-Range. Keeps what it was asked for."""

    def __init__(self, version=1):
        self.version, self.asked, self.sent = version, [], 0

    def tag(self):
        return f'"{self.version}"'

    def reply(self, seen, **more):
        whole, wanted = WHOLE[self.version], re.fullmatch(r"bytes=(\d+)-(\d*)", seen.get("Range") or "")
        self.asked.append(seen.get("Range"))
        named = {"etag": self.tag(), "cache_control": MAX, "accept_ranges": "bytes"}
        if not wanted or seen.get("If-Range") not in (None, self.tag()):
            self.sent += len(whole)
            return reply(200, whole, **named, **more)
        first, last = int(wanted[1]), min(int(wanted[2] or SIZE), SIZE - 1)
        self.sent += last + 1 - first
        return reply(206, whole[first:last + 1], content_range=f"bytes {first}-{last}/{SIZE}", **named, **more)

    def __call__(self, seen):
        return self.reply(seen)


@pytest.fixture
def play():
    with Play(CONFIG) as one:
        yield one


def range_of(first, last):
    return ask("/a", range=f"bytes={first}-{last}")


def chunk(number, count=1):
    return number * CHUNK, min((number + count) * CHUNK, SIZE) - 1


def store(play, origin, *numbers):
    """What is there afterwards: these chunks."""
    for number in numbers:
        first, last = chunk(number)
        got = play.exchange(range_of(first, last), origin)
        assert (got.status, got.body) == (206, WHOLE[origin.version][first:last + 1])
    origin.asked.clear()
    origin.sent = 0


def begin(play, origin, request=A):
    """A client that has the first hole behind it: that one is fetched before the head goes out."""
    client = play.start(request)
    one = play.arrived()
    one.answer(origin(one))
    return client


def ends_of(asked):
    """What is asked for, as (first, last)."""
    found = [re.fullmatch(r"bytes=(\d+)-(\d*)", one).groups() for one in asked]
    return sorted((int(first), int(last or SIZE - 1)) for first, last in found)


def missing(*numbers):
    return sum(last + 1 - first for first, last in map(chunk, numbers))


# ---- in order ----

def test_a_whole_with_holes(play):
    origin = Origin()
    store(play, origin, 0, 2, 5)
    got = play.exchange(A, origin)
    assert (got.status, got.body == WHOLE[1], got.complete, got.get("Content-Length")) == (200, True, True, str(SIZE))
    assert origin.sent == missing(1, 3, 4, 6, 7, 8, 9)  # nothing twice
    assert all(seen.get("If-Range") == '"1"' for seen in got.all_seen)
    assert play.exchange(A).body == WHOLE[1]  # and it is whole from now on


def test_it_may_begin_with_one(play):
    origin = Origin()
    store(play, origin, 4)
    got = play.exchange(A, origin)
    assert (got.body == WHOLE[1], got.complete, origin.sent <= SIZE) == (True, True, True)


def test_a_range_with_holes(play):
    origin = Origin()
    store(play, origin, 0, 2)
    got = play.exchange(range_of(10, 3 * CHUNK - 11), origin)
    assert (got.status, got.body == WHOLE[1][10:3 * CHUNK - 10]) == (206, True)
    assert ends_of(origin.asked) == [chunk(1)]


def test_of_a_range_no_more_than_its_chunks(play):
    origin = Origin()
    store(play, origin, 0)
    for first, last in [(2 * CHUNK + 100, 2 * CHUNK + 199), (2 * CHUNK + 300, 2 * CHUNK + 399), (SIZE - 10, SIZE - 1)]:
        got = play.exchange(range_of(first, last), origin)
        assert (got.status, got.body) == (206, WHOLE[1][first:last + 1])
    assert origin.sent <= missing(2, 9) + CHUNK  # the last one's border may lie before the end
    before = origin.sent
    assert play.exchange(range_of(*chunk(2)), origin).body == WHOLE[1][2 * CHUNK:3 * CHUNK]
    assert origin.sent == before


def test_several_ranges_with_holes(play):
    origin = Origin()
    store(play, origin, 0, 3)
    wanted = [(100, 199), (CHUNK + 5, CHUNK + 9), (3 * CHUNK + 1, 3 * CHUNK + 2)]
    got = play.exchange(ask("/a", range="bytes=" + ",".join(f"{a}-{b}" for a, b in wanted)), origin)
    assert got.status == 206 and got.complete
    for first, last in wanted:
        assert WHOLE[1][first:last + 1] in got.body
    assert origin.sent <= missing(1)


# ---- several at once ----

def test_holes_are_fetched_at_once(play):
    origin = Origin()
    store(play, origin, 0, 2, 4, 6, 8)
    client = begin(play, origin)
    waiting = play.arrived_all()
    assert ends_of([one.get("Range") for one in waiting]) == [chunk(3), chunk(5), chunk(7), (9 * CHUNK, SIZE - 1)]
    assert client.partial.body == WHOLE[1][:3 * CHUNK]
    for one in reversed(waiting[1:]):  # the first one comes last
        one.answer(origin(one))
        assert client.partial.body == WHOLE[1][:3 * CHUNK]
    waiting[0].answer(origin(waiting[0]))
    assert client.take().body == WHOLE[1]
    assert origin.sent == missing(1, 3, 5, 7, 9)


def test_no_more_than_four_at_once(play):
    origin = Origin()
    store(play, origin, 0, 2, 4, 6, 8)
    clients = [play.start(range_of(first, SIZE - 1)) for first in (CHUNK, 3 * CHUNK)]
    assert len(play.arrived_all()) <= 8
    assert [client.closed for client in clients] == ["", ""]


def test_a_crowd_shares_them(play):
    origin = Origin()
    store(play, origin, 0, 2)
    clients = [play.start(A) for _ in range(3)] + [play.start(range_of(*chunk(1, 2))) for _ in range(2)]
    while one := play.arrived():
        one.answer(origin(one))
    for client in clients[:3]:
        assert client.take().body == WHOLE[1]
    for client in clients[3:]:
        assert client.take().body == WHOLE[1][CHUNK:3 * CHUNK]
    assert origin.sent == missing(1, 3, 4, 5, 6, 7, 8, 9)


def test_the_first_client_leaves(play):
    origin = Origin()
    store(play, origin, 0, 2)
    clients = [play.start(A) for _ in range(4)]
    waiting = play.arrived_all()
    clients[0].reset()
    play.settle()
    for one in waiting:
        one.answer(origin(one))
    while one := play.arrived():
        one.answer(origin(one))
    for client in clients[1:]:
        assert client.take().body == WHOLE[1]
    assert origin.sent == missing(1, 3, 4, 5, 6, 7, 8, 9)


# ---- an origin that has something else ----

@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("knows", ["If-Range", "not If-Range", "no ranges"])
def test_it_has_changed(play, knows, is_begun):
    origin, changed = Origin(), Origin(2)
    store(play, origin, 0, 2, 4)

    def answer(seen):
        if knows == "If-Range" or not seen.get("Range"):
            return changed(seen)
        if knows == "no ranges":
            return reply(200, WHOLE[2], etag='"2"', cache_control=MAX)
        first, last = ends_of([seen.get("Range")])[0]
        return reply(206, WHOLE[2][first:last + 1], etag='"2"', cache_control=MAX,
            content_range=f"bytes {first}-{last}/{SIZE}")
    client = begin(play, origin) if is_begun else play.start(A)
    while one := play.arrived():
        one.answer(answer(one))
    got = client.take() or client.partial
    if is_begun:
        assert (got.body == WHOLE[1][:3 * CHUNK], client.closed != "") == (True, True)
        assert play.log[-1]["reason"] == "changed"
    else:
        assert (got.body == WHOLE[2], got.complete) == (True, True)
    client.close()
    for _ in range(2):  # what comes next is of one version, too
        again = play.exchange(A, answer)
        assert again.body in (WHOLE[1][:len(again.body)], WHOLE[2])
    assert (again.body == WHOLE[2], again.complete) == (True, True)


def test_the_same_without_ranges(play):
    """RFC 9110 §14.2: a server may ignore Range. The same representation: its bytes are those that are missing."""
    origin = Origin()
    store(play, origin, 0, 2, 4)
    client = begin(play, origin)
    while one := play.arrived():
        one.answer(reply(200, WHOLE[1], etag='"1"', cache_control=MAX))
    got = client.take() or client.partial
    assert WHOLE[1].startswith(got.body) and (got.complete or client.closed)
    got = play.exchange(A, lambda seen: reply(200, WHOLE[1], etag='"1"', cache_control=MAX))
    assert WHOLE[1].startswith(got.body)


@pytest.mark.parametrize("shift", [-16, 16])
def test_another_range_than_it_was_asked_for(play, shift):
    origin = Origin()
    store(play, origin, 0, 2, 4)
    client = begin(play, origin)
    for _ in range(100):
        while one := play.arrived():
            first, last = ends_of([one.get("Range")])[0]
            first, last = first + shift, min(last + shift, SIZE - 1)
            one.answer(reply(206, WHOLE[1][first:last + 1], etag='"1"', cache_control=MAX,
                content_range=f"bytes {first}-{last}/{SIZE}"))
        play.advance(1)
    got = client.take() or client.partial
    assert WHOLE[1].startswith(got.body) and (got.complete or client.closed)


@pytest.mark.parametrize("status", [404, 410, 416, 403])
def test_it_is_gone(play, status):
    origin = Origin()
    store(play, origin, 0, 2)
    client = begin(play, origin)
    while one := play.arrived():
        one.answer(reply(status, "gone"))
    assert (client.partial.body == WHOLE[1][:3 * CHUNK], client.closed != "") == (True, True)


# ---- an origin in trouble ----

def test_it_is_asked_again(play):
    """A 503 or a broken connection may be followed by something better."""
    origin = Origin()
    store(play, origin, 0, 2)
    client = begin(play, origin)
    for trouble in (reply(503, "later"), reply(200, end="drop"), reply(200, end="reset-at-once")):
        asked = play.arrived_all()
        assert asked
        for one in asked:
            one.answer(trouble)
        assert (client.partial.body == WHOLE[1][:3 * CHUNK], client.closed) == (True, "")
        play.advance(2)
    while one := play.arrived():
        one.answer(origin(one))
    assert client.take().body == WHOLE[1]


def test_it_cannot_be_reached_for_a_while(play):
    origin = Origin()
    store(play, origin, 0, 2, 4)
    client = begin(play, origin)
    play.cut("ECONNREFUSED")
    for one in play.arrived_all():
        one.connection.reset()
    play.advance(3)
    assert client.closed == ""
    play.mend()
    for _ in range(10):
        play.advance(1)
        while one := play.arrived():
            one.answer(origin(one))
    assert client.take().body == WHOLE[1]


def test_it_is_not_asked_for_ever(play):
    origin = Origin()
    store(play, origin, 0, 2)
    client = begin(play, origin)
    count = 0
    for _ in range(120):
        while one := play.arrived():
            one.answer(reply(503, "later"))
            count += 1
        play.advance(1)
    assert (client.partial.body == WHOLE[1][:3 * CHUNK], client.closed != "") == (True, True)
    assert 4 <= count <= 4 * 8


def test_it_stalls(play):
    origin = Origin()
    store(play, origin, 0, 2)
    client = begin(play, origin)
    assert play.arrived_all()
    play.advance(59.9)
    assert client.closed == ""
    play.advance(120)
    assert (client.partial.body == WHOLE[1][:3 * CHUNK], client.closed != "") == (True, True)
    play.arrived_all()
    assert play.exchange(range_of(*chunk(0))).body == WHOLE[1][:CHUNK]  # what is stored stays


def test_it_stalls_within(play):
    origin = Origin()
    store(play, origin, 0, 2)
    client = play.start(A)
    for one in play.arrived_all():
        one.answer(origin.reply(one, sends=1000))
    assert client.partial.body == WHOLE[1][:CHUNK + 1000]
    for _ in range(30):  # it goes on from there
        play.advance(10)
        while one := play.arrived():
            one.answer(origin(one))
    assert client.take().body == WHOLE[1]


def test_offline_cuts(play):
    origin = Origin()
    store(play, origin, 0, 2)
    play.reload(CONFIG + "offline on\n")
    got = play.exchange(A)
    assert got.status == 504 or not got.complete
    assert play.exchange(range_of(*chunk(2))).body == WHOLE[1][2 * CHUNK:3 * CHUNK]


# ---- a download that breaks off ----

@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("at", [1, 1000, CHUNK, 3 * CHUNK + 17, SIZE - 1])
def test_it_goes_on_in_mid_body(play, at, end):
    origin = Origin()
    client = play.start(A)
    one = play.arrived()
    one.answer(origin.reply(one, sends=at, end=end))
    again = play.arrived()
    assert (ends_of([again.get("Range")]), again.get("If-Range")) == ([(at, SIZE - 1)], '"1"')
    again.answer(origin(again))
    got = client.take()
    assert (got.status, got.body == WHOLE[1]) == (200, True)
    assert play.arrived() is None
    assert play.exchange(A).body == WHOLE[1]


def test_it_breaks_off_often(play):
    origin = Origin()
    client = play.start(A)
    for _ in range(40):
        while one := play.arrived():
            one.answer(origin.reply(one, sends=CHUNK // 2, end="close"))
        play.advance(1)
    assert client.take().body == WHOLE[1]
    assert len(origin.asked) == -(-SIZE // (CHUNK // 2))


@pytest.mark.parametrize("named", [{"etag": None}, {"etag": 'W/"1"'}, {"accept_ranges": "none"}, {"accept_ranges": None}])
def test_it_ends_where_the_rest_cannot_be_asked_for(play, named):
    named = {"etag": '"1"', "accept_ranges": "bytes", "cache_control": MAX} | named
    got = play.exchange(A, [reply(200, WHOLE[1], sends=CHUNK, end="close", **named)])
    assert (got.body == WHOLE[1][:CHUNK], got.complete, got.closed != "") == (True, False, True)


def test_it_changes_in_mid_body(play):
    origin, changed = Origin(), Origin(2)
    client = play.start(A)
    one = play.arrived()
    one.answer(origin.reply(one, sends=CHUNK, end="close"))
    while one := play.arrived():
        one.answer(changed(one))
    assert (client.partial.body == WHOLE[1][:CHUNK], client.closed != "") == (True, True)
    assert play.exchange(A, changed).body == WHOLE[2]


def test_a_crowd_goes_on_in_mid_body(play):
    origin = Origin()
    clients = [play.start(A) for _ in range(4)]
    one = play.arrived()
    one.answer(origin.reply(one, sends=2 * CHUNK + 5, end="reset"))
    waiting = play.arrived_all()
    assert len(waiting) == 1
    waiting[0].answer(origin(waiting[0]))
    assert [client.take().body == WHOLE[1] for client in clients] == [True] * 4


# ---- clients that leave (quick_abort) ----

@pytest.mark.parametrize("at, goes_on", [(CHUNK, False), (SIZE * 3 // 4 - 100, False), (SIZE * 3 // 4 + 100, True),
    (SIZE - 1000, True)])
def test_a_client_leaves(play, at, goes_on):
    origin = Origin()
    client = play.start(A)
    one = play.arrived()
    answer = origin(one).bytes(play.wall)
    head = answer.index(b"\r\n\r\n") + 4
    one.answer(answer[:head + at])
    assert len(client.partial.body) == at
    client.reset()
    play.settle()
    assert play.replay.stats()["upstreams"] == goes_on
    one.answer(answer[head + at:])
    play.settle()
    origin.asked.clear()
    got = play.exchange(A, origin)
    assert got.body == WHOLE[1]
    assert ends_of(origin.asked) == ([] if goes_on else [(at, SIZE - 1)])


@pytest.mark.parametrize("config, at, goes_on", [
    ("quick_abort_min 0\nquick_abort_max 0\n", SIZE - 1, False),
    ("quick_abort_min 1K\nquick_abort_max 0\n", SIZE - 1025, False),
    ("quick_abort_min 1K\nquick_abort_max 0\n", SIZE - 1024, True),
    ("quick_abort_min unlimited\n", 1, True),
    ("quick_abort_min 0\nquick_abort_max 1M\nquick_abort_pct 10\n", SIZE - CHUNK - 1, False),
    ("quick_abort_min 0\nquick_abort_max 1M\nquick_abort_pct 10\n", SIZE - CHUNK, True),
    ("quick_abort_min 0\nquick_abort_pct 90\n", SIZE * 89 // 100, False),
    ("quick_abort_min 0\nquick_abort_pct 90\n", SIZE * 91 // 100, True),
])
def test_quick_abort(config, at, goes_on):
    with Play(CONFIG + config) as play:
        test_a_client_leaves(play, at, goes_on)


def test_a_trickle_for_nobody_ends(play):
    origin = Origin()
    client = play.start(A)
    one = play.arrived()
    one.answer(origin.reply(one, sends=SIZE - 100000))
    assert len(client.partial.body) == SIZE - 100000
    client.reset()
    play.settle()
    assert play.replay.stats()["upstreams"] == 1
    for _ in range(12):
        one.answer(b"x")
        play.advance(1)
    assert play.replay.stats()["upstreams"] == 0


# ---- slow clients ----

def test_a_slow_client_holds_nothing_up(play):
    origin = Origin()
    slow = play.client()
    slow.connection.pause()
    slow.send(A)
    one = play.arrived()
    one.answer(origin(one))
    assert play.exchange(A).body == WHOLE[1]
    slow.connection.resume()
    assert slow.take().body == WHOLE[1]
