"""The daemon's life: start, check, reload, drain, stop, the access log's formats."""
import json
import pathlib
import concurrent.futures
import re
import signal
import socket
import subprocess
import time

import pytest

from lab import BINARY, Failed, Lab, client_address, wait_for
from origin import echo, pattern
from way import DEFAULT_CONFIG, Way, is_refused

BASE = f"listen 3129 redirect\n{DEFAULT_CONFIG}"


@pytest.fixture
def fresh():
    """A lab with a daemon that the test may reload and stop."""
    with Lab() as lab:
        yield Way(lab, lab.weir(BASE), 4)


class Transfer:
    """A held download, begun; `finish` releases the rest and checks it."""

    def __init__(self, way, size=400000):
        self.way, self.size, self.target = way, size, way.unique(f"/held/{size}")
        self.client = way.connect()
        self.client.request("GET", self.target, {"Host": way.host})
        self.client.read_until(b"\r\n\r\n")
        self.start = self.client.read(1000)

    def finish(self):
        self.way.origin.release(self.target)
        with self.client:
            assert self.start + self.client.read(self.size - 1000) == pattern(self.size)


# Start

def start_fails(lab, config, prefix=(), within=1.5):
    """Starts a daemon that cannot run; returns what it said. It has to end within a second (and some)."""
    begin = time.monotonic()
    with pytest.raises(Failed) as failure:
        lab.weir(config, rules=False, prefix=prefix)
    assert time.monotonic() - begin < within
    assert "ended with 1" in str(failure.value), failure.value
    return str(failure.value)


WITHOUT_NET_ADMIN = ("setpriv", "--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw")


def test_a_missing_capability_is_named(lab):
    assert "CAP_NET_ADMIN" in start_fails(lab, BASE.replace("redirect", "tproxy"), WITHOUT_NET_ADMIN)


def test_a_capability_that_redirect_can_do_without_is_named_too():
    """Marks are not carried along then; everything else works."""
    with Lab() as lab:
        way = Way(lab, lab.weir(BASE, prefix=WITHOUT_NET_ADMIN), 4)
        assert way.fetch("/static/10").complete
        assert "CAP_NET_ADMIN" in way.daemon.stderr()


def test_a_port_in_use_is_named(lab):
    with lab.gw, socket.socket() as taken:
        taken.bind(("0.0.0.0", 3129))
        taken.listen()
        assert "3129" in start_fails(lab, BASE)


def test_an_unknown_user_is_named(lab):
    said = start_fails(lab, BASE.replace("listen", "user nobody-at-all\nlisten"))
    assert "user" in said


def test_redirect_on_loopback_is_refused_by_check(lab):
    said = start_fails(lab, BASE.replace("listen 3129", "listen 127.0.0.1:3129"))
    assert re.search(r"weir\.conf:\d+:\d+: ", said)


