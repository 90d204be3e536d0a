"""What was purged is gone at once, after a restart, and after a power cut right behind the answer."""
import time

import pytest

from store_way import MIB, settle, standing

HOSTS = ["a.example", "b.example"]
PATHS = ["/img/one.png", "/img/two.png", "/img/deep/three.png", "/text/one.html", "/text/two.html", "/large.iso"]
KINDS = {
    "url": (["http://a.example/img/one.png"], lambda host, path: (host, path) == ("a.example", "/img/one.png")),
    "large": (["http://a.example/large.iso"], lambda host, path: (host, path) == ("a.example", "/large.iso")),
    "prefix": (["--prefix", "http://a.example/img/"], lambda host, path: host == "a.example" and path.startswith("/img/")),
    "mask": (["--mask", "*/*.html"], lambda host, path: path.endswith(".html")),
    "host-mask": (["--mask", "b.example/*.png"], lambda host, path: host == "b.example" and path.endswith(".png")),
    "host": (["--host", "b.example"], lambda host, path: host == "b.example"),
    "all": (["--all"], lambda host, path: True),
}


class Shelf:
    """Every path of every host, stored."""

    def __init__(self, way):
        self.way, self.origin = way, way.exact()
        self.sizes = {path: 3 * MIB if path == "/large.iso" else 20_000 for path in PATHS}
        self.things = {path: self.origin.add(path, size) for path, size in self.sizes.items()}
        for host in HOSTS:
            for path in PATHS:
                self.get(host, path)

    def get(self, host, path):
        answer = self.way.get(self.origin, self.things[path], host=host)
        assert (answer.status, answer.complete) == (200, True)
        return answer

    def is_stored(self, host, path):
        """Asks for it, which stores it."""
        before = self.asked(host, path)
        self.get(host, path)
        return self.asked(host, path) == before

    def asked(self, host, path):
        return sum(request.get("Host") == host for request in self.things[path].requests)

    def stored(self):
        return {(host, path) for host in HOSTS for path in PATHS if self.is_stored(host, path)}


def left(matches):
    return {(host, path) for host in HOSTS for path in PATHS if not matches(host, path)}


@pytest.fixture
def way():
    with standing("cache_mem 2M\n", [("one", "64M"), ("two", "64M")]) as made:
        yield made
        made.check()


@pytest.mark.parametrize("kind", list(KINDS))
def test_gone_at_once(way, kind):
    words, matches = KINDS[kind]
    shelf = Shelf(way)
    begin = time.monotonic()
    way.daemon.command("purge", *words)
    assert time.monotonic() - begin < 1
    assert shelf.stored() == left(matches)
    assert len(shelf.stored()) == len(HOSTS) * len(PATHS)  # and what came after the purge stays
    way.daemon.restart()
    assert len(shelf.stored()) == len(HOSTS) * len(PATHS)


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_still_gone_after_a_restart(way, kind, how):
    words, matches = KINDS[kind]
    shelf = Shelf(way)
    way.daemon.restart()  # all of it lies on the disk alone
    way.daemon.command("purge", *words)
    way.daemon.restart(how)
    assert shelf.stored() == left(matches)


def test_a_fill_that_runs_is_not_stored(way):
    origin = way.exact()
    thing = origin.add("/object", 2 * MIB, rate=4 * MIB)
    with way.connect(origin) as client:
        client.request("GET", thing.path, {"Host": origin.address})
        client.read_until(b"\r\n\r\n")
        client.read(MIB // 2)
        way.daemon.command("purge", f"http://{origin.address}{thing.path}")
        assert client.read(thing.size - MIB // 2) == thing.content(MIB // 2)
    way.get(origin, thing)
    assert len(thing.requests) == 2
    way.daemon.restart("kill")


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_an_unsafe_method_invalidates_what_lies_on_the_disk(way, how):
    """No answer waits for a disk, so what is killed within the same moment may not have written it yet."""
    shelf = Shelf(way)
    way.daemon.restart()
    host, path = "a.example", "/text/one.html"
    way.fetch(path, "POST", body=b"x", to=shelf.origin, host=host)
    settle(way, 0.5 if how == "kill" else 0)
    way.daemon.restart(how)
    before = shelf.asked(host, path)
    shelf.get(host, path)
    assert shelf.asked(host, path) == before + 1
