"""How connections arrive: REDIRECT and TPROXY by either backend, own addresses, spoofing, marks, lost conntrack."""
import re
import threading
import time

import pytest

from lab import Lab, Failed, bracketed, client_address, wait_for
from origin import pattern
from peer import Closed
from way import DEFAULT_CONFIG, Way, is_refused


@pytest.mark.parametrize("mode", ["redirect", "tproxy"])
@pytest.mark.parametrize("backend", ["iptables", "nft"])
def test_miss_then_hit_by_every_backend(mode, backend):
    with Lab() as lab:
        weir = lab.weir(f"listen 3129 {mode}\n{DEFAULT_CONFIG}", backend=backend)
        for family in (4, 6):
            way = Way(lab, weir, family)
            first, second = way.fetch("/static/1000"), way.fetch("/static/1000")
            assert first.body == second.body == pattern(1000)
            assert (first.cache.startswith("fwd="), second.cache) == (True, "hit")
            assert way.origin.count("/static/1000") == 1
            wait_for(lambda: sorted(results_of(weir, way)) == ["HIT", "MISS"], what="MISS and HIT in the log")
            way.check()


def results_of(weir, way):
    return [entry["result"] for entry in weir.entries() if entry["url"] == f"http://{way.host}/static/1000"]


def test_the_log_names_client_and_destination(way):
    target = way.unique("/static/10")
    way.fetch(target, source=client_address(9, way.family))
    entry = way.entry(target)
    assert entry["client"].strip("[]") == client_address(9, way.family)
    assert entry["destination"] == f"{way.host}:80"


def test_the_origin_sees_the_gateway_without_spoofing(way):
    target = way.unique("/static/10")
    way.fetch(target)
    assert way.origin.seen(target)[0].peer in ("192.0.2.1", "2001:db8::1")


def ask_directly(way, address, port):
    with way.lab.connect(address, port) as client:
        client.request("GET", "/", {"Host": "example.com"})
        answer = client.read_response()
        assert client.ends()
        return answer


def check_direct_connections(way):
    """Twenty direct connections to the listener's port: clear answers, nothing dialled, one line of log."""
    weir = way.daemon
    before, lines = weir.stats(), len(weir.stderr().splitlines())
    for _ in range(20):
        answer = ask_directly(way, way.gateway_address, 3129)
        assert 400 <= answer.status < 500 and answer.complete and answer.body
    after = weir.stats()
    assert after["upstream_connections"] == before["upstream_connections"]
    refused = sum(after[name] - before[name] for name in ("refused_not_intercepted", "refused_own_address"))
    assert refused == 20
    assert len(weir.stderr().splitlines()) - lines <= 1


def test_direct_connection_with_rules(way):
    check_direct_connections(way)


@pytest.mark.parametrize("mode", ["redirect", "tproxy"])
def test_direct_connection_without_rules(mode):
    with Lab() as lab:
        weir = lab.weir(f"listen 3129 {mode}\n{DEFAULT_CONFIG}", rules=False)
        for family in (4, 6):
            lines = len(weir.stderr().splitlines())
            check_direct_connections(Way(lab, weir, family))
            if family == 4:
                assert len(weir.stderr().splitlines()) == lines + 1


def test_the_gateways_own_port_80_is_left_alone(way):
    before = way.daemon.stats()["connections"]
    for address in (way.gateway_address, {4: "192.0.2.1", 6: "2001:db8::1"}[way.family]):
        assert is_refused(lambda: way.connect(address))
    assert way.daemon.stats()["connections"] == before


def test_an_address_that_comes_later_is_own_too(way):
    """The kernel's messages keep the list current: a connection to a new own address is refused, not dialled."""
    address, bits = {4: ("10.57.0.77", 32), 6: ("fd57::77", 128)}[way.family]
    nodad = ["nodad"] if way.family == 6 else []
    way.lab.gw.run("ip", "addr", "add", f"{address}/{bits}", "dev", "lan", *nodad)
    try:
        wait_for(lambda: 400 <= ask_directly(way, address, 3129).status < 500, 2, "the refusal")
        before = way.daemon.stats()["upstream_connections"]
        ask_directly(way, address, 3129)
        assert way.daemon.stats()["upstream_connections"] == before
    finally:
        way.lab.gw.run("ip", "addr", "del", f"{address}/{bits}", "dev", "lan")


# Spoofing

@pytest.fixture(scope="module", params=["iptables", "nft"])
def spoofing(request):
    with Lab() as lab:
        weir = lab.weir(f"listen 3129 tproxy\nspoof_client on\n{DEFAULT_CONFIG}", backend=request.param, workers=1)
        yield lab, weir


