"""The words that cases are written in.

A case is a list of steps. In each step the client sends one request; the origin, if it is asked, gives the step's
answer; then the step's expectations are held against what the client and the origin saw. A case has a URL of its own
(a first path segment that nobody can guess), below which a step may name others.

Field lines, wanted values and bodies may hold `{now+60}` (an HTTP date, counted from the moment it is sent), `{start-60}`
(counted from the start of the case, so the same in all its steps), `{rfc850 now+60}`, `{asctime now+60}`, `{path}` (the
case's path), `{url}` (the same with scheme and authority) and `{other}` (the same at the other origin).

kind "must": the standards require it. "should": they ask for it (SHOULD, "encouraged"). "may": they allow it, and a cache
wants it: mostly to answer from the store.
`given` are preconditions: where one does not hold, the server has not come to the point, and the case is unproved.
"""
import dataclasses
import re
import time
from collections.abc import Callable

MUST, SHOULD, MAY = "must", "should", "may"


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the origin says. `body` None: one that names case and step."""
    fields: tuple = ()
    status: int = 200
    body: bytes | None = None
    interim: tuple = ()                   # of (status, fields), before it
    framing: str = "length"               # or "chunked", "close"
    length: int | None = None             # what Content-Length says, if not the truth
    cut: int | None = None                # close after so many bytes of the body
    drop: bool = False                    # close instead of answering
    date: bool = True                     # with a Date of the moment, unless `fields` has one
    raw: str | None = None                # the whole message, byte for byte
    delay: float = 0                      # seconds before it
    on_condition: "Answer | None" = None  # instead, to a conditional request
    on_range: "Answer | None" = None      # instead, to a request with Range
    honest: bool = False                  # on_condition only where its own ETag is among those asked for


@dataclasses.dataclass(frozen=True)
class Check:
    text: str
    find: Callable  # of Seen: what is wrong, None for nothing


@dataclasses.dataclass(frozen=True)
class Step:
    fields: tuple
    answer: Answer
    expect: tuple
    given: tuple
    method: str
    path: str
    body: bytes
    pause: float
    times: int   # sent so often at once
    other: bool  # to the other origin (the same script behind another name)


@dataclasses.dataclass(frozen=True)
class Case:
    id: str
    section: str
    kind: str
    steps: tuple


@dataclasses.dataclass
class Request:
    """As the origin received it."""
    method: str
    target: str
    fields: list
    body: bytes


@dataclasses.dataclass
class Seen:
    """One step as it went."""
    case: Case
    index: int
    status: int = 0
    fields: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    whole: bool = False
    hung: bool = False
    interim: list = dataclasses.field(default_factory=list)  # of (status, fields)
    asked: list = dataclasses.field(default_factory=list)    # of Request
    render: Callable = lambda text: text

    def lines(self, name):
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def told(self):
        asked = "".join(f" {one.method}{'?' if is_conditional(one) else ''}" for one in self.asked) or " nothing"
        return f"{self.status}{'' if self.whole else ' broken'} {self.body[:40]!r}, origin saw{asked}"


CASES = []


def answer(*fields, **options):
    return Answer(tuple(fields), **options)


def step(*fields, answer=None, expect=(), given=(), method="GET", path="", body=b"", pause=0, times=1,
        other=False):
    def as_tuple(checks):
        return (checks,) if isinstance(checks, Check) else tuple(checks)
    return Step(tuple(fields), answer or Answer(("Cache-Control: no-store",)), as_tuple(expect), as_tuple(given),
            method, path, body, pause, times, other)


def case(kind, name, section, *steps):
    if any(one.id == name for one in CASES):
        raise ValueError(f"two cases are called {name}")
    CASES.append(Case(name, section, kind, steps))


def must(name, section, *steps):
    case(MUST, name, section, *steps)


def should(name, section, *steps):
    case(SHOULD, name, section, *steps)


def may(name, section, *steps):
    case(MAY, name, section, *steps)


def reused(name, section, *fields, kind=MAY, then=(), pause=0, **options):
    """What an answer with these fields gives is served from the store."""
    checks = [STORED, status(options.get("status", 200))]
    if options.get("status") not in (204, 304) and "body" not in options:
        checks.append(body_of(1))
    case(kind, name, section, step(answer=answer(*fields, **options)), step(*then, pause=pause, expect=checks))


def not_reused(name, section, *fields, kind=MUST, then=(), pause=0, **options):
    case(kind, name, section, step(answer=answer(*fields, **options)), step(*then, pause=pause, expect=(ASKED, body_of(2))))


# ---- rendering ----

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
PLACE = re.compile(r"\{(?:(path|url|other)|(?:(rfc850|asctime) )?(now|start)([+-]\d+)?)\}")


def http_date(seconds, form=None):
    t = time.gmtime(seconds)
    clock, month = f"{t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02}", MONTHS[t.tm_mon - 1]
    if form == "rfc850":
        return f"{LONG_DAYS[t.tm_wday]}, {t.tm_mday:02}-{month}-{t.tm_year % 100:02} {clock} GMT"
    if form == "asctime":
        return f"{DAYS[t.tm_wday]} {month} {t.tm_mday:2} {clock} {t.tm_year}"
    return f"{DAYS[t.tm_wday]}, {t.tm_mday:02} {month} {t.tm_year} {clock} GMT"


def renderer(path, authority, other, start):
    def fill(match):
        place, form, base, offset = match.groups()
        if place:
            return {"path": path, "url": f"http://{authority}{path}", "other": f"http://{other}{path}"}[place]
        return http_date((start if base == "start" else int(time.time())) + int(offset or 0), form)
    return lambda text: PLACE.sub(fill, text)


def marker(case, index):
    return f"{case.id} {index + 1}".encode()


# ---- expectations ----

CONDITIONS = ("if-none-match", "if-modified-since")


def is_conditional(request):
    return any(name.lower() in CONDITIONS for name, _ in request.fields)


def check(text):
    return lambda find: Check(text, find)


@check("from the store")
def STORED(seen):
    """Not an error page of the server's own either: the status is one that the origin gave, or that a hit may make of it."""
    if seen.asked:
        return f"the origin was asked ({seen.told()})"
    given = {step.answer.status for step in seen.case.steps[:seen.index]} | {206, 304, 416}
    return None if seen.whole and seen.status in given else f"no response from the store ({seen.told()})"


