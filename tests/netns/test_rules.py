"""`weir rules`: real packets through what it applies, and nothing left of it afterwards."""
import concurrent.futures
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time

import pytest

from lab import GATEWAY, GATEWAY_WAN, CLIENT, client_address, origin_address, wait_for
from rules_gateway import (INTERCEPT, PORT, UPSTREAM, IP_TRANSPARENT, IPV6_TRANSPARENT, Gateway, Listener,
    path_with_legacy_iptables, path_without)

BACKENDS = ["iptables", "nft"]
MODES = ["redirect", "tproxy"]
FAMILIES = [4, 6]
KILLS = int(os.environ.get("WEIR_KILLS", "12")) # moments at which a command is killed
ORIGIN = {family: origin_address(9, family) for family in FAMILIES}

# Rules of somebody else, some of them in the tables and chains that ours join.
FOREIGN = """\
*mangle
:PREROUTING ACCEPT [0:0]
:THEIRS - [0:0]
-A PREROUTING -i lan -j THEIRS
-A THEIRS -p udp -j MARK --set-xmark 0x1/0xff
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
-A PREROUTING -i wan -p tcp -m tcp --dport 8443 -j REDIRECT --to-ports 443
COMMIT
*filter
:INPUT ACCEPT [0:0]
-A INPUT -i lan -p tcp -m tcp --dport 9 -j DROP
COMMIT
"""
FOREIGN_NFT = "table inet theirs {\n chain input {\n  type filter hook input priority 0\n  udp dport 9 drop\n }\n}\n"
EMPTY_TABLES = "table ip mangle {\n}\ntable ip nat {\n chain PREROUTING {\n  type nat hook prerouting priority -100\n }\n}\n"


@pytest.fixture
def gateway(lab):
    made = Gateway(lab)
    made.clear()
    made.configure(f"listen {PORT} redirect\nlan lan\n")
    yield made
    made.rules("remove", check=False)
    made.clear()


@pytest.fixture(scope="module")
def origin(lab):
    listener = Listener(lab.wan, "origin", 80)
    yield listener
    listener.close()


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture(params=FAMILIES, ids=["ipv4", "ipv6"])
def family(request):
    return request.param


@pytest.fixture
def applied(gateway, origin, backend, mode):
    """The rules in force, and a socket in weir's place behind them."""
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.weir = Listener(gateway.lab.gw, "weir", PORT, transparent=mode == "tproxy")
    gateway.mode = mode
    gateway.rules("apply", "--backend", backend)
    yield gateway
    gateway.weir.close()


def fetch(namespace, address, port=80, source=None, timeout=15):
    """Who answered at the other end."""
    with namespace.socket(6 if ":" in address else 4) as sock:
        sock.settimeout(timeout)
        if source:
            sock.bind((source, 0))
        sock.connect((address, port))
        return b"".join(iter(lambda: sock.recv(4096), b"")).decode()


# Packets

def test_lan_connection_arrives_with_its_destination(applied, family):
    assert fetch(applied.lab.lan, ORIGIN[family]) == "weir"
    arrival = applied.weir.seen[-1]
    assert arrival.destination(applied.mode) == (ORIGIN[family], 80)
    assert arrival.client == CLIENT[family]


def test_removed_rules_let_it_pass(applied, family):
    applied.rules("remove")
    assert fetch(applied.lab.lan, ORIGIN[family]) == "origin"


def test_other_ports_pass(applied, family):
    other = Listener(applied.lab.wan, "other port", 8080)
    try:
        assert fetch(applied.lab.lan, ORIGIN[family], 8080) == "other port"
    finally:
        other.close()


def test_other_interfaces_pass(applied, family):
    """From the wide side to a server in the LAN."""
    server = Listener(applied.lab.lan, "lan server", 80)
    try:
        assert fetch(applied.lab.wan, client_address(3, family)) == "lan server"
    finally:
        server.close()


def test_services_of_the_gateway_are_untouched(applied, family):
    service = Listener(applied.lab.gw, "service", 80)
    try:
        for address in (GATEWAY[family], GATEWAY_WAN[family]):
            assert fetch(applied.lab.lan, address) == "service"
        # An address that comes after the rules is exempt all the same.
        late = "192.0.2.77" if family == 4 else "2001:db8::77"
        extra = ["nodad"] if family == 6 else []
        applied.run("ip", "addr", "add", late + ("/32" if family == 4 else "/128"), "dev", "wan", *extra)
        try: # IPv6 addresses become local a moment later
            wait_for(lambda: applied.run("ip", f"-{family}", "route", "get", late).startswith("local "))
            assert fetch(applied.lab.lan, late) == "service"
        finally:
            applied.run("ip", "addr", "del", late + ("/32" if family == 4 else "/128"), "dev", "wan")
    finally:
        service.close()


