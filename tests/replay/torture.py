"""Many clients and a treacherous origin at once, all from a seed: nothing is predicted, but every octet is known. A body
is a function of its URL, version, variant and, where a response is for one client alone, that client; the head says
which, so whoever gets an octet of another body, in whatever range, sees it. Versions change at any moment, content comes
in pieces, breaks off at any octet, tells lies about its range and its length; the store is small and is purged, resized
and reloaded; clients come in crowds, read slowly and leave. The origin keeps its word in one thing: a strong validator,
or a date that is strong, is of one body.

    run(seed, steps) raises Wrong, or ReplayError.
"""
import email.utils
import random
import re

from message import parse_request, parse_response
from replay import Replay, ReplayError

CONFIGS = ["cache_mem 192K\n", "cache_mem 512K\n", "cache_mem 4M\n", "cache_mem 300K\nmaximum_object_size 30K\n",
    "cache_mem 512K\nminimum_object_size 100\n", "cache_mem 1M\n",
    "cache_mem 512K\nrefresh_pattern . 0 50% 100 store-stale reload-into-ims\n"]
SLACK_BYTES = 1536 << 10  # over cache_mem: what is read or arrives and cannot be dropped, heads of requests
SIZES = [0, 1, 2, 15, 100, 1000, 9000, 16384, 16385, 40000, 70000, 140000]
CONTROLS = ["max-age=60", "max-age=2", "max-age=0", "no-cache", "max-age=1, stale-while-revalidate=30", "max-age=0, "
    "stale-while-revalidate=30", "max-age=1, stale-if-error=30", "max-age=5, must-revalidate", "s-maxage=3", None, None]
KINDS = ["plain", "strong", "weak", "date", "vary", "private", "mixed"]
BLOCK = 16


class Wrong(Exception):
    """Octets, or a response, that must not have come."""


