"""One way in: a lab, its daemon and an address family, with the words tests are written in."""
import itertools
import socket

import lab as lab_module
from lab import bracketed, origin_address
from origin import Http, Service
from peer import Closed

DEFAULT_CONFIG = """\
cache_status on
timeout request_head 2s
timeout client_idle 5s
timeout client_body 2s
timeout server_first 200ms
timeout connect 1s
timeout first_byte 1s
timeout upstream_idle 1s
timeout linger 2s
timeout drain 2s
"""
SERIAL = itertools.count()


class Way:
    def __init__(self, lab, daemon, family):
        self.lab, self.daemon, self.family = lab, daemon, family
        self.services = []

    @property
    def origin(self):
        """The HTTP origin of this lab and family (made once)."""
        origins = self.lab.__dict__.setdefault("origins", {})
        if self.family not in origins:
            origins[self.family] = self.lab.keep(Http(self.lab.wan, origin_address(10, self.family)))
        return origins[self.family]

    @property
    def host(self):
        return bracketed(self.origin.address)

    def new_origin(self):
        """An HTTP origin of the test's own, on an address nobody used before."""
        return self._keep(Http(self.lab.wan, self.free_address()))

    def serve(self, handler):
        """A scripted origin on port 80 of an address nobody used before."""
        return self._keep(Service(self.lab.wan, self.free_address(), handler))

    def _keep(self, service):
        self.services.append(service)
        return self.lab.keep(service)

    def free_address(self):
        return origin_address(self.lab.next_origin(), self.family)

    @property
    def client_address(self):
        return lab_module.CLIENT[self.family]

    @property
    def gateway_address(self):
        return lab_module.GATEWAY[self.family]

    def unique(self, path):
        """The path with a query nobody used before, so that no other test stored it."""
        return f"{path}{'&' if '?' in path else '?'}u={next(SERIAL)}"

    def connect(self, service=None, **options):
        """A LAN client's connection to port 80 of an origin (a Service or an address)."""
        return self.lab.connect(self._address(service), **options)

    def _address(self, service):
        return service if isinstance(service, str) else (service or self.origin).address

    def fetch(self, target, method="GET", fields=(), body=b"", to=None, host=None, source=None):
        """One request on a connection of its own, as a LAN host that knows nothing of a proxy sends it."""
        fields = list(fields.items() if isinstance(fields, dict) else fields)
        host = host or bracketed(self._address(to))
        with self.connect(to, source=source) as client:
            client.request(method, target, [("Host", host), ("Connection", "close"), *fields], body)
            return client.read_response(method)

    def entry(self, target, **wanted):
        """The one access log line of a target."""
        return self.daemon.wait_entry(url=target, **wanted)

    def check(self):
        """After a test: the daemon lives, and no origin script stumbled."""
        self.daemon.check_alive()
        for service in [*self.services, *self.lab.__dict__.get("origins", {}).values()]:
            failures, service.failures = service.failures, []
            assert not failures, f"origin script: {failures}"


def is_refused(connect):
    """Whether a connection attempt, or the first read on it, is turned away without a byte."""
    try:
        with connect() as client:
            return client.ends()
    except (ConnectionError, Closed, socket.timeout):
        return True
