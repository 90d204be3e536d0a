"""Readers that take their time cost no memory in proportion to what they read."""
import random
import socket
import threading
import time

import pytest

from store_way import FULL, MIB, compare, standing, wait_for

CLIENTS = 200
SIZE = 1 << 30 if FULL else 128 * MIB
BYTES_PER_SECOND = 10_000
SECONDS = 60 if FULL else 4


class Slow(threading.Thread):
    """All the slow readers: each takes a tenth of its second's share ten times a second."""

    def __init__(self, way, origin, thing):
        super().__init__(daemon=True)
        self.thing, self.over, self.failure, self.begun = thing, threading.Event(), None, 0
        dice = random.Random(11)
        self.readers = []
        for number in range(CLIENTS):
            first = 0 if number % 2 else dice.randrange(thing.size - 2 * MIB)
            peer = way.connect(origin, before=lambda sock: sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096))
            fields = {"Host": origin.address, **({"Range": f"bytes={first}-"} if first else {})}
            peer.request("GET", thing.path, fields)
            self.readers.append([peer, first])

    def run(self):
        try:
            for reader in self.readers:
                reader[0].read_until(b"\r\n\r\n")
                self.begun += 1
                reader[0].socket.setblocking(False)
            while not self.over.wait(0.1):
                for reader in self.readers:
                    self.step(reader)
        except BaseException as error:
            self.failure = error

    def step(self, reader):
        peer, at = reader
        try:
            data = peer.take(len(peer.buffer)) or peer.socket.recv(BYTES_PER_SECOND // 10)
        except BlockingIOError:
            return
        assert data, f"cut at {at}"
        compare(self.thing, 1, at, data)
        reader[1] += len(data)

    def close(self):
        self.over.set()
        self.join(20)
        for peer, _ in self.readers:
            peer.close()


@pytest.fixture(scope="module", params=["memory", "disk"])
def store(request):
    volumes = [("store", "5G" if FULL else "1G")] if request.param == "disk" else []
    memory = "16M" if volumes else ("2G" if FULL else "512M")
    with standing(f"cache_mem {memory}\nmaximum_object_size {'1100M' if FULL else '200M'}\nclient_connections_per_host 1000\n", volumes) as way:
        yield way


def test_200_slow_readers_of_a_large_hit(store):
    origin = store.exact()
    thing, small = origin.add("/large", SIZE, tight=False), origin.add("/small", 20_000)
    for _ in range(2):
        assert load(store, origin, thing)
        store.get(origin, small)
    assert len(thing.requests) == 1
    idle = store.daemon.memory_bytes()
    slow = store.lab.keep(Slow(store, origin, thing))
    slow.start()
    wait_for(lambda: slow.begun == CLIENTS or slow.failure, 30, lambda: f"{slow.begun} heads; the rest")
    peak, delays, end = 0, [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        peak = max(peak, store.daemon.memory_bytes())
        begin = time.monotonic()
        assert store.get(origin, small).cache == "hit"
        delays.append(time.monotonic() - begin)
        time.sleep(0.02)
    slow.close()
    assert not slow.failure, slow.failure
    assert peak - idle < 64 * MIB, f"{(peak - idle) / MIB:.1f} MiB more than idle"
    assert sorted(delays)[int(len(delays) * 0.95)] < 0.1, sorted(delays)[-10:]
    assert len(thing.requests) == 1
    store.check()


def load(way, origin, thing):
    """All of it, a little at a time: it may be a gigabyte."""
    with way.connect(origin) as client:
        client.request("GET", thing.path, {"Host": origin.address})
        client.read_until(b"\r\n\r\n")
        for at in range(0, thing.size, MIB):
            count = min(MIB, thing.size - at)
            compare(thing, 1, at, client.read(count), count)
    return True
