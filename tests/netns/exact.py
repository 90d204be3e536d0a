"""An origin whose every byte follows from name, version and offset, and what it was asked and how much it sent.

    origin = Exact(namespace, address)
    thing = origin.add("/image", 64 << 20, rate=8 << 20)
    ... thing.version = 2 ... thing.sent, thing.asked
"""
import email.utils
import functools
import hashlib
import itertools
import re
import threading
import time
import urllib.parse

from origin import Service, wait_sent
from peer import Framing, declared_framing, head_bytes

MIB = 1 << 20
BLOCK = 65536
PIECE = 65536
NAMES = itertools.count()


@functools.lru_cache(2048)
def block(name, version, number):
    return hashlib.shake_128(f"{name} {version} {number}".encode()).digest(BLOCK)


def content(name, version, first, count):
    """The bytes first ... first + count - 1 of this version."""
    if count <= 0:
        return b""
    numbers = range(first // BLOCK, (first + count - 1) // BLOCK + 1)
    data = b"".join(block(name, version, number) for number in numbers)
    return data[first % BLOCK:first % BLOCK + count]


class Thing:
    """What lies under one path. The attributes may be changed while it is served; a response keeps to what it began with.

    etag: "strong", "weak" or None. rate: bytes a second. breaks: after how many bytes of content each of the next
    responses is reset (None: not at all). held: no head before held.set().
    """

    def __init__(self, path, size, etag="strong", modified=None, ranges=True, says_ranges=True, rate=None, delay=0,
            control="max-age=3600", breaks=(), tight=True):
        self.path, self.size, self.etag, self.modified = path, size, etag, modified
        self.ranges, self.says_ranges, self.rate, self.delay, self.control = ranges, says_ranges, rate, delay, control
        self.breaks, self.tight = list(breaks), tight
        self.name = f"{path} {next(NAMES)}"
        self.version = 1
        self.held = threading.Event()
        self.held.set()
        self.lock = threading.Lock()
        self.forget()

    def forget(self):
        """Counts from nought."""
        with self.lock:
            self.requests = []  # as they came
            self.sent = 0       # bytes of content, all responses together
            self.running = self.most_at_once = 0

    @property
    def asked(self):
        """(Range, If-Range) of each request for content."""
        return [(one.get("Range"), one.get("If-Range")) for one in self.requests if one.method == "GET"]

    @property
    def tag(self):
        return self.tag_of(self.version)

    def tag_of(self, version):
        return {"strong": f'"v{version}"', "weak": f'W/"v{version}"', None: None}[self.etag]

    def content(self, first=0, count=None, version=None):
        return content(self.name, version or self.version, first, self.size - first if count is None else count)

    def fields(self):
        fields = {"Date": email.utils.formatdate(usegmt=True), "Content-Type": "application/octet-stream",
            "Cache-Control": self.control, "ETag": self.tag, "Last-Modified": self.modified,
            "Accept-Ranges": "bytes" if self.says_ranges else None}
        return {name: value for name, value in fields.items() if value is not None}

    def wanted(self, request):
        """(first, end) of the one range that counts, None for the whole, an empty one for what does not exist."""
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", request.get("Range", ""))
        if_range = request.get("If-Range")
        fits = if_range is None or if_range in (self.tag if self.etag == "strong" else "", self.modified)
        if not self.ranges or not found or not fits or found[0] == "bytes=-":
            return None
        first, last = found.groups()
        if not first:
            return max(0, self.size - int(last)), self.size
        return int(first), min(int(last or self.size) + 1, self.size)

    def answer(self, peer, request):
        """True when the connection may take another request."""
        with self.lock:
            self.requests.append(request)
            self.running += 1
            self.most_at_once = max(self.most_at_once, self.running)
            break_at = self.breaks.pop(0) if self.breaks else None
        try:
            time.sleep(self.delay)
            self.held.wait(30)
            return self._respond(peer, request, break_at)
        finally:
            with self.lock:
                self.running -= 1

    def _respond(self, peer, request, break_at):
        version, fields, wanted = self.version, self.fields(), self.wanted(request)
        if self.tag and request.get("If-None-Match", "").strip() in (self.tag, "*"):
            peer.respond("304 Not Modified", fields)
            return True
        if wanted and wanted[0] >= wanted[1]:
            peer.respond("416 Range Not Satisfiable", {**fields, "Content-Range": f"bytes */{self.size}", "Content-Length": 0})
            return True
        first, end = wanted or (0, self.size)
        if wanted:
            fields["Content-Range"] = f"bytes {first}-{end - 1}/{self.size}"
        fields["Content-Length"] = end - first
        head = head_bytes(f"HTTP/1.1 {'206 Partial Content' if wanted else '200 OK'}", fields)
        if request.method == "HEAD" or first == end:
            peer.send(head)
            return True
        return self._send(peer, head, version, first, end, break_at)

    def _send(self, peer, head, version, first, end, break_at):
        begin = time.monotonic()
        for at in range(first, end, PIECE):
            if break_at is not None and at - first >= break_at:
                wait_sent(peer)
                peer.reset()
                return False
            count = min(PIECE, end - at)
            peer.send(head + content(self.name, version, at, count))
            head = b""
            with self.lock:
                self.sent += count
            if self.rate:
                time.sleep(max(0, begin + (at + count - first) / self.rate - time.monotonic()))
        return True


class Exact(Service):
    """Things by path; a host has no say in it."""

    def __init__(self, namespace, address, port=80):
        self.things = {}
        super().__init__(namespace, address, self.serve, port)

    def add(self, path, size, **how):
        self.things[path] = Thing(path, size, **how)
        return self.things[path]

    def serve(self, peer, _):
        while (request := peer.read_request_head()) and request.start:
            peer.read_body(request, declared_framing(request) or Framing("none", 0))
            thing = self.things.get(urllib.parse.urlsplit(request.target).path)
            if not thing:
                peer.respond("404 Not Found", {"Content-Length": 0})
                continue
            if thing.tight:
                peer.socket.setsockopt(1, 7, 131072)  # SO_SNDBUF: what was sent is what was taken, about
            if not thing.answer(peer, request) or not request.keeps_open:
                return

    def close(self):
        for thing in self.things.values():
            thing.held.set()
        super().close()
