"""A long line to the origin: a cold download through weir is as fast as one past it, alone and in four ranges at once."""
import pathlib
import socket
import sys
import time

import pytest

from exact import Exact
from store_way import FULL, standing, wait_for

SIZE = 500_000_000 if FULL else 60_000_000
LINE = 100_000_000 if FULL else 50_000_000  # bytes a second: what the line carries, with and without weir
LEAST = 0.95 if FULL else 0.85
DELAY_MS = 20  # each way: 40 ms for a round trip
RELAY = pathlib.Path(__file__).with_name("relay.py")


@pytest.fixture(scope="module", params=["memory", "disk"])
def store(request):
    volumes = [("store", "4G")] if request.param == "disk" else []
    with standing(f"cache_mem {'64M' if volumes else '1G'}\nmaximum_object_size 1G\n", volumes) as way:
        yield way


@pytest.fixture
def way(store):
    yield store
    store.check()


class LongLine:
    """An origin behind the relay: port 80 is intercepted, port 8080 is the same line past weir."""

    def __init__(self, way):
        self.address = way.free_address()
        self.origin = way._keep(Exact(way.lab.wan, way.free_address(), 8000))
        self.process = way.lab.wan.start(sys.executable, RELAY, self.address, "80", "8080", self.origin.address, "8000",
            str(DELAY_MS), str(LINE))
        wait_for(lambda: self.listens(way), what="the relay")

    def listens(self, way):
        sock = way.lab.wan.socket(4, socket.SOCK_STREAM)
        with sock:
            return sock.connect_ex((self.address, 8080)) == 0

    def close(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def line(way):
    return way.lab.keep(LongLine(way))


def download(way, line, thing, port, directory, streams):
    """Seconds for all of it, checked."""
    url = f"http://{line.address}:{port}{thing.path}".replace(":80/", "/")
    file = directory / f"loaded-{port}"
    command = ["curl", "-sS", "-o", file, url] if streams == 1 else ["aria2c", "-q", f"-x{streams}", f"-s{streams}", "-k1M",
        "--file-allocation=none", "--auto-file-renaming=false", "-d", directory, "-o", file.name, url]
    begin = time.monotonic()
    way.lab.lan.run(*map(str, command), timeout=120)
    taken = time.monotonic() - begin
    loaded = file.read_bytes()
    assert loaded == thing.content()
    file.unlink()
    return taken


@pytest.mark.parametrize("streams", [1, 4], ids=["alone", "four-ranges"])
def test_a_cold_download(way, line, tmp_path, streams):
    ratios = []
    for number in range(3):  # the best of three: noise only ever takes away
        thing = line.origin.add(f"/image-{number}", SIZE, tight=False)
        thing.content()
        direct = download(way, line, thing, 8080, tmp_path, streams)
        thing.forget()
        ratios.append(direct / download(way, line, thing, 80, tmp_path, streams))
        assert streams > 1 or thing.sent <= SIZE * 1.1  # aria2 breaks off what the line is full of
        if ratios[-1] >= LEAST:
            return
    assert max(ratios) >= LEAST, ratios
