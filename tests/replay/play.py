"""Requests and answers on top of replay.py: what a script about caching wants to say.

    with Play() as play:
        first = play.exchange(ask("/a"), reply(200, "hello", cache_control="max-age=60"))
        play.advance(30)
        again = play.exchange(ask("/a"))          # no answer: the origin must not be asked
        assert again.age == 30 and again.seen is None

Field names are given as keywords (`cache_control=`) or as pairs in `fields=[("Cache-Control", "...")]`; a value that is
a list makes several lines. A reply has a Date of now unless told otherwise, and a Content-Length.
"""
import email.utils

from message import parse_request, parse_response
from replay import Replay

REASONS = {200: "OK", 204: "No Content", 206: "Partial Content", 304: "Not Modified", 404: "Not Found"}
HOST = "example.com"
DESTINATION = "192.0.2.1:80"


def pairs_of(fields, named):
    pairs = list(fields)
    for name, value in named.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                pairs.append(("-".join(part.capitalize() for part in name.split("_")), one))
    return pairs


def octets(text):
    return text if isinstance(text, bytes) else text.encode("latin-1")


class At:
    """A moment relative to the wall clock at the time of sending, for date fields."""

    def __init__(self, seconds=0):
        self.seconds = seconds

    def text(self, wall):
        return email.utils.formatdate(wall + self.seconds, usegmt=True)


def head_bytes(first, pairs, wall):
    lines = [first] + [f"{name}: {value.text(wall) if isinstance(value, At) else value}" for name, value in pairs]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


class ask:
    """A request to be."""

    def __init__(self, target="/", method="GET", body=None, fields=(), host=HOST, to=DESTINATION, client="10.0.0.5",
            **named):
        self.target, self.method, self.host, self.to, self.client = target, method, host, to, client
        self.body = None if body is None else octets(body)
        self.pairs = pairs_of(fields, named)

    def bytes(self, wall):
        pairs = [("Host", self.host)] + self.pairs
        if self.body is not None:
            pairs.append(("Content-Length", str(len(self.body))))
        return head_bytes(f"{self.method} {self.target} HTTP/1.1", pairs, wall) + (self.body or b"")


class reply:
    """A response to be. `date`: an At, text, or None for no Date. `length`: what Content-Length says, None for none;
    `chunked`: framed so. `sends`: only so many bytes of the content go out. `end`: "" (the connection stays open),
    "close" or "reset" after it. `before`: interim responses, as bytes."""

    def __init__(self, status=200, body="", fields=(), date=At(), length=..., chunked=False, sends=None, end="",
            before=b"", **named):
        self.status, self.body, self.date = status, octets(body), date
        self.pairs = pairs_of(fields, named)
        self.length, self.chunked, self.sends, self.end, self.before = length, chunked, sends, end, before

    def bytes(self, wall, method="GET"):
        pairs = list(self.pairs)
        if self.date is not None:
            pairs.append(("Date", self.date))
        bodiless = method == "HEAD" or self.status in (204, 304)
        length = self.length
        if length is ...:
            length = None if self.chunked or self.status in (204, 304) else len(self.body)
        if length is not None:
            pairs.append(("Content-Length", length))
        if self.chunked:
            pairs.append(("Transfer-Encoding", "chunked"))
        first = f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Whatever')}"
        content = b"" if bodiless else self.body if self.sends is None else self.body[:self.sends]
        if self.chunked and not bodiless:
            whole = self.sends is None
            content = (b"%x\r\n%s\r\n" % (len(content), content) if content else b"") + (b"0\r\n\r\n" if whole else b"")
        return self.before + head_bytes(first, pairs, wall) + content


DROP = reply(200, end="drop")  # the connection closes without a word
RESET = reply(200, end="reset-at-once")


class Seen:
    """A request that reached an origin."""

    def __init__(self, play, connection, request):
        self.play, self.connection, self.request = play, connection, request
        self.destination = connection.destination
        self.method, self.target, self.fields, self.body = (request.method, request.target, request.fields,
            request.body)
        self.get, self.all = request.get, request.all

    def __repr__(self):
        return f"<{self.request.first} to {self.destination}: {self.fields}>"

    def answer(self, answer):
        """Sends a reply, or bytes; nothing runs until somebody looks."""
        if isinstance(answer, bytes):
            self.connection.send(answer)
            return
        if answer.end not in ("drop", "reset-at-once"):
            self.connection.send(answer.bytes(self.play.wall, self.method))
        if answer.end in ("close", "drop"):
            self.connection.close()
        elif answer.end:
            self.play.settle()  # what was sent is read before the reset
            self.connection.reset()