def test_the_gateways_own_connections_pass(applied, family):
    assert fetch(applied.lab.gw, ORIGIN[family]) == "origin"


@pytest.mark.parametrize("inherit", [0, 1])
def test_foreign_mark_bits_survive(applied, family, inherit):
    """A shaper's bits stay, ours join them, and an accepted socket that inherits both still reaches its client."""
    tool = "iptables" if family == 4 else "ip6tables"
    applied.run(tool, "-t", "raw", "-A", "PREROUTING", "-i", "lan", "-j", "MARK", "--set-xmark", "0x42/0xff")
    applied.lab.gw.set(ipv4__tcp_fwmark_accept=inherit)
    try:
        assert fetch(applied.lab.lan, ORIGIN[family]) == "weir"
        mark = applied.weir.seen[-1].mark
        assert mark == (INTERCEPT | 0x42 if inherit else 0)
        # Bits next to ours are not mistaken for ours: what only they mark is not intercepted.
        applied.run(tool, "-t", "raw", "-F", "PREROUTING")
        applied.run(tool, "-t", "raw", "-A", "PREROUTING", "-j", "MARK", "--set-xmark", "0x00ffffff/0x00ffffff")
        other = Listener(applied.lab.wan, "other port", 8080)
        try:
            assert fetch(applied.lab.lan, ORIGIN[family], 8080) == "other port"
        finally:
            other.close()
    finally:
        applied.run(tool, "-t", "raw", "-F", "PREROUTING")
        applied.lab.gw.set(ipv4__tcp_fwmark_accept=0)


def test_strict_reverse_path_with_marks(applied):
    """rp_filter=1 and src_valid_mark=1, as wg-quick sets it."""
    applied.lab.gw.set(ipv4__conf__all__rp_filter=1, ipv4__conf__lan__rp_filter=1, ipv4__conf__wan__rp_filter=1,
        ipv4__conf__all__src_valid_mark=1)
    try:
        assert fetch(applied.lab.lan, ORIGIN[4]) == "weir"
    finally:
        applied.lab.gw.set(ipv4__conf__all__rp_filter=2, ipv4__conf__lan__rp_filter=0,
            ipv4__conf__wan__rp_filter=0, ipv4__conf__all__src_valid_mark=0)


def relay_spoofed(connection, arrival):
    """What weir does with spoof_client: asks the origin from the client's address."""
    sock = socket.socket(socket.AF_INET6 if ":" in arrival.client else socket.AF_INET)
    with sock:
        sock.settimeout(15)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, UPSTREAM)
        if ":" in arrival.client:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
        sock.bind((arrival.client, 0))
        sock.connect(arrival.name)
        while data := sock.recv(4096):
            connection.sendall(b"relayed " + data)


@pytest.mark.parametrize("strict", [False, True])
def test_spoofed_upstream_connections_come_back(gateway, origin, backend, family, strict):
    gateway.configure(f"listen {PORT} tproxy\nspoof_client on\nlan lan\n")
    gateway.rules("apply", "--backend", backend)
    if strict:
        gateway.lab.gw.set(ipv4__conf__all__rp_filter=1, ipv4__conf__all__src_valid_mark=1,
            ipv4__tcp_fwmark_accept=1)
    weir = Listener(gateway.lab.gw, "weir", PORT, transparent=True, answer=relay_spoofed)
    try:
        source = client_address(7, family)
        assert fetch(gateway.lab.lan, ORIGIN[family], source=source) == "relayed origin"
        assert origin.seen[-1].client == source
    finally:
        weir.close()
        gateway.lab.gw.set(ipv4__conf__all__rp_filter=2, ipv4__conf__all__src_valid_mark=0,
            ipv4__tcp_fwmark_accept=0)


def test_client_reuses_a_port_that_is_in_time_wait(applied, family):
    """The proxy closed first, so the old connection is in TIME_WAIT here when the client's next SYN comes."""
    for _ in range(2):
        with applied.lab.lan.socket(family) as sock:
            sock.settimeout(15)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((client_address(8, family), 40404))
            sock.connect((ORIGIN[family], 80))
            assert b"".join(iter(lambda: sock.recv(4096), b"")) == b"weir"