@check("the origin is asked")
def ASKED(seen):
    return None if seen.asked else f"the origin was not asked ({seen.told()})"


@check("the origin is asked with a condition")
def CONDITIONAL(seen):
    return None if seen.asked and all(map(is_conditional, seen.asked)) else f"no conditional request ({seen.told()})"


@check("the origin is asked, without a condition")
def UNCONDITIONAL(seen):
    return None if seen.asked and not is_conditional(seen.asked[-1]) else f"no plain request ({seen.told()})"


@check("a whole response")
def WHOLE(seen):
    return None if seen.whole else f"broken ({seen.told()})"


@check("a response that can be seen to be broken, or a 5xx")
def BROKEN(seen):
    return None if not seen.whole or seen.status >= 500 else f"a good response ({seen.told()})"


def status(*wanted):
    return Check(f"status {wanted}", lambda seen: None if seen.status in wanted else
            f"status is not {'/'.join(map(str, wanted))} ({seen.told()})")


def body(wanted):
    wanted = wanted if isinstance(wanted, bytes) else wanted.encode()
    return Check(f"body {wanted[:30]}", lambda seen: None if seen.body == wanted else
            f"body is {seen.body[:60]!r}, not {wanted[:60]!r} ({seen.told()})")


def body_of(number):
    """The body that the origin gave in step `number`, from 1."""
    return Check(f"the body of step {number}", lambda seen: None if seen.body == marker(seen.case, number - 1) else
            f"not the body of step {number} ({seen.told()})")


def not_body_of(number):
    return Check(f"not the body of step {number}", lambda seen: None if seen.body != marker(seen.case, number - 1) else
            f"the body of step {number} ({seen.told()})")


def field(name, *wanted):
    """All lines of a field, in order."""
    def find(seen):
        want = [seen.render(value) for value in wanted]
        return None if seen.lines(name) == want else f"{name} is {seen.lines(name)}, not {want}"
    return Check(f"{name}: {wanted}", find)


