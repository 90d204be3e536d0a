"""Caching rules that take the glue between store and network: what is served stale, refreshed behind the client's
back, confirmed, asked for again, updated by HEAD and dropped by unsafe methods."""
import threading

import pytest

from lab import wait_for
from origin import pattern

CONFIG = "cache_mem 32M\n"
WINDOW = "Cache-Control: max-age=1, stale-while-revalidate=600"
EXCUSE = "Cache-Control: max-age=1, stale-if-error=600\nConnection: close" # no connection that might be reused


# A second request on a kept connection that turns out dead is tried again: it would take two of a script's answers.

def fields_of(text):
    return dict(line.split(": ", 1) for line in text.split("\n") if line)


class Script:
    """An origin whose answers are taken from a list, one a request; the last one stays. An answer is (status,
    "Name: value" lines, body), or "reset", "close", "stall". Keeps the requests."""

    def __init__(self, way, *answers):
        self.answers, self.requests, self.lock = list(answers), [], threading.Lock()
        self.hold = threading.Event()
        self.hold.set()
        self.service = way.serve(self.serve)
        self.address = self.service.address
        self.way = way

    def serve(self, peer, _):
        while (request := peer.read_request_head()) and request.start:
            if int(request.get("Content-Length", "0")):
                peer.read(int(request.get("Content-Length")))
            with self.lock:
                self.requests.append(request)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.hold.wait(20)
            if answer == "reset":
                peer.reset()
                return
            if answer == "close":
                return
            if answer == "stall":
                while peer.more():
                    peer.buffer.clear()
                return
            status, fields, body = answer
            fields = fields_of(fields)
            if not status.startswith("304") and not {"Transfer-Encoding", "Connection"} & fields.keys():
                fields.setdefault("Content-Length", len(body))
            peer.respond(status, fields, b"" if request.start.startswith("HEAD") else body)
            if fields.get("Connection") == "close":
                return

    def fetch(self, target="/", method="GET", fields=(), body=b""):
        return self.way.fetch(target, method, fields, body, to=self.address)

    @property
    def methods(self):
        return [request.start.split()[0] for request in self.requests]


def is_fresh(script, target="/"):
    """Told by the store alone; what is stale is not used, and so not refreshed."""
    return script.fetch(target, fields={"Cache-Control": "only-if-cached, min-fresh=1"}).status == 200


def grow_stale(script, target="/"):
    wait_for(lambda: not is_fresh(script, target), what="the end of its lifetime")


# stale-while-revalidate

def test_refreshed_behind_the_clients_back(way4):
    script = Script(way4, ("200 OK", f'{WINDOW}\nETag: "1"', b"old"), ("200 OK", 'Cache-Control: max-age=600\nETag: "2"', b"new"))
    script.fetch()
    grow_stale(script)
    script.hold.clear()
    answers = [script.fetch(fields={"If-None-Match": '"other"'}) for _ in range(5)]
    assert [(answer.status, answer.body) for answer in answers] == [(200, b"old")] * 5
    assert all(int(answer.get("Age")) >= 1 for answer in answers)
    wait_for(lambda: len(script.requests) == 2, what="a refresh")
    script.hold.set()
    wait_for(lambda: script.fetch().body == b"new", what="the new response")
    assert script.methods == ["GET", "GET"] and script.requests[1].get("If-None-Match") == '"1"'


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_refresh_outlives_its_client(way4, method):
    script = Script(way4, ("200 OK", WINDOW, b"old"), ("200 OK", "Cache-Control: max-age=600", b"new" * 1000))
    script.fetch()
    grow_stale(script)
    script.hold.clear()
    with way4.connect(script.address) as client:
        client.request(method, "/", {"Host": script.address, "Range": "bytes=0-0"})
        assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 20")
        client.reset()
    script.hold.set()
    wait_for(lambda: is_fresh(script), what="the refreshed response")
    assert script.fetch().body == b"new" * 1000
    assert script.methods == ["GET", "GET"] and script.requests[1].get("Range") is None


