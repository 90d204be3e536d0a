#!/usr/bin/python3
"""`make bench`: weir, Squid and nginx side by side on one interception path.

    LAN namespace --- gateway namespace: one REDIRECT rule, then the proxy --- origin namespace
    wrk: load core                       proxy core                            nginx: load core

Two loads of 8 KiB responses over 100 kept connections: one URL that is stored (hits), and every time another URL,
all of which may be stored (misses). Each proxy is started anew, empty, for each round, and the rounds are
interleaved. That hits are hits and misses misses is held against the origin's own count.

CPU is the proxy's utime + stime from /proc, its children's with it. What the kernel does for packets that the
proxy sends, it does in the proxy's name and for all proxies alike; what it does for packets that the load sends
is the load's.
"""
import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "netns"))
from lab import BINARY, Failed, Lab, exit_on_signals, wait_for  # noqa: E402
from load import BODY_BYTES, CONNECTIONS, LOAD_CORE, ORIGIN, Origin, fetch, run_wrk  # noqa: E402
from proxies import KINDS, PORT, cpu_of, running  # noqa: E402

LOADS = ("hits", "misses")
SAMPLES = 20  # misses that are asked for again, to see that they were stored
COLUMNS = (  # key, title, format
    ("rate", "requests/s", "{:.0f}"),
    ("cpu_us", "CPU us/request", "{:.1f}"),
    ("user_us", "user", "{:.1f}"),
    ("system_us", "system", "{:.1f}"),
    ("p50_ms", "p50 ms", "{:.2f}"),
    ("p99_ms", "p99 ms", "{:.2f}"),
    ("proxy_busy", "proxy core", "{:.0%}"),
    ("load_busy", "load core", "{:.0%}"),
)


class Bench:
    def __init__(self, lab, seconds):
        self.lab, self.seconds = lab, seconds
        self.origin = Origin(lab)
        self.number = 0

    def redirect(self):
        self.lab.gw.run("iptables", "-w", "-t", "nat", "-A", "PREROUTING", "-i", "lan", "-p", "tcp", "--dport", "80",
            "-j", "REDIRECT", "--to-ports", str(PORT))

    def measure(self, process, prefix=None):
        """One load; figures of wrk, of the process under test and of the origin."""
        before, origin_before, count = cpu_of(process.pid), cpu_of(self.origin.process.pid), self.origin.count()
        began = time.monotonic()
        wrk = run_wrk(self.lab, self.seconds, prefix)
        wall = time.monotonic() - began
        count = self.origin.settled_count() - count
        after, origin_after = cpu_of(process.pid), cpu_of(self.origin.process.pid)
        user, system = (after[i] - before[i] for i in (0, 1))
        load_cpu = wrk["cpu"] + sum(origin_after) - sum(origin_before)
        requests = wrk["requests"]
        return {
            "requests": requests, "origin": count, "rate": requests * 1e6 / wrk["microseconds"],
            "cpu_us": (user + system) * 1e6 / requests, "user_us": user * 1e6 / requests,
            "system_us": system * 1e6 / requests, "p50_ms": wrk["p50_us"] / 1000, "p99_ms": wrk["p99_us"] / 1000,
            "proxy_busy": (user + system) / wall, "load_busy": load_cpu / wall,
        }

    def fresh_prefix(self):
        self.number += 1
        return f"u{self.number}"

    def direct(self):
        """What the load core gives without any proxy: wrk and the origin share it."""
        return {load: self.measure(self.origin.process, self.fresh_prefix() if load == "misses" else None)
            for load in LOADS}

    def answers(self, proxy):
        if proxy.process.poll() is not None:
            raise Failed(f"{proxy.name} ended with {proxy.process.returncode}:\n{proxy.complaints()}")
        try:
            return len(fetch(self.lab.lan, ORIGIN, "/same")) == BODY_BYTES
        except ConnectionRefusedError:
            return False

    def hits(self, proxy):
        fetch(self.lab.lan, ORIGIN, "/same")
        found = self.measure(proxy.process)
        if found["origin"] != 0:
            raise Failed(f"{proxy.name}: the origin was asked {found['origin']} times during the hits")
        return found

    def misses(self, proxy):
        """Those that are under way when the load stops reach the origin and are not in wrk's count."""
        prefix = self.fresh_prefix()
        found = self.measure(proxy.process, prefix)
        if not 0 <= found["origin"] - found["requests"] <= CONNECTIONS:
            raise Failed(f"{proxy.name}: {found['requests']} misses, but {found['origin']} requests at the origin")
        self.check_stored(proxy, prefix, found["requests"])
        return found

    def check_stored(self, proxy, prefix, requests):
        before = self.origin.count()
        last = requests - 2 * CONNECTIONS
        for number in range(max(1, last - SAMPLES * CONNECTIONS), max(2, last), CONNECTIONS):
            fetch(self.lab.lan, ORIGIN, f"/{prefix}/{number}")
        again = self.origin.count() - before
        if again:
            raise Failed(f"{proxy.name}: {again} of {SAMPLES} misses were not stored")

    def round(self, kind):
        with running(kind, self.lab) as proxy:
            wait_for(lambda: self.answers(proxy), 20, proxy.name)
            return {"hits": self.hits(proxy), "misses": self.misses(proxy)}


