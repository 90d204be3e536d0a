"""Runs a generated sequence through weir, playing its clients and its origin, and has each exchange judged."""
import hashlib

import model
from judge import Contact, Seen, content, judge, judge_crowd
from model import Cache, Moment, Request, Response
from replay import Replay

CONFIG = "cache_mem 16M\n"
ROUNDS = 30  # of looking for requests at the origin, for one request of a client


# ---- the wire ----

def split_head(data):
    """(first line, fields, rest), None while the head is not whole."""
    head, mark, rest = data.partition(b"\r\n\r\n")
    if not mark:
        return None
    lines = head.decode("latin-1").split("\r\n")
    fields = [tuple(part.strip(" \t") for part in line.split(":", 1)) for line in lines[1:]]
    return lines[0], fields, rest


def unchunk(data):
    """(content, whole, bytes used)."""
    body, at = b"", 0
    while True:
        end = data.find(b"\r\n", at)
        if end < 0:
            return body, False, at
        size = int(data[at:end].split(b";")[0], 16)
        if size == 0:
            stop = data.find(b"\r\n\r\n", end)
            return body, stop >= 0, stop + 4
        body += data[end + 2:end + 2 + size]
        at = end + 2 + size + 2
        if len(data) < at:
            return body, False, at


def parse_request(data, destination):
    """(Request, bytes used), or None."""
    parts = split_head(data)
    if not parts:
        return None
    line, fields, rest = parts
    method, target, _ = line.split(" ")
    request = Request(method, target, fields, destination)
    used = len(data) - len(rest)
    if request.has("Transfer-Encoding"):
        request.body, whole, length = unchunk(rest)
        return (request, used + length) if whole else None
    length = int(request.first("Content-Length") or 0)
    request.body = rest[:length]
    return (request, used + length) if len(rest) >= length else None


def parse_answer(data, method, closed):
    """The final response a client has got; None without one."""
    while True:
        parts = split_head(data)
        if not parts:
            return None
        line, fields, data = parts
        status = int(line.split(" ")[1])
        if status >= 200:
            break
    answer = Response(status, fields)
    if method == "HEAD" or status in (204, 304):
        answer.body, answer.complete = data, True
    elif answer.has("Transfer-Encoding"):
        answer.body, answer.complete, _ = unchunk(data)
    elif answer.has("Content-Length"):
        length = int(answer.first("Content-Length"))
        answer.body, answer.complete = data, len(data) == length
    else:
        answer.body, answer.complete = data, closed == "fin"
    return answer


# ---- the origin ----

SIZES = [0, 1, 40, 40, 700, 700, 700, 5000, 30000]