class Client:
    """A client's connection and what it has asked."""

    def __init__(self, play, to=DESTINATION, address="10.0.0.5"):
        self.play = play
        self.connection = play.replay.connect(to, address)
        self.asked = []    # methods, of those without a whole response yet
        self.parsed = 0

    def send(self, request):
        self.asked.append(request.method)
        self.connection.send(request.bytes(self.play.wall))
        return self

    @property
    def partial(self):
        """The current response, whole or not; None without a head."""
        data, closed = self.connection.received, self.connection.closed
        found = parse_response(data[self.parsed:], self.asked[0], closed) if self.asked else None
        return found and found[0]

    def take(self):
        """The next whole response, or None."""
        data, closed = self.connection.received, self.connection.closed
        found = parse_response(data[self.parsed:], self.asked[0], closed) if self.asked else None
        if not found or not found[0].complete:
            return None
        self.parsed += found[1]
        self.asked.pop(0)
        return found[0]

    @property
    def closed(self):
        return self.connection.closed

    def close(self):
        self.connection.close()

    def reset(self):
        self.connection.reset()


class Got:
    """What came of an exchange: the response, what the origin saw, what the log says."""

    def __init__(self, response, closed, seen, log):
        self.response, self.closed, self.all_seen, self.log = response, closed, seen, log
        self.seen = seen[0] if seen else None
        self.result = log[0]["result"] if log else None
        self.reason = log[0]["reason"] if log else None
        if response:
            self.status, self.fields, self.body, self.complete = (response.status, response.fields, response.body,
                response.complete)
            self.interim, self.get, self.all = response.interim, response.get, response.all
        else:
            self.status, self.fields, self.body, self.complete, self.interim = None, [], b"", False, []

    @property
    def age(self):
        """Age as a number; None without one."""
        lines = [value for name, value in self.fields if name.lower() == "age"]
        assert len(lines) <= 1, f"several Age lines: {lines}"
        return int(lines[0]) if lines else None

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:80]!r} seen={self.all_seen} {self.result}/{self.reason}>"


class Play:
    """A replay, its origins' connections, and the requests that arrive on them."""

    def __init__(self, config="cache_mem 16M\n"):
        self.replay = Replay(config)
        self.advance, self.step_wall, self.settle = (self.replay.advance, self.replay.step_wall, self.replay.settle)
        self.cut, self.mend, self.refuse_next = self.replay.cut, self.replay.mend, self.replay.refuse_next
        self.reload = self.replay.reload
        self._origins = []   # [connection, bytes parsed]

    def __enter__(self):
        self.replay.__enter__()
        return self

    def __exit__(self, *error):
        return self.replay.__exit__(*error)

    @property
    def wall(self):
        self.replay.look()
        return self.replay.wall

    @property
    def log(self):
        return self.replay.log

    def client(self, to=DESTINATION, address="10.0.0.5"):
        return Client(self, to, address)

    def start(self, request):
        """A client of its own that has sent this request."""
        return self.client(request.to, request.client).send(request)

    def arrived(self):
        """The next request that has reached an origin, on whatever connection, or None."""
        while connection := self.replay.accept():
            self._origins.append([connection, 0])
        for origin in self._origins:
            found = parse_request(origin[0].received[origin[1]:])
            if found:
                origin[1] += found[1]
                return Seen(self, origin[0], found[0])
        return None

    def arrived_all(self):
        return list(iter(self.arrived, None))

    def exchange(self, request, answer=None, client=None):
        """One request. Whatever reaches an origin meanwhile gets `answer`: a reply, bytes, a function of what was seen,
        or a list of these, one for each. Without one the origin must not be asked. `client`: an open connection."""
        answers = list(answer) if isinstance(answer, list) else None
        logged = len(self.log)
        own = client is None
        client = self.start(request) if own else client.send(request)
        seen = []
        while arrived := self.arrived():
            seen.append(arrived)
            one = answers.pop(0) if answers else None if answers is not None else answer
            one = one(arrived) if callable(one) else one
            assert one is not None, f"the origin was asked: {arrived}"
            arrived.answer(one)
        response = client.take() or client.partial
        closed = client.closed
        if own:
            client.close()
            self.settle()
        return Got(response, closed, seen, self.log[logged:])