# ---- the report ----

def medians(rounds):
    return {load: {key: statistics.median(one[load][key] for one in rounds) for key, _, _ in COLUMNS}
        for load in LOADS}


def spread(rounds, load, key):
    values = [one[load][key] for one in rounds]
    return (max(values) - min(values)) / statistics.median(values)


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  " + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(widths[i + 1])
            for i, cell in enumerate(row[1:]))]).rstrip())


def print_load(load, direct, middle, rounds):
    rows = [[load, *(title for _, title, _ in COLUMNS), "spread of CPU"]]
    for name, of in middle.items():
        rows.append([name, *(form.format(of[load][key]) for key, _, form in COLUMNS),
            f"{spread(rounds[name], load, 'cpu_us'):.0%}"])
    print()
    print_table(rows)
    print(f"  without a proxy, wrk and origin on one core: {direct[load]['rate']:.0f} requests/s")
    for other in ("squid", "nginx"):
        if "weir" in middle and other in middle:
            mine, theirs = middle["weir"][load], middle[other][load]
            print(f"  weir/{other}: " + ", ".join(f"{mine[key] / theirs[key]:.2f} {words}" for key, words in (
                ("rate", "of the requests/s"), ("cpu_us", "of the CPU a request"), ("p50_ms", "of p50"),
                ("p99_ms", "of p99"))))
    slow = [name for name, of in middle.items() if of[load]["proxy_busy"] < 0.9]
    if slow:
        print(f"  requests/s of {', '.join(slow)}: held back by the load core or by others on the machine, "
            "not by the proxy core")


def report(direct, rounds):
    middle = {name: medians(of) for name, of in rounds.items()}
    print(f"\nMedians of {len(next(iter(rounds.values())))} rounds, {BODY_BYTES} bytes, {CONNECTIONS} connections")
    for load in LOADS:
        print_load(load, direct, middle, rounds)


# ---- the run ----

def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each load")
    parser.add_argument("--proxies", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--json", type=pathlib.Path, help="every figure of every round goes to this file, too")
    return parser.parse_args()


def run(asked):
    rounds = {name: [] for name in asked.proxies}
    os.sched_setaffinity(0, {LOAD_CORE})
    with Lab() as lab:
        bench = Bench(lab, asked.seconds)
        direct = bench.direct()
        bench.redirect()
        for number in range(asked.rounds):
            for name in asked.proxies:
                rounds[name].append(bench.round(KINDS[name]))
                print(f"round {number + 1} {name}: " + ", ".join(f"{load} {of['rate']:.0f}/s {of['cpu_us']:.1f} us"
                    for load, of in rounds[name][-1].items()), flush=True)
    report(direct, rounds)
    if asked.json:
        asked.json.write_text(json.dumps({"direct": direct, "rounds": rounds}, indent=1) + "\n")


def main():
    asked = arguments()
    if os.geteuid() != 0:
        return "make bench: network namespaces and netfilter rules need root"
    if not os.access(BINARY, os.X_OK):
        return f"make bench: {BINARY} is not built; run make"
    if os.cpu_count() < 2:
        return "make bench: it takes two cores, one for the proxy and one for the load"
    exit_on_signals()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    tempfile.tempdir = "/dev/shm"  # logs and nginx's cache: no disk has a part in this
    try:
        run(asked)
    except KeyboardInterrupt:
        return "make bench: interrupted"
    except Failed as failure:
        return f"make bench: {failure}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
