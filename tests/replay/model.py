"""A shared cache as RFC 9111 has it: small, slow, and readable beside the text.

Nothing here comes from weir. The functions of the first half are the rules, each with its section; `Cache` keeps what a
cache may (and what it should) have stored after a sequence of exchanges; tests/replay/judge.py asks it whether what was
seen from outside is permitted. Where the standards leave a choice, the rule answers with what is permitted at most and
with what is wanted: a cache that does less than wanted is not wrong, but its reason must be listed.

Times are seconds on two clocks: what a date means is asked of the wall clock, which may be set at any time; how much
time has gone by of the steady one.
"""
import calendar
import re
import time
from collections import namedtuple
from dataclasses import dataclass, replace

Moment = namedtuple("Moment", "wall steady")
DELTA_MAXIMUM = 2 ** 31  # [RFC 9111 §1.2.2]
HEURISTIC_MAXIMUM = 7 * 24 * 3600  # weir's own cap of the tenth


# ---- messages ----

class Message:
    """Field lines in order, as (name, value)."""

    def __init__(self, fields=()):
        self.fields = list(fields)

    def lines(self, name):
        return [value for one, value in self.fields if one.lower() == name.lower()]

    def first(self, name):
        lines = self.lines(name)
        return lines[0] if lines else None

    def has(self, name):
        return bool(self.lines(name))

    def members(self, name):
        """A list field's members, all lines together; a comma within quotes does not part [RFC 9110 §5.6.1]."""
        members = []
        for line in self.lines(name):
            for member in re.findall(r'(?:"(?:[^"\\]|\\.)*"?|[^,"])+', line):
                if member.strip(" \t"):
                    members.append(member.strip(" \t"))
        return members


class Request(Message):
    def __init__(self, method, target, fields=(), destination="192.0.2.1", body=b""):
        super().__init__(fields)
        self.method, self.target, self.destination, self.body = method, target, destination, body

    @property
    def host(self):
        return (self.first("Host") or "").lower()

    @property
    def key(self):
        """The target URI [§2]; and, for a gateway, the address it was asked of."""
        return self.destination, self.host, self.target


class Response(Message):
    """`body` is what arrived of it; `content` names what it is a representation of, and `size` how long that is. `offset`
    is where the body begins in it (206)."""

    def __init__(self, status, fields=(), body=b"", complete=True, offset=0, size=None):
        super().__init__(fields)
        self.status, self.body, self.complete, self.offset = status, body, complete, offset
        self.size = len(body) if size is None else size


# ---- small grammars ----

TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)"
LONG_DAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
TIME = r"(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
DATES = [re.compile(text, re.I) for text in (
    rf"{DAY}, (?P<d>\d\d) (?P<mo>[a-z]{{3}}) (?P<y>\d{{4}}) {TIME} GMT",
    rf"{LONG_DAY}, (?P<d>\d\d)-(?P<mo>[a-z]{{3}})-(?P<y>\d\d) {TIME} GMT",
    rf"{DAY} (?P<mo>[a-z]{{3}}) (?P<d>\d\d| \d) {TIME} (?P<y>\d{{4}})")]


def parse_date(text, now):
    """HTTP-date in its three forms, names in any case [RFC 9110 §5.6.7, RFC 9111 §4.2]. None: invalid."""
    for form in DATES:
        match = form.fullmatch((text or "").strip(" \t"))
        if not match or match["mo"].lower() not in MONTHS:
            continue
        year, month, day = int(match["y"]), MONTHS.index(match["mo"].lower()) + 1, int(match["d"])
        if len(match["y"]) == 2:  # more than 50 years ahead: the past
            this_year = time.gmtime(max(0, now)).tm_year
            year += this_year - this_year % 100
            while year > this_year + 50:
                year -= 100
        if not 1 <= day <= (calendar.monthrange(year, month)[1] if year else 0):
            return None
        if int(match["h"]) > 23 or int(match["mi"]) > 59 or int(match["s"]) > 60:
            return None
        return calendar.timegm((year, month, day, int(match["h"]), int(match["mi"]), int(match["s"])))
    return None


