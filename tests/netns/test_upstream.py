"""The origin's side: refused, unreachable, silent; connections kept, reused, found stale."""
import re
import threading
import time

import pytest

import lab as lab_module
from lab import bracketed, wait_for
from origin import pattern
from way import DEFAULT_CONFIG, Way


def timed_fetch(way, target, **options):
    begin = time.monotonic()
    answer = way.fetch(target, **options)
    return answer, time.monotonic() - begin


def check_failure(way, answer, target, statuses, word):
    assert answer.status in statuses and answer.complete, answer
    assert re.search(word, answer.body.decode(), re.I), f"the page does not say which: {answer.body!r}"
    entry = way.entry(target)
    assert (entry["result"], entry["status"]) == ("ERROR", answer.status) and entry["reason"]


def test_refused(way):
    target = way.unique("/")
    answer, seconds = timed_fetch(way, target, to=way.free_address())
    check_failure(way, answer, target, (502,), "refus")
    assert seconds < 1


def test_unreachable(way):
    target = way.unique("/")
    answer, seconds = timed_fetch(way, target, to=lab_module.UNREACHABLE[way.family])
    check_failure(way, answer, target, (502, 504), "unreachable|no route|not be reached")
    assert seconds < 1


def test_silent_at_connecting(way):
    target = way.unique("/")
    answer, seconds = timed_fetch(way, target, to=lab_module.SILENT[way.family])
    check_failure(way, answer, target, (504,), "connect")
    assert 0.9 < seconds < 2


def test_silent_after_the_request(way):
    target = way.unique("/stall-head")
    answer, seconds = timed_fetch(way, target)
    check_failure(way, answer, target, (504,), "answer|respon")
    assert 0.9 < seconds < 2


def test_silent_in_the_middle(way):
    target = way.unique("/stall-body/100000")
    answer, seconds = timed_fetch(way, target)
    assert answer.status == 200 and not answer.complete
    assert 0.9 < seconds < 2.5


def test_an_error_page_is_not_stored(way4):
    address = way4.free_address()
    for _ in range(2):
        answer = way4.fetch("/again", to=address)
        assert answer.status == 502 and answer.cache != "hit"


def test_an_origin_that_takes_no_more_of_an_upload(way):
    """It is the origin that does not go on, not the client: 504, and not the client's 408."""
    def take_the_head(peer, _):
        peer.read_until(b"\r\n\r\n")
        released.wait(10)
    released, target = threading.Event(), way.unique("/")
    answer, seconds = timed_fetch(way, target, method="POST", body=pattern(20_000_000), to=way.serve(take_the_head))
    released.set()
    check_failure(way, answer, target, (504,), "answer")
    assert seconds < 5, "first_byte is 1 s from the last byte taken"


def test_a_failed_upload_is_still_answered(way):
    """The origin refuses the connection while the client sends 2 MB."""
    answer = way.fetch(way.unique("/"), "POST", body=pattern(2_000_000), to=way.free_address())
    assert (answer.status, answer.complete) == (502, True)


# Kept connections

def once_then(last_act):
    """Answers one request on each connection, reads the next one, then does `last_act` instead of answering."""
    def handler(peer, service):
        request = peer.read_request()
        service.log = getattr(service, "log", [])
        service.log.append(request.method)
        peer.respond("200 OK", {"Content-Length": 2, "Cache-Control": "no-store"}, b"ok")
        if service.connections > 1:
            peer.read_request()
            return
        if last_act == "idle close":
            return
        if (request := peer.read_request()):
            service.log.append(request.method)
        if last_act == "reset":
            peer.reset()
    return handler


@pytest.mark.parametrize("how", ["idle close", "close", "reset"])
def test_a_stale_connection_is_tried_once_more(way, how):
    origin = way.serve(once_then(how))
    with way.connect(origin) as client:
        for number in range(2):
            client.request("GET", f"/{number}", {"Host": bracketed(origin.address)})
            assert client.read_response().body == b"ok"
    assert origin.connections == 2


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_post_is_never_sent_twice(way, how):
    origin = way.serve(once_then(how))
    with way.connect(origin) as client:
        client.request("GET", "/", {"Host": bracketed(origin.address)})
        assert client.read_response().body == b"ok"
        client.request("POST", "/", {"Host": bracketed(origin.address)}, b"pay")
        status = client.read_response().status
    posts = origin.log.count("POST")
    assert (status, posts) in ((502, 1), (200, 1)), "answered by a fresh connection or failed, never sent twice"


def test_an_origin_that_wants_to_close_is_not_reused(way4):
    origin = way4.new_origin()
    with way4.connect(origin) as client:
        for number in range(3):
            client.request("GET", f"/close/{100 + number}", {"Host": bracketed(origin.address)})
            assert client.read_response().body == pattern(100 + number)
    assert origin.connections == 3


def test_an_unused_connection_is_given_up_in_time():
    with lab_module.Lab() as lab:
        weir = lab.weir(f"listen 3129 redirect\n{DEFAULT_CONFIG}timeout upstream_keep 300ms\n")
        way = Way(lab, weir, 4)
        baseline = weir.descriptors()
        for number in range(5):
            way.fetch(f"/static/{number}")
        wait_for(lambda: weir.descriptors() <= baseline, 3, "the end of the kept connections")
