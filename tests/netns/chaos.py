#!/usr/bin/python3
"""Clients and origins that do what they like, for a while: `chaos.py [SECONDS [CLIENTS [SEED]]]`, or run() below.

The path of a request says which content it has to get, so that every response that looks whole can be held against
it: the content belongs to origin address, Host, path and variant, and a wrong byte, a response of somebody else or one that was
cut and does not look so is a failure. So is a daemon that ends, that keeps sessions or descriptors, that spins, or
that wrote a number of access lines other than it counted requests.
"""
import hashlib
import random
import re
import socket
import sys
import threading
import time

from lab import Lab, Weir, origin_address, wait_for
from origin import Service
from peer import Closed, Peer, chunked, declared_framing, Framing, head_bytes
from way import DEFAULT_CONFIG

CONFIG = """\
cache_mem 4M
maximum_object_size 300K
block ads.example
upstream_connections 400
timeout upstream_keep 1s
"""
HOSTS = ["a.example", "b.example", "c.example:8080"]
SIZES = [0, 1, 100, 4096, 16384, 16385, 70000, 299999, 400000, 1500000]


def content(address, host, path, count):
    """What this origin says under this name and path, and nobody else does."""
    seed = hashlib.sha256(f"{address} {host} {path}".encode()).digest()
    return (seed * (count // len(seed) + 1))[:count]


def normal(host):
    return host.lower().removesuffix(":80").removesuffix(".")


def variant(target, fields):
    """The target, and the field that selects the variant unless Connection takes it off the request."""
    taken = any(name == "Connection" and "X-Kind" in value for name, value in fields)
    kinds = [value for name, value in fields if name == "X-Kind" and not taken]
    return target + (f" {kinds}" if "v=1" in target else "")


# The origin: the behaviour is drawn anew for each request, the content never is

class Origin:
    def __init__(self, lab, address, dice):
        self.address, self.dice = address, dice
        self.service = lab.keep(Service(lab.wan, address, self.serve))

    def serve(self, peer, _):
        peer.socket.settimeout(6)
        while (request := peer.read_request_head()) and request.start:
            try:
                if not self.answer(peer, request, random.Random(self.dice.random())):
                    return
            except socket.timeout:  # a close in the middle would look like the end of a body that has no length
                return peer.reset()

    def answer(self, peer, request, dice):
        act = dice.choices(list(ACTS), [weight for weight, _ in ACTS.values()])[0]
        if act not in EARLY:
            peer.read_body(request, declared_framing(request) or Framing("none", 0))
        size = int((re.search(r"/(\d+)", request.target) or [0, 0])[1])
        body = content(self.address, normal(request.get("Host", "")), variant(request.target, request.fields), size)
        return ACTS[act][1](Turn(peer, request, body, dice))


class Turn:
    def __init__(self, peer, request, body, dice):
        self.peer, self.request, self.body, self.dice = peer, request, body, dice

    def head(self, *framing, status="200 OK"):
        # A strong tag is of one representation alone, variants included [RFC 9110 §8.8.3].
        fields = [("ETag", f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'), *framing]
        kind = re.search(r"[?&]c=(\w+)", self.request.target)
        control = {"s": "max-age=1", "l": "max-age=600", "n": "no-cache", "x": "no-store"}
        fields.append(("Cache-Control", control[kind[1]] if kind else "max-age=600"))
        if "v=1" in self.request.target:
            fields.append(("Vary", "X-Kind"))
        return head_bytes(f"HTTP/1.1 {status}", fields)

    def send(self, head, body):
        body = b"" if self.request.method == "HEAD" else body
        data, way = head + body, self.dice.random()
        if way < 0.6 or len(data) > 100000:
            self.peer.send(data)
        else:
            cuts = sorted(self.dice.randrange(len(data) + 1) for _ in range(self.dice.randrange(1, 8)))
            for begin, end in zip([0, *cuts], [*cuts, len(data)]):
                self.peer.send(data[begin:end])
                time.sleep(self.dice.choice([0, 0, 0.001, 0.02]))
        return True


def whole(turn):
    if turn.request.get("If-None-Match") == f'"{len(turn.body)}"' and turn.dice.random() < 0.8:
        return turn.send(turn.head(status="304 Not Modified"), b"")
    return turn.send(turn.head(("Content-Length", str(len(turn.body)))), turn.body)


def in_chunks(turn):
    step = turn.dice.choice([1, 7, 1000, 20000, 70000]) if len(turn.body) < 5000 else turn.dice.choice([1000, 70000])
    parts = [turn.body[i:i + step] for i in range(0, len(turn.body), step)]
    return turn.send(turn.head(("Transfer-Encoding", "chunked")), chunked(parts, ";x=y", [("X-Sum", "1")]))


def until_close(turn):
    turn.send(turn.head(("Connection", "close")), turn.body)
    return False


def after_interims(turn):
    for _ in range(turn.dice.randrange(1, 5)):
        turn.peer.respond(turn.dice.choice(["100 Continue", "103 Early Hints", "199 X"]), {"X": "y"})
    return whole(turn)


def cut(turn):
    turn.send(turn.head(("Content-Length", str(len(turn.body) + 1))), turn.body)
    if turn.dice.random() < 0.5:
        turn.peer.reset()
    return False


def cut_chunks(turn):
    turn.send(turn.head(("Transfer-Encoding", "chunked")), chunked([turn.body])[:-turn.dice.randrange(1, 5)])
    if turn.dice.random() < 0.5:
        turn.peer.reset()
    return False


def surplus(turn):
    """In one packet with the response: what comes later cannot be told from the answer to the next request."""
    if len(turn.body) > 1000:
        return whole(turn)
    body = b"" if turn.request.method == "HEAD" else turn.body
    turn.peer.send(turn.head(("Content-Length", str(len(turn.body)))) + body +
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nCache-Control: max-age=99\r\n\r\npoison")
    return turn.dice.random() < 0.5


def reset(turn):
    turn.peer.reset()
    return False


def close(turn):
    return False


def close_after(turn):
    whole(turn)
    time.sleep(turn.dice.choice([0, 0.001, 0.05]))
    return False


def garbage(turn):
    turn.peer.send(turn.dice.choice([b"HTTP/1.1 200 OK\nX: y\n\n", b"\0" * 100, b"HTTP/1.1 200 OK\r\nA" * 9000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", b"HTTP/1.1 101 Ha\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"HTTP/1.1 103 Hm\r\n\r\n" * 40]))
    return False


def stall(turn):
    time.sleep(turn.dice.choice([0.2, 1.5]))
    return whole(turn)


def half_close(turn):
    whole(turn)
    turn.peer.half_close()
    return True


ACTS = {"whole": (30, whole), "chunks": (20, in_chunks), "until_close": (6, until_close), "interims": (5, after_interims),
    "early": (3, whole), "early_chunks": (3, in_chunks), "early_close": (2, until_close), "cut": (4, cut),
    "cut_chunks": (4, cut_chunks), "surplus": (3, surplus), "reset": (3, reset), "early_reset": (2, reset),
    "close": (3, close), "close_after": (6, close_after), "garbage": (4, garbage), "stall": (3, stall),
    "half_close": (3, half_close)}
EARLY = {"early", "early_chunks", "early_close", "early_reset"}


# The client

class Client(threading.Thread):
    def __init__(self, chaos, dice):
        super().__init__(daemon=True)
        self.chaos, self.dice = chaos, dice

    def run(self):
        while time.monotonic() < self.chaos.end:
            try:
                self.visit()
            except (Closed, OSError, ValueError):
                pass
            except Exception as error:
                self.chaos.fail(repr(error))

    def visit(self):
        dice, self.address = self.dice, self.dice.choice(self.chaos.addresses)
        def before(sock):
            if dice.random() < 0.2:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with self.chaos.lab.connect(self.address, before=before, timeout=5) as peer:
            peer.socket.settimeout(8)
            act = dice.random()
            if act < 0.08:
                return self.noise(peer)
            if act < 0.16:
                return self.pipeline(peer)
            for _ in range(dice.randrange(1, 5)):
                if not self.exchange(peer):
                    return

    def draw(self):
        """A method, a Host and a target that says what has to come."""
        dice = self.dice
        target = f"/{dice.choice(SIZES)}?n={dice.randrange(12)}&c={dice.choice('slllnx')}&v={dice.choice('001')}"
        return dice.choices(["GET", "HEAD", "POST", "PUT", "DELETE", "BREW"], [30, 4, 5, 3, 1, 1])[0], \
            dice.choice(HOSTS), target

    def fields(self, method, host):
        dice, fields = self.dice, [("Host", host)]
        for chance, name, values in [(0.1, "Cache-Control", ["no-cache", "max-age=0", "no-store"]),
                (0.3, "X-Kind", ["cs", "en"]), (0.06, "If-None-Match", ['"1"', '"4096"', "*"]),
                (0.05, "Connection", ["close", "keep-alive, X-Kind", "X-Kind"]), (0.05, "Upgrade", ["x"]),
                (0.05, "Range", ["bytes=0-10", "bytes=5-", "bytes=-7", "bytes=99999999-"]), (0.05, "TE", ["trailers"])]:
            if dice.random() < chance:
                fields.append((name, dice.choice(values)))
        return fields

    def body(self, fields):
        """The request body as it goes out, its framing added to the fields."""
        data = bytes(self.dice.choice([0, 1, 5000, 200000]))
        if self.dice.random() < 0.3:
            fields.append(("Expect", "100-continue"))
        if self.dice.random() < 0.5:
            fields.append(("Content-Length", str(len(data))))
            return data
        fields.append(("Transfer-Encoding", "chunked"))
        step = self.dice.choice([1000, 30000])
        framed = chunked([data[i:i + step] for i in range(0, len(data), step)])
        return framed if self.dice.random() < 0.9 else framed[:len(framed) // 2] + b"ZZ\r\n"

    def exchange(self, peer):
        method, host, target = self.draw()
        fields, dice = self.fields(method, host), self.dice
        body = self.body(fields) if method in ("POST", "PUT") else b""
        form = target if dice.random() < 0.9 else f"http://{host}{target}"
        data = head_bytes(f"{method} {form} HTTP/1.1", fields) + body
        leave = dice.random()
        if leave < 0.08:
            peer.send(data[:dice.randrange(len(data))])
            return self.leave(peer)
        peer.send(data)
        if leave < 0.14:
            peer.read(1)
            time.sleep(dice.choice([0, 0.01, 0.2]))
            return self.leave(peer)
        if leave < 0.2:
            peer.half_close()
        return self.take(peer, method, host, target, fields) and leave >= 0.2

    def leave(self, peer):
        if self.dice.random() < 0.6:
            peer.reset()
        elif self.dice.random() < 0.5:
            peer.half_close()
            peer.read_to_end()
        return False

    def take(self, peer, method, host, target, fields=()):
        answer = peer.read_response(method)
        self.chaos.count()
        if method != "HEAD":
            self.chaos.judge(answer, self.address, host, target, fields)
        return answer.complete and answer.keeps_open and answer.status != 101

    def pipeline(self, peer):
        drawn = [("GET", *self.draw()[1:]) for _ in range(self.dice.randrange(2, 12))]
        peer.send(b"".join(head_bytes(f"GET {target} HTTP/1.1", [("Host", host)]) for _, host, target in drawn))
        for method, host, target in drawn:
            if self.dice.random() < 0.03:
                return self.leave(peer)
            if not self.take(peer, method, host, target):
                return False
        return False

    def noise(self, peer):
        dice = self.dice
        peer.send(dice.choice([b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", b"\x16\x03\x01" * 50,
            b"G", b"GET /1 HTTP/1.1\r\nHost: ads.example\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n\r\n\r\n\r\n",
            b"POST /1 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9999999999999999\r\n\r\n", b"A" * 70000,
            b"GET /1 HTTP/1.1\r\nHost: a.example\r\n" + b"X: y\r\n" * 3000, b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n"]))
        if dice.random() < 0.5:
            time.sleep(dice.choice([0, 0.3]))
            return self.leave(peer)
        return peer.read_to_end()


# The whole

class Chaos:
    def __init__(self, lab, daemon, dice, seconds):
        self.lab, self.daemon = lab, daemon
        self.addresses = [origin_address(lab.next_origin(), 4) for _ in range(4)]
        self.origins = [Origin(lab, address, dice) for address in self.addresses]
        self.lock, self.failures, self.answers, self.judged = threading.Lock(), [], 0, 0
        self.end = time.monotonic() + seconds

    def fail(self, what):
        with self.lock:
            self.failures.append(what)

    def count(self):
        with self.lock:
            self.answers += 1

    def judge(self, answer, address, host, target, fields):
        """Whether what looks whole is what belongs to this origin, name and target."""
        if not answer.complete or answer.status not in (200, 206, 416):
            return
        size = int(target[1:].split("?")[0])
        wanted = content(address, normal(host), variant(target, fields), size)
        if answer.status == 206:
            first, last, total = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.get("Content-Range")).groups())
            wanted = wanted[first:last + 1] if total in (size, size + 1) else None  # +1: as an origin announced
        ends_by_close = declared_framing(answer) is None
        with self.lock:
            self.judged += 1
        if answer.status in (200, 206) and answer.body != wanted and not ends_by_close:
            self.fail(f"{address} {host} {target}: {len(answer.body)} bytes that are not its {size}: {answer}")

    def disturb(self, dice):
        """Reloads, purges and looks at the counters while it goes on."""
        while time.monotonic() < self.end:
            time.sleep(0.3)
            self.daemon.command(*dice.choice([("stats",), ("reload",), ("reload",), ("purge", "--all"),
                ("purge", "--host", "a.example")]), check=False)


def run(binary_config, seconds, clients, seed, settle=12, workers=2):
    """Chaos in a lab of its own. Returns a sentence on what was done; raises when something is broken."""
    dice = random.Random(seed)
    with Lab() as lab:
        daemon = lab.weir(binary_config, workers=workers, ready=15)
        chaos = Chaos(lab, daemon, dice, seconds)
        descriptors = daemon.descriptors()
        threads = [Client(chaos, random.Random(dice.random())) for _ in range(clients)]
        for thread in threads:
            thread.start()
        chaos.disturb(dice)
        for thread in threads:
            thread.join(30)
        daemon.check_alive()
        wait_for(lambda: daemon.stats()["sessions_open"] == 0, settle, "the end of every session")
        wait_for(lambda: daemon.descriptors() <= descriptors + 4, settle,
            lambda: f"{descriptors} descriptors again (now {daemon.descriptors()})")
        cpu = daemon.cpu_seconds()
        time.sleep(1)
        assert daemon.cpu_seconds() - cpu < 0.3, "it spins without anything to do"
        counted = daemon.stats()["requests"]
        wait_for(lambda: len(daemon.entries()) == counted, 5,
            lambda: f"{counted} access lines (there are {len(daemon.entries())})")
        assert not chaos.failures, f"{len(chaos.failures)} with seed {seed}: {chaos.failures[:5]}"
        return f"{chaos.answers} answers, {chaos.judged} held against their content, {counted} requests, seed {seed}"


def config(mode="redirect"):
    return f"listen 3129 {mode}\n{DEFAULT_CONFIG}{CONFIG}"


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    print(run(config("redirect"), words[0] if words else 60, words[1] if words[1:] else 40,
        words[2] if words[2:] else int(time.time())))