def content(url, version, variant, owner, size):
    """Every block of BLOCK octets says where it belongs."""
    blocks = b"".join(b"%02x%05x%x%03x%04x\n" % (url, version, variant, owner, i) for i in range(size // BLOCK + 1))
    return blocks[:size]


class Url:
    """What stands at an URL now."""

    def __init__(self, number, dice):
        self.number, self.dice = number, dice
        self.path = f"/u{number}"
        self.kind = KINDS[number % len(KINDS)]
        self.version = 0
        self.change(0)

    def change(self, now):
        """Another body. Its date is of this second."""
        self.version += 1
        self.modified = int(now)
        self.size = self.dice.choice(SIZES)
        self.control = self.dice.choice(CONTROLS)
        self.tag = {"strong": f'"{self.version}"', "vary": f'"{self.version}"', "weak": 'W/"same"'}.get(self.kind)
        if self.kind == "mixed":
            self.tag = self.dice.choice([f'"{self.version}"', f'W/"{self.version}"', None])
        self.dated = self.kind in ("date", "strong", "vary") or self.kind == "mixed" and self.dice.random() < .5


class Exchange:
    """A request of a client, on a connection of its own, and what is owed to it."""

    def __init__(self, connection, number, method, url, fields):
        self.connection, self.number, self.method, self.url, self.fields = connection, number, method, url, fields
        self.paused = False

    def get(self, name):
        return next((value for one, value in self.fields if one == name), None)


class Answer:
    """What an origin has still to send."""

    def __init__(self, connection, data, end):
        self.connection, self.data, self.end = connection, data, end


class Torture:
    def __init__(self, replay, dice, config):
        self.replay, self.dice, self.config = replay, dice, config
        self.start = replay.now
        self.urls = [Url(number, dice) for number in range(14)]
        self.exchanges, self.origins, self.answers = [], [], []
        self.clients = 0
        self.counts = {}

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    # ---- the origin ----

    @property
    def now(self):
        """Of the origin's clock, which nobody sets."""
        return 1767225600 + self.replay.now - self.start

    def date(self, second):
        return email.utils.formatdate(second, usegmt=True)

    def fields_of(self, url, variant, owner):
        fields = [("Date", self.date(int(self.now)))]
        if owner or url.control:
            fields.append(("Cache-Control", "private" if owner else url.control))
        if url.tag:
            fields.append(("ETag", url.tag if url.kind != "vary" else f'"{url.version}-{variant}"'))
        if url.dated:
            fields.append(("Last-Modified", self.date(url.modified)))
        if url.kind == "vary":
            fields.append(("Vary", "X-Variant"))
        return fields

    def is_confirmed(self, request, fields):
        told = dict(fields)
        tags, since = request.get("If-None-Match"), request.get("If-Modified-Since")
        if tags is not None:
            return "ETag" in told and told["ETag"].removeprefix("W/") in [one.strip().removeprefix("W/") for one in
                tags.split(",")]
        return since is not None and told.get("Last-Modified") == since

    def range_of(self, request, fields, size):
        """(first, last) of the one range that is given, None: the whole, () none can be."""
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.get("Range") or "")
        told, wanted = dict(fields), request.get("If-Range")
        if not match or not any(match.groups()):
            return None
        if wanted is not None:
            is_strong = told.get("ETag") == wanted and not wanted.startswith("W/")
            is_dated = told.get("Last-Modified") == wanted and told["Date"] != wanted
            if not (is_strong or is_dated):
                return None
        if not match[1]:
            first, last = max(0, size - int(match[2])), size - 1
        else:
            first, last = int(match[1]), min(int(match[2]) if match[2] else size, size - 1)
        return (first, last) if first <= last else ()

    def message(self, request, status, fields, body, announced=None):
        """Framed somehow. A 206 whose framing holds more than its range is a lie that must not get through."""
        framing = self.dice.choice(["length", "length", "chunked", "close"])
        end = ""
        if status in (204, 304) or request.method == "HEAD":
            framing, body = "none", b""
        lines = [f"HTTP/1.1 {status} X"] + [f"{name}: {value}" for name, value in fields]
        if framing == "length":
            lines.append(f"Content-Length: {len(body) if announced is None else announced}")
        if framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
            cut = self.dice.randint(0, len(body))
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:cut], body[cut:]) if part) + b"0\r\n\r\n"
        if framing == "close":
            end = "close"
            lines.append("Connection: close")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body, end

    def compose(self, request):
        dice, number = self.dice, int(re.sub(r"\D", "", request.target) or 0)
        url = self.urls[number % len(self.urls)]
        if dice.random() < .05:
            url.change(self.now)
        variant = len(request.get("X-Variant") or "") if url.kind == "vary" else 0
        owner = int(request.get("X-Client") or 0) if url.kind == "private" and dice.random() < .5 else 0
        fields = self.fields_of(url, variant, owner)
        told = [("X-Body", f"{url.number} {url.version} {variant} {owner} {url.size}")]
        if dice.random() < .05:
            return self.message(request, dice.choice([500, 503, 404]), told + fields[:1], b"trouble")
        if self.is_confirmed(request, fields):
            return self.message(request, 304, fields if dice.random() < .9 else fields[:1], b"")
        if request.get("If-None-Match") and url.tag and dice.random() < .05:  # of another tag than was asked about
            return self.message(request, 304, fields, b"")
        if request.method == "HEAD" and not (url.tag or "").startswith('"'):  # what says the same need not be the same
            return self.message(request, 200, fields, b"")
        if dice.random() < .5:
            told.append(("Accept-Ranges", "bytes"))
        body = content(url.number, url.version, variant, owner, url.size)
        given = self.range_of(request, fields, url.size) if request.method == "GET" else None
        if given == () and dice.random() < .7:
            return self.message(request, 416, told + fields + [("Content-Range", f"bytes */{url.size}")], b"no")
        if not given or dice.random() < .1:
            return self.message(request, 200, told + fields, body)
        first, last = given
        if dice.random() < .1 and url.size > 4:  # another range than was asked for
            first = dice.randint(0, url.size - 1)
            last = dice.randint(first, url.size - 1)
        size = "*" if dice.random() < .05 else url.size
        part = body[first:last + 1]
        if dice.random() < .05:
            part += b"SURPLUS"
        fields.append(("Content-Range", f"bytes {first}-{last}/{size}"))
        return self.message(request, 206, told + fields, part)

    def answer(self, connection, request):
        data, end = self.compose(request)
        chance = self.dice.random()
        if chance < .15:  # breaks off
            # What ends by close is whole when it does, wherever that is.
            end = "reset" if end else self.dice.choice(["close", "reset"])
            data = data[:self.dice.randint(0, len(data))]
        self.answers.append(Answer(connection, data, end))

    def accept(self):
        while connection := self.replay.accept():
            self.origins.append([connection, 0])
        self.origins = [origin for origin in self.origins if not origin[0].closed]
        for origin in self.origins:
            while found := parse_request(origin[0].received[origin[1]:]):
                origin[1] += found[1]
                self.count("asked")
                if found[0].method == "POST":
                    self.urls[int(re.sub(r"\D", "", found[0].target))].change(self.now)
                self.answer(origin[0], found[0])

    def go_on(self):
        """One answer gets a little further."""
        if not self.answers:
            return
        answer = self.dice.choice(self.answers)
        length = len(answer.data) if self.dice.random() < .4 else self.dice.randint(1, 1 + len(answer.data) // 2)
        try:
            if not answer.connection.closed:
                answer.connection.send(answer.data[:length])
        except ReplayError as error:  # weir has closed it meanwhile, as it may
            if not str(error).endswith(": closed"):
                raise
        answer.data = answer.data[length:]
        if answer.data:
            return
        self.answers.remove(answer)
        if answer.end and not answer.connection.closed:
            if answer.end == "reset":
                self.replay.settle()
            getattr(answer.connection, answer.end)()

    # ---- clients ----

    def request_fields(self, url):
        dice, fields = self.dice, []
        if url.kind == "vary":
            fields.append(("X-Variant", "x" * dice.randint(0, 3)))
        if dice.random() < .4:
            size = max(url.size, 1)
            first = dice.randint(0, size)
            spec = dice.choice([f"{first}-", f"0-{first}", f"{first}-{first + dice.choice([0, 1, 10, 5000, 90000])}",
                f"-{dice.randint(0, size)}", f"0-0,{first}-{first + 3000},-1", f"{first}-,0-{first}", "0-", "5-2"])
            fields.append(("Range", f"bytes={spec}"))
            if dice.random() < .3:
                fields.append(("If-Range", dice.choice([url.tag or '"0"', self.date(url.modified)])))
        elif dice.random() < .2:
            fields.append(("If-None-Match", dice.choice([url.tag or '"1"', '"none"', "*", f'"{url.version - 1}"'])))
        elif dice.random() < .1:
            fields.append(("If-Modified-Since", self.date(url.modified)))
        if dice.random() < .2:
            fields.append(("Cache-Control", dice.choice(["no-cache", "no-store", "max-age=0", "max-stale",
                "only-if-cached", "max-stale=5", "min-fresh=1"])))
        if dice.random() < .05:
            fields.append(("Authorization", "Basic eDp5"))
        return fields

    def ask(self):
        dice = self.dice
        url = self.urls[dice.randrange(len(self.urls))] if dice.random() < .5 else self.urls[dice.randrange(4)]
        for _ in range(1 if dice.random() < .7 else dice.randint(2, 6)):
            self.clients = self.clients % 0xffe + 1
            method = dice.choice(["GET"] * 14 + ["HEAD", "POST"])
            fields = self.request_fields(url) + [("X-Client", str(self.clients))]
            lines = [f"{method} {url.path} HTTP/1.1", "Host: h", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in fields]
            if method == "POST":
                lines.append("Content-Length: 0")
            connection = self.replay.connect()
            connection.send("\r\n".join(lines).encode() + b"\r\n\r\n")
            self.exchanges.append(Exchange(connection, self.clients, method, url, fields))

    def check(self, exchange, response, is_over):
        """What has come so far, the whole or not."""
        self.count(response.status)
        told = response.get("X-Body")
        if response.status not in (200, 206) or told is None or exchange.method == "HEAD":
            return
        number, version, variant, owner, size = map(int, told.split())
        if number != exchange.url.number:
            raise Wrong(f"of another URL: {told}")
        if owner not in (0, exchange.number):
            raise Wrong(f"of client {owner} for {exchange.number}")
        if exchange.url.kind == "vary" and variant != len(exchange.get("X-Variant")):
            raise Wrong(f"variant {variant} for {exchange.fields}")
        body = content(number, version, variant, owner, size)
        for first, part, total, is_whole in self.parts(exchange, response, size):
            if total != size:
                raise Wrong(f"{total} octets, not {size}")
            if part != body[first:first + len(part)]:
                raise Wrong(f"not the octets at {first} of {told}")
            if not is_whole and is_over and response.complete:
                raise Wrong(f"{len(part)} octets at {first} of {told} and no more, but ends well")

    def parts(self, exchange, response, size):
        """(first, octets, of how many, whether as many as were announced)"""
        if response.status == 200:
            yield 0, response.body, size, len(response.body) == size
            return
        if exchange.get("Range") is None:
            raise Wrong("206 without a range asked for")
        kind = response.get("Content-Type") or ""
        if not kind.startswith("multipart/byteranges"):
            yield from self.part(response.get("Content-Range"), response.body, size)
            return
        boundary = b"--" + kind.partition("boundary=")[2].encode()
        pieces = (b"\r\n" + response.body).split(b"\r\n" + boundary)
        for piece in pieces[1:-1]:
            head, _, body = piece.partition(b"\r\n\r\n")
            yield from self.part(re.search(rb"(?i)content-range: *(.*)", head)[1].decode().strip(), body, size)

    def part(self, given, body, size):
        match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+|\*)", given or "")
        if not match:
            raise Wrong(f"Content-Range {given}")
        first, last = int(match[1]), int(match[2])
        if len(body) > last - first + 1:
            raise Wrong(f"more octets than {given}")
        yield first, body, size if match[3] == "*" else int(match[3]), len(body) == last - first + 1

    def look(self):
        """Whoever is through is checked whole, and no more may have come than the one response."""
        for exchange in list(self.exchanges):
            closed = exchange.connection.closed
            if not closed:
                continue
            self.exchanges.remove(exchange)
            data = exchange.connection.received
            found = parse_response(data, exchange.method, True)
            if not found:
                self.count("nothing")
                continue
            response, taken = found
            if data[taken:]:
                raise Wrong(f"behind the response: {data[taken:taken + 80]}")
            self.count("whole" if response.complete else "cut")
            if closed == "rst" and response.complete and response.get("Content-Length") is None:
                response.complete = response.get("Transfer-Encoding") is not None
            self.check(exchange, response, True)

    def trouble_clients(self):
        if not self.exchanges:
            return
        exchange = self.dice.choice(self.exchanges)
        what = self.dice.choice(["leave", "reset", "pause", "resume", "resume"])
        if what in ("leave", "reset"):
            self.exchanges.remove(exchange)
            exchange.connection.close() if what == "leave" else exchange.connection.reset()
        elif exchange.paused == (what == "resume"):
            exchange.paused = not exchange.paused
            getattr(exchange.connection, what)()

    # ---- the gateway ----

    def trouble_gateway(self):
        dice = self.dice
        what = dice.choice(["purge", "reload", "wall", "refuse", "change", "change", "change"])
        if what == "purge":
            self.replay.purge()
        elif what == "reload":
            self.replay.reload(dice.choice(CONFIGS))
        elif what == "wall":
            self.replay.step_wall(dice.choice([-10 ** 8, 10 ** 8, -3600, 3600, 1, -1]))
        elif what == "refuse":
            self.replay.look()
            self.replay.refuse_next("ECONNREFUSED", dice.randint(1, 3))
        else:
            dice.choice(self.urls).change(self.now)

    def step(self):
        chance = self.dice.random()
        if chance < .25:
            self.ask()
        elif chance < .75:
            self.go_on()
        elif chance < .85:
            self.replay.advance(self.dice.choice([0.001, 0.3, 1, 1, 2, 4, 4]))
        elif chance < .92:
            self.trouble_clients()
        elif chance < .94:
            self.trouble_gateway()
        self.accept()
        self.look()

    def end(self):
        """Nothing new: everyone gets an end to its exchange."""
        for exchange in self.exchanges:
            if exchange.paused:
                exchange.connection.resume()
        for _ in range(400):
            if not self.answers and not self.exchanges:
                break
            while self.answers:
                self.go_on()
            self.replay.advance(1)
            self.accept()
            self.look()
        if self.exchanges:
            one = self.exchanges[0]
            raise Wrong(f"{len(self.exchanges)} without an end: {one.method} {one.url.path} {one.fields}, "
                f"{len(one.connection.received)} octets: {one.connection.received[:200]}")
        self.replay.advance(120)
        stats = self.replay.stats()
        if stats["fills"] or stats["sessions"]:
            raise Wrong(f"left: {stats}")


def run(seed, steps):
    """What was counted."""
    dice = random.Random(seed)
    config = dice.choice(CONFIGS)
    with Replay(config) as replay:
        torture = Torture(replay, dice, config)
        for step in range(steps):
            try:
                torture.step()
                if step % 50 == 0 and replay.stats()["bytes"] > (4 << 20) + SLACK_BYTES:
                    raise Wrong(f"memory: {replay.stats()}")
            except Wrong as wrong:
                raise Wrong(f"seed {seed} step {step}: {wrong}") from wrong
        torture.end()
        return torture.counts


if __name__ == "__main__":
    import sys
    import time
    first, seconds = int(sys.argv[1]), float(sys.argv[2])
    until, sums = time.monotonic() + seconds, {}
    while time.monotonic() < until:
        try:
            for what, number in run(first, 400).items():
                sums[what] = sums.get(what, 0) + number
        except Exception as error:
            print(f"seed {first}: {type(error).__name__}: {str(error)[:600]}")
        first += 1
    print(first, sums)
