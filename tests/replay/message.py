"""HTTP/1.1 messages as the tests see them: a small parser that takes nothing for granted. What is not exactly as RFC
9112 has it is a ValueError."""
import re

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


class Message:
    """A head, and what is known of the body. `fields` is a list of (name, value), order and repeats kept."""

    def __init__(self, first, fields):
        self.first = first
        self.fields = fields
        self.body = b""
        self.complete = False   # the whole body is there, as its framing says
        self.trailers = []

    def all(self, name):
        return [value for one, value in self.fields if one.lower() == name.lower()]

    def get(self, name):
        """The field's lines joined, or None."""
        values = self.all(name)
        return ", ".join(values) if values else None


class Request(Message):
    def __init__(self, first, fields):
        super().__init__(first, fields)
        self.method, self.target, version = first.split(" ")
        if version != "HTTP/1.1":
            raise ValueError(f"request line {first!r}")


class Response(Message):
    def __init__(self, first, fields):
        super().__init__(first, fields)
        match = re.fullmatch(r"HTTP/1\.1 ([1-9]\d\d) (.*)", first)
        if not match:
            raise ValueError(f"status line {first!r}")
        self.status = int(match[1])
        self.interim = []       # the 1xx ones before it


def parse_head(data, kind):
    """(message, bytes it took), or None while the head is not whole."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = bytes(data[:end]).split(b"\r\n")
    return kind(lines[0].decode("latin-1"), parse_fields(lines[1:])), end + 4


def parse_fields(lines):
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.match(name) or b"\r" in value or b"\n" in value or b"\0" in value:
            raise ValueError(f"field line {line!r}")
        fields.append((name.decode(), value.strip(b" \t").decode("latin-1")))
    return fields


def parse_chunked(data):
    """(body, trailers, bytes it took, whole)."""
    body, at = bytearray(), 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return bytes(body), [], at, False
        size = re.fullmatch(rb"([0-9A-Fa-f]+)(?:[ \t]*;.*)?", data[at:end])
        if not size:
            raise ValueError(f"chunk size {bytes(data[at:end])!r}")
        length, at = int(size[1], 16), end + 2
        if length == 0:
            break
        body += data[at:at + length]
        if len(data) < at + length + 2:
            return bytes(body), [], at, False
        if data[at + length:at + length + 2] != b"\r\n":
            raise ValueError("a chunk does not end")
        at += length + 2
    if data[at:at + 2] == b"\r\n":
        return bytes(body), [], at + 2, True
    end = data.find(b"\r\n\r\n", at)
    if end < 0:
        return bytes(body), [], at, False
    return bytes(body), parse_fields(bytes(data[at:end]).split(b"\r\n")), end + 4, True


def take_body(message, data, until_end, over):
    """Fills in the body from `data`; the bytes it took. `until_end`: without framing it goes on to the connection's
    end; `over`: that end has come."""
    coding, lengths = message.get("Transfer-Encoding"), message.all("Content-Length")
    if coding is not None:
        if coding.lower() != "chunked" or lengths:
            raise ValueError(f"Transfer-Encoding {coding!r} with Content-Length {lengths}")
        message.body, message.trailers, taken, message.complete = parse_chunked(data)
        return taken
    if lengths:
        if len(lengths) > 1 or not lengths[0].isascii() or not lengths[0].isdigit():
            raise ValueError(f"Content-Length {lengths}")
        message.body = bytes(data[:int(lengths[0])])
        message.complete = len(message.body) == int(lengths[0])
    elif until_end:
        message.body, message.complete = bytes(data), over
    else:
        message.complete = True
    return len(message.body)


def parse_request(data):
    """(request, bytes it took); None while it is not whole."""
    found = parse_head(data, Request)
    if not found:
        return None
    request, taken = found
    taken += take_body(request, data[taken:], until_end=False, over=False)
    return (request, taken) if request.complete else None


def parse_response(data, method, closed=""):
    """(final response, bytes it took), complete or not; None while its head is not whole. `closed`: how the
    connection ended, if it did."""
    interim, taken = [], 0
    while True:
        found = parse_head(data[taken:], Response)
        if not found:
            return None
        response, length = found
        taken += length
        if response.status >= 200 or response.status == 101:
            break
        interim.append(response)
    response.interim = interim
    if method == "HEAD" or response.status in (101, 204, 304):
        response.complete = True
        return response, taken
    return response, taken + take_body(response, data[taken:], until_end=True, over=closed == "fin")