def test_a_refresh_that_hangs_ends(way4):
    script = Script(way4, ("200 OK", WINDOW, b"old"), "stall", ("200 OK", "Cache-Control: max-age=600", b"new"))
    script.fetch()
    grow_stale(script)
    assert script.fetch().body == b"old"
    wait_for(lambda: len(script.requests) == 2, what="a refresh")
    assert script.fetch().body == b"old"
    wait_for(lambda: script.fetch().body == b"new", what="another refresh, after the first one's deadline")
    assert len(script.requests) == 3


def test_nothing_is_left_of_a_refresh(way4):
    script = Script(way4, ("200 OK", f'{WINDOW}\nETag: "1"', b"old"), ("304 Not Modified", 'Cache-Control: max-age=600\nETag: "1"', b""))
    script.fetch()
    grow_stale(script)
    assert script.fetch().body == b"old"
    wait_for(lambda: is_fresh(script), what="the confirmed response")
    wait_for(lambda: way4.daemon.stats()["cache_fills"] == 0, what="no fill left")


# stale-if-error, and origins that do not answer

@pytest.mark.parametrize("trouble", [("503 Busy", "", b"busy" * 5000), ("500 Broken", "Content-Length: 0", b""), "reset",
    "close", "stall"])
def test_stale_instead_of_trouble(way4, trouble):
    script = Script(way4, ("200 OK", EXCUSE, b"good"), trouble, trouble, ("200 OK", EXCUSE, b"better"))
    script.fetch()
    grow_stale(script)
    for _ in range(2):
        answer = script.fetch()
        assert (answer.status, answer.body) == (200, b"good") and int(answer.get("Age")) >= 1
    assert script.fetch().body == b"better" # each asked
    assert len(script.requests) == 4


def test_stale_instead_of_a_refused_connection(way4):
    script = Script(way4, ("200 OK", "Cache-Control: max-age=1", b"good"))
    script.fetch()
    grow_stale(script)
    script.service.close()
    answer = script.fetch("/")
    assert (answer.status, answer.body) == (200, b"good")
    assert script.fetch("/other").status == 502


def test_not_stale_where_it_is_forbidden(way4):
    script = Script(way4, ("200 OK", "Cache-Control: max-age=1, must-revalidate, stale-if-error=600", b"good"),
        ("503 Busy", "", b"busy"), "close")
    script.fetch()
    wait_for(lambda: not is_fresh(script), what="its end")
    assert script.fetch().status == 503
    assert script.fetch().status == 504


def test_an_error_is_for_one_request(way4):
    script = Script(way4, ("503 Busy", "", b"busy"), ("200 OK", "Cache-Control: max-age=600", b"good"))
    assert script.fetch().status == 503
    assert script.fetch().status == 200
    assert script.fetch().status == 200 and len(script.requests) == 2


# Confirming

def test_a_304_for_something_else_is_asked_again(way4):
    script = Script(way4, ("200 OK", 'Cache-Control: max-age=0\nETag: "1"', b"old"),
        ("304 Not Modified", 'ETag: "3"', b""), ("200 OK", 'Cache-Control: max-age=600\nETag: "3"', b"new"))
    script.fetch()
    answer = script.fetch(fields={"Accept": "x"})
    assert (answer.status, answer.body) == (200, b"new")
    assert [request.get("If-None-Match") for request in script.requests] == [None, '"1"', None]
    assert all(request.get("Accept") == "x" for request in script.requests[1:])
    assert script.fetch().body == b"new" and len(script.requests) == 3


def test_a_304_that_nobody_asked_for(way4):
    script = Script(way4, ("200 OK", 'Cache-Control: max-age=0, must-revalidate\nETag: "1"', b"old"),
        ("304 Not Modified", 'ETag: "3"', b""))
    script.fetch()
    assert script.fetch().status == 504
    assert len(script.requests) == 3


def test_a_clients_condition_after_the_stores(way4):
    script = Script(way4, ("200 OK", 'Cache-Control: max-age=0\nETag: "1"', b"old"),
        ("200 OK", 'Cache-Control: max-age=0\nETag: "2"', b"new"))
    script.fetch()
    assert script.fetch(fields={"If-None-Match": '"2"'}).status == 304
    assert script.requests[1].get("If-None-Match") == '"1"'