def test_connections_that_stand_are_left_alone(gateway, backend, mode, family):
    echo = Listener(gateway.lab.wan, "echo", 8088, answer=lambda connection, _: [
        connection.sendall(data) for data in iter(lambda: connection.recv(4096), b"")])
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.run("iptables", "-t", "nat", "-A", "PREROUTING", "-j", "RETURN") # conntrack is at work
    weir = Listener(gateway.lab.gw, "weir", PORT, transparent=mode == "tproxy")
    table = "ip" if family == 4 else "ip6"
    # The echo server is on another port, so that the origin of the module keeps port 80: bring it there by NAT.
    gateway.lab.wan.run("nft", "-f", "-", input=f"table {table} echo {{\n chain in {{\n  type nat hook prerouting "
        f"priority -100\n  {table} daddr {origin_address(10, family)} tcp dport 80 redirect to :8088\n }}\n}}\n")
    try:
        with gateway.lab.connect(origin_address(10, family)) as peer:
            sock = peer.socket
            sock.sendall(b"before")
            assert sock.recv(4096) == b"before"
            gateway.rules("apply", "--backend", backend)
            sock.sendall(b"after")
            assert sock.recv(4096) == b"after"
            gateway.rules("remove")
            sock.sendall(b"again")
            assert sock.recv(4096) == b"again"
    finally:
        gateway.lab.wan.run("nft", "delete", "table", table, "echo")
        echo.close()
        weir.close()


def test_nobody_listens(gateway, origin, family):
    """nft with on_failure open: traffic passes when weir is gone; closed: it does not."""
    gateway.configure(f"listen {PORT} tproxy\nlan lan\n")
    gateway.rules("apply", "--backend", "nft")
    assert fetch(gateway.lab.lan, ORIGIN[family]) == "origin"
    gateway.configure(f"listen {PORT} tproxy\nlan lan\non_failure closed\n")
    gateway.rules("apply", "--backend", "nft")
    with pytest.raises(TimeoutError):
        fetch(gateway.lab.lan, ORIGIN[family], timeout=1.5)


def test_listener_on_one_address(gateway, origin, backend, mode):
    """A listener on one address takes its family alone; the other passes."""
    gateway.configure(f"listen {GATEWAY[4]}:{PORT} {mode}\nlan lan\n")
    gateway.rules("apply", "--backend", backend)
    weir = Listener(gateway.lab.gw, "weir", PORT, transparent=mode == "tproxy")
    try:
        assert fetch(gateway.lab.lan, ORIGIN[4]) == "weir"
        assert weir.seen[-1].destination(mode) == (ORIGIN[4], 80)
        assert fetch(gateway.lab.lan, ORIGIN[6]) == "origin"
    finally:
        weir.close()


def test_interfaces_of_the_default_routes_are_no_lan(gateway, backend):
    gateway.configure(f"listen {PORT} redirect\n")
    assert " from lan\n" in gateway.rules("apply", "--backend", backend).stdout


# Nothing is left

def nothing(gateway):
    pass


def foreign(gateway):
    for tool in ("iptables-restore", "ip6tables-restore"):
        gateway.run(tool, input=FOREIGN)
    gateway.run("nft", "-f", "-", input=FOREIGN_NFT)
    gateway.run("ip", "rule", "add", "fwmark", "0x1/0xff", "lookup", "100", "priority", "1000")


def empty_tables(gateway):
    gateway.run("nft", "-f", "-", input=EMPTY_TABLES)


def half_of_them(gateway):
    gateway.run("ip6tables", "-t", "mangle", "-P", "FORWARD", "DROP")


BEFORE = [nothing, foreign, empty_tables, half_of_them]


@pytest.fixture(params=BEFORE, ids=lambda prepare: prepare.__name__)
def before(request, gateway):
    request.param(gateway)
    yield gateway.snapshot()
    gateway.lab.gw.run("ip", "rule", "del", "priority", "1000", check=False)


def test_apply_and_remove_leave_no_trace(gateway, before, backend, mode):
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.rules("apply", "--backend", backend)
    once = gateway.snapshot()
    assert once != before
    gateway.rules("apply", "--backend", backend)
    assert gateway.snapshot() == once
    gateway.rules("status")
    gateway.rules("remove")
    assert gateway.snapshot() == before
    gateway.rules("remove")
    assert gateway.snapshot() == before