def print_date(wall):
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(wall))


def parse_delta(argument):
    """delta-seconds [§1.2.2], quoted or not [§5.2]; larger ones saturate. None: no number."""
    if argument is None:
        return None
    match = re.fullmatch(r'"(\d+)"|(\d+)', argument, re.A)
    return min(int(match[1] or match[2]), DELTA_MAXIMUM) if match else None


def directives(message):
    """Cache-Control as [(name, argument or None)], in order; names fold case [§5.2]."""
    found = []
    for member in message.members("Cache-Control"):
        match = re.match(rf"({TOKEN})(.*)", member, re.S)
        if match:
            rest = match[2]
            found.append((match[1].lower(), rest[1:] if rest.startswith("=") else rest or None))
    return found


def directive(message, name):
    """Every argument the directive was given, in order; [] when it is not there."""
    return [argument for one, argument in directives(message) if one == name]


ETAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'


def etag_of(message):
    value = message.first("ETag")
    return value if value and re.fullmatch(ETAG, value) else None


def is_weak(etag):
    return etag.startswith("W/")


def opaque(etag):
    return etag[2:] if is_weak(etag) else etag


def weakly_equal(a, b):  # [RFC 9110 §8.8.3.2]
    return opaque(a) == opaque(b)


def strongly_equal(a, b):
    return a == b and not is_weak(a)


def etag_list(message, name):
    """Its tags, "*" among them, and whether nothing else stood there."""
    text = ", ".join(message.lines(name)).strip(" \t")
    if text == "*":
        return ["*"], True
    tags = re.findall(ETAG, text)
    return tags, bool(re.fullmatch(rf"[ \t,]*({ETAG}[ \t]*(,[ \t,]*|$))*", text))


# ---- fields that are of one connection, [RFC 9110 §7.6.1, RFC 9111 §3.1] ----

HOP_BY_HOP = {"connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade", "trailer",
    "proxy-authenticate", "proxy-authentication-info", "proxy-authorization"}


def hop_by_hop(message):
    return HOP_BY_HOP | {member.lower() for member in message.members("Connection")}


# ---- freshness ----

HEURISTICALLY_CACHEABLE = {200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501}  # [RFC 9110 §15.1]
UNDERSTOOD = {*range(200, 207), *range(300, 306), 307, 308, *range(400, 418), 421, 422, 426, *range(500, 506)}  # [RFC 9110 §15]

Lifetime = namedtuple("Lifetime", "most wanted is_explicit")


def explicit_delta(response, name):
    """None when the directive is not there. Several: the first or stale; invalid: stale [§4.2.1]."""
    arguments = directive(response, name)
    if not arguments:
        return None
    values = [parse_delta(argument) for argument in arguments]
    first = values[0] if values[0] is not None else 0
    return Lifetime(first, first if all(value == values[0] for value in values) else 0, True)


