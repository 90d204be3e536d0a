"""Scripted origins. A Service listens on one address and runs a handler in a thread for each connection; Http is
the handler that behaves as the path says.

    /static/N        N bytes of a fixed pattern, ETag, Last-Modified, max-age=3600; ranges, conditions, HEAD
    /chunked/N       chunked with extensions and a trailer          /close/N      until close
    /held/N          half of the body, the rest once release(target) is called
    /late/N          nothing at all before that
    /stall-head      never answers                                  /stall-body/N half of the body, then nothing
    /truncate/N      half of a Content-Length body, then FIN        /truncate-reset/N     ... then RST
    /truncate-chunked/N   no last chunk, then FIN                   /surplus      bytes after a complete response
    /reset           RST instead of an answer                       /status/CODE  that status, with a short body
    /204 /304        without a body                                 /interim      100, 102, 103, then 200
    /expect-delay    100 once released, then as /echo               /expect-refuse/CODE   refuses, reads nothing
    /echo            the request as JSON                            /early-final  answers, then reads the upload
    /websocket       101 with bytes in the same segment, then an echo

Query: h=Name:Value (repeatable) adds or replaces a response field, d=Name drops one, etag=WORD changes the ETag.
"""
import collections
import contextlib
import email.utils
import hashlib
import json
import socket
import threading
import time
import urllib.parse

from peer import Closed, Framing, Peer, chunked, declared_framing, head_bytes

PATTERN = hashlib.shake_256(b"weir").digest(65521)  # a prime length, so that no offset looks like another
MODIFIED = email.utils.formatdate(1_700_000_000, usegmt=True)
WEBSOCKET_HELLO = b"\x81\x05hello"


def pattern(count, start=0):
    start %= len(PATTERN)
    copies = (start + count) // len(PATTERN) + 1
    return (PATTERN * copies)[start:start + count]


