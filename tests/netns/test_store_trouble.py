"""Disks in trouble: requests run clean through it, the operator is told once, and the volume comes back when it can."""
import contextlib
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import time

import pytest

from lab import ROOT, Lab, Weir, wait_for
from store_way import BASE, FULL, MIB, Mix, StoreWay, make_place

CONFIG = "cache_mem 4M\nmaximum_object_size 8M\n"
REQUESTS = 1000
BACK = 15  # seconds until a volume that can be used again is


@pytest.fixture(scope="module")
def lab():
    with Lab() as made:
        yield made


@contextlib.contextmanager
def mounted(place, kind, *options, source="none"):
    place.mkdir(exist_ok=True)
    run("mount", "-t", kind, "-o", ",".join(options) or "rw", source, place)
    try:
        yield place
    finally:
        run("umount", "-l", place)


def run(*words):
    subprocess.run(list(map(str, words)), check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(place, kind, size_mib):
    """A file system of its own that the daemon may write in."""
    if kind == "tmpfs":
        with mounted(place, "tmpfs", f"size={size_mib}M", "mode=777"):
            yield place
        return
    image = place.with_suffix(".img")
    with open(image, "wb") as file:
        file.truncate(size_mib * MIB)
    run("mkfs.ext4", "-q", "-F", "-m0", "-O", "^has_journal", image)
    with mounted(place, "ext4", "loop", source=image):
        place.chmod(0o777)
        yield place


def loops_are_there():
    return subprocess.run(["losetup", "-f"], capture_output=True, check=False).returncode == 0


KINDS = ["tmpfs", "ext4"] if loops_are_there() else ["tmpfs"]
SOME_KINDS = KINDS if FULL else ["tmpfs"]
SOME_CALLS = ["read", "write", "sync"] + (["read write sync", "open", "allocate"] if FULL else [])


class Trouble:
    """A daemon with one volume in trouble, and one that is well when `beside`."""

    def __init__(self, lab, place, size="64M", beside=False, **options):
        self.place, self.marked = place, 0
        volumes, places = [("sick", size)], {"sick": place}
        if beside:
            volumes, places["well"] = volumes + [("well", "64M")], make_place(lab, f"well-{place.name}")
        self.way = StoreWay(lab, CONFIG, volumes, places=places, **options)
        self.daemon = self.way.daemon

    def mixed(self, count=REQUESTS, seed=21):
        mix = Mix(self.way, 100, seed)
        mix.run(count)
        self.way.check()
        return mix

    def said(self):
        return [line for line in self.daemon.stderr().splitlines() if str(self.place) in line]

    def mark(self):
        """What was said up to now is not about the trouble."""
        self.marked = len(self.said())

    def is_named_once(self):
        """In the log: a sentence or a few about it, none again and again."""
        lines = wait_for(lambda: self.said()[self.marked:], 6, lambda: f"a word of {self.place} in {self.daemon.stderr()!r}")
        words = [re.sub(r"\d+", "N", line.split(str(self.place), 1)[1]) for line in lines]
        assert len(words) == len(set(words)) and len(words) <= 4, lines

    def state(self):
        """What `weir store status` says of the volume."""
        told = json.loads(self.daemon.command("store", "status", "--json").stdout)
        return next(volume for volume in told["volumes"] if volume["path"] == str(self.place))

    def is_well(self):
        return self.state()["state"] == "ready"

    def is_seen(self):
        """In `weir store status`, in words, and in the statistics when it is out of use."""
        state = self.state()
        assert state["trouble"] or state["errors"], state
        assert str(self.place) in self.daemon.command("store", "status").stdout

    def comes_back(self):
        """Used again: what is new is stored there, and found after a restart."""
        wait_for(self.is_well, BACK, lambda: f"the volume in use again: {self.state()}; it")
        mix = self.mixed(100, 22)
        mix.fill()
        self.daemon.restart()
        hits, count = mix.hits()
        assert hits >= count * 0.9, f"{hits} of {count}: {self.state()}"

    def end(self):
        self.way.check()
        self.daemon.close()


@contextlib.contextmanager
def trouble(lab, place, **options):
    made = Trouble(lab, place, **options)
    try:
        yield made
        made.end()
    finally:
        made.daemon.kill()
        made.daemon.close()


@pytest.fixture
def place(lab, request):
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    yield lab.directory / name[-40:]


# Full

@pytest.mark.parametrize("kind", SOME_KINDS)
def test_a_disk_smaller_than_the_volume(lab, place, kind):
    with small_disk(place, kind, 16), trouble(lab, place) as sick:
        mix = sick.mixed()
        for number in range(20):
            sick.way.get(mix.origin, mix.origin.add(f"/more/{number}", MIB))
        sick.is_named_once()
        last = mix.origin.add("/last", 30_000)
        sick.way.get(mix.origin, last)
        assert sick.way.get(mix.origin, last).cache == "hit"


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_others_fill(lab, place, kind):
    with small_disk(place, kind, 48), trouble(lab, place, size="32M") as sick:
        sick.mixed(100)
        sick.mark()
        limit = sick.state()["limit_bytes"]
        ballast = place / "ballast"
        fill_up(ballast)
        mix = sick.mixed()
        for number in range(20):
            sick.way.get(mix.origin, mix.origin.add(f"/more/{number}", MIB))
        sick.is_named_once()
        assert sick.state()["limit_bytes"] < limit  # it lives in what it has, ready all the time
        ballast.unlink()
        wait_for(lambda: sick.state()["limit_bytes"] == limit, BACK, lambda: f"all of its room: {sick.state()}; it")
        sick.comes_back()


def fill_up(path):
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(65536)):
            pass


