"""offline on and auto: stored pages with their Age, 504 for the rest, and how the uplink is taken for down and up.

The uplink is the gateway's default route over `wan`: its link is taken down at either end, the route is deleted, or
the origins vanish behind it. The log has each change once, with its reason.
"""
import time

import pytest

from lab import Lab, wait_for
from origin import Http, pattern
from way import DEFAULT_CONFIG, Way

ROUTES = ("route add default via 192.0.2.254\nroute add default via 2001:db8::254\n"
    "route replace unreachable 203.0.113.0/25\n")
NO_ROUTE = "no default route with a link that is up is left"
ALL_FAIL = "connections to unrelated destinations fail one after another"
FRESH = "/static/100?h=Cache-Control:max-age=3600"
STALE = "/static/200?h=Cache-Control:max-age=0,must-revalidate"


class Gateway:
    def __init__(self, lab, setting):
        self.lab = lab
        self.config = f"listen 3129 redirect\n{DEFAULT_CONFIG}"
        self.daemon = lab.weir(f"{self.config}offline {setting}\n")
        self.way = Way(lab, self.daemon, 4)
        # Elsewhere, so that their failures are not one destination's
        self.origins = [lab.keep(Http(lab.wan, f"198.18.{number}.1")) for number in range(4)]
        self.seen = 0
        self.wait_look()                            # the routes were seen while all was well

    def wait_look(self):
        """Until the gateway has looked at its routes once more, or twice."""
        before = self.daemon.stats()["uptime_s"]
        wait_for(lambda: self.daemon.stats()["uptime_s"] > before, what="another second")

    def is_offline(self):
        return self.daemon.stats()["offline"] == 1

    def wait_offline(self, wanted, timeout=15):
        wait_for(lambda: self.is_offline() == wanted, timeout, f"offline {wanted}")

    def said(self):
        """The lines about it since the last call."""
        lines = [line for line in self.daemon.stderr().splitlines() if "offline:" in line or "online again:" in line]
        new, self.seen = lines[self.seen:], len(lines)
        return [line.split("weir: ")[-1] for line in new]

    def store(self):
        self.fresh, self.stale = self.way.unique(FRESH), self.way.unique(STALE)
        assert self.way.fetch(self.fresh).status == self.way.fetch(self.stale).status == 200

    def check_offline(self):
        """Whatever is stored, with its Age; 504 for the rest, and nobody is asked."""
        asked = self.daemon.stats()["upstream_connections"]
        for target, size in ((self.fresh, 100), (self.stale, 200)):
            answer = self.way.fetch(target)
            assert (answer.status, answer.body) == (200, pattern(size))
            assert int(answer.get("Age")) >= 0 and answer.get("Warning") is None
        other = self.way.unique(FRESH)
        assert self.way.fetch(other).status == 504
        assert self.daemon.wait_entry(url=other)["reason"] == "offline"
        assert self.way.fetch(self.way.unique(FRESH), "POST", body=b"x").status == 504
        assert self.way.fetch(self.way.unique(FRESH), fields={"Cache-Control": "no-cache"}).status == 504
        assert self.daemon.stats()["upstream_connections"] == asked
        assert self.way.origin.count(other) == 0

    def check_online(self):
        target = self.way.unique(FRESH)
        assert self.way.fetch(target).status == 200
        assert self.way.origin.count(target) == 1


@pytest.fixture
def lab_with_more():
    with Lab() as lab:
        lab.wan.batch("route add local 198.18.0.0/16 dev lo\n")
        yield lab


def test_on(lab_with_more):
    gateway = Gateway(lab_with_more, "off")
    gateway.store()
    gateway.daemon.reload(f"{gateway.config}offline on\n")
    gateway.wait_offline(True)
    gateway.check_offline()
    with gateway.way.connect() as client:           # no HTTP: nothing goes out either
        client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert client.ends()
    gateway.daemon.reload(f"{gateway.config}offline off\n")
    gateway.check_online()
    assert gateway.said() == []


