"""The forward and any ports: proxy requests, CONNECT, accelerator requests; names looked up, nothing looped."""
import pytest

from dns import NameServer
from lab import Lab, WIDE, bracketed, client_address, origin_address, wait_for
from origin import Service, echo, pattern
from way import DEFAULT_CONFIG, Way

CONFIG = """\
listen 3128 forward
listen 3130 any
connect_ports 443 8443
deny 10.57.1.66 fd57:1::42
block blocked.example 198.51.100.252
forward_default accelerated.example
timeout resolve 1s
"""

DEAD, DEAD_TOO, BLOCKED = "198.51.100.250", "198.51.100.251", "198.51.100.252"
MOVED = "198.51.100.249"


@pytest.fixture(scope="module")
def forward():
    with Lab() as lab:
        lab.gw.etc("resolv.conf", f"nameserver {WIDE[4]}\noptions timeout:1 attempts:1\n")
        numbers = {4: [origin_address(10, 4)], 6: [origin_address(10, 6)]}
        lab.names = lab.keep(NameServer(lab.wan, WIDE[4], {
            "origin4.example": numbers[4], "origin6.example": numbers[6],
            "both.example": numbers[6] + numbers[4], "accelerated.example": numbers[4],
            "first.example": [numbers[4][0], DEAD], "second.example": [DEAD, numbers[4][0]],
            "moved.example": [MOVED, numbers[4][0]],
            "all-dead.example": [DEAD, DEAD_TOO], "half-blocked.example": [numbers[4][0], BLOCKED],
            "blocked.example": numbers[4], "gateway.example": ["10.57.0.1", "fd57::1"]}))
        weir = lab.weir(f"listen 3129 redirect\n{DEFAULT_CONFIG}{CONFIG}",
            prefix=("ip", "netns", "exec", lab.gw.name))
        yield lab, weir


@pytest.fixture(params=[4, 6], ids=["ipv4", "ipv6"])
def way(request, forward):
    made = Way(*forward, request.param)
    assert made.origin
    yield made
    made.check()


@pytest.fixture
def way4(forward):
    made = Way(*forward, 4)
    assert made.origin
    yield made
    made.check()


@pytest.fixture(params=[3128, 3130], ids=["forward", "any"])
def port(request):
    return request.param


def proxy(way, port, target, method="GET", fields=None, body=b"", host=None, source=None, version="HTTP/1.1"):
    with way.lab.connect(way.gateway_address, port, source=source) as client:
        fields = {"Host": host or target.split("/")[2], "Connection": "close", **(fields or {})}
        client.request(method, target, {k: v for k, v in fields.items() if v}, body, version)
        return client.read_response(method)


def test_absolute_form_by_address(way, port):
    path = way.unique("/static/100")
    first, second = (proxy(way, port, f"http://{way.host}{path}") for _ in range(2))
    assert first.body == second.body == pattern(100)
    assert (second.cache, way.origin.count(path)) == ("hit", 1)
    assert way.origin.seen(path)[0].target == path, "the origin gets the origin form"


@pytest.mark.parametrize("name", ["origin4.example", "both.example"])
def test_absolute_form_by_name(way, port, name):
    name = name.replace("4", str(way.family))
    assert proxy(way, port, f"http://{name}{way.unique('/static/100')}").body == pattern(100)


@pytest.mark.parametrize("name", ["first.example", "second.example"])
def test_the_next_address_of_a_name_is_tried(way4, port, name):
    assert proxy(way4, port, f"http://{name}{way4.unique('/static/100')}").body == pattern(100)


def test_the_next_address_is_tried_when_a_kept_connection_is_stale_and_its_address_gone(way4):
    def once(peer, _):
        peer.read_request()
        peer.respond("200 OK", {"Content-Length": 2, "Cache-Control": "no-store"}, b"ok")
        peer.read_request()
    origin = way4.lab.keep(Service(way4.lab.wan, MOVED, once))
    gw, path = way4.lab.gw, way4.unique("/static/100")
    with way4.lab.connect(way4.gateway_address, 3128) as client:
        client.request("GET", "http://moved.example/", {"Host": "moved.example"})
        assert client.read_response().body == b"ok"
        port = origin.peers[0].socket.getpeername()[1]
        # What is there goes on; a new connection to this address is impossible at once.
        gw.batch(f"rule add pref 100 to {MOVED} ipproto tcp sport {port} lookup main\n"
            f"rule add pref 101 to {MOVED} ipproto tcp unreachable\n")
        try:
            client.request("GET", f"http://moved.example{path}", {"Host": "moved.example"})
            assert client.read_response().body == pattern(100)
        finally:
            gw.batch("rule del pref 100\nrule del pref 101\n")


def test_no_address_of_a_name_answers(way4, port):
    assert proxy(way4, port, "http://all-dead.example/").status in (502, 504)


