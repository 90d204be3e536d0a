"""A daemon whose store outlives it, and clients that check every byte."""
import contextlib
import email
import os
import pathlib
import random
import re
import selectors
import shutil
import socket
import subprocess
import threading
import time

from exact import MIB, Exact
from lab import Failed, Lab, Weir, wait_for
from peer import Closed
from way import Way

FULL = bool(os.environ.get("WEIR_FULL"))  # the sizes of the specification, for a machine that has the time

BASE = """\
listen 3129 redirect
cache_status on
timeout client_idle 15s
timeout first_byte 10s
timeout upstream_idle 10s
timeout linger 2s
timeout drain 2s
"""


class Daemon(Weir):
    """Can be stopped, killed and started again: what was on disk is still there."""

    def __init__(self, lab, config, prefix=(), environment=None, **options):
        self.how = (prefix, environment or {})
        super().__init__(lab, config, prefix=prefix, environment=environment, **options)

    def stop(self):
        self.process.terminate()
        status = self.process.wait(20)
        assert status == 0, f"weir stopped with {status}:\n{self.stderr()}"

    def start(self, ready=5):
        (self.directory / "notify").unlink(missing_ok=True)
        self._start(*self.how, ready)
        if self.rules:
            self.rules_do("apply")

    def restart(self, how="stop", between=lambda: None):
        {"stop": self.stop, "kill": self.kill}[how]()
        between()
        self.start()

    def told(self):
        """What the operator is told of the store, in words."""
        return self.command("stats").stdout + self.command("store", "status", check=False).stdout

    def counted(self, word):
        """The sum of all numbers in the statistics whose name has the word in it."""
        def add(value, name=""):
            if isinstance(value, dict):
                return sum(add(one, key) for key, one in value.items())
            if isinstance(value, list):
                return sum(add(one, name) for one in value)
            return value if word in name and isinstance(value, (int, float)) else 0
        told = self.stats()
        told.pop("counters", None)
        return add(told)

    def memory_bytes(self):
        """Resident, without the page cache."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
        raise Failed("weir has no RssAnon")


class StoreWay(Way):
    """As Way, with the store's directories: `volumes` is (name, size) of each."""

    def __init__(self, lab, config="", volumes=(), base=BASE, places=None, **options):
        self.places = places or {name: make_place(lab, name) for name, _ in volumes}
        self.volumes, self.base = list(volumes), base
        super().__init__(lab, lab.keep(Daemon(lab, self.config(config), **options)), 4)

    def config(self, more):
        lines = "".join(f"cache_dir {self.places[name]} {size}\n" for name, size in self.volumes)
        return self.base + lines + more

    def exact(self):
        return self._keep(Exact(self.lab.wan, self.free_address()))

    def get(self, origin, thing, range_=None, host=None, **more):
        """One checked answer on a connection of its own."""
        fields = {**({"Range": range_} if range_ else {}), **more}
        return checked(self.fetch(thing.path, fields=fields, to=origin, host=host), thing)

    def files(self, name=None):
        """The segment files of one or all volumes."""
        places = [self.places[name]] if name else self.places.values()
        return [path for place in places for path in sorted(place.glob("seg/**/*")) if path.is_file()]


def make_place(lab, name):
    """A directory that the daemon may write in."""
    place = lab.directory / name
    place.mkdir(exist_ok=True)
    shutil.chown(place, "nobody")
    return place


@contextlib.contextmanager
def standing(config="", volumes=(), **options):
    with Lab() as lab:
        yield StoreWay(lab, config, volumes, **options)


# Checking

def checked(answer, thing):
    """An answer is of one version, the one it names, and has the bytes of the places it names; also one that was cut."""
    if answer.status not in (200, 206):
        return answer
    tag = re.fullmatch(r'(?:W/)?"v(\d+)"', answer.get("ETag") or "")
    version = int(tag[1]) if tag else thing.version
    if (answer.get("Content-Type") or "").startswith("multipart/"):
        for first, last, body in parts_of(answer):
            compare(thing, version, first, body, last - first + 1)
        return answer
    first, count = 0, thing.size
    if answer.status == 206:
        first, last, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.get("Content-Range")).groups())
        assert size == thing.size
        count = last - first + 1
    compare(thing, version, first, answer.body, count if answer.complete else None)
    return answer