def test_check_says_where_and_what(lab, tmp_path):
    file = tmp_path / "bad.conf"
    file.write_text("listen 3129 redirect\nworkerz 2\ncache_mem 12Q\ndeny 10.0.0.0/33\n")
    done = subprocess.run([BINARY, "check", "-c", file], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    for place in ("2:1:", "3:11:", "4:6:"):
        assert f"{file}:{place} " in said, said


def test_check_of_a_good_file_and_config(fresh):
    assert fresh.daemon.command("check").returncode == 0
    printed = fresh.daemon.command("config").stdout
    assert "first_byte" in printed and "cache_mem" in printed


def test_wrong_usage_is_2(fresh):
    assert fresh.daemon.command("nonsense", check=False).returncode == 2


def test_the_process_keeps_few_capabilities_and_is_not_root(fresh):
    status = dict(line.split(":\t", 1) for line in
        pathlib.Path(f"/proc/{fresh.daemon.process.pid}/status").read_text().splitlines() if ":\t" in line)
    assert status["Uid"].split()[1] != "0"
    net_admin = 1 << 12
    for held in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
        assert int(status[held], 16) & ~net_admin == 0, held
    assert status["NoNewPrivs"] == "1"


# Reload

@pytest.mark.parametrize("how", ["command", "SIGHUP"])
def test_reload_swaps_the_rules_under_a_running_transfer(fresh, how):
    transfer = Transfer(fresh)
    kept = fresh.connect()
    kept.request("GET", fresh.unique("/static/10"), {"Host": fresh.host})
    assert kept.read_response().status == 200
    fresh.daemon.write_config(BASE + f"block {fresh.host}\n")
    if how == "command":
        fresh.daemon.command("reload")
    else:
        fresh.daemon.process.send_signal(signal.SIGHUP)
    wait_for(lambda: fresh.fetch("/static/10").status == 403, 3, "the new rule")
    transfer.finish()
    kept.close()


def test_a_bad_file_changes_nothing_and_is_named(fresh):
    fresh.daemon.write_config(BASE + "block\n")
    done = fresh.daemon.command("reload", check=False)
    assert done.returncode == 1 and "weir.conf" in done.stdout + done.stderr
    fresh.daemon.process.send_signal(signal.SIGHUP)
    line = len(fresh.daemon.file.read_text().splitlines())
    wait_for(lambda: f"weir.conf:{line}:" in fresh.daemon.stderr(), what="the error's place in the daemon's log")
    assert fresh.fetch("/static/10").status == 200
    fresh.daemon.check_alive()


def test_twenty_reloads_leave_nothing_behind(fresh):
    fresh.daemon.reload(BASE)
    before = fresh.daemon.descriptors()
    for _ in range(20):
        fresh.daemon.reload(BASE + "block ads.example\n")
        assert fresh.fetch("/static/10").status == 200
    wait_for(lambda: fresh.daemon.descriptors() <= before + 4, what="the descriptors of before")


def test_rotation_reaches_the_log_of_who_began_before_a_reload(fresh):
    transfer = Transfer(fresh)
    fresh.daemon.reload(BASE)
    fresh.daemon.log_file.rename(fresh.daemon.log_file.with_suffix(".1"))
    fresh.daemon.process.send_signal(signal.SIGUSR1)
    wait_for(fresh.daemon.log_file.exists, what="the new file")
    transfer.finish()
    assert fresh.daemon.wait_entry(url=transfer.target)["result"] == "MISS"


# Drain and stop

@pytest.mark.parametrize("on_failure", ["open", "closed"])
@pytest.mark.parametrize("backend", ["iptables", "nft"])
@pytest.mark.parametrize("mode", ["redirect", "tproxy"])
def test_drain_finishes_what_runs_and_takes_nothing_new(mode, backend, on_failure):
    """Open: the LAN's new connections go to the origin itself. Closed: they fail."""
    with Lab() as lab:
        config = BASE.replace("redirect", mode) + f"on_failure {on_failure}\n"
        way = Way(lab, lab.weir(config, backend=backend), 4)
        transfer = Transfer(way)
        way.daemon.command("drain")
        if on_failure == "open":
            answer = way.fetch("/static/10")
            assert answer.complete and answer.get("Via") is None
        else:
            wait_for(lambda: is_refused(lambda: way.connect(timeout=0.5)), 2, "the refusal of new connections")
        transfer.finish()
        way.daemon.command("stop")
        assert way.daemon.process.wait(3) == 0
        rules = way.lab.gw.run("nft", "list", "ruleset").stdout
        assert ("weir" in rules.lower()) == (on_failure == "closed")


@pytest.mark.parametrize("file", ["broken", "another mode"])
@pytest.mark.parametrize("backend", ["iptables", "nft"])
@pytest.mark.parametrize("mode", ["redirect", "tproxy"])
def test_drain_goes_by_the_rules_in_force_not_by_the_file(mode, backend, file):
    """What became of the file since the start is no reason to refuse the LAN, or to lose a transfer."""
    with Lab() as lab:
        config = BASE.replace("redirect", mode)
        way = Way(lab, lab.weir(config, backend=backend), 4)
        transfer = Transfer(way)
        other = {"redirect": "tproxy", "tproxy": "redirect"}[mode]
        way.daemon.write_config(f"{config}nonsense\n" if file == "broken" else config.replace(mode, other))
        way.daemon.command("drain")
        answer = way.fetch("/static/10")
        assert answer.complete and answer.get("Via") is None
        transfer.finish()


@pytest.mark.parametrize("how", ["command", "SIGTERM"])
def test_stop_waits_for_what_runs(fresh, how):
    transfer = Transfer(fresh)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        if how == "command":
            stopping = pool.submit(fresh.daemon.command, "stop")
        else:
            stopping = pool.submit(fresh.daemon.process.terminate)
        wait_for(lambda: how == "command" or is_refused(lambda: fresh.connect()), 2, "the refusal of new connections")
        transfer.finish()
        stopping.result(5)
    assert fresh.daemon.process.wait(3) == 0


def test_stop_does_not_wait_for_ever(fresh):
    Transfer(fresh)
    begin = time.monotonic()
    fresh.daemon.process.terminate()
    assert fresh.daemon.process.wait(6) == 0
    assert time.monotonic() - begin < 4, "the drain deadline is 2 s"


def test_commands_say_when_nobody_answers(fresh):
    fresh.daemon.process.terminate()
    fresh.daemon.process.wait(5)
    done = fresh.daemon.command("stats", check=False)
    assert done.returncode == 1 and "control.sock" in done.stdout + done.stderr


# The access log

def traffic(way):
    """One of each; returns how many lines it has to make."""
    target = way.unique("/static/100")
    way.fetch(target)
    way.fetch(target)
    way.fetch(way.unique("/truncate/1000"))
    way.fetch(way.unique("/static/10"), source=client_address(66, 4))
    way.fetch("/", host="blocked.example")
    way.fetch("/", to=way.free_address())
    way.fetch(way.unique("/echo"), "POST", body=pattern(1000))
    with way.connect(way.serve(echo)) as client:
        client.send(b"\x16\x03\x01\0")
        client.half_close()
        client.read_to_end()
    with way.connect() as client:
        client.send(b"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n")
        client.read_to_end()
    with way.connect() as client:
        client.send(b"GET /two HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        assert [client.read_response().status for _ in range(2)] == [404, 404]
    return 11


ADDRESS = r"10\.57\.\d+\.\d+"
COMMON = ADDRESS + r' - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "[^"]*" (\d{3}|-) (\d+|-)'
OUTCOME = r" [A-Z]+:[a-z0-9-]+"
FORMATS = {
    "common": COMMON + OUTCOME,
    "combined": COMMON + r' "[^"]*" "[^"]*"' + OUTCOME,
    "squid": r" *\d+\.\d{3} +\d+ " + ADDRESS + r" \w+/\d{3} \d+ \S+ \S+ - \S+/\S+ \S+" + OUTCOME,
}


def test_one_line_a_request_in_every_format():
    with Lab() as lab:
        logs = {name: lab.directory / f"{name}.log" for name in FORMATS}
        lines = "".join(f"access_log {path} {name}\n" for name, path in logs.items())
        way = Way(lab, lab.weir(f"{BASE}deny 10.57.1.66\nblock blocked.example\n{lines}"), 4)
        expected = traffic(way)
        wait_for(lambda: len(way.daemon.entries()) >= expected, what=f"{expected} log lines")
        way.daemon.command("stop")
        way.daemon.process.wait(5)  # everything queued is written by then
        entries = way.daemon.entries()
        assert len(entries) == expected, entries
        results = sorted(entry["result"] for entry in entries)
        assert {"HIT", "MISS", "DENIED", "BLOCKED", "ERROR", "TUNNEL", "BAD", "PASS"} <= set(results)
        assert all(entry["reason"] for entry in entries)
        assert all(set(entry) >= {"time", "client", "destination", "method", "url", "status", "bytes", "result",
            "reason", "duration_ms", "upstream", "rule"} for entry in entries)
        for name, path in logs.items():
            written = path.read_text().splitlines()
            assert len(written) == expected
            for line in written:
                assert re.fullmatch(FORMATS[name], line), (name, line)


def test_a_log_with_a_mask_gets_those_alone():
    with Lab() as lab:
        path = lab.directory / "masked.log"
        way = Way(lab, lab.weir(f"{BASE}access_log */wanted/* {path} common\n"), 4)
        for target in ("/wanted/1", "/other/1", "/wanted/2"):
            way.fetch(target)
        wait_for(lambda: len(way.daemon.entries()) == 3, what="three lines in the whole log")
        wait_for(lambda: path.read_text().count("\n") == 2, what="two lines in the masked one")


def test_nothing_in_a_request_can_forge_a_line(fresh):
    with fresh.connect() as client:
        client.send(b'GET /"\\%0d%0a\xff"quoted HTTP/1.1\r\nHost: ' + fresh.host.encode()
            + b'\r\nUser-Agent: "}\\\r\nConnection: close\r\n\r\n')
        client.read_to_end()
    entries = wait_for(fresh.daemon.entries, what="a line")
    assert len(entries) == 1


def test_stats(fresh):
    target = fresh.unique("/static/100")
    for _ in range(3):
        fresh.fetch(target)
    wait_for(lambda: fresh.daemon.stats()["requests"] == 3, what="three requests counted")
    stats = fresh.daemon.stats()
    assert (stats["hits"], stats["misses"], stats["connections"]) == (2, 1, 3)
    assert json.dumps(stats)