def test_auto_by_route(lab_with_more):
    lab = lab_with_more
    gateway = Gateway(lab, "auto")
    gateway.store()
    assert not gateway.is_offline()

    lab.wan.batch("link set eth0 down\n")           # the far end: the carrier is lost, the routes stay
    gateway.wait_offline(True)
    assert gateway.said() == [f"offline: {NO_ROUTE}; what is stored is served, and nothing is asked"]
    gateway.check_offline()
    lab.wan.batch("link set eth0 up\nroute add default via 192.0.2.1\n")
    gateway.wait_offline(False)
    assert gateway.said()[0] in ("online again: a default route is back", "online again: a connection succeeded")
    gateway.check_online()

    lab.gw.batch("link set wan down\n")             # the near end: the routes go
    gateway.wait_offline(True)
    gateway.check_offline()
    lab.gw.batch(f"link set wan up\naddr replace 2001:db8::1/64 dev wan nodad\n{ROUTES}")
    gateway.wait_offline(False)
    gateway.check_online()

    lab.gw.batch("route del default via 192.0.2.254\nroute del default via 2001:db8::254\n")
    gateway.wait_offline(True)
    gateway.check_offline()
    lab.gw.batch("route add default via 192.0.2.254\nroute add default via 2001:db8::254\n")
    gateway.wait_offline(False)
    gateway.check_online()
    assert len(gateway.said()) == 4


def test_auto_from_the_moment_it_is_in_force(lab_with_more):
    """The route that goes right after the reload was there."""
    lab = lab_with_more
    gateway = Gateway(lab, "off")
    for _ in range(5):
        gateway.daemon.reload(f"{gateway.config}offline auto\n")
        lab.gw.batch("route del default via 192.0.2.254\nroute del default via 2001:db8::254\n")
        gateway.wait_offline(True)
        lab.gw.batch("route add default via 192.0.2.254\nroute add default via 2001:db8::254\n")
        gateway.daemon.reload(f"{gateway.config}offline off\n")
        gateway.wait_offline(False)


def test_auto_survives_a_blip(lab_with_more):
    lab = lab_with_more
    gateway = Gateway(lab, "auto")
    gateway.store()
    for _ in range(3):
        lab.gw.batch("route del default via 192.0.2.254\nroute del default via 2001:db8::254\n"
            "route add default via 192.0.2.254\nroute add default via 2001:db8::254\n")
        gateway.wait_look()
    gateway.check_online()
    assert not gateway.is_offline() and gateway.said() == []


def test_auto_by_failures(lab_with_more):
    lab = lab_with_more
    gateway = Gateway(lab, "auto")
    gateway.store()
    lab.wan.batch("route del local 198.18.0.0/16 dev lo\nroute del local 198.51.100.0/24 dev lo\n"
        "route add blackhole 198.18.0.0/16\nroute add blackhole 198.51.100.0/24\n")
    for _ in range(5):                              # one destination proves nothing
        assert gateway.way.fetch(gateway.way.unique(FRESH)).status == 504
    assert not gateway.is_offline()
    for origin in gateway.origins[:3]:
        assert gateway.way.fetch(gateway.way.unique(FRESH), to=origin).status == 504
    gateway.wait_offline(True)                      # once what answered before does not either
    assert gateway.said() == [f"offline: {ALL_FAIL}; what is stored is served, and nothing is asked"]
    began = time.monotonic()
    assert gateway.way.fetch(gateway.way.unique(FRESH), to=gateway.origins[3]).status == 504
    assert time.monotonic() - began < 0.5           # at once: nobody was asked
    answer = gateway.way.fetch(gateway.stale)
    assert (answer.status, answer.body) == (200, pattern(200)) and int(answer.get("Age")) >= 0

    lab.wan.batch("route del blackhole 198.18.0.0/16\nroute del blackhole 198.51.100.0/24\n"
        "route add local 198.18.0.0/16 dev lo\nroute add local 198.51.100.0/24 dev lo\n")
    gateway.wait_offline(False, 20)                 # by a probe
    assert gateway.said() == ["online again: a connection succeeded"]
    gateway.check_online()


def test_dead_destinations_are_not_the_uplink(lab_with_more):
    """What one client asks for may all be dead, while what others use answers."""
    lab = lab_with_more
    gateway = Gateway(lab, "auto")
    gateway.store()
    lab.wan.batch("route del local 198.18.0.0/16 dev lo\nroute add blackhole 198.18.0.0/16\n")
    probed = gateway.way.origin.connections
    for origin in gateway.origins:
        assert gateway.way.fetch(gateway.way.unique(FRESH), to=origin).status == 504
    wait_for(lambda: gateway.way.origin.connections > probed, what="a probe of what answered before")
    gateway.wait_look()
    assert not gateway.is_offline() and gateway.said() == []
    gateway.check_online()


def test_refusals_are_answers(lab_with_more):
    gateway = Gateway(lab_with_more, "auto")
    for number in range(100, 106):
        assert gateway.way.fetch(gateway.way.unique(FRESH), to=f"198.18.{number}.1").status == 502
    assert not gateway.is_offline() and gateway.said() == []
