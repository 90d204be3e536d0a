"""Who may pass and what is refused: allow, deny, block, pass."""
import threading

import pytest

from lab import bracketed, client_address, origin_address
from origin import echo, pattern
from way import is_refused

QUOTES = "'" * 500
CONFIG = f"""\
block */{QUOTES}*
allow 10.57.0.0/16 fd57::/16
deny 10.57.1.128/255.255.255.128 fd57:1::80/121
allow 10.57.1.200 fd57:1::c8
block blocked.example
block */ads/*
block 198.51.100.19
block 2001:db8:1::13
pass blocked.example/good/*
"""
DENIED, EXCEPTED = 130, 200  # numbers of client addresses
BLOCKED_ORIGIN = 19


def denied(way):
    return client_address(DENIED, way.family)


def test_a_denied_host(way):
    target = way.unique("/static/10")
    answer = way.fetch(target, source=denied(way))
    assert (answer.status, answer.complete) == (403, True)
    assert b"Cache access denied" in answer.body
    assert way.origin.count(target) == 0
    entry = way.entry(target)
    assert (entry["result"], entry["status"]) == ("DENIED", 403)
    assert "deny" in entry["rule"]


def test_the_longest_prefix_wins(way):
    target = way.unique("/static/10")
    assert way.fetch(target, source=client_address(EXCEPTED, way.family)).status == 200
    assert way.fetch(target, source=client_address(5, way.family)).status == 200


def test_a_denied_host_is_told_even_in_the_middle_of_an_upload(way):
    """100 times of 100 the whole page arrives, although the client only reads after sending 2 MB."""
    body = pattern(2_000_000)
    for _ in range(100):
        with way.connect(source=denied(way)) as client:
            client.request("POST", "/echo?denied-upload", {"Host": way.host}, body)
            answer = client.read_response()
            assert (answer.status, answer.complete) == (403, True)
            assert b"Cache access denied" in answer.body
    assert way.origin.count("/echo?denied-upload") == 0


def test_a_denied_host_is_told_however_slow_its_upload_is(way):
    """What it still sends is dropped for as long as it sends: `timeout linger`, 2 s here, is for silence."""
    with way.connect(source=denied(way)) as client:
        client.request("POST", way.unique("/echo"), {"Host": way.host, "Content-Length": "2000000"})
        for _ in range(12):
            client.send(pattern(10_000))
            threading.Event().wait(0.3)  # a slow line
        answer = client.read_response()
    assert (answer.status, answer.complete) == (403, True)
    assert b"Cache access denied" in answer.body


def test_a_denied_host_gets_no_tunnel(way):
    service = way.serve(echo)
    assert is_refused(lambda: way.connect(service, source=denied(way)).send(b"\x16\x03\x01\0\0"))
    assert service.connections == 0
    assert way.daemon.wait_entry(destination=f"{bracketed(service.address)}:80")["result"] == "DENIED"


@pytest.mark.parametrize("host, target", [("blocked.example", "/x"), ("www.blocked.example", "/x"),
    ("BLOCKED.Example.", "/x"), ("blocked.example:80", "/x"), ("other.example", "/a/ads/banner.gif"),
    ("other.example", "/a/%61ds/banner.gif"), ("other.example", "/b/../ads/banner.gif"),
    ("blocked.example", "/good/../x")])
def test_a_blocked_url_in_any_spelling(way, host, target):
    target = way.unique(target)
    answer = way.fetch(target, host=host)
    assert (answer.status, answer.complete) == (403, True)
    assert b"blocked.example" in answer.body or b"*/ads/*" in answer.body, "the page names the rule"
    assert way.origin.count(target) == 0
    entry = way.entry(target)
    assert entry["result"] == "BLOCKED" and "block" in entry["rule"]


def test_a_rule_that_is_long_when_escaped_leaves_the_page_whole(way):
    answer = way.fetch("/" + QUOTES, host="other.example")
    assert answer.status == 403 and answer.body.endswith(b"</html>\n")
    assert b"&#39;" * len(QUOTES) in answer.body


@pytest.mark.parametrize("host, target", [("blocked.example", "/good/static"), ("notblocked.example", "/x"),
    ("blocked.example.org", "/x"), ("other.example", "/adsx/y")])
def test_what_only_looks_like_it_passes(way, host, target):
    assert way.fetch(way.unique(target), host=host).status == 404


def test_a_blocked_destination_with_an_innocent_host(way):
    address = origin_address(BLOCKED_ORIGIN, way.family)
    answer = way.fetch(way.unique("/static/10"), to=address, host="innocent.example")
    assert answer.status == 403 and b"block" in answer.body


def test_a_blocked_destination_by_tunnel(way):
    address = origin_address(BLOCKED_ORIGIN, way.family)
    before = way.daemon.stats()["blocked"]
    assert is_refused(lambda: way.connect(address).send(b"\x16\x03\x01\0\0"))
    assert way.daemon.stats()["blocked"] == before + 1


def test_a_refused_request_leaves_the_next_one_alone(way):
    """After a block page the connection is closed or in step, never out of step."""
    with way.connect() as client:
        client.request("GET", "/x", {"Host": "blocked.example"})
        first = client.read_response()
        assert first.status == 403
        if first.keeps_open:
            client.request("GET", way.unique("/static/10"), {"Host": way.host})
            assert client.read_response().body == pattern(10)
        else:
            assert client.ends()


def test_a_stored_object_is_not_a_way_round(way):
    """What one host stored is still refused to a denied one."""
    target = way.unique("/static/10")
    way.fetch(target)
    assert way.fetch(target, source=denied(way)).status == 403