def compare(thing, version, first, body, count=None):
    assert count is None or len(body) == count, f"{len(body)} bytes for {count}"
    wanted = thing.content(first, len(body), version)
    if body != wanted:
        place = next(i for i, (a, b) in enumerate(zip(body, wanted)) if a != b)
        raise AssertionError(f"{thing.name} v{version}: the byte at {first + place} is wrong ({len(body)} from {first})")


def parts_of(answer):
    head = b"Content-Type: " + answer.get("Content-Type").encode() + b"\r\n\r\n"
    message = email.message_from_bytes(head + answer.body)
    assert not message.defects
    for part in message.get_payload():
        first, last = re.match(r"bytes (\d+)-(\d+)/", part["Content-Range"]).groups()
        yield int(first), int(last), part.get_payload(decode=True)


class Asker:
    """A client that keeps its connection."""

    def __init__(self, way, origin):
        self.way, self.origin, self.client = way, origin, None

    def get(self, thing, range_=None, method="GET", **more):
        if not self.client:
            self.client = self.way.connect(self.origin)
        fields = {"Host": self.origin.address, **({"Range": range_} if range_ else {}), **more}
        try:
            self.client.request(method, thing.path, fields)
            answer = self.client.read_response(method)
        except BaseException:
            self.close()
            raise
        if not answer.complete or not answer.keeps_open:
            self.close()
        return answer if method == "HEAD" else checked(answer, thing)

    def close(self):
        if self.client:
            self.client.close()
        self.client = None


def by_several(jobs, work, threads=4):
    """work(job, asker-like state of the thread) for each job; raises what the first of them raised."""
    jobs, failures, results, lock = iter(list(jobs)), [], [], threading.Lock()

    def run():
        while not failures:
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            try:
                result = work(job)
                with lock:
                    results.append(result)
            except BaseException as error:
                failures.append(error)
    running = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
        assert not thread.is_alive(), "a request hangs"
    if failures:
        raise failures[0]
    return results


# A crowd

class Member:
    """One of a crowd: a socket, when it asked, when content first came, and how much of it."""

    def __init__(self, sock, thing):
        self.socket, self.thing = sock, thing
        self.asked_at = self.first_at = None
        self.head, self.got, self.state = b"", 0, "new"

    def take(self):
        """What is there now. True when it has ended."""
        try:
            data = self.socket.recv(262144)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.state = "cut"
            return True
        if b"\r\n\r\n" not in self.head:
            self.head += data
            if b"\r\n\r\n" not in self.head:
                return False
            self.head, data = self.head.split(b"\r\n\r\n", 1)
            assert b" 200 " in self.head.split(b"\r\n")[0], self.head
            self.head += b"\r\n\r\n"
        if data and self.first_at is None:
            self.first_at = time.monotonic()
        compare(self.thing, 1, self.got, data)
        self.got += len(data)
        if self.got >= self.thing.size:
            self.state = "whole"
        return self.state == "whole"


def crowd(way, origin, thing, count, within, event=lambda members, now: None, until=None, timeout=60):
    """`count` clients of one thing, begun evenly over `within` seconds, in one loop. `event` is called in each round.
    Ends when all have ended, or until(members) says so."""
    selector, members, waiting = selectors.DefaultSelector(), [], []
    with way.lab.lan:
        for _ in range(count):
            sock = socket.socket()
            sock.setblocking(False)
            members.append(Member(sock, thing))
    begin = time.monotonic()
    request = f"GET {thing.path} HTTP/1.1\r\nHost: {origin.address}\r\n\r\n".encode()
    waiting = list(members)
    try:
        while waiting or selector.get_map():
            now = time.monotonic()
            assert now - begin < timeout, f"{[(m.state, m.got) for m in members]}"
            while waiting and now - begin >= within * (count - len(waiting)) / count:
                member = waiting.pop(0)
                with contextlib.suppress(BlockingIOError):
                    member.socket.connect((origin.address, 80))
                selector.register(member.socket, selectors.EVENT_WRITE, member)
            for key, _ in selector.select(0.002):
                member = key.data
                if member.state == "new":
                    member.socket.send(request)
                    member.asked_at, member.state = time.monotonic(), "asked"
                    selector.modify(member.socket, selectors.EVENT_READ, member)
                elif member.take():
                    selector.unregister(member.socket)
            event(members, now - begin)
            for key in list(selector.get_map().values()):
                if key.data.state == "left":
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            if until and until(members):
                break
    finally:
        selector.close()
        for member in members:
            member.socket.close()
    return members