@pytest.mark.parametrize("framing", ["Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close"])
def test_a_new_response_is_stored_though_its_client_needs_none_of_it(way4, framing):
    body = b"5\r\nnewer\r\n0\r\n\r\n" if "chunked" in framing else b"newer"
    script = Script(way4, ("200 OK", 'Cache-Control: max-age=0\nETag: "1"', b"old"),
        ("200 OK", f'Cache-Control: max-age=600\nETag: "2"\n{framing}', body))
    script.fetch()
    assert script.fetch(fields={"If-None-Match": '"2"'}).status == 304
    wait_for(lambda: is_fresh(script), what="the new response")
    assert script.fetch().body == b"newer" and len(script.requests) == 2


def test_all_variants_are_asked_about(way4):
    varied = "Cache-Control: max-age=600\nVary: Accept-Language"
    script = Script(way4, ("200 OK", f'{varied}\nETag: "en"', b"english"), ("200 OK", f'{varied}\nETag: "cs"', b"czech"),
        ("304 Not Modified", f'{varied}\nETag: "en"', b""))
    for language in ("en", "cs", "de"):
        answer = script.fetch(fields={"Accept-Language": language})
    assert (answer.status, answer.body) == (200, b"english")
    assert sorted(script.requests[2].get("If-None-Match").split(", ")) == ['"cs"', '"en"']
    assert script.fetch(fields={"Accept-Language": "de"}).body == b"english"
    assert len(script.requests) == 3


# HEAD

def test_head_makes_a_different_response_stale(way4):
    script = Script(way4, ("200 OK", 'Cache-Control: max-age=600\nETag: "1"', b"old"),
        ("200 OK", 'Cache-Control: max-age=600\nETag: "2"', b"newer"))
    script.fetch()
    assert script.fetch(method="HEAD", fields={"Cache-Control": "no-cache"}).get("ETag") == '"2"'
    assert script.fetch().body == b"newer"
    assert script.methods == ["GET", "HEAD", "GET"]


def test_head_freshens(way4):
    script = Script(way4, ("200 OK", 'Cache-Control: max-age=1\nETag: "1"', b"same"),
        ("200 OK", 'Cache-Control: max-age=600\nETag: "1"\nX: 2', b"same"))
    script.fetch()
    grow_stale(script)
    script.fetch(method="HEAD")
    answer = script.fetch()
    assert (answer.body, answer.get("X")) == (b"same", "2")
    assert script.methods == ["GET", "HEAD"]


# Unsafe methods

@pytest.mark.parametrize("method, answer, is_dropped", [
    ("POST", ("201 Created", "Location: /named", b""), True),
    ("FOO", ("200 OK", "Content-Location: http://%s/named", b""), True),
    ("PUT", ("200 OK", "Location: http://other.example/named", b""), False),
    ("DELETE", ("409 Conflict", "Location: /named", b""), False)])
def test_named_urls_are_dropped(way4, method, answer, is_dropped):
    status, fields, body = answer
    script = Script(way4, ("200 OK", "Cache-Control: max-age=600", b"a"), ("200 OK", "Cache-Control: max-age=600", b"b"))
    script.answers.append((status, fields.replace("%s", script.address), body))
    script.fetch("/named")
    script.fetch("/target")
    script.fetch("/target", method, body=b"x")
    assert is_fresh(script, "/named") != is_dropped
    assert is_fresh(script, "/target") == status.startswith("4")


def test_an_answer_to_post_is_one_to_get(way4):
    script = Script(way4, ("200 OK", "Cache-Control: max-age=600\nContent-Location: /", b"posted"))
    script.fetch(method="POST", body=b"x")
    assert script.fetch().body == b"posted" and script.methods == ["POST"]


# Collapsing

def test_each_on_its_own_after_an_error(way4):
    script = Script(way4, ("503 Busy", "", b"busy"), ("200 OK", "Cache-Control: max-age=600", b"good"))
    script.hold.clear()
    clients = [way4.connect(script.address) for _ in range(6)]
    for client in clients:
        client.request("GET", "/", {"Host": script.address})
    wait_for(lambda: way4.daemon.stats()["cache_fills"] == 1 and script.requests, what="a fill")
    script.hold.set()
    statuses = []
    for client in clients:
        with client:
            statuses.append(client.read_response().status)
    assert sorted(statuses) == [200] * 5 + [503]
