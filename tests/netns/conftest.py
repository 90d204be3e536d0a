"""What every netns test may ask for.

`lab` is the three namespaces with nothing running. `way` is the same with weir on the gateway and an HTTP origin,
four times over: REDIRECT and TPROXY, IPv4 and IPv6. A test module adds to weir's configuration by CONFIG.
"""
import shutil

import pytest

import lab as lab_module
from lab import Lab
from way import DEFAULT_CONFIG, Way

WAYS = {"redirect": "iptables", "tproxy": "nft"}  # every backend with every mode: test_arrive.py


def pytest_configure(config):
    lab_module.exit_on_signals()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory):
    yield
    shutil.rmtree(tmp_path_factory.getbasetemp(), ignore_errors=True)


@pytest.fixture(scope="module")
def lab():
    with Lab() as made:
        yield made


@pytest.fixture(scope="module", params=list(WAYS))
def gateway(request):
    """A lab with weir running, shared by the tests of a module; a daemon that died fails them all."""
    with Lab() as made:
        extra = getattr(request.module, "CONFIG", "")
        made.mode = request.param
        made.daemon = made.weir(f"listen 3129 {request.param}\n{DEFAULT_CONFIG}{extra}",
            backend=WAYS[request.param])
        made.origins = {}
        yield made


@pytest.fixture(params=[4, 6], ids=["ipv4", "ipv6"])
def way(request, gateway):
    made = Way(gateway, gateway.daemon, request.param)
    yield made
    made.check()


@pytest.fixture
def way4(gateway):
    """As `way` with IPv4 alone, for what does not depend on the family."""
    made = Way(gateway, gateway.daemon, 4)
    yield made
    made.check()