@pytest.mark.parametrize("family", [4, 6])
def test_spoofed_origin_sees_each_client_and_shares_no_connection(spoofing, family):
    way = Way(*spoofing, family)
    origin = way.new_origin()
    sources = [client_address(number, family) for number in (5, 6, 5)]
    for number, source in enumerate(sources):
        answer = way.fetch(f"/echo?{number}", to=origin, source=source)
        assert answer.status == 200
    assert [request.peer for request in origin.requests] == sources
    assert [peer.address for peer in origin.peers] == sources[:2], "one connection for each client, reused"
    way.check()


# Marks

MARKS = """\
table inet marks {
    counter upstream { }
    chain arrive {
        type filter hook prerouting priority -310; policy accept;
        iifname "lan" meta mark set meta mark & 0xffffff00 | 0x5
    }
    chain leave {
        type filter hook output priority 0; policy accept;
        oifname "wan" tcp dport 80 meta mark & 0xff == 0x5 counter name upstream
    }
}
"""
DSCP = """\
table inet dscp {
    counter seen { }
    chain arrive {
        type filter hook prerouting priority -300; policy accept;
        ip dscp ef tcp dport 80 counter name seen
        ip6 dscp ef tcp dport 80 counter name seen
    }
}
"""


def packets(namespace, table, counter):
    text = namespace.run("nft", "list", "counter", "inet", table, counter).stdout
    return int(re.search(r"packets (\d+)", text).group(1))


@pytest.fixture
def marked(way):
    way.lab.gw.set(ipv4__tcp_fwmark_accept=1)
    way.lab.gw.run("nft", "-f", "-", input=MARKS)
    way.lab.wan.run("nft", "-f", "-", input=DSCP)
    yield way
    way.lab.gw.run("nft", "delete", "table", "inet", "marks")
    way.lab.wan.run("nft", "delete", "table", "inet", "dscp")


def set_dscp(family, value):
    def before(sock):
        level, option = (0, 1) if family == 4 else (41, 67)  # IP_TOS, IPV6_TCLASS
        sock.setsockopt(level, option, value << 2)
    return before


def test_mark_and_dscp_go_along_upstream(marked):
    origin = marked.new_origin()
    with marked.connect(origin, before=set_dscp(marked.family, 46)) as client:
        client.request("GET", "/static/10", {"Host": bracketed(origin.address)})
        assert client.read_response().status == 200
    assert packets(marked.lab.gw, "marks", "upstream") > 0
    assert packets(marked.lab.wan, "dscp", "seen") > 0


def test_no_connection_is_shared_between_dscp_values(marked):
    origin = marked.new_origin()
    for value in (46, 0):
        with marked.connect(origin, before=set_dscp(marked.family, value)) as client:
            client.request("GET", f"/echo?{value}", {"Host": bracketed(origin.address)})
            assert client.read_response().status == 200
    assert origin.connections == 2


# Lost conntrack entries

class Flusher:
    """`conntrack -F` every 100 ms until the end of the block."""

    def __init__(self, namespace):
        self.namespace, self.stopped, self.rounds = namespace, threading.Event(), 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopped.wait(0.1):
            self.namespace.run("conntrack", "-F")
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def try_fetch(way, target):
    try:
        with way.connect(timeout=1) as client:
            client.socket.settimeout(1)
            client.request("GET", target, {"Host": way.host, "Connection": "close"})
            return client.read_response().complete
    except (OSError, Closed, Failed):
        return False


def load(way, until, wins):
    number = 0
    while time.monotonic() < until:
        number += 1
        wins.append(try_fetch(way, f"/echo?flush={number}"))


def test_conntrack_flushed_under_load():
    with Lab() as lab:
        weir = lab.weir(f"listen 3129 redirect\n{DEFAULT_CONFIG}")
        ways = [Way(lab, weir, family) for family in (4, 6)]
        wins = [[] for _ in ways]
        with Flusher(lab.gw) as flusher:
            threads = [threading.Thread(target=load, args=(way, time.monotonic() + 10, won))
                for way, won in zip(ways, wins)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert flusher.rounds > 50 and all(sum(won) > 0 for won in wins)
        for way in ways:
            wait_for(lambda: try_fetch(way, "/echo?after"), 1, "the first answer after the last flush")
            assert all([try_fetch(way, f"/echo?clean={number}") for number in range(100)])
            way.check()