class Service:
    """A listening socket in `namespace`. `handler(peer, service)` gets each connection."""

    def __init__(self, namespace, address, handler, port=80, backlog=512):
        self.address, self.port, self.handler = address, port, handler
        self.lock = threading.Lock()
        self.peers = []          # every connection, in order of arrival
        self.failures = []       # what went wrong in a handler, for the test to see
        self.socket = namespace.socket(6 if ":" in address else 4)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        self.socket.listen(backlog)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(sock)
            with self.lock:
                self.peers.append(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        with peer:
            try:
                self.handler(peer, self)
            except (Closed, OSError):
                pass                    # the other side went away: for the test to judge by what it saw
            except Exception as error:  # a bug of the script: kept, so that the test can say it
                self.failures.append(error)

    @property
    def connections(self):
        return len(self.peers)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for peer in list(self.peers):
            peer.abort_waiting()


class Http(Service):
    """The origin that behaves as the path says. Counts requests by target."""

    def __init__(self, namespace, address, port=80):
        self.requests = []       # every request, its .peer and .connection (a number) added
        self.released = collections.defaultdict(threading.Event)
        super().__init__(namespace, address, self.serve, port)

    def seen(self, target):
        """The requests whose target ends with this (a path, however the target was written)."""
        with self.lock:
            return [request for request in self.requests if request.target.endswith(target)]

    def count(self, target):
        return len(self.seen(target))

    def release(self, target):
        self.released[target].set()

    def wait_released(self, target):
        if not self.released[target].wait(20):
            raise AssertionError(f"{target} was never released")

    def close(self):
        for event in list(self.released.values()):
            event.set()
        super().close()

    def serve(self, peer, _):
        number = self.connections
        while (request := peer.read_request_head()) and request.start:
            request.peer, request.connection = peer.address, number
            with self.lock:
                self.requests.append(request)
            if not self.answer(peer, request) or not request.keeps_open:
                return

    def answer(self, peer, request):
        """True when the connection may take another request."""
        parts = urllib.parse.urlsplit(request.target)
        words = parts.path.strip("/").split("/")
        page = Page(self, peer, request, urllib.parse.parse_qs(parts.query), words[1:])
        behaviour = getattr(page, "do_" + words[0].replace("-", "_"), page.do_missing)
        return behaviour() is not CLOSE


CLOSE = "close"


class Page:
    """One request and what its path makes of it."""

    def __init__(self, origin, peer, request, query, words):
        self.origin, self.peer, self.request = origin, peer, request
        self.query, self.words = query, words
        self.size = int(words[0]) if words and words[0].isdigit() else 0

    def fields(self, **standard):
        fields = {name.replace("_", "-"): value for name, value in standard.items()}
        fields.setdefault("Date", email.utils.formatdate(usegmt=True))
        for one in self.query.get("h", []):
            name, value = one.split(":", 1)
            fields = {k: v for k, v in fields.items() if k.lower() != name.lower()}
            fields[name] = value
        dropped = {name.lower() for name in self.query.get("d", [])}
        return {name: value for name, value in fields.items() if name.lower() not in dropped}

    def cacheable(self, **more):
        etag = self.query.get("etag", [f"s-{self.size}"])[0]
        return self.fields(ETag=f'"{etag}"', Last_Modified=MODIFIED, Cache_Control="max-age=3600",
                Content_Type="application/octet-stream", **more)

    def read_body(self):
        framing = declared_framing(self.request) or Framing("none", 0)
        return self.peer.read_body(self.request, framing).body

    def respond(self, status, fields, body=b""):
        self.read_body()
        self.finish(status, fields, body)

    def finish(self, status, fields, body=b""):
        self.peer.respond(status, fields, b"" if self.request.method == "HEAD" else body)

    # Well behaved

    def do_static(self):
        fields = self.cacheable(Accept_Ranges="bytes")
        if self.not_modified(fields):
            return self.respond("304 Not Modified", fields)
        first, last = self.range(fields)
        if (first, last) != (0, self.size - 1) or self.size and self.wants_range(fields):
            fields["Content-Range"] = f"bytes {first}-{last}/{self.size}"
            status = "206 Partial Content"
        else:
            status = "200 OK"
        fields["Content-Length"] = last - first + 1
        self.read_body()
        self.send_pieces(status, fields, first, last + 1)

    def send_pieces(self, status, fields, first, end):
        """The head along with the first megabyte, the rest as the other side takes it."""
        pieces = range(first, end if self.request.method != "HEAD" else first, 1 << 20)
        head = head_bytes(f"HTTP/1.1 {status}", fields)
        for start in pieces:
            self.peer.send(head + self.content(start, min(1 << 20, end - start)))
            head = b""
        if head:
            self.peer.send(head)

    def content(self, first, count):
        return pattern(count, first)

    def not_modified(self, fields):
        none_match = self.request.get("If-None-Match")
        if none_match is not None:
            return none_match.strip() in ("*", fields.get("ETag"))
        return self.request.get("If-Modified-Since") == fields.get("Last-Modified", "")

    def wants_range(self, fields):
        if_range = self.request.get("If-Range")
        return self.request.get("Range", "").startswith("bytes=") and (
            if_range is None or if_range in (fields.get("ETag"), fields.get("Last-Modified")))

    def range(self, fields):
        if not self.size or not self.wants_range(fields):
            return 0, self.size - 1
        first, last = self.request.get("Range")[6:].split(",")[0].split("-")
        if not first:
            return max(0, self.size - int(last)), self.size - 1
        return int(first), min(int(last or self.size), self.size - 1)

    def do_chunked(self):
        fields = self.cacheable(Transfer_Encoding="chunked", Trailer="X-Sum")
        body = pattern(self.size)
        parts = [body[start:start + 1000] for start in range(0, self.size, 1000)]
        self.respond("200 OK", fields, chunked(parts, ';name="a;b"', [("X-Sum", "42")]))

    def do_close(self):
        fields = self.cacheable(Connection="close")
        self.respond("200 OK", fields, pattern(self.size))
        return CLOSE

    def do_held(self):
        half = self.size // 2
        self.respond("200 OK", self.cacheable(Content_Length=self.size), pattern(half))
        self.origin.wait_released(self.request.target)
        self.peer.send(pattern(self.size - half, half))

    def do_late(self):
        self.read_body()
        self.origin.wait_released(self.request.target)
        self.finish("200 OK", self.cacheable(Content_Length=self.size), pattern(self.size))

    def do_status(self):
        body = f"status {self.size}\n".encode()
        self.respond(f"{self.size} Scripted", self.fields(Content_Length=len(body)), body)

    def do_204(self):
        self.respond("204 No Content", self.fields())

    def do_304(self):
        self.respond("304 Not Modified", self.fields(ETag='"x"', Content_Length=100))

    def do_interim(self):
        self.read_body()
        for status, fields in (("100 Continue", {}), ("102 Processing", {}),
                ("103 Early Hints", {"Link": "</style.css>; rel=preload"})):
            self.peer.respond(status, fields)
        self.finish("200 OK", self.fields(Content_Length=5), b"final")

    def do_expect_delay(self):
        self.origin.wait_released(self.request.target)
        self.peer.respond("100 Continue")
        return self.do_echo()

    def do_expect_refuse(self):
        self.finish(f"{self.size} Refused", self.fields(Content_Length=7, Connection="close"), b"refused")
        drain(self.peer)
        return CLOSE

    def do_echo(self):
        body = self.read_body()
        report = {"start": self.request.start, "fields": self.request.fields, "length": len(body),
            "sha256": hashlib.sha256(body).hexdigest(), "client": self.request.peer,
            "chunks": self.request.chunk_lines, "trailers": self.request.trailers}
        text = json.dumps(report).encode()
        self.finish("200 OK", self.fields(Content_Length=len(text), Cache_Control="no-store"), text)

    def do_early_final(self):
        self.finish("200 OK", self.fields(Content_Length=5, Cache_Control="no-store"), b"early")
        self.read_body()

    def do_websocket(self):
        self.peer.send(head_bytes("HTTP/1.1 101 Switching Protocols",
            {"Upgrade": "websocket", "Connection": "Upgrade"}) + WEBSOCKET_HELLO)
        echo(self.peer)
        return CLOSE

    def do_missing(self):
        self.respond("404 Not Found", self.fields(Content_Length=9), b"no such p")

    # Badly behaved

    def do_stall_head(self):
        self.read_body()
        drain(self.peer)
        return CLOSE

    def do_stall_body(self):
        self.respond("200 OK", self.cacheable(Content_Length=self.size), pattern(self.size // 2))
        drain(self.peer)
        return CLOSE

    def do_truncate(self):
        self.respond("200 OK", self.cacheable(Content_Length=self.size), pattern(self.size // 2))
        return CLOSE

    def do_truncate_reset(self):
        self.do_truncate()
        wait_sent(self.peer)
        self.peer.reset()
        return CLOSE

    def do_truncate_chunked(self):
        self.respond("200 OK", self.cacheable(Transfer_Encoding="chunked"),
            b"%x\r\n" % self.size + pattern(self.size) + b"\r\n")
        return CLOSE

    def do_surplus(self):
        self.respond("200 OK", self.cacheable(Content_Length=5),
            b"whole" + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")

    def do_reset(self):
        self.peer.reset()
        return CLOSE


def wait_sent(peer):
    """Until the other side has acknowledged everything (SIOCOUTQ), so that a reset takes nothing with it."""
    import fcntl
    import struct
    end = time.monotonic() + 5
    while struct.unpack("i", fcntl.ioctl(peer.socket, 0x5411, b"\0" * 4))[0] and time.monotonic() < end:
        time.sleep(0.001)


def drain(peer):
    """Reads and drops until the other side closes."""
    with contextlib.suppress(ConnectionResetError):
        while peer.more():
            peer.buffer.clear()


# Handlers for origins that are not HTTP

def echo(peer, _=None):
    """Sends everything back as it comes; closes its half when the other side has closed its own."""
    while True:
        if peer.buffer:
            peer.send(peer.take(len(peer.buffer)))
        if not peer.more():
            peer.half_close()
            return


def speaks_first(banner):
    """SSH, SMTP and their like: a banner before the client says anything, then an echo."""
    def handler(peer, _):
        peer.send(banner)
        echo(peer)
    return handler


def collect_then_answer(answer):
    """Reads until the client has closed its half, then answers and closes: keeps `peer.collected`."""
    def handler(peer, _):
        peer.collected = peer.read_to_end()
        peer.send(answer)
        peer.half_close()
    return handler


def answer_then_collect(answer):
    """Sends and closes its half at once, then goes on reading: keeps `peer.collected`."""
    def handler(peer, _):
        peer.send(answer)
        peer.half_close()
        peer.collected = peer.read_to_end()
    return handler


def raw(*script):
    """Plays a script and keeps what came in as `peer.collected`: bytes are sent after the next request head
    has come, "close" ends the connection, "reset" does so with RST. Reads on at the end of the script."""
    def handler(peer, _):
        peer.collected = bytearray()
        for step in script:
            if step == "close":
                return
            if step == "reset":
                wait_sent(peer)
                peer.reset()
                return
            peer.collected += peer.read_until(b"\r\n\r\n")
            peer.send(step)
        while peer.buffer or peer.more():
            peer.collected += peer.take(len(peer.buffer))
    return handler
