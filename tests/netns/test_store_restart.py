"""What was stored is there after a restart, and never a wrong byte of it, whatever happened to the files."""
import os
import random
import shutil
import time

import pytest

from lab import wait_for
from store_way import MIB, Mix, disk_bytes, flip_bits, make_place, settle, standing

# Little memory: nearly everything has to come from the disk.
CONFIG = "cache_mem 8M\nmaximum_object_size 16M\n"
VOLUME = [("store", "256M")]


@pytest.fixture
def way():
    with standing(CONFIG, VOLUME) as made:
        yield made
        made.check()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_was_stored_is_a_hit_after_a_restart(way, how):
    mix = Mix(way)
    mix.fill()
    settle(way, 3 if how == "kill" else 0)
    for _ in range(2):
        way.daemon.restart(how)
        hits, count = mix.hits()
        assert hits == count if how == "stop" else hits >= count * 0.99, f"{hits} of {count}"


def test_the_first_hit_comes_at_once(way):
    mix = Mix(way)
    mix.fill()
    way.daemon.stop()
    begin = time.monotonic()
    way.daemon.start()
    assert way.get(mix.origin, mix.small[0]).cache == "hit"
    assert time.monotonic() - begin < 1


def test_age_goes_on(way):
    origin = way.exact()
    thing, short = origin.add("/object", 1000), origin.add("/short", 1000, control="max-age=2")
    for one in (thing, short):
        way.get(origin, one)
    time.sleep(1.1)
    way.daemon.restart()
    time.sleep(1.2)
    assert int(way.get(origin, thing).get("Age")) >= 2
    assert way.get(origin, short).complete and len(short.requests) == 2
    assert short.requests[1].get("If-None-Match") == short.tag


def test_variants_survive(way):
    origin = way.new_origin()
    target = "/static/5000?h=Vary:Accept-Language"
    for _ in range(2):
        for language in ("de", "fr"):
            assert len(way.fetch(target, fields={"Accept-Language": language}, to=origin).body) == 5000
        if origin.count(target) == 2:
            way.daemon.restart()
    assert origin.count(target) == 2
    assert way.fetch(target, fields={"Accept-Language": "it"}, to=origin).complete and origin.count(target) == 3


def test_a_confirmation_survives(way):
    """A 304 freshens what lies on the disk, too."""
    origin = way.exact()
    thing = origin.add("/object", 400_000, control="max-age=1")
    way.get(origin, thing)
    time.sleep(1.2)
    thing.control = "max-age=3600"
    way.get(origin, thing)
    assert len(thing.requests) == 2 and thing.sent == thing.size
    way.daemon.restart()
    assert way.get(origin, thing).cache == "hit" and len(thing.requests) == 2


def test_a_new_version_survives_and_the_old_one_does_not(way):
    origin = way.exact()
    things = [origin.add(f"/object/{size}", size, control="max-age=1") for size in (100, 200_000, 3 * MIB)]
    for thing in things:
        way.get(origin, thing)
    time.sleep(1.2)
    for thing in things:
        thing.version, thing.control = 2, "max-age=3600"
        assert way.get(origin, thing).get("ETag") == '"v2"'
    for how in ("stop", "kill"):
        settle(way, 1)
        way.daemon.restart(how)
        for thing in things:
            answer = way.get(origin, thing)
            assert (answer.get("ETag"), answer.cache) == ('"v2"', "hit")


def test_parts_survive(way):
    origin = way.exact()
    thing = origin.add("/object", 12 * MIB)
    way.get(origin, thing, f"bytes={2 * MIB}-{4 * MIB - 1}")
    way.get(origin, thing, f"bytes={9 * MIB}-{10 * MIB - 1}")
    way.daemon.restart()
    sent = thing.sent
    assert way.get(origin, thing, f"bytes={2 * MIB + 5}-{4 * MIB - 5}").cache == "hit"
    assert way.get(origin, thing, f"bytes={9 * MIB}-{10 * MIB - 1}").cache == "hit"
    assert thing.sent == sent
    assert way.get(origin, thing).complete and thing.sent <= thing.size * 1.1


# Damage

@pytest.mark.parametrize("how", ["stop", "kill"])
def test_flipped_bits_while_it_was_down(way, how):
    """Never a wrong byte (every answer is checked); dropped, counted, fetched again."""
    mix, dice = Mix(way), random.Random(12)
    mix.fill()
    settle(way, 2 if how == "kill" else 0)
    way.daemon.restart(how, lambda: [flip_bits(path, dice, 60) for path in way.files()])
    hits, count = mix.hits()
    assert hits < count
    assert way.daemon.counted("broken") > 0, way.daemon.stats()
    hits, count = mix.hits()
    assert hits >= count - 1


def test_flipped_bits_while_it_runs(way):
    mix, dice = Mix(way), random.Random(13)
    mix.fill()
    way.daemon.restart()  # nothing of it is in memory
    for path in way.files():
        flip_bits(path, dice, 60)
    hits, count = mix.hits()
    assert hits < count and way.daemon.counted("broken") > 0
    hits, count = mix.hits()
    assert hits >= count - 1


def cut(path, dice):
    os.truncate(path, dice.randrange(path.stat().st_size + 1))


def zero(path, dice):
    size = path.stat().st_size
    first = dice.randrange(size)
    with open(path, "r+b") as file:
        file.seek(first)
        file.write(bytes(min(size - first, MIB)))


def scramble(path, dice):
    path.write_bytes(dice.randbytes(min(path.stat().st_size, MIB)))


def swap(path, dice):
    """Another segment's content under this one's name."""
    path.write_bytes(dice.choice(list(path.parent.glob("*"))).read_bytes())