def test_out_of_inodes(lab, place):
    place.mkdir()
    with mounted(place, "tmpfs", "size=128M", "nr_inodes=60", "mode=777"), trouble(lab, place, size="96M") as sick:
        sick.mark()
        litter = []
        with contextlib.suppress(OSError):
            for number in range(80):
                path = place / f"litter-{number}"
                path.touch()
                litter.append(path)
        mix = sick.mixed()
        for number in range(40):
            sick.way.get(mix.origin, mix.origin.add(f"/more/{number}", 2 * MIB))
        sick.is_named_once()
        for path in litter:
            path.unlink()
        sick.comes_back()


# Read-only, gone, forbidden, taken

@pytest.mark.parametrize("kind", SOME_KINDS)
def test_read_only_at_start(lab, place, kind):
    """What is there may be served; it is written again once it can be."""
    with small_disk(place, kind, 64):
        with trouble(lab, place) as before:
            mix = before.mixed(200)
            mix.fill()
        run("mount", "-o", "remount,ro", place)
        with trouble(lab, place) as sick:
            sick.mixed()
            sick.is_named_once()
            sick.is_seen()
            assert not sick.is_well()
            run("mount", "-o", "remount,rw", place)
            sick.comes_back()


if "ext4" in KINDS:
    def test_read_only_while_it_runs(lab, place):
        """As ext4 makes itself after an error: whoever has files open is not asked."""
        with small_disk(place, "ext4", 64), trouble(lab, place, beside=True) as sick:
            sick.mixed(200)
            sick.mark()
            run("mount", "-o", "remount,abort", place)
            for seed in (23, 24):
                sick.mixed(REQUESTS // 2, seed)
            sick.is_named_once()
            sick.is_seen()
            assert not sick.is_well()


def test_the_directory_is_deleted(lab, place):
    place.mkdir()
    shutil.chown(place, "nobody")
    with trouble(lab, place, beside=True) as sick:
        sick.mixed(200)
        sick.mark()
        shutil.rmtree(place)
        sick.mixed()
        for seed in range(3):  # more than an open segment takes
            sick.mixed(100, 30 + seed)
        place.mkdir(exist_ok=True)
        shutil.chown(place, "nobody")
        sick.comes_back()


@pytest.mark.parametrize("mode", [0o700, 0o755], ids=["closed", "readable"])
def test_the_wrong_owner(lab, place, mode):
    place.mkdir()
    place.chmod(mode)
    shutil.chown(place, "daemon")
    with trouble(lab, place) as sick:
        sick.mixed()
        sick.is_named_once()
        assert not sick.is_well()
        shutil.chown(place, "nobody")
        sick.comes_back()


def test_not_a_directory(lab, place):
    place.write_text("a file")
    with trouble(lab, place) as sick:
        sick.mixed()
        sick.is_named_once()
        assert place.read_text() == "a file"
        place.unlink()
        make_place(lab, place.name)
        sick.comes_back()


def test_another_process_has_it(lab, place):
    place.mkdir()
    shutil.chown(place, "nobody")
    lines = f"cache_dir {place} 64M\n{CONFIG}"
    holder = Weir(lab, BASE.replace("3129", "3130") + lines, rules=False)
    try:
        with trouble(lab, place) as sick:
            sick.mixed()
            sick.is_named_once()
            sick.is_seen()
            assert not sick.is_well()
            holder.close()
            sick.comes_back()
    finally:
        holder.kill()


# Formats

def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    return value ^ 0xffffffff


def set_format(place, format_, bits=0):
    """Another format in both copies of the super block, with valid checksums."""
    path = place / "super"
    data = bytearray(path.read_bytes())
    for at in (0, 4096):
        assert data[at:at + 8] == b"WEIRVOLU"
        assert crc32c(data[at:at + 60]) == struct.unpack_from("<I", data, at + 60)[0]
        struct.pack_into("<II", data, at + 8, format_, bits)
        struct.pack_into("<I", data, at + 60, crc32c(data[at:at + 60]))
    path.write_bytes(data)


@pytest.mark.parametrize("format_, bits", [(0, 0), (99, 0), (1, 1 << 31)], ids=["older", "newer", "unknown-bit"])
def test_another_format(lab, place, format_, bits):
    place.mkdir()
    shutil.chown(place, "nobody")
    with trouble(lab, place) as sick:
        old = sick.mixed(200)
        old.fill()
        sick.daemon.restart("stop", lambda: set_format(place, format_, bits))
        assert old.hits()[0] <= len(old.small) * 0.05  # nothing of it is taken for ours
        sick.mixed()
        sick.is_named_once()
        sick.comes_back()
        wait_for(lambda: not list(place.glob("aside*")), 20, "the end of the old content")


# Errors and delays that a real disk makes: tests/faults

@pytest.fixture
def faults(lab):
    sys.path.append(str(ROOT / "tests/faults"))
    from faults import Faults
    with Faults(lab.directory) as made:
        yield made


@pytest.mark.parametrize("calls", SOME_CALLS)
def test_errors(lab, place, faults, calls):
    place.mkdir()
    shutil.chown(place, "nobody")
    with trouble(lab, place, beside=True, environment=faults.environment()) as sick:
        mix = sick.mixed(200)
        sick.daemon.restart()
        sick.mark()
        with faults.rule(place, calls, error=5) as rule:
            mix.run(REQUESTS)
            for number in range(20):
                sick.way.get(mix.origin, mix.origin.add(f"/more/{number}", MIB))
            wait_for(lambda: rule.hits, 5, "a call that fails")
            sick.is_named_once()
        sick.comes_back()


def test_rare_errors(lab, place, faults):
    """One call in fifty fails: requests run clean, the volume may go and come as it likes."""
    place.mkdir()
    shutil.chown(place, "nobody")
    with trouble(lab, place, environment=faults.environment()) as sick:
        with faults.rule(place, error=5, chance=0.02), faults.rule(place, "read", flip=True, chance=0.05), \
                faults.rule(place, "read write", short=True, chance=0.05):
            mix = sick.mixed(REQUESTS)
            mix.run(REQUESTS)
        sick.comes_back()


def p99(delays):
    return sorted(delays)[int(len(delays) * 0.99)]


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-another"])
def test_a_disk_that_takes_two_seconds(lab, place, faults, beside):
    """Hits in memory and misses stay quick; what lies on the slow disk goes to the origin; it comes back by itself."""
    place.mkdir()
    shutil.chown(place, "nobody")
    with trouble(lab, place, beside=beside, environment=faults.environment()) as sick:
        way, origin = sick.way, sick.way.exact()
        cold = [origin.add(f"/cold/{n}", 40_000) for n in range(300)]
        for thing in cold:
            way.get(origin, thing)
        sick.daemon.restart()
        hot = [origin.add(f"/hot/{n}", 2_000) for n in range(20)]
        for thing in hot * 3:
            way.get(origin, thing)
        sick.mark()
        with faults.rule(place, "read", delay=2) as rule:
            dice, memory, misses, disk = random.Random(31), [], [], []
            for number in range(600):
                which = dice.random()
                if which < 0.4:
                    memory.append(timed(way, origin, dice.choice(hot)))
                elif which < 0.8:
                    misses.append(timed(way, origin, origin.add(f"/new/{number}", 3_000)))
                else:
                    disk.append(timed(way, origin, dice.choice(cold)))
            assert rule.hits
            assert p99(memory) < 0.2 and p99(misses) < 0.2, (p99(memory), p99(misses))
            assert max(disk) < 2, "somebody waited for the disk"
            assert sum(delay > 0.5 for delay in disk) <= 12, sorted(disk)[-20:]
            sick.is_named_once()
            sick.is_seen()
            assert not sick.is_well()
        wait_for(sick.is_well, BACK, lambda: f"the volume in use again: {sick.state()}; it")


def timed(way, origin, thing):
    begin = time.monotonic()
    answer = way.get(origin, thing)
    assert (answer.status, answer.complete) == (200, True)
    return time.monotonic() - begin


def test_a_disk_that_hangs_holds_up_nobody(lab, place, faults):
    """Not even the end: what hangs in the kernel is left behind when the daemon stops or serves on."""
    place.mkdir()
    shutil.chown(place, "nobody")
    with trouble(lab, place, beside=True, environment=faults.environment()) as sick:
        mix = sick.mixed(200)
        sick.daemon.restart()
        sick.mark()
        with faults.rule(place, "read write sync", hang=True):
            mix.run(REQUESTS)
            sick.is_named_once()
        sick.comes_back()