def lifetime(response, response_at):
    """freshness_lifetime of a shared cache [§4.2.1]."""
    for name in ("s-maxage", "max-age"):
        explicit = explicit_delta(response, name)
        if explicit:
            return explicit
    date = parse_date(response.first("Date"), response_at.wall)
    if date is None:
        date = response_at.wall
    expires = response.lines("Expires")
    if expires:  # what is no date is past [§5.3]
        values = [parse_date(value, response_at.wall) for value in expires]
        first = max(0, values[0] - date) if values[0] is not None else 0
        return Lifetime(first, first if len(values) == 1 else 0, True)
    if response.status in HEURISTICALLY_CACHEABLE or directive(response, "public"):  # [§4.2.2]
        modified = parse_date(response.first("Last-Modified"), response_at.wall)
        if modified is not None and modified < date:
            tenth = min((date - modified) // 10, HEURISTIC_MAXIMUM)
            return Lifetime(tenth, tenth, False)
    return Lifetime(0, 0, False)


def age_value(response):
    """The first member; what is no delta-seconds is ignored [§5.1]."""
    members = response.members("Age")
    match = re.fullmatch(r"\d+", members[0], re.A) if members else None
    return min(int(members[0]), DELTA_MAXIMUM) if match else 0


def initial_age(response, request_at, response_at):
    """corrected_initial_age [§4.2.3]."""
    date = parse_date(response.first("Date"), response_at.wall)
    apparent = max(0, response_at.wall - date) if date is not None else 0
    return max(apparent, age_value(response) + response_at.steady - request_at.steady)


# ---- storing, [§3] ----

def authorization_permits(response):  # [§3.5]; an s-maxage that cannot be read says nothing
    return bool(directive(response, "public") or directive(response, "must-revalidate")) or \
        any(parse_delta(argument) is not None for argument in directive(response, "s-maxage")[:1])


def is_for_credentials(request, response):
    """Whether it is for those alone who sent them; what others may have is as it was."""
    return request.has("Authorization") and not authorization_permits(response)


def is_forbidden(request, response):
    """Why it must not be stored; None."""
    understood = response.status in UNDERSTOOD
    if directive(request, "no-store"):
        return "the request says no-store [§5.2.1.5]"
    if directive(response, "no-store") and not (directive(response, "must-understand") and understood):
        return "the response says no-store [§5.2.2.5]"
    if directive(response, "must-understand") and not understood:
        return "must-understand, and the status is unknown [§5.2.2.3]"
    if any(not names(argument) for argument in directive(response, "private")):
        return "private [§5.2.2.7]"
    if is_for_credentials(request, response):
        return "Authorization [§3.5]"
    if response.status < 200 or response.status == 304:
        return "no final response of its own"
    if response.status in (412, 416):
        return "an answer to the request's condition or range, which select no response [§4]"
    return None


def names(argument):
    """The field names of private="a, b" or no-cache="a"; [] when there are none."""
    if argument is None:
        return []
    return [name.lower() for name in re.findall(TOKEN, argument.strip('"'))]


def may_store(request, response, at):
    if request.method in ("POST", "PATCH"):  # [RFC 9110 §8.7, §9.3.3, RFC 5789 §2]
        location = response.first("Content-Location")
        here = location in (request.target, f"http://{request.host}{request.target}")
        if not 200 <= response.status < 300 or not here or not lifetime(response, at).is_explicit:
            return False
    elif request.method != "GET":
        return False
    if is_forbidden(request, response):
        return False
    if response.status == 206 and response.offset is None:  # which part it is, is not known
        return False
    if not response.complete and response.status not in (200, 206):  # [§3.3]
        return False
    return bool(directive(response, "public")) or lifetime(response, at).is_explicit or \
        response.status in HEURISTICALLY_CACHEABLE


# ---- selecting, [§4.1] ----

def vary_names(response):
    return [member.lower() for member in response.members("Vary")]


PREFERENCES = {"accept-language": "Content-Language", "accept-encoding": "Content-Encoding"}


def weighted(request, name):
    """A list of preferences as a set: the order and case of its members mean nothing [RFC 9110 §12.4.2, §12.5]."""
    found = set()
    for member in request.members(name):
        word, *parameters = [part.strip(" \t") for part in member.lower().split(";")]
        weight = [part[2:] for part in parameters if part.startswith("q=")]
        word = word.removeprefix("x-") if word in ("x-gzip", "x-compress") else word
        found.add((word, float(weight[0]) if weight and re.fullmatch(r"[\d.]+", weight[0]) else 1.0))
    return found


def is_nominated(request, name):
    return name in {member.lower() for member in request.members("Connection")}


def selecting_value(request, name):
    """The field normalised as its grammar allows; None when it is not there, which differs from empty."""
    if not request.has(name) or is_nominated(request, name):
        return None
    if name in PREFERENCES:
        return tuple(sorted(weighted(request, name)))
    return ",".join(re.sub(r"[ \t]+", " ", re.sub(r"[ \t]*,[ \t]*", ",", line.strip(" \t"))) for line in request.lines(name))


def is_favourite(stored, request, name):
    """The response is in the one language that the request puts above all others: whatever else it accepts, the origin
    could do no better."""
    if name != "accept-language" or not request.has(name) or is_nominated(request, name):
        return False
    members = sorted(weighted(request, name), key=lambda one: one[1])
    if not members or len(members) > 1 and members[-2][1] == members[-1][1]:
        return False
    return (stored.response.first("Content-Language") or "").lower() == members[-1][0]


def selects(stored, request, favourites=False):
    """The request has what the stored response was selected by, as far as Vary tells. `favourites`: or prefers it."""
    return all(name != "*" and (selecting_value(stored.request, name) == selecting_value(request, name) or
        (favourites and is_favourite(stored, request, name))) for name in vary_names(stored.response))


def rank(stored, request):
    """The order of choice among several: one without Vary may lack it by mistake and comes last; the most recent first
    among equals [§4.1]."""
    chosen = 0 if not vary_names(stored.response) else 2 if selects(stored, request) else 1
    return chosen, stored.date(), stored.number


# ---- what may be stored ----

@dataclass(eq=False)
class Stored:
    request: Request
    response: Response
    request_at: Moment
    response_at: Moment
    number: int  # in the order of arrival
    by: str = "GET"  # the method it answered
    sure: bool = True  # a cache that stores what it may has it
    proven: bool = False  # it has been seen to be
    must_confirm: bool = False  # invalidated [§4.4], or contradicted by a HEAD [§4.3.5]

    @property
    def key(self):
        return self.request.key

    @property
    def lifetime(self):
        return lifetime(self.response, self.response_at)

    def age(self, now):  # [§4.2.3]
        return initial_age(self.response, self.request_at, self.response_at) + now.steady - self.response_at.steady

    def date(self):
        date = parse_date(self.response.first("Date"), self.response_at.wall)
        return self.response_at.wall if date is None else date

    def is_fresh(self, now):
        return self.lifetime.most > self.age(now)

    def is_wanted_fresh(self, now):
        return self.lifetime.wanted > self.age(now)

    def overdue(self, now):
        """How long it has been stale."""
        return self.age(now) - self.lifetime.most

    def is_complete(self):
        return self.response.complete and self.response.status != 206

    def never_unconfirmed(self):  # [§5.2.2.4]
        return self.must_confirm or any(not names(argument) for argument in directive(self.response, "no-cache"))

    def withheld(self):
        """Fields not to be sent unconfirmed: no-cache="..." [§5.2.2.4]."""
        return {name for argument in directive(self.response, "no-cache") for name in names(argument)}

    def forbids_stale(self):  # [§4.2.4, §5.2.2]
        return self.never_unconfirmed() or any(directive(self.response, name)
            for name in ("must-revalidate", "proxy-revalidate", "s-maxage"))

    def validators(self):
        etag = etag_of(self.response)
        modified = self.response.first("Last-Modified")
        return etag, modified if parse_date(modified, self.response_at.wall) is not None else None


# ---- using what is stored without asking, [§4.2, §5.2.1] ----

def insists(request):
    """no-cache, and Pragma where there is no Cache-Control [§5.2.1.4, §5.4]."""
    if directive(request, "no-cache"):
        return True
    return not request.has("Cache-Control") and "no-cache" in [one.lower() for one in request.members("Pragma")]


def request_delta(request, name):
    """(there, seconds): seconds None without a valid argument."""
    arguments = directive(request, name)
    return bool(arguments), parse_delta(arguments[0]) if arguments else None


def is_plain(request):
    """Every directive it has is one whose meaning leaves no choice: a cache that reuses less has no excuse."""
    for name, argument in directives(request):
        if name in ("max-age", "min-fresh") and parse_delta(argument) is None:
            return False
        if name == "max-stale" and argument is not None and parse_delta(argument) is None:
            return False
        if name in ("max-age", "min-fresh", "max-stale") and len(directive(request, name)) > 1:
            return False
        if name == "no-store":
            return False  # may be answered from the store all the same [§5.2.1.5]
    return True


def request_permits(stored, request, now):
    """None, or the request's own limit that is broken."""
    if insists(request):
        return "request no-cache [§5.2.1.4]"
    there, seconds = request_delta(request, "max-age")
    if there and seconds is not None and stored.age(now) > seconds:
        return "request max-age [§5.2.1.1]"
    if there and seconds is not None and not stored.is_fresh(now) and not directive(request, "max-stale"):
        return "request max-age, and stale [§5.2.1.1]"
    there, seconds = request_delta(request, "min-fresh")
    if there and seconds is not None and stored.lifetime.most < stored.age(now) + seconds:
        return "request min-fresh [§5.2.1.3]"
    return None


def max_stale_permits(stored, request, now):  # [§5.2.1.2]
    for argument in directive(request, "max-stale"):
        if argument is None or (parse_delta(argument) is not None and stored.overdue(now) <= parse_delta(argument)):
            return True
    return False


def window_permits(stored, name, now):
    """stale-while-revalidate and stale-if-error of the response [RFC 5861 §3, §4]."""
    arguments = directive(stored.response, name)
    seconds = parse_delta(arguments[0]) if arguments else None
    return seconds is not None and stored.overdue(now) <= seconds


def request_window_permits(stored, request, now):  # [RFC 5861 §4]: stale-if-error of the request
    there, seconds = request_delta(request, "stale-if-error")
    return there and seconds is not None and stored.overdue(now) <= seconds


# What makes it permissible to use a stored response in answering.
FRESH, IMMUTABLE, MAX_STALE, WHILE_REVALIDATE, IF_ERROR, DISCONNECTED = \
    "fresh", "immutable", "max-stale", "stale-while-revalidate", "stale-if-error", "disconnected"


def why_usable(stored, request, now, asked=False, error=False, disconnected=False):
    """The grounds [§4] on which a stored response may answer unconfirmed, and else why it may not: (grounds, reason).
    `asked`: the origin was asked meanwhile; `error`: it answered 500, 502, 503 or 504; `disconnected`: not at all."""
    if stored.never_unconfirmed():
        return None, "no-cache or invalidated [§5.2.2.4, §4.4]"
    broken = request_permits(stored, request, now)
    if stored.is_fresh(now):
        if not broken:
            return FRESH, None
        if directive(stored.response, "immutable") and parse_delta((directive(request, "max-age") or [None])[0]) == 0 and \
                not insists(request) and not directive(request, "min-fresh"):
            return IMMUTABLE, None  # a reload, and the origin says that it changes nothing [RFC 8246 §2]
        if error and not insists(request):
            return IF_ERROR, None  # not even stale: what the request prefers is not to be had [§5.2.1]
        return (DISCONNECTED, None) if disconnected else (None, broken)
    if stored.forbids_stale():
        return None, "stale, and must-revalidate, proxy-revalidate or s-maxage [§4.2.4]"
    if not broken and max_stale_permits(stored, request, now):
        return MAX_STALE, None
    if not broken and asked and window_permits(stored, "stale-while-revalidate", now):
        return WHILE_REVALIDATE, None
    if (error or disconnected) and (window_permits(stored, "stale-if-error", now) or
            request_window_permits(stored, request, now)):
        return IF_ERROR, None
    if disconnected:
        return DISCONNECTED, None  # [§4.2.4]
    return None, broken or "stale [§4.2.4]"


# ---- conditions and ranges answered from what is stored ----

def not_modified(request, response, received_wall):
    """What the request's condition says of the response [RFC 9110 §13, RFC 9111 §4.3.2]: True, False, or None where its
    text is malformed and either is defensible."""
    if not 200 <= response.status < 300:
        return False  # [RFC 9110 §13.2.1]
    if request.has("If-None-Match"):
        tags, clean = etag_list(request, "If-None-Match")
        if "*" in tags:
            return True
        etag = etag_of(response)
        if etag and any(weakly_equal(etag, tag) for tag in tags):
            return True if clean else None
        return False if clean and (etag or not response.has("ETag")) else None
    if request.has("If-Modified-Since"):
        if len(request.lines("If-Modified-Since")) > 1:
            return None
        since = parse_date(request.first("If-Modified-Since"), received_wall)
        if since is None:
            return False
        modified = parse_date(response.first("Last-Modified"), received_wall)
        if response.has("Last-Modified"):
            return modified is not None and modified <= since
        date = parse_date(response.first("Date"), received_wall)
        return None if date is None else date <= since
    return False


def is_conditional(request):
    return request.has("If-None-Match") or request.has("If-Modified-Since")


def byte_ranges(request, size):
    """[(first, last)] that can be satisfied, [] for none of them, None for no valid Range [RFC 9110 §14.1, §14.2]."""
    values = request.lines("Range")
    if len(values) != 1 or request.method != "GET":
        return None
    match = re.fullmatch(r"bytes=(.*)", values[0], re.I)
    if not match:
        return None
    found = []
    for spec in [part.strip(" \t") for part in match[1].split(",") if part.strip(" \t")]:
        limits = re.fullmatch(r"(\d*)-(\d*)", spec, re.A)
        if not limits or limits[0] == "-":
            return None
        first, last = limits[1], limits[2]
        if first and last and int(first) > int(last):
            return None
        if not first:
            if int(last) and size:
                found.append((max(0, size - int(last)), size - 1))
        elif int(first) < size:
            found.append((int(first), min(int(last), size - 1) if last else size - 1))
    return found


def if_range_holds(request, response, received_wall):
    """True, False, or None where it is malformed [RFC 9110 §13.1.5]. A date is strong when it is Last-Modified and a
    second or more older than Date [RFC 9110 §8.8.2.2]."""
    value = request.first("If-Range")
    if value is None:
        return True
    if re.fullmatch(ETAG, value):
        etag = etag_of(response)
        return bool(etag) and strongly_equal(etag, value)
    wanted = parse_date(value, received_wall)
    if wanted is None:
        return False
    modified = parse_date(response.first("Last-Modified"), received_wall)
    if modified is None or modified != wanted:
        return False
    date = parse_date(response.first("Date"), received_wall)
    return True if date is not None and date > modified else None


# ---- what a 304 or a HEAD's answer says of what is stored ----

def same_content(a, b):
    """Whether parts of the two can be joined [RFC 9110 §15.3.7.3]."""
    if etag_of(a) or etag_of(b):
        return bool(etag_of(a) and etag_of(b)) and strongly_equal(etag_of(a), etag_of(b))
    return a.has("Last-Modified") and a.first("Last-Modified") == b.first("Last-Modified")


def has_strong_date(stored):
    """Last-Modified is strong when it is at least a second before Date [RFC 9110 §8.8.2.2], which a cache adds where it is
    missing [§6.6.1]."""
    modified = parse_date(stored.response.first("Last-Modified") or "", 0)
    return modified is not None and stored.date() > modified


def since_proven(stored_list):
    """Of a list whose most recent by Date is meant: that one, and those before it too where it is not known that a cache
    has stored it. Of the same second, each is the most recent."""
    proven = [one for one in stored_list if one.proven]
    return [one for one in stored_list if not proven or one.date() >= proven[-1].date()]


def updated_by(stored_list, response):
    """Those of the stored responses that a 304 freshens [§4.3.4]."""
    etag, modified = etag_of(response), response.first("Last-Modified")
    if etag and not is_weak(etag):
        return [one for one in stored_list if etag_of(one.response) and strongly_equal(etag_of(one.response), etag)]
    if etag or modified:  # one that corresponds is enough
        order = sorted(stored_list, key=lambda one: (one.date(), one.number))
        by_tag = [one for one in order if etag and etag_of(one.response) and weakly_equal(etag_of(one.response), etag)]
        by_date = [one for one in order if modified and one.response.first("Last-Modified") == modified]
        strong = [one for one in by_date if has_strong_date(one)]  # identifies all that have it
        return since_proven(by_tag) + [one for one in strong or since_proven(by_date) if one not in by_tag]
    return stored_list if len(stored_list) == 1 and not any(stored_list[0].validators()) else []


NEVER_UPDATED = {"content-length", "content-encoding", "content-range"}


def merged(stored, update, at):
    """§3.2: every field of the update in place of the stored ones of that name, but for those that describe the stored
    bytes and those of the connection. Age speaks of the response as last validated [§4.2.3]; an update without Date gets
    the time of its arrival [RFC 9110 §6.6.1]."""
    left_out = hop_by_hop(update) | NEVER_UPDATED
    new = [(name, value) for name, value in update.fields if name.lower() not in left_out]
    if not update.has("Date"):
        new.append(("Date", print_date(at.wall)))
    if etag_of(stored):  # the tag of the bytes it has
        new = [(name, value) for name, value in new if name.lower() != "etag"]
    replaced = {name.lower() for name, _ in new} | {"age"}
    old = [(name, value) for name, value in stored.fields if name.lower() not in replaced]
    return Response(stored.status, old + new, stored.body, stored.complete, stored.offset, stored.size)


def contradicts(stored, head):
    """Whether a HEAD's answer tells of another representation than the stored one [§4.3.5]."""
    length = head.first("Content-Length")
    return any(head.has(name) and head.first(name) != stored.first(name) for name in ("ETag", "Last-Modified")) or \
        (length is not None and stored.status != 206 and stored.complete and int(length) != stored.size)


def is_safe(method):
    return method in ("GET", "HEAD", "OPTIONS", "TRACE")


def same_origin(request, location):
    """The target a Location or Content-Location of the same origin names; None for another's [§4.4]."""
    if location is None:
        return None
    if location.startswith("/") and not location.startswith("//"):
        return location
    match = re.fullmatch(r"http://([^/?#]*)(/[^#]*)?(#.*)?", location, re.I)
    if match and match[1].lower().removesuffix(":80") == request.host.removesuffix(":80"):
        return match[2] or "/"
    return None


# ---- the cache ----

class Cache:
    """All that a cache may have stored. `learn` is told of every exchange with the origin, in order."""

    def __init__(self):
        self.stored = []
        self.count = 0
        self.for_each = set()  # URLs whose last answer was of no use to others

    def copy(self):
        other = Cache()
        other.stored, other.count = [replace(one) for one in self.stored], self.count
        return other

    def of_url(self, key):
        return [one for one in self.stored if one.key == key]

    def matching(self, request):
        """Those that the request selects, the one to be used last [§4, §4.1]."""
        found = [one for one in self.of_url(request.key) if selects(one, request)]
        return sorted(found, key=lambda one: rank(one, request))

    def learn(self, request, asked, response, request_at, response_at):
        """The client's `request` went on as `asked`, and `response` came back (None: nothing did). Returns those that a
        304 has freshened."""
        if response is None:
            return []
        if not is_safe(request.method) and 200 <= response.status < 400:
            self.invalidate(request, response)
        if request.method == "HEAD":
            self.learn_head(request, response, request_at, response_at)
        elif response.status == 304 and request.method == "GET":
            return self.freshen(request, asked, response, request_at, response_at)
        elif may_store(request, response, response_at):
            self.store(request, response, request_at, response_at)
        elif request.method == "GET" and response.status < 500:
            self.doubt(request.key)  # what was stored may have been dropped on this
        return []

    def next_number(self):
        self.count += 1
        return self.count

    def doubt(self, key):
        for one in self.of_url(key):
            one.sure = False

    def store(self, request, response, request_at, response_at):
        get = Request("GET", request.target, request.fields, request.destination)
        new = Stored(get, response, request_at, response_at, self.next_number(), request.method)
        new.sure = new.is_complete() and "*" not in vary_names(response)
        if not new.sure:
            self.doubt(request.key)
        for one in self.of_url(request.key):
            if not (one.is_complete() and new.is_complete()) and same_content(one.response, response):
                self.supersede(one, response=merged(one.response, response, response_at), request_at=request_at,
                    response_at=response_at, sure=False)  # joined with it [§3.4]
        for one in self.matching(request):  # it may take the place of what the request would have selected [§4.3.3]
            one.sure = one.proven = False
        self.stored.append(new)

    def supersede(self, old, **changes):
        new = replace(old, number=self.next_number(), **changes)
        self.stored.append(new)
        return new

    def freshen(self, request, asked, response, request_at, response_at):
        updated = updated_by(self.of_url(request.key), response)
        if not updated and not etag_of(response) and not response.has("Last-Modified"):
            # It should have had one [RFC 9110 §15.4.5], or one that can be read; what it can only mean is what was asked about.
            named = self.asked_about(request, asked)
            same = [one for one in named if response.has("ETag") and one.response.lines("ETag") == response.lines("ETag")]
            updated = since_proven(same or named)
        if is_conditional(request) and all(asked.lines(name) == request.lines(name)
                for name in ("If-None-Match", "If-Modified-Since")):
            for one in updated:  # it answers the client: a cache should look at it all the same, but need not
                one.sure = False
        elif len(updated) == 1 or not is_weak(etag_of(response) or "W/"):
            for one in updated:  # another variant's is as good as it was for those who select it
                one.sure = False
            self.stored = [one for one in self.stored if one not in updated or not selects(one, request) or
                is_for_credentials(request, merged(one.response, response, response_at))]
        else:  # one of them, the most recent that there is
            for one in updated:
                one.sure = False
        for one in self.matching(request):
            if one not in updated:  # it is not what the origin would send
                one.sure = one.proven = False
        return [self.freshened(one, request, response, request_at, response_at) for one in updated]

    def freshened(self, old, request, response, request_at, response_at):
        new = self.supersede(old, response=merged(old.response, response, response_at), request_at=request_at,
            response_at=response_at, must_confirm=False)
        if not may_store(request, new.response, response_at):  # it was good for this request alone
            new.must_confirm, new.sure = True, False
        if vary_names(new.response) != vary_names(old.response):  # selected by the request of then, or of now
            new.sure = False
            self.supersede(new, request=Request("GET", request.target, request.fields, request.destination))
        return new

    def asked_about(self, request, asked):
        """Those whose validators went out in the question."""
        tags, _ = etag_list(asked, "If-None-Match")
        def is_named(one):
            etag, _ = one.validators()
            if asked.has("If-None-Match"):  # quoted or not
                return etag in tags or one.response.first("ETag") in asked.members("If-None-Match")
            return one.response.has("Last-Modified") and one.response.first("Last-Modified") == asked.first("If-Modified-Since")
        named = [one for one in self.of_url(request.key) if is_named(one)]
        return named if len(named) == 1 else [one for one in self.matching(request) if is_named(one)] or named

    def invalidate(self, request, response):  # [§4.4]
        targets = {request.target}
        for name in ("Location", "Content-Location"):
            targets.add(same_origin(request, response.first(name)))
        for one in self.stored:
            if one.key[:2] == request.key[:2] and one.key[2] in targets:
                one.must_confirm, one.sure = True, False

    def learn_head(self, request, response, request_at, response_at):  # [§4.3.5]
        if response.status != 200:
            return self.doubt(request.key) if response.status < 500 else None
        for one in [one for one in self.of_url(request.key) if selects(one, request, favourites=True)]:
            if one.response.status != 200:
                one.sure = False
            elif contradicts(one.response, response):
                one.must_confirm, one.sure = one.must_confirm or selects(one, request), False
            else:  # it should be freshened; one that is not, is none the worse
                get = Request("GET", request.target, request.fields, request.destination)
                self.freshened(one, get, response, request_at, response_at)
                one.sure = False
