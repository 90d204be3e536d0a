"""One end of a TCP connection for scripted clients and origins: exact bytes, and HTTP messages when wanted.

Deliberately not http.client: a test has to see interim responses, truncation, trailers and what came after a
message, and to send what no library would.
"""
import collections
import contextlib
import socket
import struct

TIMEOUT = 15  # seconds a peer waits for the other side before the test fails
Framing = collections.namedtuple("Framing", "kind length")


class Closed(Exception):
    """The other side ended the connection before what was asked for had come."""


class Message:
    """A request or a response. `complete` is False when the sender ended it early, `error` says how."""

    def __init__(self, start, fields):
        self.start = start
        self.fields = fields
        self.body = b""
        self.trailers = []
        self.chunk_lines = []
        self.interims = []
        self.complete = False
        self.error = None

    @property
    def status(self):
        return int(self.start.split(" ", 2)[1])

    @property
    def method(self):
        return self.start.split(" ")[0]

    @property
    def target(self):
        return self.start.split(" ")[1]

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name, default=None):
        return (self.all(name) or [default])[0]

    @property
    def cache(self):
        """What Cache-Status [RFC 9211] says of weir: "hit", "fwd=miss" ..., None without the field."""
        words = [word.strip() for word in (self.get("Cache-Status") or "").split(";")]
        return words[1] if len(words) > 1 else None

    @property
    def keeps_open(self):
        connection = ",".join(self.all("Connection")).lower()
        if "close" in connection:
            return False
        return "HTTP/1.1" in self.start or "keep-alive" in connection

    def __repr__(self):
        state = "whole" if self.complete else f"cut short ({self.error})"
        return f"<{self.start!r} {self.fields} {len(self.body)} bytes, {state}>"


def parse_head(head):
    lines = head.decode("latin-1").split("\r\n")
    fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if ":" in line]
    return Message(lines[0], fields)


def response_framing(message, method):
    if method == "HEAD" or message.status in (204, 304) or message.status < 200:
        return Framing("none", 0)
    if method == "CONNECT" and message.status == 200:
        return Framing("none", 0)
    return declared_framing(message) or Framing("close", 0)


def declared_framing(message):
    if message.get("Transfer-Encoding"):
        return Framing("chunked", 0)
    if message.get("Content-Length") is not None:
        return Framing("length", int(message.get("Content-Length").split(",")[0]))
    return None


class Peer:
    def __init__(self, sock):
        self.socket = sock
        self.socket.settimeout(TIMEOUT)
        self.buffer = bytearray()
        self.address = None
        with contextlib.suppress(OSError, IndexError):
            self.address = sock.getpeername()[0].replace("::ffff:", "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Sending

    def send(self, data):
        self.socket.sendall(data)
        return self

    def request(self, method, target, fields=(), body=b"", version="HTTP/1.1"):
        """Sends a request; Content-Length is added when there is a body and no framing is given."""
        fields = list(fields.items() if isinstance(fields, dict) else fields)
        names = {name.lower() for name, _ in fields}
        if body and not names & {"content-length", "transfer-encoding"}:
            fields.append(("Content-Length", str(len(body))))
        return self.send(head_bytes(f"{method} {target} {version}", fields) + body)

    def respond(self, status, fields=(), body=b"", version="HTTP/1.1"):
        return self.send(head_bytes(f"{version} {status}", fields) + body)

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()

    def abort_waiting(self):
        """Wakes whoever reads this socket in another thread."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    # Receiving

    def more(self):
        """Reads what there is into the buffer; False at the end of the stream."""
        data = self.socket.recv(262144)
        self.buffer += data
        return bool(data)

    def take(self, count):
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def read(self, count):
        while len(self.buffer) < count:
            if not self.more():
                raise Closed(f"end of stream after {len(self.buffer)} of {count} bytes")
        return self.take(count)

    def read_until(self, mark):
        start = 0
        while (place := self.buffer.find(mark, start)) < 0:
            start = max(0, len(self.buffer) - len(mark))
            if not self.more():
                raise Closed(f"end of stream before {mark!r}: {bytes(self.buffer[:200])!r}")
        return self.take(place + len(mark))

    def read_to_end(self):
        while self.more():
            pass
        return self.take(len(self.buffer))

    def ends(self):
        """True when the other side has closed (or reset) and nothing is left; reads on to find out."""
        try:
            return not self.buffer and not self.more()
        except ConnectionResetError:
            return True

    def read_request(self):
        """The next request with its body, None when the client has closed."""
        message = self.read_request_head()
        if message:
            self.read_body(message, declared_framing(message) or Framing("none", 0))
        return message

    def read_request_head(self):
        if not self.buffer and not self.more():
            return None
        return parse_head(self.read_until(b"\r\n\r\n")[:-4])

    def read_response(self, method="GET"):
        """The final response, the interim ones in .interims. Raises Closed when not even a head came."""
        interims = []
        while True:
            message = parse_head(self.read_until(b"\r\n\r\n")[:-4])
            if message.status >= 200 or message.status == 101:
                break
            interims.append(message)
        message.interims = interims
        self.read_body(message, response_framing(message, method))
        return message

    def read_body(self, message, framing):
        try:
            getattr(self, "_body_" + framing.kind)(message, framing.length)
            message.complete = True
        except (Closed, ConnectionResetError) as error:
            message.error = error
            message.body += self.take(len(self.buffer))
        return message

    def _body_none(self, message, _):
        pass

    def _body_length(self, message, length):
        message.body = self.read(length)

    def _body_close(self, message, _):
        message.body = self.read_to_end()

    def _body_chunked(self, message, _):
        parts = []
        try:
            while size := self._chunk_size(message):
                parts.append(self.read(size))
                assert self.read(2) == b"\r\n", "a chunk is not followed by CRLF"
        finally:
            message.body = b"".join(parts)
        while (line := self.read_until(b"\r\n")[:-2]):
            message.trailers.append(tuple(part.strip() for part in line.decode("latin-1").split(":", 1)))

    def _chunk_size(self, message):
        line = self.read_until(b"\r\n")[:-2].decode("latin-1")
        message.chunk_lines.append(line)
        return int(line.split(";")[0], 16)


def head_bytes(start, fields):
    fields = fields.items() if isinstance(fields, dict) else fields
    return "".join([start, "\r\n", *(f"{name}: {value}\r\n" for name, value in fields), "\r\n"]).encode("latin-1")


def chunked(parts, extension="", trailers=()):
    """The chunked form of some byte strings."""
    data = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension.encode(), part) for part in parts)
    return data + b"0\r\n" + b"".join(f"{n}: {v}\r\n".encode() for n, v in trailers) + b"\r\n"