class Origin:
    """Answers as a behaviour of generate.py says. `zero` is when all began on its clock, which is always right."""

    def __init__(self, zero):
        self.zero, self.now, self.count = zero, zero, 0

    def date(self, value):
        if isinstance(value, tuple):
            value = {"now": self.now, "zero": self.zero}[value[1]] + value[2]
        return value if isinstance(value, str) else model.print_date(int(value))

    def variant(self, how, asked):
        names = sorted({name for name in model.vary_names(Response(200, [("Vary", line) for line in how["vary"]]))})
        text = "".join(f"{name}={model.selecting_value(asked, name)};" for name in names if name != "*")
        return hashlib.md5(text.encode()).hexdigest()[:6] if text else ""

    def content_name(self, how, asked):
        size = SIZES[int(hashlib.md5(f"{asked.target}{how['version'] // 2}".encode()).hexdigest(), 16) % len(SIZES)]
        return f"{asked.host}|{asked.target}|{how['status']}|{how['version']}|{self.variant(how, asked)}|{size}"

    def negotiated(self, how, asked):
        """What the best of its languages and codings is for the request."""
        fields = []
        for name, words in (("accept-language", ["cs", "en"]), ("accept-encoding", ["gzip", "br"])):
            if name not in str(how["vary"]).lower() or not how["encoded"]:
                continue
            weights = dict(model.weighted(asked, name))
            best = max(words, key=lambda word: weights.get(word, 0))
            if weights.get(best) or name == "accept-language":
                fields.append((model.PREFERENCES[name], best))
        return fields

    def etag(self, how, asked):
        variant = self.variant(how, asked)
        opaque = f"{how['version']}{'-' + variant if variant else ''}"
        return {"strong": f'"{opaque}"', "weak": f'W/"{opaque}"', "bare": opaque, "none": None}[how["etag"]]

    def modified(self, how):
        base = {"days": self.zero - 864000 + 100 * how["version"], "recent": self.zero - 100 + how["version"],
            "future": self.zero + 10 ** 6, "bad": "not long ago", "none": None}[how["modified"]]
        return base if base is None else self.date(base)

    def common_fields(self, how, asked):
        self.count += 1
        fields = [("X-Id", str(self.count)), ("X-List", "a"), ("X-List", f"n{self.count}")]
        if how["date"] is not None:
            offset = how["date"]
            fields.append(("Date", offset if isinstance(offset, str) else self.date(self.now + offset)))
        fields += [("Cache-Control", line) for line in how["control"]]
        fields += [("Expires", line if isinstance(line, str) else self.date(self.now + line)) for line in how["expires"]]
        fields += [("Age", line.strip()) for line in how["age"]] + [("Vary", line) for line in how["vary"]]
        for name, value in (("ETag", self.etag(how, asked)), ("Last-Modified", self.modified(how)),
                ("Content-Location", how["content_location"])):
            if value is not None:
                fields.append((name, value))
        if how["cookie"]:
            fields += [("Set-Cookie", f"id={self.count}"), ("Set-Cookie", "b=c; Path=/")]
        if "X-Private" in str(how["control"]):
            fields.append(("X-Private", "secret"))
        if "X-Flavour" in str(how["control"]):
            fields.append(("X-Flavour", f"of {self.count}"))
        if how["hop"]:
            fields += [("Connection", "X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=9"), ("Proxy-Connection", "close"),
                ("Proxy-Authenticate", "Basic realm=x"), ("TE", "x"), ("Proxy-Authentication-Info", "x")]
        return fields

    def is_not_modified(self, how, asked, response):
        if how["condition"] == "ignore" or asked.method not in ("GET", "HEAD"):
            return False
        if how["condition"] == "spurious":  # a 304 whatever the condition
            return model.is_conditional(asked)
        return model.not_modified(asked, response, self.now) is True

    def not_modified(self, how, asked):
        left_out = {"content-location"}
        if how["condition"] == "bare":
            left_out |= {"etag", "last-modified"}
        fields = [(name, value) for name, value in self.common_fields(how, asked) if name.lower() not in left_out]
        if how["condition"] == "other":
            fields = [(name, '"another"' if name == "ETag" else value) for name, value in fields]
        if how["condition"] == "weakened":
            fields = [(name, "W/" + value if name == "ETag" and value.startswith('"') else value) for name, value in fields]
        if how["condition"] == "length":
            fields.append(("Content-Length", "17"))
        return Response(304, fields)

    def partial(self, how, asked, whole):
        """A 206, right or not; None: the range is not for this origin."""
        ranges = model.byte_ranges(asked, whole.size)
        if how["range"] == "ignore" or not ranges or model.if_range_holds(asked, whole, self.now) is False:
            return None
        first, last = ranges[0]
        size = whole.size
        if how["range"] == "other":
            first, last = (0, 0) if first else (min(1, size - 1), size - 1)
        if how["range"] == "fewer":
            last = first + (last - first) // 2
        text = "bytes 3-1/x" if how["range"] == "bad" else f"bytes {first}-{last}/{size}"
        fields = list(whole.fields)
        if how["range"] != "bare":
            fields.append(("Content-Range", text))
        offset = first if how["range"] not in ("bad", "bare") else None
        return Response(206, fields, whole.body[first:last + 1], True, offset, size)

    def answer(self, how, asked):
        name = self.content_name(how, asked)
        body = b"" if how["status"] == 204 else content(name)
        fields = self.common_fields(how, asked)
        if how["status"] != 204:
            if asked.method != "HEAD":  # it would be taken for news of the stored fields
                fields.append(("X-Body", name))
            fields.append(("Content-Type", "text/plain"))
            fields += self.negotiated(how, asked)
        if how["location"] and (300 <= how["status"] < 400 or asked.method not in ("GET", "HEAD")):
            fields.append(("Location", how["location"]))
        whole = Response(how["status"], fields, body)
        if how["status"] == 200 and self.is_not_modified(how, asked, whole):
            return self.not_modified(how, asked)
        if how["status"] == 200 and asked.has("Range"):
            ranges = model.byte_ranges(asked, whole.size)
            if ranges == [] and how["range"] == "honest" and model.if_range_holds(asked, whole, self.now) is not False:
                return Response(416, [line for line in fields if line[0] != "X-Body"] +
                    [("Content-Range", f"bytes */{whole.size}")], b"", True, 0, whole.size)
            return self.partial(how, asked, whole) or whole
        return whole