def members(name, *wanted):
    """The members of a list field, however they are spread over lines."""
    def find(seen):
        have = [one.strip() for line in seen.lines(name) for one in line.split(",") if one.strip()]
        want = [seen.render(value) for value in wanted]
        return None if have == want else f"{name} is {have}, not {want}"
    return Check(f"{name} has {wanted}", find)


def has(name):
    return Check(f"with {name}", lambda seen: None if seen.lines(name) else f"{name} is missing ({seen.told()})")


def lacks(name, value=None):
    """No such field; with `value`, none with this in it."""
    def find(seen):
        bad = [line for line in seen.lines(name) if value is None or value in line]
        return f"{name}: {bad} is there" if bad else None
    return Check(f"without {name} {value or ''}", find)


def age(least, most=None):
    def find(seen):
        have = seen.lines("Age")
        good = len(have) == 1 and have[0].isdigit() and least <= int(have[0]) <= (most if most is not None else 2**31)
        return None if good else f"Age is {have}, not {least} to {most} ({seen.told()})"
    return Check(f"Age from {least} to {most}", find)


def origin_field(name, *wanted):
    """The last request that the origin saw has the field; with `wanted`, these lines."""
    def find(seen):
        have = [value for field, value in seen.asked[-1].fields if field.lower() == name.lower()] if seen.asked else []
        want = [seen.render(value) for value in wanted]
        return None if (have == want if wanted else have) else f"the origin got {name}: {have}, not {want or 'any'}"
    return Check(f"the origin gets {name} {wanted}", find)


def origin_members(name, *wanted):
    """The last request that the origin saw has at least these members, in any order."""
    def find(seen):
        lines = [value for field, value in seen.asked[-1].fields if field.lower() == name.lower()] if seen.asked else []
        have = [one.strip() for line in lines for one in line.split(",")]
        return None if set(wanted) <= set(have) else f"the origin got {name}: {have}, not all of {list(wanted)}"
    return Check(f"the origin gets {name} with {wanted}", find)


def origin_lacks(name, value=None):
    def find(seen):
        have = [line for one in seen.asked for field, line in one.fields if field.lower() == name.lower()
            and (value is None or value.lower() in line.lower())]
        return f"the origin got {name}: {have}" if have else None
    return Check(f"the origin does not get {name}", find)


def asked(least, most=None):
    most = least if most is None else most
    return Check(f"the origin is asked {least} to {most} times", lambda seen: None if least <= len(seen.asked) <= most
            else f"the origin was asked {len(seen.asked)} times ({seen.told()})")


def interim(number, *fields):
    """An interim response was passed on."""
    def find(seen):
        for code, lines in seen.interim:
            if code == number and all(one in [f"{name}: {value}" for name, value in lines] for one in fields):
                return None
        return f"no {number} with {list(fields)}: {seen.interim}"
    return Check(f"interim {number}", find)


NO_INTERIM = Check("no interim response", lambda seen: f"{seen.interim}" if seen.interim else None)


def either(*checks):
    """One of them holds; a tuple of checks holds when all of it does."""
    def all_of(one):
        return (one,) if isinstance(one, Check) else one
    def find(seen):
        problems = [next(filter(None, (part.find(seen) for part in all_of(one))), None) for one in checks]
        return None if None in problems else " and ".join(problems)
    return Check(" or ".join(part.text for one in checks for part in all_of(one)), find)


def parts(*wanted):
    """A multipart/byteranges response with exactly these (Content-Range, content), in order."""
    def find(seen):
        have = split_parts(seen)
        return None if have == list(wanted) else f"parts are {have}, not {list(wanted)} ({seen.told()})"
    return Check(f"multipart with {wanted}", find)


def split_parts(seen):
    match = re.fullmatch(r'multipart/byteranges;\s*boundary="?([^";]+)"?', ", ".join(seen.lines("Content-Type")), re.I)
    if not match:
        return f"no multipart: {seen.lines('Content-Type')}"
    pieces = (b"\r\n" + seen.body).split(b"\r\n--" + match[1].encode())
    if not pieces[-1].startswith(b"--"):
        return "no closing delimiter"
    found = []
    for piece in pieces[1:-1]:
        head, _, content = piece.partition(b"\r\n\r\n")
        place = re.search(rb"content-range:[ \t]*([^\r\n]*)", head, re.I)
        found.append((place[1].decode() if place else "", content))
    return found