def test_foreign_rules_stand_while_ours_do(gateway, backend, mode):
    foreign(gateway)
    try:
        without = gateway.snapshot()
        gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
        gateway.rules("apply", "--backend", backend)
        for name, text in gateway.snapshot().items():
            lines = text if isinstance(text, list) else text.splitlines()
            there = without[name] if isinstance(without[name], list) else without[name].splitlines()
            assert [line for line in there if line not in lines] == []
    finally:
        gateway.run("ip", "rule", "del", "priority", "1000")


@pytest.mark.parametrize("other_mode", MODES)
def test_every_change_of_backend_and_mode(gateway, before, backend, mode, other_mode):
    other = BACKENDS[1 - BACKENDS.index(backend)]
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.rules("apply", "--backend", backend)
    gateway.configure(f"listen {PORT + 1} {other_mode}\nlan lan lan2+\nrule_mark 0x11000000\nrule_table 99\n")
    assert gateway.rules("status", check=False).returncode == 1
    gateway.rules("apply", "--backend", other)
    assert gateway.rules("status").stdout.count("applied, current") == (4 if other_mode == "tproxy" else 2)
    gateway.configure("this is no configuration\n") # remove does not ask it
    gateway.rules("remove")
    assert gateway.snapshot() == before


def kill_after(gateway, delay, verb, *words):
    process = gateway.lab.gw.start(*gateway.command(verb, *words), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + delay
    while time.monotonic() < end and process.poll() is None:
        pass
    process.kill()
    return process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("backend,mode,prepare", [("iptables", "redirect", nothing), ("iptables", "tproxy", foreign),
    ("nft", "redirect", foreign), ("nft", "tproxy", nothing)])
def test_kill_at_any_moment(gateway, backend, mode, prepare):
    """Killed in the middle of apply, and of remove, over the whole of their time; then apply, remove."""
    prepare(gateway)
    try:
        before = gateway.snapshot()
        gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
        begin = time.monotonic()
        gateway.rules("apply", "--backend", backend)
        whole = time.monotonic() - begin
        gateway.rules("remove")
        killed = 0
        steps = KILLS
        for step in range(steps):
            killed += kill_after(gateway, whole * step / steps, "apply", "--backend", backend)
            gateway.rules("apply", "--backend", backend)
            gateway.rules("status")
            killed += kill_after(gateway, whole * step / steps, "remove")
            if step % 2:
                gateway.rules("apply", "--backend", backend)
            gateway.rules("remove")
            assert gateway.snapshot() == before, f"after a kill at {step}/{steps} of {whole:.3f} s"
        assert killed > steps / 2 # else the kills came too late to prove anything
    finally:
        gateway.lab.gw.run("ip", "rule", "del", "priority", "1000", check=False)


def test_many_at_once_do_not_interleave(gateway, backend, mode):
    before = gateway.snapshot()
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    other = BACKENDS[1 - BACKENDS.index(backend)]
    jobs = [("apply", "--backend", backend), ("remove",), ("apply", "--backend", other), ("status",)] * 4
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda job: (job, gateway.rules(*job, check=False)), jobs))
    assert [end.stderr for job, end in ends if end.returncode and job[0] != "status"] == []
    gateway.rules("apply", "--backend", backend)
    gateway.rules("status")
    gateway.rules("remove")
    assert gateway.snapshot() == before


def test_what_others_put_into_our_tables_meanwhile_stays(gateway, mode):
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.rules("apply", "--backend", "iptables")
    table = "mangle" if mode == "tproxy" else "nat"
    gateway.run("iptables", "-t", table, "-A", "PREROUTING", "-p", "udp", "-j", "ACCEPT")
    if mode == "tproxy": # a policy in nat is always ACCEPT
        gateway.run("ip6tables", "-t", table, "-P", "PREROUTING", "DROP")
    gateway.rules("remove")
    assert "-A PREROUTING -p udp -j ACCEPT" in gateway.run("iptables-save")
    assert (":PREROUTING DROP" in gateway.run("ip6tables-save")) == (mode == "tproxy")
    assert "WEIR" not in gateway.run("nft", "list", "ruleset")


