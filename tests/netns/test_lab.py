"""The lab by itself, without weir: plain forwarding, so that a failure elsewhere is weir's and not the lab's."""
import pytest

import lab as lab_module
from lab import client_address
from origin import answer_then_collect, collect_then_answer, pattern, speaks_first
from way import Way, is_refused


@pytest.fixture(scope="module")
def plain(lab):
    class Nobody:
        def check_alive(self):
            pass
    return lambda family: Way(lab, Nobody(), family)


@pytest.fixture(params=[4, 6], ids=["ipv4", "ipv6"])
def way(request, plain):
    made = plain(request.param)
    yield made
    made.check()


@pytest.mark.parametrize("path, size, complete", [
    ("/static/100", 100, True), ("/chunked/3000", 3000, True), ("/close/5000", 5000, True),
    ("/truncate/1000", 500, False), ("/truncate-reset/1000", 500, False), ("/truncate-chunked/100", 100, False),
])
def test_bodies_arrive_as_the_origin_framed_them(way, path, size, complete):
    answer = way.fetch(path)
    assert (answer.body, answer.complete) == (pattern(size), complete)


def test_the_origin_counts_and_sees_the_client(way):
    source = client_address(7, way.family)
    target = way.unique("/static/10")
    way.fetch(target, source=source)
    assert [request.peer for request in way.origin.seen(target)] == [source]


def test_ranges_and_conditions(way):
    part = way.fetch("/static/100", fields={"Range": "bytes=10-19"})
    assert (part.status, part.body, part.get("Content-Range")) == (206, pattern(10, 10), "bytes 10-19/100")
    assert way.fetch("/static/100", fields={"If-None-Match": '"s-100"'}).status == 304


def test_half_closes(way):
    collecting = way.serve(collect_then_answer(b"bye"))
    with way.connect(collecting) as client:
        client.send(b"all there is").half_close()
        assert client.read_to_end() == b"bye"
    answering = way.serve(answer_then_collect(b"bye"))
    with way.connect(answering) as client:
        assert client.read_to_end() == b"bye"
        client.send(b"still heard").half_close()
        lab_module.wait_for(lambda: getattr(answering.peers[0], "collected", None) == b"still heard")


def test_servers_that_speak_first(way):
    with way.connect(way.serve(speaks_first(b"SSH-2.0-x\r\n"))) as client:
        assert client.read_until(b"\n") == b"SSH-2.0-x\r\n"


def test_nobody_listens(way):
    assert is_refused(lambda: way.connect(way.free_address()))


def test_silent_addresses_do_not_answer(way):
    with pytest.raises(TimeoutError):
        way.connect(lab_module.SILENT[way.family], timeout=0.2)
