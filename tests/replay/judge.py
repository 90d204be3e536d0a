"""Holds what was seen from outside against the model: what is wrong, and what is less than wanted.

An origin of these sequences marks what it sends: X-Id is another for each response, a 304 included, so that it tells
where a head comes from; X-Body names the content, from which every byte of it follows, so that a byte of another version,
another variant or another place is recognised."""
import hashlib
import re
from collections import namedtuple
from dataclasses import dataclass, field, replace

import model
from model import Moment, Request, Response

Finding = namedtuple("Finding", "kind name text stored seen")  # kind: "wrong", or "miss" and of which stored response


def content(name):
    """The content that X-Body names: its last word is the size."""
    size = int(name.rsplit("|", 1)[1])
    return hashlib.shake_128(name.encode()).hexdigest(size // 2 + 1).encode()[:size]


@dataclass
class Contact:
    """One request at the origin. `response` None: no head of a final response came back."""
    asked: Request
    response: Response
    at: Moment


@dataclass
class Seen:
    """One request of a client. `answer` None: the connection ended without one."""
    request: Request
    answer: Response
    at: Moment
    contacts: list = field(default_factory=list)
    others: list = field(default_factory=list)  # contacts on behalf of those who asked at the same time


OF_THE_PROXY = {"via", "age", "content-length", "content-range", "cache-status", "date"}
CONDITIONS = {"if-none-match", "if-modified-since", "range", "if-range"}
FORWARDED_ASIDE = CONDITIONS | {"via", "host", "x-forwarded-for", "forwarded", "content-length", "max-forwards"}


def end_to_end(message, aside):
    """{name: values in order}, without those that are of one connection."""
    left_out, fields = model.hop_by_hop(message) | aside, {}
    for name, value in message.fields:
        if name.lower() not in left_out:
            fields.setdefault(name.lower(), []).append(value)
    return fields


def learn(cache, request, contact):
    response = contact.response
    if response and request.method == "GET":
        arrived = model.Stored(request, response, contact.at, contact.at, 0)
        shared = model.may_store(request, response, contact.at) and arrived.is_wanted_fresh(contact.at) and \
            "*" not in model.vary_names(response)
        (cache.for_each.discard if shared else cache.for_each.add)(request.key)
    if contact.asked and contact.asked.method == "GET" and request.method == "HEAD":  # it refreshes what is stored
        request = Request("GET", request.target, request.fields, request.destination)
    return cache.learn(request, contact.asked, contact.response, contact.at, contact.at)


class Judge:
    def __init__(self, cache, seen):
        self.before, self.cache, self.seen = cache.copy(), cache, seen
        self.request, self.answer = seen.request, seen.answer
        self.findings, self.updated = [], []

    def say(self, kind, name, text="", stored=None):
        self.findings.append(Finding(kind, name, text, stored, self.seen))

    def wrong(self, name, text=""):
        self.say("wrong", name, text)

    def run(self):
        for contact in self.seen.contacts:
            if contact.asked:
                self.check_asked(contact)
            self.updated += learn(self.cache, self.request, contact)
        if self.answer is None:
            if not any(contact.response is None for contact in self.seen.contacts + self.seen.others):
                self.wrong("no-answer")
            return self.findings
        self.check_content()
        self.check_source()
        self.check_wanted()
        return self.findings

    # ---- what the origin was asked ----

    def check_asked(self, contact):
        asked, request = contact.asked, self.request
        method = "HEAD" if request.method == "HEAD" and asked.method == "GET" else asked.method
        if (method, asked.target, asked.host, asked.destination) != \
                (request.method, request.target, request.host, request.destination):
            self.wrong("asked-other", f"{asked.method} {asked.target} at {asked.host}")
        if asked.body != request.body:
            self.wrong("asked-body", repr(asked.body[:80]))
        if end_to_end(asked, FORWARDED_ASIDE) != end_to_end(request, FORWARDED_ASIDE):
            self.wrong("asked-fields", f"{asked.fields} for {request.fields}")
        for name in asked.fields:
            if name[0].lower() in model.HOP_BY_HOP - {"connection", "transfer-encoding"}:
                self.wrong("asked-hop-by-hop", name[0])
        if model.directive(request, "only-if-cached") and request.method in ("GET", "HEAD"):
            self.wrong("asked-only-if-cached", "[RFC 9111 §5.2.1.7]")
        self.check_conditions(asked)

    def check_conditions(self, asked):
        """A condition is the client's own, or names validators of what may be stored [RFC 9111 §4.3.1]."""
        url = self.cache.of_url(self.request.key)
        tags = {one.validators()[0] for one in url} | set(model.etag_list(self.request, "If-None-Match")[0])
        own = self.request.lines("If-None-Match")
        if asked.lines("If-None-Match") != own and not set(model.etag_list(asked, "If-None-Match")[0]) <= tags:
            self.wrong("asked-unknown-etag", f"{asked.lines('If-None-Match')} of {tags}")
        dates = {one.response.first("Last-Modified") for one in url} | set(self.request.lines("If-Modified-Since"))
        if not set(asked.lines("If-Modified-Since")) <= dates:
            self.wrong("asked-unknown-date", f"{asked.lines('If-Modified-Since')} of {dates}")
        if asked.lines("Range") not in ([], self.request.lines("Range")):
            strong = {tag for tag in tags if tag and not model.is_weak(tag)} | dates - {None}
            if asked.first("If-Range") not in strong:
                self.wrong("asked-range", f"{asked.lines('Range')} {asked.lines('If-Range')}")

    # ---- bytes ----

    def check_content(self):
        answer = self.answer
        if self.request.method == "HEAD" or answer.status in (204, 304):
            if answer.body:
                self.wrong("body-where-none", repr(answer.body[:80]))
        elif answer.has("X-Body"):
            self.check_body(answer)
        if len(answer.lines("Content-Length")) > 1 or len(answer.lines("Age")) > 1:
            self.wrong("repeated-field", f"{answer.fields}")

    def check_body(self, answer):
        if answer.status == 416:
            return
        name = answer.first("X-Body")
        whole = content(name)
        if name.split("|")[:2] != [self.request.host, self.request.target]:
            self.wrong("body-of-other-url", name)
        if answer.status == 206:
            return self.check_parts(answer, whole)
        if answer.complete and answer.body != whole:
            self.wrong("wrong-body", f"{len(answer.body)} bytes {answer.body[:40]!r} of {name}")
        elif not whole.startswith(answer.body):
            self.wrong("wrong-body", f"{len(answer.body)} bytes {answer.body[:40]!r} of {name}, cut short")
        length = answer.first("Content-Length")
        if length is not None and int(length) != len(whole):
            self.wrong("wrong-length", f"{length} of {len(whole)}")

    def check_parts(self, answer, whole):
        kind = re.fullmatch(r"multipart/byteranges; *boundary=\"?([^\"]+)\"?", answer.first("Content-Type") or "", re.I)
        wanted = model.byte_ranges(self.request, len(whole))
        if not kind:
            parts = [(answer.first("Content-Range"), answer.body)]
        else:
            parts = self.read_parts(answer, kind[1])
        if not self.request.has("Range"):
            self.wrong("206-without-range")
        for text, body in parts:
            match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", text or "")
            if not match or int(match[3]) != len(whole) or not int(match[1]) <= int(match[2]) < len(whole):
                self.wrong("wrong-content-range", repr(text))
                continue
            first, last = int(match[1]), int(match[2])
            expected = whole[first:last + 1]
            if body != expected and (answer.complete or not expected.startswith(body)):
                self.wrong("wrong-range-bytes", f"{text}: {body[:40]!r}, {len(body)} bytes")
            if not self.is_asked_range(first, last, wanted):
                self.wrong("range-not-asked", f"{text} for {self.request.lines('Range')}")

    def is_asked_range(self, first, last, wanted):
        """A part covers what was asked, possibly several ranges made one [RFC 9110 §15.3.7.2]; or it is the origin's
        own word, passed on."""
        if any(contact.response and contact.response.status == 206 and contact.response.offset == first and
                first + len(contact.response.body) - 1 <= last
                for contact in self.seen.contacts + self.seen.others):
            return True
        inside = [one for one in wanted or [] if first <= one[0] and one[1] <= last]
        return bool(inside) and min(one[0] for one in inside) == first and max(one[1] for one in inside) == last

    def read_parts(self, answer, boundary):
        parts = []
        body = b"\r\n" + answer.body
        mark = b"\r\n--" + boundary.encode()
        if answer.complete and not body.rstrip(b"\r\n").endswith(mark + b"--"):
            self.wrong("multipart-without-end", repr(answer.body[-60:]))
        for part in body.split(mark)[1:]:
            if part.startswith(b"--"):
                break
            head, _, data = part.partition(b"\r\n\r\n")
            ranges = [line.split(b":", 1)[1].strip().decode() for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-range:")]
            parts.append((ranges[0] if ranges else None, data))
        return parts

    # ---- where the answer comes from, and whether it may ----

    def check_source(self):
        number = self.answer.first("X-Id")
        if number is None:
            return self.check_own_page()
        for contact in self.seen.contacts:
            if contact.response and contact.response.first("X-Id") == number:
                return self.check_of_contact(contact)
        found = [one for one in self.before.stored if one.response.first("X-Id") == number]
        same = [one for one in found if self.answer.first("X-Body") in (None, one.response.first("X-Body"))]
        if not same:
            return self.wrong("from-nowhere", f"X-Id {number}, {self.answer.first('X-Body')}")
        self.check_any(same, self.check_from_store)

    def check_any(self, candidates, check):
        """Several stored responses may bear the head of one 304: one that fits is enough. Keeps the findings of the best."""
        before, best = self.findings, None
        for candidate in candidates:
            self.findings = []
            check(candidate)
            if best is None or len(self.findings) < len(best[0]):
                best = self.findings, candidate
        self.findings = before + best[0]
        for one in self.cache.stored:
            if isinstance(best[1], model.Stored) and one.number == best[1].number:
                one.proven = True

    def check_own_page(self):
        status, contacts = self.answer.status, self.seen.contacts
        if status == 504 and model.directive(self.request, "only-if-cached") and not contacts:
            return
        if status in (502, 503, 504) and any(contact.response is None or not contact.response.complete or
                contact.response.status == 206 for contact in contacts + self.seen.others):
            return
        sizes = [one.response.size for one in self.cache.of_url(self.request.key)]
        sizes += [contact.response.size for contact in contacts if contact.response]
        if status == 416 and self.request.has("Range"):
            if any(model.byte_ranges(self.request, size) == [] for size in sizes):
                length = re.fullmatch(r"bytes \*/(\d+)", self.answer.first("Content-Range") or "")
                if not length or int(length[1]) not in sizes:
                    self.wrong("416-without-length", f"{self.answer.lines('Content-Range')}")
                return
        if status == 304 and not self.answer.has("X-Id"):
            return self.wrong("304-without-fields", f"{self.answer.fields}")
        self.wrong("own-page", f"{status} with {len(contacts)} contacts: {self.answer.body[:200]!r}")

    def check_of_contact(self, contact):
        """It bears the head of what the origin has just said."""
        answer, response = self.answer, contact.response
        if response.status == 304:
            return self.check_confirmed(contact)
        # Joined with what is stored of it, the response renews its fields [RFC 9111 §3.4].
        partial = [one.response for one in self.before.of_url(self.request.key) if not one.is_complete() and
            response.status == 206 and one.response.first("X-Body") == response.first("X-Body")]
        heads = [response] + [model.merged(one, response, contact.at) for one in partial]
        self.check_any(heads, lambda head: self.check_fields(head, is_stored=bool(partial) and head is not response))
        if self.answer.first("X-Body") != response.first("X-Body"):
            self.wrong("mixed-response", f"{self.answer.first('X-Body')} under the head of {response.first('X-Body')}")
        self.check_status(response)
        if not answer.complete and response.complete and answer.status == response.status:
            self.wrong("cut-without-cause")
        raw = model.age_value(response)
        if answer.has("Age") and not response.has("Age") and answer.first("Age") != "0":
            date = model.initial_age(response, contact.at, contact.at)
            if answer.first("Age") != str(date):
                self.wrong("wrong-age", f"{answer.first('Age')} on a response that came without")
        if raw and not answer.has("Age"):
            self.wrong("age-dropped", str(raw))

    def check_status(self, response):
        """The status is the response's, or what the request's condition or range makes of it."""
        answer = self.answer
        if answer.status == response.status:
            return
        if answer.status == 304:
            if model.not_modified(self.request, response, self.seen.at.wall) is False:
                self.wrong("304-for-modified", f"{self.request.fields}")
        elif answer.status == 206 and response.status in (200, 206):
            if model.if_range_holds(self.request, response, self.seen.at.wall) is False:
                self.wrong("206-against-if-range", f"{self.request.first('If-Range')}")
        elif answer.status == 416 and response.status in (200, 206):
            if model.byte_ranges(self.request, response.size) != []:
                self.wrong("416-for-satisfiable", f"{self.request.lines('Range')} of {response.size}")
        elif answer.status == 200 and response.status == 206:
            pass  # joined with what is stored, the bytes have been looked at
        else:
            self.wrong("other-status", f"{answer.status} for {response.status}")

    def check_confirmed(self, contact):
        """The head is that of a 304."""
        answer, response = self.answer, contact.response
        own = {name: self.request.lines(name) for name in ("If-None-Match", "If-Modified-Since")}
        if answer.status == 304:
            passed_on = any(own.values()) and all(contact.asked.lines(name) == lines for name, lines in own.items())
            if not passed_on and not any(model.not_modified(self.request, one.response, self.seen.at.wall) is not False
                    for one in self.updated):
                self.wrong("304-for-modified", f"client asked {own}, the origin was asked {contact.asked.fields}")
            possible = [response] * passed_on + [one.response for one in self.updated]
            return self.check_fields_of_304(*possible)
        same = [one for one in self.updated if answer.first("X-Body") == one.response.first("X-Body")]
        if same:
            return self.check_any(same, self.check_confirmed_one)
        return self.wrong("confirmed-other", f"{answer.first('X-Body')} by a 304 with {response.fields}")

    def check_confirmed_one(self, stored):
        if not model.selects(stored, self.request) and self.answer.first("X-Id") != stored.response.first("X-Id"):
            self.wrong("confirmed-other-variant", f"{stored.request.fields}")
        self.check_fields(stored.response, free=stored.withheld())
        self.check_status(stored.response)
        if self.answer.has("Age") and self.answer.first("Age") not in ("0", str(stored.age(self.seen.at))):
            self.wrong("wrong-age", f"{self.answer.first('Age')} for {stored.age(self.seen.at)} after a confirmation")

    def check_from_store(self, stored):
        now, request, contacts = self.seen.at, self.request, self.seen.contacts
        if request.method not in ("GET", "HEAD"):
            return self.wrong("reused-for-method", request.method)
        if stored.key != request.key:
            return self.wrong("reused-for-other-url", f"{stored.key}")
        if not model.selects(stored, request, favourites=True):
            self.wrong("reused-other-variant", f"Vary {stored.response.lines('Vary')}: {stored.request.fields}")
        asked = contacts + self.seen.others
        error = any(contact.response and contact.response.status in (500, 502, 503, 504) for contact in asked)
        # A 206 that is of no use to the request is no answer.
        disconnected = any(contact.response is None or contact.response.status == 206 for contact in asked)
        grounds, reason = model.why_usable(stored, request, now, bool(asked), error, disconnected)
        # What has come since the request was made for another who asked the same is as good as confirmed.
        is_shared = bool(self.seen.others) and stored.response_at == now
        is_confirmed = any(contact.response and contact.response.status == 304 and
            contact.response.first("X-Id") == self.answer.first("X-Id") for contact in self.seen.others)
        if not grounds and not (is_confirmed and not stored.must_confirm) and \
                not (is_shared and stored.is_fresh(now) and not stored.never_unconfirmed()):
            self.wrong("reused-wrongly", f"{reason}; age {stored.age(now)}, lifetime {stored.lifetime.most}, "
                f"{stored.response.lines('Cache-Control')}")
        for one in self.before.matching(request):
            order = model.rank(one, request), model.rank(stored, request)
            if one.sure and order[0] > order[1] and (one.is_fresh(now) or one.number > stored.number) and \
                    one.response_at != stored.response_at:
                self.say("wrong" if one.proven else "miss", "reused-older",
                    f"{stored.response.first('X-Id')}, and there is {one.response.first('X-Id')}", one)
        ages = {stored.age(now), min(stored.age(now), model.DELTA_MAXIMUM)}  # [RFC 9111 §1.2.2]
        if self.answer.first("Age") not in map(str, ages) and not (is_shared and not self.answer.has("Age")):
            self.wrong("wrong-age", f"{self.answer.first('Age')} for {stored.age(now)}")
        if self.answer.status == 304:
            self.check_status(stored.response)
            return self.check_fields_of_304(stored.response)
        self.check_fields(stored.response, withheld=stored.withheld())
        self.check_status(stored.response)
        if model.not_modified(request, stored.response, now.wall) and self.answer.status in (200, 206):
            self.say("miss", "200-where-304")
        return None

    def check_fields(self, response, is_stored=True, withheld=frozenset(), free=frozenset()):
        aside = set(OF_THE_PROXY)
        if self.answer.status == 206 or response.status == 206:
            aside |= {"content-type"}
        if self.answer.status == 304:
            return self.check_fields_of_304(response)
        if self.answer.status == 416 and response.status != 416:
            if self.answer.lines("Content-Range") != [f"bytes */{response.size}"]:
                self.wrong("416-without-length", f"{self.answer.lines('Content-Range')}")
            return None
        got, expected = end_to_end(self.answer, aside), end_to_end(response, aside)
        left_out = model.hop_by_hop(response)
        if is_stored:  # private="..." [RFC 9111 §5.2.2.7]
            left_out = left_out | withheld | {name for argument in model.directive(response, "private") for name in model.names(argument)}
        for name, _ in self.answer.fields:
            if name.lower() in left_out - {"connection", "transfer-encoding", "keep-alive", "proxy-connection"}:
                self.wrong("hop-by-hop", name)
        for name in left_out | free:
            got.pop(name, None), expected.pop(name, None)
        if got != expected:
            names = [name for name in got | expected if got.get(name) != expected.get(name)]
            self.wrong("fields", "; ".join(f"{name}: {got.get(name)} for {expected.get(name)}" for name in names))
        if response.has("Date") and self.answer.lines("Date") != response.lines("Date") and \
                model.parse_date(response.first("Date"), self.seen.at.wall) is not None:
            self.wrong("date", f"{self.answer.lines('Date')} for {response.lines('Date')}")
        return None

    def check_fields_of_304(self, *responses):
        """What it has is the response's, and of the six that a 200 would have had none is missing
        [RFC 9110 §15.4.5]."""
        got, troubles = end_to_end(self.answer, OF_THE_PROXY), []
        for response in responses:
            expected = end_to_end(response, OF_THE_PROXY)
            troubles.append([f"{name}: {got[name]} for {expected.get(name)}" for name in got if got[name] != expected.get(name)] +
                [f"{name} is missing" for name in ("cache-control", "content-location", "etag", "expires", "vary")
                    if name in expected and name not in got])
        if troubles and all(troubles):
            self.wrong("fields-of-304", "; ".join(troubles[-1]))

    # ---- what would have been better ----

    def check_wanted(self):
        request, now = self.request, self.seen.at
        if request.method not in ("GET", "HEAD") or request.has("If-Match") or request.has("If-Unmodified-Since"):
            return
        found = [one for one in self.before.matching(request) if one.sure]
        if not found or not model.is_plain(request):
            return
        best = found[-1]
        favourites = [one for one in self.before.of_url(request.key) if model.selects(one, request, favourites=True)]
        if max(favourites, key=lambda one: model.rank(one, request)) is not best or max(found, key=lambda one: one.number) is not best:
            return  # another one may be there; or Date, Vary and the order of arrival are at odds
        from_store = self.answer.has("X-Id") and not any(contact.response and
            contact.response.first("X-Id") == self.answer.first("X-Id") for contact in self.seen.contacts)
        self.check_reuse_wanted(best, from_store, now)

    def check_reuse_wanted(self, best, from_store, now):
        request, contacts = self.request, self.seen.contacts
        grounds, _ = model.why_usable(best, request, now, asked=True)
        if grounds and best.lifetime.wanted < best.lifetime.most:
            grounds = None if not best.is_wanted_fresh(now) else grounds
        if grounds:
            if not from_store:
                of_range = "-for-range" if request.has("Range") else ""
                self.say("miss", f"not-reused-{grounds}{of_range}", f"age {best.age(now)}, lifetime {best.lifetime.wanted}, "
                    f"{best.response.status} {best.response.fields}", best)
            elif contacts and grounds in (model.FRESH, model.MAX_STALE) and \
                    not model.window_permits(best, "stale-while-revalidate", now):
                self.say("miss", "asked-though-usable", grounds, best)
            elif grounds == model.WHILE_REVALIDATE and not contacts and not self.seen.others and \
                    self.answer.first("X-Id") == best.response.first("X-Id"):
                self.wrong("not-refreshed", "[RFC 5861 §3]")
            return
        self.check_validation_wanted(best, contacts)
        self.check_stand_in_wanted(best, from_store, now)

    def check_validation_wanted(self, best, contacts):
        etag, modified = best.validators()
        if not contacts or not contacts[0].asked or best.response.status != 200 or not (etag or modified):
            return
        if self.request.method != "GET":
            return  # a HEAD goes out as it is, and its answer freshens [RFC 9111 §4.3.5]
        asked = contacts[0].asked
        of_range = "-of-range" if self.request.has("Range") else ""
        if etag and etag not in model.etag_list(asked, "If-None-Match")[0]:
            self.say("miss", "not-validated-etag" + of_range, f"{etag}: {asked.fields}", best)
        elif not etag and not asked.has("If-Modified-Since"):
            self.say("miss", "not-validated-date" + of_range, f"{modified}: {asked.fields}", best)

    def check_stand_in_wanted(self, best, from_store, now):
        contacts = self.seen.contacts
        error = any(contact.response and contact.response.status in (500, 502, 503, 504) for contact in contacts)
        disconnected = any(contact.response is None for contact in contacts)
        if from_store or not (error or disconnected) or model.request_permits(best, self.request, now):
            return
        grounds, _ = model.why_usable(best, self.request, now, True, error, disconnected)
        if best.lifetime.wanted <= best.age(now) < best.lifetime.most:
            return  # fresh or not, as one takes it
        if grounds:
            self.say("miss", f"not-stood-in-{grounds}", f"overdue {best.overdue(now)}, {best.response.fields}", best)


def judge(cache, seen):
    """Tells the model what happened, and returns the findings."""
    return Judge(cache, seen).run()


def judge_crowd(cache, crowd, contacts):
    """Several who asked at once, told apart by X-Client: each may have been answered before or after what the origin
    said to any other. What would have been better is asked of the crowd as a whole."""
    findings = []
    learnt = []  # (request, contact)
    for contact in contacts:
        owner = next((seen for seen in crowd if contact.asked and
            contact.asked.first("X-Client") == seen.request.first("X-Client")), None)
        if owner:
            owner.contacts.append(contact)
            learnt.append((owner.request, contact))
        else:
            for seen in crowd:
                seen.others.append(contact)
    for seen in crowd:
        seen.others += [contact for contact in contacts if contact not in seen.contacts and contact not in seen.others]
        findings += judge_one_of_many(cache, seen, learnt)
    findings += judge_sharing(cache, crowd, contacts)
    for request, contact in learnt:
        learn(cache, request, contact)
    return findings


def as_it_arrives(response):
    """What it is to those who join it before its end, which may not come."""
    if response is None or response.complete:
        return response
    return Response(response.status, response.fields, response.body, True, response.offset, response.size)


def judge_one_of_many(cache, seen, learnt):
    others = [(request, contact) for request, contact in learnt if contact not in seen.contacts]
    best = None
    for before in range(len(others) + 1):
        state = cache.copy()
        for request, contact in others[:before]:
            learn(state, request, replace(contact, response=as_it_arrives(contact.response)))
        wrong = [finding for finding in judge(state, seen) if finding.kind == "wrong"]
        if best is None or len(wrong) <= len(best):
            best = wrong
    return best


def judge_sharing(cache, crowd, contacts):
    """One question for all, where one answer does for all; and one refresh, however many were served meanwhile
    [RFC 5861 §3]."""
    first = crowd[0].request
    same = all(end_to_end(seen.request, {"x-client"}) == end_to_end(first, {"x-client"}) for seen in crowd)
    plain = first.method == "GET" and not any(first.has(name) for name in ("Cache-Control", "Pragma", "Authorization", "Range",
        "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "Connection"))
    if not same or not plain or not contacts or any(contact.response is None for contact in contacts):
        return []
    response, at = contacts[0].response, contacts[0].at
    stored = model.Stored(first, response, at, at, 0)
    does_for_all = response.complete and response.status == 200 and model.may_store(first, response, at) and \
        stored.is_wanted_fresh(at) and not stored.never_unconfirmed() and "*" not in model.vary_names(response)
    if does_for_all and len(contacts) > 1:
        after = "-after-one-for-each" if first.key in cache.for_each else ""
        return [Finding("miss", f"not-shared{after}", f"{len(contacts)} questions: {response.fields}", stored, crowd[0])]
    return []