def wire(how, asked, response):
    """(bytes, how the connection ends: "" | "fin" | "rst"); marks the response with what has arrived of it."""
    fields, body, end = list(response.fields), response.body, ""
    empty = asked.method == "HEAD" or response.status in (204, 304)
    framing = how["framing"]
    if response.status == 204 or (response.status == 304 and not empty):
        framing = "none"
    if response.status == 304 or response.status == 204:
        framing = "none"
    if framing == "chunked":
        fields.append(("Transfer-Encoding", "chunked"))
    elif framing == "length":
        fields.append(("Content-Length", str(len(body))))
        response.fields.append(("Content-Length", str(len(body))))
    elif framing == "close" and not empty:
        end = "fin"
    head = f"HTTP/1.1 {response.status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    out = head.encode("latin-1")
    if how["interim"]:
        out = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + out
    if empty:
        response.body = b""
        return out, end
    if how["failure"] == "head":
        return out[:len(out) - 8], "fin"
    arrived = body
    if how["failure"] in ("cut", "reset"):
        arrived = body[:int(len(body) * how["cut_at"])]
        cut_is_seen = framing == "chunked" or how["failure"] == "reset" or (framing == "length" and len(arrived) < len(body))
        response.complete = not cut_is_seen
        end = "rst" if how["failure"] == "reset" else "fin"
        if framing == "close" and end == "fin":
            arrived = body  # nobody could tell
        if framing == "length" and len(arrived) == len(body):
            response.complete = True
    response.body = arrived
    if framing == "chunked":
        half = len(arrived) // 2
        for piece in (arrived[:half], arrived[half:]):
            if piece:
                out += f"{len(piece):x}\r\n".encode() + piece + b"\r\n"
        return out + (b"0\r\n\r\n" if response.complete else b""), end
    return out + arrived, end


# ---- one sequence ----

class Driver:
    def __init__(self, replay):
        self.replay, self.cache = replay, Cache()
        self.origin = Origin(int(replay.wall))
        self.start = replay.now
        self.open = []  # [connection, bytes read]
        self.wall_step = 0

    def moment(self):
        return Moment(int(self.replay.wall), int(self.replay.now))

    def ask(self, fetch, *more):
        """Sends a client's request: (client, Seen)."""
        self.origin.now = self.origin.zero + int(self.replay.now - self.start)
        fields = [("Host", fetch["host"])] + [(name, self.origin.date(value) if isinstance(value, tuple) else value)
            for name, value in fetch["fields"]] + list(more)
        body = b"" if fetch["method"] in ("GET", "HEAD", "DELETE", "OPTIONS", "BREW") else b"hello"
        if body:
            fields.append(("Content-Length", str(len(body))))
        request = Request(fetch["method"], fetch["path"], fields, fetch["destination"], body)
        client = self.replay.connect(f"{fetch['destination']}:80")
        client.send(f"{request.method} {request.target} HTTP/1.1\r\n".encode() +
            "".join(f"{name}: {value}\r\n" for name, value in fields).encode("latin-1") + b"\r\n" + body)
        return client, Seen(request, None, self.moment())

    def end(self, client, seen):
        seen.answer = parse_answer(client.received, seen.request.method, client.closed)
        if client.closed or (seen.answer and seen.answer.complete):
            client.close()
        else:
            client.reset()  # a half-closed one would be waited for: what is missing is tried again
        self.replay.settle()

    def fetch(self, fetch):
        client, seen = self.ask(fetch)
        self.serve(fetch["origin"], seen.contacts)
        self.end(client, seen)
        return judge(self.cache, seen), [seen]

    def crowd(self, fetch, others):
        """Several clients at once, who differ in their fields alone; the origin answers when all have asked."""
        clients = [self.ask(one, ("X-Client", str(number)))
            for number, one in enumerate([fetch] + [dict(fetch, fields=fields) for fields in others])]
        contacts = []
        self.serve(fetch["origin"], contacts)
        for client, seen in clients:
            self.end(client, seen)
        return judge_crowd(self.cache, [seen for _, seen in clients], contacts), [seen for _, seen in clients]

    def serve(self, how, contacts):
        """Answers whatever arrives at the origin until all is quiet."""
        how = dict(how)
        if how["failure"] == "refuse":
            self.replay.refuse_next()
        dials = len(self.replay.dials)
        for _ in range(ROUNDS):
            self.replay.settle()
            while connection := self.replay.accept():
                self.open.append([connection, 0])
            quiet = True
            for place in self.open:
                quiet = not self.answer_one(how, contacts, place) and quiet
            self.open = [place for place in self.open if not place[0].closed]
            if quiet:
                break
        else:
            raise AssertionError("the origin is asked again and again")
        for destination, error in self.replay.dials[dials:]:
            if error:
                contacts.insert(0, Contact(None, None, self.moment()))
        if how["failure"] == "refuse" and not any(error for _, error in self.replay.dials[dials:]):
            self.replay.mend()

    def answer_one(self, how, contacts, place):
        connection, used = place
        parsed = parse_request(connection.received[used:], connection.destination.rsplit(":", 1)[0])
        if not parsed:
            return False
        asked, length = parsed
        place[1] += length
        if how["failure"] == "none":
            contacts.append(Contact(asked, None, self.moment()))
            connection.close()
            return True
        response = self.origin.answer(how, asked)
        data, end = wire(how, asked, response)
        if how["failure"] == "head":
            response = None if not (asked.method == "HEAD" or response.status in (204, 304)) else response
        contacts.append(Contact(asked, response, self.moment()))
        connection.send(data)
        if end:
            self.replay.settle()
            connection.close() if end == "fin" else connection.reset()
        return True