@pytest.mark.parametrize("damage", [cut, zero, scramble, swap, lambda path, _: path.unlink()],
    ids=["cut", "zero", "scramble", "swap", "unlink"])
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_damaged_segments(way, how, damage):
    mix, dice = Mix(way, 100, bulk=12), random.Random(14)
    mix.fill()
    settle(way, 1)
    files = way.files()
    assert len(files) >= 4
    way.daemon.restart(how, lambda: [damage(path, dice) for path in files[::2]])
    mix.run(200)
    mix.hits()
    hits, count = mix.hits()
    assert hits >= count - 1


@pytest.mark.parametrize("damage", [
    lambda place: (place / "super").unlink(),
    lambda place: (place / "super").write_bytes(b"x" * 8192),
    lambda place: [path.write_bytes(b"\xff" * 5000) for path in place.iterdir() if path.is_file() and path.name != "super"],
], ids=["super-gone", "super-bad", "all-else-bad"])
def test_damaged_books(way, damage):
    mix = Mix(way, 60)
    mix.fill()
    way.daemon.restart("stop", lambda: damage(way.places["store"]))
    mix.run(200)
    mix.hits()
    hits, count = mix.hits()
    assert hits >= count - 1


def test_strange_files_are_left_alone(way):
    place = way.places["store"]
    (place / "readme").write_text("mine")
    mix = Mix(way, 40)
    mix.fill()
    way.daemon.restart()
    assert (place / "readme").read_text() == "mine" and mix.hits()[0] > 40


# Size

def test_the_limit_is_a_hard_one():
    """Three times as much as it may hold goes through."""
    with standing("cache_mem 4M\n", [("store", "24M")]) as way:
        mix, largest = Mix(way, 20), 0
        for number in range(36):
            origin = mix.origin
            way.get(origin, origin.add(f"/much/{number}", 2 * MIB - 5000 * number))
            largest = max(largest, disk_bytes(way.places["store"]))
        assert largest <= 24 * MIB, largest
        last = origin.add("/last", 500_000)
        way.get(origin, last)
        assert way.get(origin, last).cache == "hit"
        way.daemon.restart()
        assert way.get(origin, last).cache == "hit"
        assert disk_bytes(way.places["store"]) <= 24 * MIB
        way.check()


# Several volumes

TWO = [("one", "128M"), ("two", "128M")]
SHARE = 0.3  # of the objects, at least, in each of two volumes of one size


@pytest.fixture
def two():
    with standing(CONFIG.replace("8M", "4M"), TWO) as made:
        yield made
        made.check()


def remove(place):
    shutil.rmtree(place)


def scramble_all(place):
    for path in place.glob("seg/**/*"):
        if path.is_file():
            path.write_bytes(b"")


def evens(mix):
    """Things of one size, so that the volumes' shares are of numbers."""
    return [mix.origin.add(f"/even/{n}", 60_000) for n in range(200)]


@pytest.mark.parametrize("loss", [remove, scramble_all, lambda place: place.chmod(0)],
    ids=["removed", "emptied", "forbidden"])
def test_one_volume_is_lost_while_it_runs(two, loss):
    mix = Mix(two)
    things = evens(mix)
    mix.hits(things)
    assert mix.hits(things)[0] == len(things)
    loss(two.places["two"])
    hits, count = mix.hits(things)
    assert hits >= count * SHARE
    mix.run(300)
    hits, count = mix.hits(things)
    assert hits >= count * SHARE
    two.places["two"].mkdir(exist_ok=True)
    two.places["two"].chmod(0o755)


def test_one_volume_is_gone_at_start(two):
    mix = Mix(two)
    things = evens(mix)
    mix.hits(things)

    def lose():
        remove(two.places["two"])
        two.places["two"].write_text("no directory")
    two.daemon.restart("stop", lose)
    hits, count = mix.hits(things)
    assert count * SHARE <= hits <= count * (1 - SHARE)
    hits, count = mix.hits(things)
    assert hits == count
    assert str(two.places["two"]) in two.daemon.stderr()


def test_a_volume_is_added_and_removed_while_it_serves(two):
    """Each step costs the share it must, answers stay right, and `weir store status` names the volumes in use."""
    mix = Mix(two)
    things = evens(mix)
    mix.hits(things)
    two.places["three"] = make_place(two.lab, "three")
    two.volumes.append(("three", "128M"))
    two.daemon.reload(two.config(CONFIG))
    assert mix.hits(things)[0] == len(things)  # what lies elsewhere is found there
    mix.run(200)
    assert str(two.places["three"]) in two.daemon.command("store", "status").stdout
    two.volumes.remove(("one", "128M"))
    two.daemon.reload(two.config(CONFIG))
    hits, count = mix.hits(things)
    assert hits >= count * SHARE
    assert mix.hits(things)[0] == count
    wait_for(lambda: str(two.places["one"]) not in two.daemon.command("store", "status").stdout, what="the end of a volume")


def test_a_volume_shrinks_and_grows_while_it_serves(way):
    mix = Mix(way)
    mix.fill()
    for number in range(20):
        way.get(mix.origin, mix.origin.add(f"/much/{number}", 3 * MIB))
    before = disk_bytes(way.places["store"])
    assert before > 48 * MIB
    way.volumes = [("store", "32M")]
    way.daemon.reload(way.config(CONFIG))
    mix.run(100)
    wait_for(lambda: disk_bytes(way.places["store"]) <= 32 * MIB, 15, "a directory of 32 MiB")
    way.volumes = [("store", "256M")]
    way.daemon.reload(way.config(CONFIG))
    mix.hits()
    assert mix.hits()[0] >= len(mix.small)