# A mix of requests, for disks in trouble

class Mix:
    """Things of many sizes at one origin, and requests of all kinds for them, all checked."""

    SIZES = [0, 1, 300, 4096, 16385, 65536, 150_000, 262_144, 262_145, 700_000, 3 * MIB]

    def __init__(self, way, count=150, seed=1, bulk=0):
        self.way, self.origin, self.dice = way, way.exact(), random.Random(seed)
        self.small = [self.origin.add(f"/small/{n}", self.dice.randrange(30_000)) for n in range(count)]
        self.large = [self.origin.add(f"/large/{size}", size) for size in self.SIZES]
        self.large += [self.origin.add(f"/bulk/{n}", 2 * MIB + n) for n in range(bulk)]
        self.fresh = 0
        self.delays = []

    def one(self, state, dice):
        kind = dice.random()
        if kind < 0.6:
            return state.get(dice.choice(self.small))
        thing = dice.choice(self.large)
        if kind < 0.75:
            return state.get(thing)
        if kind < 0.9 and thing.size:
            first = dice.randrange(thing.size)
            return state.get(thing, f"bytes={first}-{min(thing.size - 1, first + dice.randrange(200_000))}")
        if kind < 0.95:
            return state.get(thing, method="HEAD")
        return state.get(self.new(dice))

    def new(self, dice):
        with self.origin.lock:
            self.fresh += 1
            return self.origin.add(f"/fresh/{self.fresh}", dice.randrange(100_000))

    def run(self, count=1000, threads=6):
        """The answers; each was complete and right."""
        states = threading.local()

        def work(seed):
            if not hasattr(states, "asker"):
                states.asker = Asker(self.way, self.origin)
            begin = time.monotonic()
            answer = self.one(states.asker, random.Random(seed))
            self.delays.append(time.monotonic() - begin)
            assert answer.complete and answer.status in (200, 206), answer
            return answer
        return by_several([self.dice.random() for _ in range(count)], work, threads)

    def fill(self):
        """Everything once; what was asked of the origin is forgotten."""
        by_several([*self.small, *self.large], lambda thing: self.way.get(self.origin, thing), 6)

    def forget(self):
        for thing in list(self.origin.things.values()):
            thing.forget()

    def hits(self, things=None):
        """How many of the things are answered without asking the origin, and how many there are."""
        self.forget()
        things = things or [*self.small, *self.large]
        by_several(things, lambda thing: self.way.get(self.origin, thing), 6)
        return sum(not thing.requests for thing in things), len(things)


def flip_bits(path, dice, count):
    """Turns over that many bits of a file, on the disk and not only in the page cache."""
    with open(path, "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for _ in range(count if size else 0):
            at = dice.randrange(size)
            byte = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([byte[0] ^ 1 << dice.randrange(8)]), at)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_bytes(place):
    """What a directory takes on its disk."""
    return int(subprocess.run(["du", "-s", "-B1", place], capture_output=True, text=True, check=False).stdout.split()[0])


def settle(way, seconds=3):
    """A power cut may cost the last seconds: until they are over."""
    time.sleep(seconds)
    way.daemon.check_alive()


__all__ = ["BASE", "FULL", "MIB", "Asker", "Closed", "Daemon", "Mix", "StoreWay", "by_several", "checked", "compare", "crowd",
    "disk_bytes", "flip_bits", "make_place", "parts_of", "settle", "standing", "wait_for"]