def run(steps, config=CONFIG, trace=None):
    """The findings of a sequence: [(step's number, Finding)]."""
    findings = []
    with Replay(config) as replay:
        driver = Driver(replay)
        for number, (kind, value) in enumerate(steps):
            if kind == "advance":
                replay.advance(value)
            elif kind == "wall":
                replay.step_wall(value)
            else:
                found, seen = driver.fetch(value) if kind == "fetch" else driver.crowd(*value)
                findings += [(number, finding) for finding in found]
                if trace is not None:
                    trace.append((number, seen, found))
    return findings


def shrink(steps, disagrees):
    """Drops steps, then fields of requests, while the sequence still disagrees."""
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(steps))):
            shorter = steps[:at] + steps[at + 1:]
            if disagrees(shorter):
                steps, changed = shorter, True
    for at, (kind, value) in enumerate(steps):
        if kind == "crowd" and disagrees(steps[:at] + [("fetch", value[0])] + steps[at + 1:]):
            kind, value = steps[at] = "fetch", value[0]
        while kind == "crowd":
            for less in [(value[0], value[1][:at_] + value[1][at_ + 1:]) for at_ in range(len(value[1]))]:
                if len(less[1]) and disagrees(steps[:at] + [("crowd", less)] + steps[at + 1:]):
                    value = less
                    steps[at] = ("crowd", value)
                    break
            else:
                break
        if kind != "fetch":
            continue
        for name in list(value["fields"]):
            less = dict(value, fields=[one for one in value["fields"] if one != name])
            if disagrees(steps[:at] + [("fetch", less)] + steps[at + 1:]):
                steps = steps[:at] + [("fetch", less)] + steps[at + 1:]
                value = less
        plain = {"cookie": False, "hop": False, "interim": False, "encoded": False, "location": None, "content_location": None,
            "age": [], "expires": [], "date": 0, "vary": [], "framing": "length", "condition": "honest", "range": "honest",
            "failure": None, "modified": "none", "etag": "none", "control": [], "cut_at": 0.5}
        for name, simple in plain.items():
            if value["origin"][name] == simple:
                continue
            less = dict(value, origin=dict(value["origin"], **{name: simple}))
            if disagrees(steps[:at] + [("fetch", less)] + steps[at + 1:]):
                steps = steps[:at] + [("fetch", less)] + steps[at + 1:]
                value = less
    return steps


def tell(steps, config=CONFIG):
    """The sequence as a person reads it, with what was seen."""
    trace, lines = [], []
    run(steps, config, trace)
    seen_of = {number: (seen, found) for number, seen, found in trace}
    for number, (kind, value) in enumerate(steps):
        if kind not in ("fetch", "crowd"):
            lines.append(f"{number}: {kind} {value}")
            continue
        lines += tell_step(number, *seen_of[number])
    return "\n".join(lines)


def tell_step(number, all_seen, found):
    lines = []
    for seen in all_seen:
        lines.append(f"{number}: {seen.request.method} {seen.request.target} of {seen.request.host} at "
            f"{seen.request.destination}, {seen.request.fields[1:]}")
        for contact in seen.contacts:
            lines.append(f"     asked {contact.asked and contact.asked.fields}")
            if contact.response:
                lines.append(f"     said {contact.response.status} {contact.response.fields} {len(contact.response.body)} bytes"
                    f"{'' if contact.response.complete else ', cut'}")
            else:
                lines.append("     said nothing")
        answer = seen.answer
        lines.append(f"     got {answer and (answer.status, answer.fields, len(answer.body), answer.complete)}")
    return lines + [f"     {finding.kind.upper()} {finding.name}: {finding.text}" for finding in found]