def test_legacy_iptables(gateway, origin, mode):
    """Where its tables were there before: it has no way to drop one."""
    def tables():
        texts = (gateway.run(f"{tool}-legacy-save") for tool in ("iptables", "ip6tables"))
        return [[re.sub(r"\[\d+:\d+\]", "", line) for line in text.splitlines() if line[0] != "#"] for text in texts]
    for tool in ("iptables-legacy", "ip6tables-legacy"):
        for table in ("mangle", "nat"):
            gateway.run(tool, "-t", table, "-A", "OUTPUT", "-p", "udp", "-j", "ACCEPT")
    before = tables()
    path = path_with_legacy_iptables(gateway.lab.directory / "bin")
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    weir = Listener(gateway.lab.gw, "weir", PORT, transparent=mode == "tproxy")
    try:
        gateway.rules("apply", "--backend", "iptables", environment=path)
        gateway.rules("status", environment=path)
        for family in FAMILIES:
            assert fetch(gateway.lab.lan, ORIGIN[family]) == "weir"
    finally:
        weir.close()
        gateway.rules("remove", environment=path)
    assert tables() == before
    for tool in ("iptables-legacy", "ip6tables-legacy"):
        for table in ("mangle", "nat"):
            gateway.run(tool, "-t", table, "-F")


def test_ipv6_is_off(gateway, origin, backend, mode):
    before = gateway.snapshot()
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.lab.gw.set(ipv6__conf__all__disable_ipv6=1)
    try:
        assert "IPv6" not in gateway.rules("apply", "--backend", backend).stdout
        gateway.rules("status")
        gateway.rules("remove")
    finally:
        gateway.lab.gw.set(ipv6__conf__all__disable_ipv6=0)
        # What switching it off took away.
        gateway.lab.gw.batch("addr add fd57::1/64 dev lan nodad\naddr add 2001:db8::1/64 dev wan nodad\n"
            "route replace default via 2001:db8::254\nroute replace fd57:1::/64 via fd57::2\n"
            "route replace unreachable 2001:db8:2::/64\n")
    assert gateway.snapshot()["nft"] == before["nft"]


def test_loopback_is_down(gateway, backend):
    before = gateway.snapshot()
    gateway.configure(f"listen {PORT} tproxy\nlan lan\n")
    gateway.run("ip", "link", "set", "lo", "down")
    try:
        done = gateway.rules("apply", "--backend", backend, check=False)
    finally:
        gateway.run("ip", "link", "set", "lo", "up")
    assert done.returncode == 1
    assert "ip link set lo up" in done.stderr
    assert gateway.snapshot()["rule", "-4"] == before["rule", "-4"]
    assert gateway.snapshot()["nft"] == before["nft"]


@pytest.mark.parametrize("broken", ["ip6tables-restore", "ip"])
def test_half_done_is_undone(gateway, before, mode, broken):
    """A step that fails in the middle, in the real namespace alone: what was done before it is taken back."""
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    here = os.stat(f"/run/netns/{gateway.lab.gw.name}").st_ino
    script = (f'[ "$(readlink /proc/self/ns/net)" != "net:[{here}]" ] || case "$*" in\n'
        '*--version*) ;;\n*restore*|*-6*-batch*|*--noflush*) echo "it broke" >&2; exit 1;;\nesac\nexec "$real" "$@"')
    path = path_without(gateway.lab.directory / "bin", (), {broken: script})
    done = gateway.rules("apply", "--backend", "iptables", environment=path, check=False)
    if broken == "ip" and mode == "redirect":
        assert done.returncode == 0
        gateway.rules("remove")
    else:
        assert done.returncode == 1
        assert "it broke" in done.stderr
    assert gateway.snapshot() == before


# Confirmation

def test_unconfirmed_rules_are_rolled_back(gateway, backend, mode):
    foreign(gateway)
    before = gateway.snapshot()
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    done = gateway.rules("apply", "--backend", backend, "--confirm", "2")
    assert "weir rules confirm" in done.stdout
    assert "not confirmed yet" in gateway.rules("status").stdout
    wait_for(lambda: gateway.snapshot() == before, 10, "rolling back")
    gateway.run("ip", "rule", "del", "priority", "1000")


def test_rolling_back_restores_the_rules_before(gateway, backend, mode):
    other = BACKENDS[1 - BACKENDS.index(backend)]
    gateway.configure(f"listen {PORT + 2} redirect\nlan lan wan\n")
    gateway.rules("apply", "--backend", other)
    first = gateway.snapshot()
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.rules("apply", "--backend", backend, "--confirm", "1")
    assert gateway.snapshot() != first
    wait_for(lambda: gateway.snapshot() == first, 10, "rolling back")


