"""The framing corpus on the wire: each message is refused as its table says, or arrives as exactly one unambiguous
message; and whatever it was, the next request to that origin gets its own answer.

One worker, so that the next request takes the upstream connection of the last one whenever it was kept. The
origin is one for all cases: a byte that a case left behind spoils the following ones.
"""
import itertools
import pathlib
import socket
import threading

import pytest

from lab import ROOT, Lab
from origin import Service
from peer import Framing, Peer, declared_framing, head_bytes
from way import DEFAULT_CONFIG, Way

CORPUS = ROOT / "tests/corpus"
AFTER = {"Host": "example.test"}


def table(kind):
    lines = (CORPUS / f"{kind}.tbl").read_text().splitlines()
    return [tuple(line.split()) for line in lines if line and not line.startswith("#")]


def test_the_corpus_is_there():
    assert len(table("requests")) >= 60 and len(table("responses")) >= 40


@pytest.fixture(scope="module")
def site():
    with Lab() as lab:
        way = Way(lab, lab.weir(f"listen 3129 redirect\n{DEFAULT_CONFIG}", workers=1), 4)
        way.recorder = Recorder(way)
        yield way
        way.check()


class Recorder:
    """The origin: reads as strictly as it can, keeps every complete request, plays `script` for /case."""

    def __init__(self, way):
        self.lock, self.requests, self.script, self.closes = threading.Lock(), [], b"", False
        self.service = way.serve(self.serve)

    def begin(self, script=b"", closes=False):
        with self.lock:
            self.requests, self.script, self.closes = [], script, closes

    def serve(self, peer, _):
        while (request := peer.read_request_head()):
            if request.get("Expect"):
                peer.send(head_bytes("HTTP/1.1 100 Continue", {}))
            check_unambiguous(request)
            if not peer.read_body(request, framing(request)).complete:
                return
            with self.lock:
                self.requests.append(request)
                script, closes = self.script, self.closes
            if request.target.startswith("/case"):
                peer.send(script)
                if closes:
                    return
            else:
                body = b"after" if request.target == "/after" else b"arrived"
                peer.respond("200 OK", {"Content-Length": len(body), "Cache-Control": "no-store"},
                    b"" if request.method == "HEAD" else body)

    def targets(self):
        """In order; one that was sent again because a kept connection had gone stale counts once."""
        with self.lock:
            return [target for target, _ in itertools.groupby(request.target for request in self.requests)]


def framing(request):
    return declared_framing(request) or Framing("none", 0)


def check_unambiguous(request):
    lengths, codings = request.all("Content-Length"), request.all("Transfer-Encoding")
    assert len(lengths) + len(codings) <= 1, f"two framings reached the origin: {request}"
    assert all(length.isdigit() and length.isascii() for length in lengths), request
    assert all(coding.lower() == "chunked" for coding in codings), request
    assert len(request.all("Host")) == 1, request
    assert request.start.endswith(" HTTP/1.1"), request


def ask_after(site, client):
    """The next request, on `client` if it is still of use, else on a new connection."""
    fresh = client is None
    client = client or site.connect(site.recorder.service)
    with client:
        client.request("GET", "/after", AFTER)
        answer = client.read_response()
    assert (answer.status, answer.body) == (200, b"after"), f"{'new' if fresh else 'same'} connection: {answer}"


@pytest.mark.parametrize("name, expected", table("requests"))
def test_request(site, name, expected):
    data = (CORPUS / "requests" / name).read_bytes()
    method = data.split()[0].decode("latin-1")
    site.recorder.begin()
    client = site.connect(site.recorder.service)
    client.send(data)
    answer = client.read_response(method)
    if expected == "ok":
        assert (answer.status, answer.body) == (200, b"arrived"), answer
        ask_after(site, client if answer.keeps_open else None)
        arrived = site.recorder.targets()
        assert len(arrived) == 2 and arrived[1] == "/after" and arrived[0] != "/smuggled"
        return
    with client:
        assert (answer.status, answer.complete) == (int(expected), True), answer
        assert client.ends(), "the connection stays open after a refusal"
    ask_after(site, None)
    assert site.recorder.targets() == ["/after"], "part of a refused message became a request"


def parsed(data, method):
    """The response as a strict reader at the end of a closed connection sees it, and whether it frames itself."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=lambda: (theirs.sendall(data), theirs.close())).start()
    with Peer(ours) as peer:
        message = peer.read_response(method)
    bodiless = method == "HEAD" or message.status in (204, 304)
    named = [name.lower() for name, _ in message.fields]
    return message, bodiless or "content-length" in named or "transfer-encoding" in named


@pytest.mark.parametrize("name, expected", table("responses"))
def test_response(site, name, expected):
    data = (CORPUS / "responses" / name).read_bytes()
    method = "HEAD" if name.startswith("head-") else "GET"
    wanted, frames_itself = parsed(data, method) if expected == "ok" else (None, False)
    site.recorder.begin(data, closes=not frames_itself)
    target = f"/case/{pathlib.Path(name).stem}"
    client = site.connect(site.recorder.service)
    client.request(method, target, AFTER)
    answer = client.read_response(method)
    if expected == "ok":
        assert answer.complete and (answer.status, answer.body) == (wanted.status, wanted.body), answer
    elif expected == "cut":
        assert answer.status == 502 or not answer.complete, f"{answer} looks whole"
    else:
        assert (answer.status, answer.complete) == (502, True), answer
    in_step = answer.complete and answer.keeps_open and answer.get("Connection") != "close"
    if not in_step:
        client.close()
    ask_after(site, client if in_step else None)
    assert site.recorder.targets() == [target, "/after"]
    if expected != "ok":
        site.fetch(target, method, to=site.recorder.service, host="example.test")
        assert site.recorder.targets().count(target) == 2, "a response that was not whole was stored"