def test_a_name_with_one_blocked_address_is_blocked(way4, port):
    assert proxy(way4, port, "http://half-blocked.example/").status == 403


def test_a_name_that_is_not_there(way, port):
    answer = proxy(way, port, "http://nowhere.example/")
    assert answer.status in (502, 503, 504) and b"nowhere.example" in answer.body


def test_connect(way, port):
    service = way.lab.keep(Service(way.lab.wan, way.free_address(), echo, 443))
    with way.lab.connect(way.gateway_address, port) as client:
        authority = f"{bracketed(service.address)}:443"
        client.request("CONNECT", authority, {"Host": authority})
        assert client.read_response("CONNECT").status == 200
        client.send(pattern(100000))
        client.half_close()
        assert client.read_to_end() == pattern(100000)


def test_connect_with_bytes_along(way, port):
    service = way.lab.keep(Service(way.lab.wan, way.free_address(), echo, 8443))
    with way.lab.connect(way.gateway_address, port) as client:
        authority = f"{bracketed(service.address)}:8443"
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\nearly bytes".encode())
        assert client.read_response("CONNECT").status == 200
        assert client.read(11) == b"early bytes"


@pytest.mark.parametrize("number", [25, 80, 22])
def test_connect_to_another_port_is_refused(way, port, number):
    authority = f"{way.host}:{number}"
    answer = proxy(way, port, authority, "CONNECT", host=authority)
    assert answer.status == 403


def test_accelerator_requests(way, port):
    path = way.unique("/static/100")
    assert proxy(way, port, path, host=f"origin{way.family}.example").body == pattern(100)
    assert proxy(way, port, path, host=way.host).body == pattern(100)


def test_an_accelerator_request_without_host_goes_to_the_default(way, port):
    with way.lab.connect(way.gateway_address, port) as client:
        client.send(f"GET {way.unique('/static/100')} HTTP/1.0\r\n\r\n".encode())
        assert client.read_response().body == pattern(100)


@pytest.mark.parametrize("name", ["10.57.0.1:3128", "[fd57::1]:3130", "gateway.example:3128", "192.0.2.1:3129",
    "127.0.0.1:3128", "[::1]:3130"])
def test_no_request_comes_back_to_us(way, port, name):
    before = way.daemon.stats()["connections"]
    answer = proxy(way, port, f"http://{name}/")
    assert answer.status >= 400
    assert way.daemon.stats()["connections"] == before + 1, "only the client's own connection"


def test_denied_and_blocked(way, port):
    url = f"http://{way.host}{way.unique('/static/100')}"
    answer = proxy(way, port, url, source=client_address(66, way.family))
    assert answer.status == 403 and b"Cache access denied" in answer.body
    assert proxy(way, port, "http://blocked.example/").status == 403
    authority = "blocked.example:443"
    assert proxy(way, port, authority, "CONNECT", host=authority).status == 403


def test_options_of_the_server_as_a_whole(way, port):
    """Without a path the last proxy says "*" [RFC 9112 3.2.4]; with one it says that."""
    with way.lab.connect(way.gateway_address, port) as client:
        for target in (f"http://{way.host}", f"http://{way.host}{way.unique('/options')}"):
            client.request("OPTIONS", target, {"Host": way.host})
            client.read_response("OPTIONS")
    assert way.origin.seen("*") and way.origin.seen(target.removeprefix(f"http://{way.host}"))


def test_another_scheme_is_not_implemented(way, port):
    assert proxy(way, port, "ftp://origin4.example/").status == 501


def test_upload_and_pipelining(way, port):
    with way.lab.connect(way.gateway_address, port) as client:
        client.request("POST", f"http://{way.host}/echo", {"Host": way.host}, pattern(100000))
        client.request("GET", f"http://{way.host}{way.unique('/static/5')}", {"Host": way.host})
        assert client.read_response().status == 200
        assert client.read_response().body == pattern(5)


def test_one_connection_to_several_origins(way, port):
    others = [way.new_origin() for _ in range(3)]
    with way.lab.connect(way.gateway_address, port) as client:
        for origin in others * 2:
            host = bracketed(origin.address)
            client.request("GET", f"http://{host}{way.unique('/static/9')}", {"Host": host})
            assert client.read_response().body == pattern(9)
    assert [len(origin.requests) for origin in others] == [2, 2, 2]


def test_the_any_port_takes_redirected_connections_too():
    with Lab() as lab:
        weir = lab.weir(f"listen 3130 any\n{DEFAULT_CONFIG}")
        for family in (4, 6):
            way = Way(lab, weir, family)
            path = way.unique("/static/100")
            assert way.fetch(path).body == pattern(100)
            assert proxy(way, 3130, f"http://{way.host}{way.unique('/static/100')}").body == pattern(100)
            wait_for(lambda: way.origin.count(path) == 1)
            way.check()