@pytest.mark.parametrize("how", ["confirm", "apply", "remove"])
def test_confirmed_rules_stay(gateway, how):
    before = gateway.snapshot()
    gateway.rules("apply", "--confirm", "1")
    applied = gateway.snapshot()
    second = gateway.rules("apply", "--confirm", "1", check=False)
    assert second.returncode == 1 and "not confirmed yet" in second.stderr
    gateway.rules(how)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert gateway.snapshot() == (before if how == "remove" else applied)
    assert gateway.rules("confirm", check=False).returncode == 1


class Terminal:
    """`weir rules apply --confirm` with a terminal of its own, as in an ssh session."""

    def __init__(self, gateway, seconds):
        self.master, slave = pty.openpty()
        with gateway.lab.gw:
            self.process = subprocess.Popen(gateway.command("apply", "--confirm", str(seconds)), stdin=slave,
                stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.text = ""
        self.expect("keeps them")

    def expect(self, words):
        end = time.monotonic() + 15
        while words not in self.text:
            assert select.select([self.master], [], [], end - time.monotonic())[0], self.text
            self.text += os.read(self.master, 4096).decode()

    def say(self, words):
        os.write(self.master, words.encode())

    def hang_up(self):
        os.close(self.master)
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("answer,stays", [("\n", True), ("yes\n", True), ("n\n", False), ("", False)])
def test_answer_at_the_terminal(gateway, answer, stays):
    before = gateway.snapshot()
    terminal = Terminal(gateway, 30 if answer else 1)
    applied = gateway.snapshot()
    terminal.say(answer)
    terminal.expect("the rules stay" if stays else "rolled back")
    assert terminal.process.wait(10) == (0 if stays else 1)
    assert gateway.snapshot() == (applied if stays else before)
    os.close(terminal.master)


@pytest.mark.parametrize("how", ["hang up", "SIGTERM to all"])
def test_session_is_lost(gateway, how):
    before = gateway.snapshot()
    terminal = Terminal(gateway, 2)
    assert gateway.snapshot() != before
    if how == "SIGTERM to all": # logind with KillUserProcesses=yes: the guard as well
        guard = re.search(r"process (\d+) rolls back", gateway.rules("status").stdout)
        os.kill(int(guard.group(1)), signal.SIGTERM)
    terminal.hang_up()
    wait_for(lambda: gateway.snapshot() == before, 10, "rolling back")


def test_killed_before_the_clock_starts(gateway, backend):
    """With --confirm, too, a kill at any moment leaves either nothing or rules that roll back."""
    before = gateway.snapshot()
    for step in range(8):
        kill_after(gateway, 0.015 * step, "apply", "--backend", backend, "--confirm", "1")
        wait_for(lambda: gateway.snapshot() == before, 10, "rolling back")


# What is missing is named

def test_missing_capability(gateway):
    for verb in ("apply", "remove", "status"):
        done = gateway.rules(verb, check=False, prefix=("setpriv", "--bounding-set", "-net_admin", "--inh-caps",
            "-net_admin"))
        assert done.returncode == 1
        assert "CAP_NET_ADMIN" in done.stderr


@pytest.mark.parametrize("tool,words", [("nft", ("--backend", "nft")), ("iptables-restore", ("--backend", "iptables")),
    ("ip6tables-restore", ("--backend", "iptables")), ("ip", ())])
def test_missing_tool(gateway, tool, words):
    before = gateway.snapshot()
    path = path_without(gateway.lab.directory / "bin", (tool,))
    done = gateway.rules("apply", *words, check=False, environment=path)
    assert done.returncode == 1
    assert f"{tool} is not in PATH" in done.stderr and "install" in done.stderr
    assert gateway.snapshot() == before


def test_without_nft_the_backend_is_iptables(gateway):
    path = path_without(gateway.lab.directory / "bin", ("nft",))
    assert "applied: iptables" in gateway.rules("apply", environment=path).stdout
    gateway.rules("status", environment=path)
    gateway.rules("remove", environment=path)
    assert "applied: nft" in gateway.rules("apply").stdout


def test_without_iptables_the_backend_is_nft(gateway):
    path = path_without(gateway.lab.directory / "bin", ("iptables-save", "iptables-restore", "ip6tables-save",
        "ip6tables-restore", "iptables", "ip6tables"))
    assert "applied: nft" in gateway.rules("apply", environment=path).stdout
    gateway.rules("remove", environment=path)


def test_rules_that_cannot_be_removed_without_their_tool(gateway, backend):
    gateway.rules("apply", "--backend", backend)
    tools = ("nft",) if backend == "nft" else ("iptables-save", "ip6tables-save")
    done = gateway.rules("remove", environment=path_without(gateway.lab.directory / "bin", tools), check=False)
    assert done.returncode == 1
    assert f"{tools[0]} is not in PATH" in done.stderr


@pytest.mark.parametrize("backend,mode,word,module", [
    ("iptables", "tproxy", "TPROXY", "xt_TPROXY"), ("iptables", "tproxy", "-m socket", "xt_socket"),
    ("iptables", "redirect", "REDIRECT", "xt_REDIRECT"), ("iptables", "redirect", "addrtype", "xt_addrtype"),
    ("nft", "tproxy", "tproxy", "nft_tproxy"), ("nft", "tproxy", "socket transparent", "nft_socket"),
    ("nft", "redirect", "redirect to", "nft_redir"), ("nft", "redirect", "fib daddr", "nft_fib_inet"),
    ("nft", "redirect", "type nat", "nft_chain_nat")])
def test_missing_kernel_feature(gateway, backend, mode, word, module):
    """A kernel without one module, played by tools that refuse the rules that need it."""
    before = gateway.snapshot()
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    script = (f'case "$*" in -f*|*-w*) ;; *) exec "$real" "$@";; esac\ninput=$(cat)\n'
        f'if echo "$input" | grep -q -- "{word}"; then\n'
        'echo "line 3: RULE_APPEND failed (No such file or directory): rule in chain PREROUTING" >&2; exit 4\nfi\n'
        'echo "$input" | "$real" "$@"')
    tool = "nft" if backend == "nft" else "iptables-restore"
    path = path_without(gateway.lab.directory / "bin", (), {tool: script})
    done = gateway.rules("apply", "--backend", backend, check=False, environment=path)
    assert done.returncode == 1
    assert f"this kernel has no {module} for {backend}" in done.stderr
    assert f"modprobe {module}" in done.stderr and "CONFIG_" in done.stderr
    assert gateway.snapshot() == before


@pytest.mark.parametrize("config,words", [
    ("listen 3128 forward\nlan lan\n", "no listener takes intercepted connections"),
    (f"listen {PORT} redirect\nlan lan\nrule_mask 0x10\nrule_mark 0x10\n", "two bits"),
    ("listen redirect\n", "nothing is done")])
def test_configuration_that_cannot_work(gateway, config, words):
    before = gateway.snapshot()
    gateway.configure(config)
    done = gateway.rules("apply", check=False)
    assert done.returncode == 1
    assert words in done.stderr
    assert gateway.snapshot() == before


def test_no_default_route_is_no_guess(gateway):
    gateway.configure(f"listen {PORT} redirect\n")
    for family in ("-4", "-6"):
        gateway.run("ip", family, "route", "del", "default")
    try:
        done = gateway.rules("apply", check=False)
        assert done.returncode == 1
        assert "no default route" in done.stderr
    finally:
        gateway.run("ip", "route", "add", "default", "via", "192.0.2.254")
        gateway.run("ip", "-6", "route", "add", "default", "via", "2001:db8::254")


@pytest.mark.parametrize("words", [("apply", "--backend", "pf"), ("apply", "--confirm"), ("apply", "--confirm", "0"),
    ("status", "--confirm", "3"), ("apply", "--fast", "1"), ("bend",)])
def test_wrong_usage(gateway, words):
    assert gateway.rules(*words, check=False).returncode == 2


# status and print

def test_status_tells_what_was_tampered_with(gateway, backend, mode):
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    assert gateway.rules("status", check=False).returncode == 1
    gateway.rules("apply", "--backend", backend)
    assert gateway.rules("status").returncode == 0
    table = "mangle" if mode == "tproxy" else "nat"
    if backend == "nft":
        gateway.run("nft", "flush", "chain", "inet", "weir", "select")
    else:
        gateway.run("ip6tables", "-t", table, "-F", "WEIR_SELECT")
    done = gateway.rules("status", check=False)
    assert done.returncode == 1
    assert "DIFFERS" in done.stdout and "missing: " in done.stdout
    gateway.rules("apply")
    gateway.rules("status")


def test_status_tells_that_the_rules_are_released(gateway, backend, mode):
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    gateway.rules("apply", "--backend", backend)
    gateway.rules("release")
    done = gateway.rules("status", check=False)
    assert done.returncode == 1
    assert "RELEASED" in done.stdout and "DIFFERS" not in done.stdout and "missing: " not in done.stdout
    assert "until weir rules apply" in done.stdout
    gateway.rules("apply")
    assert "RELEASED" not in gateway.rules("status").stdout


def test_status_tells_of_lost_routing(gateway, backend):
    gateway.configure(f"listen {PORT} tproxy\nlan lan\n")
    gateway.rules("apply", "--backend", backend)
    gateway.run("ip", "-6", "rule", "del", "priority", "58")
    assert gateway.rules("status", check=False).returncode == 1
    gateway.rules("apply")
    gateway.rules("status")


def test_status_counts(applied, family):
    def handed_over():
        row = re.search(rf"^\w+ +IPv{family} .*; (\d+) connections", applied.rules("status").stdout, re.M)
        return int(row.group(1))
    before = handed_over()
    for _ in range(3):
        fetch(applied.lab.lan, ORIGIN[family])
    assert handed_over() == before + 3


def test_status_hints(gateway, mode):
    gateway.configure(f"listen {PORT} {mode}\nlan lan ppp7\n")
    gateway.rules("apply", "--backend", "iptables")
    gateway.run("iptables", "-P", "INPUT", "DROP")
    gateway.run("ip", "rule", "add", "fwmark", "0x1", "lookup", "100", "priority", "1000")
    gateway.lab.gw.set(ipv4__ip_forward=0)
    try:
        text = gateway.rules("status").stdout
    finally:
        gateway.run("iptables", "-P", "INPUT", "ACCEPT")
        gateway.run("ip", "rule", "del", "priority", "1000")
        gateway.lab.gw.set(ipv4__ip_forward=1)
    assert "interface ppp7 does not exist" in text
    assert "net.ipv4.ip_forward=1" in text and "ipv6.conf" not in text
    assert (f"TCP port {PORT}" if mode == "redirect" else "mark 0x57000000/0xff000000") in text
    assert "fwmark 0x1 lookup 100" in text
    assert f"nobody listens on TCP port {PORT}" in text
    with gateway.lab.gw, socket.create_server(("", PORT)):
        text = gateway.rules("status", check=False).stdout
    assert "hint" not in text.replace("hint: the LAN interface ppp7", "")


@pytest.mark.parametrize("on_failure", ["open", "closed"])
def test_remove_on_stop_does_as_on_failure_says(gateway, backend, on_failure):
    gateway.configure(f"listen {PORT} redirect\nlan lan\non_failure {on_failure}\n")
    said = gateway.rules("apply", "--backend", backend).stdout
    assert f"nobody listens on TCP port {PORT}" in said
    gateway.rules("remove", "--on-stop")
    assert gateway.rules("status", check=False).returncode == (0 if on_failure == "closed" else 1)
    assert ("removed" in gateway.rules("remove").stdout) == (on_failure == "closed")
    assert "no rules" in gateway.rules("remove").stdout


def test_print_needs_no_privilege_and_is_what_apply_loads(gateway, backend, mode):
    gateway.configure(f"listen {PORT} {mode}\nlan lan\n")
    os.chmod(gateway.file, 0o644)
    text = gateway.rules("print", "--backend", backend, prefix=("setpriv", "--reuid=65534", "--regid=65534",
        "--clear-groups")).stdout
    gateway.rules("apply", "--backend", backend)
    applied = gateway.snapshot()
    gateway.rules("remove")
    # By hand, as its comments say.
    for part in re.split(r"(?m)^(?=# nft -f|# ip6?tables-restore --noflush|ip )", text):
        if part.startswith("ip "):
            gateway.run("sh", "-c", part)
        elif part.strip():
            command, _, rules = part.partition("\n")
            gateway.run(*command[2:].split(), input=re.split(r"(?m)^(?=ip )", rules)[0])
    by_hand = gateway.snapshot()
    strip = re.compile(r"(?m)^:WEIR_MADE.*\n|^\tchain WEIR_MADE\w+ \{\n\t\}\n\n?")
    for name, there in applied.items():
        clean = strip.sub("", there) if isinstance(there, str) else there
        assert by_hand[name] == clean
    gateway.rules("status")
