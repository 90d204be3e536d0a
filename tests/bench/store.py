#!/usr/bin/python3
"""`make bench-store`: stores on disk side by side, as compare.py has it, the origin counting.

    tests/bench/store.py hits       CPU a hit of 20 KiB, from 20,000 objects (400 MB) with a memory tier of 16 MB: the disk's
                                    pages are in memory, so what counts is the way to them
    tests/bench/store.py objects    so many objects of 8 KiB (--objects): resident memory, and how long after a clean stop
                                    and after a kill -9 the first hit comes, and all do

"All" is the begin of the first sample of 500 of which as many are hits as before, but for one in a hundred. Meanwhile the origin
does not answer.
"""
import argparse
import os
import pathlib
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "netns"))
from lab import BINARY, Failed, Lab, exit_on_signals, wait_for  # noqa: E402
from disks import KINDS  # noqa: E402
from peer import Closed  # noqa: E402
from load import LOAD_CORE, ORIGIN, Origin, run_wrk  # noqa: E402
from proxies import PORT, cpu_of, stat_fields  # noqa: E402

HIT_BYTES, HIT_OBJECTS = 20480, 20000
OBJECT_BYTES = 8192
SAMPLE, OVERLAP = 500, 1000
PASSES = 2  # what a store could not take at that speed, or did not answer, comes again
FILL = pathlib.Path(BINARY).with_name("bench-fill")


def family_memory(root):
    """Bytes of a process and its children that are in no file."""
    total, known = 0, {root}
    for name in sorted((name for name in os.listdir("/proc") if name.isdigit()), key=int):
        fields = stat_fields(int(name))
        if fields and (int(name) == root or int(fields[1]) in known):
            known.add(int(name))
            for line in pathlib.Path(f"/proc/{name}/status").read_text().splitlines():
                if line.startswith(("RssAnon", "RssShmem")):
                    total += int(line.split()[1]) << 10
    return total


class Store:
    """One proxy, with its objects."""

    def __init__(self, lab, origin, kind, directory, objects, body_bytes):
        self.lab, self.origin, self.objects, self.body_bytes = lab, origin, objects, body_bytes
        self.proxy = kind(lab, directory, objects, body_bytes)
        self.proxy.start()
        wait_for(self.answers, 60, self.proxy.name)
        self.idle_bytes = family_memory(self.proxy.process.pid)

    def ask(self, target):
        """Whether it was answered in full."""
        try:
            with self.lab.lan.connect(ORIGIN, 80, timeout=5) as peer:
                peer.request("GET", target, {"Host": ORIGIN, "Connection": "close"})
                message = peer.read_response()
                return message.status == 200 and len(message.body) == self.body_bytes
        except (OSError, EOFError, Failed):
            return False

    def answers(self):
        self.proxy.check_alive()
        return self.ask("/same")

    def fill(self):
        """How many seconds it took."""
        done, began = 0, time.monotonic()
        if self.proxy.name == "weir" and FILL.exists() and self.body_bytes == OBJECT_BYTES:
            self.proxy.fill(FILL)
            wait_for(self.answers, 60, self.proxy.name)
            return time.monotonic() - began
        for _ in range(PASSES):
            done, silent = 0, 0
            while done < self.objects and silent < 5:
                begin = max(0, done - OVERLAP)  # of what was under way at the end, nobody knows what arrived
                answered = run_wrk(self.lab, 4, "all", begin=begin, wrap=self.objects, may_fail=True)["requests"]
                done, silent = begin + answered, silent + 1 if answered <= OVERLAP else 0
                self.proxy.check_alive()
        return time.monotonic() - began

    def hits(self, seconds, seed):
        """Figures of a load of hits."""
        pid = self.proxy.process.pid
        before, count = cpu_of(pid), self.origin.count()
        wrk = run_wrk(self.lab, seconds, "all", begin=seed, among=self.objects, may_fail=True)
        after, requests = cpu_of(pid), max(1, wrk["requests"])
        return {"cpu_us": (sum(after) - sum(before)) * 1e6 / requests,
            "user_us": (after[0] - before[0]) * 1e6 / requests, "rate": wrk["requests"] * 1e6 / wrk["microseconds"],
            "p99_ms": wrk["p99_us"] / 1000, "errors": wrk["bad_status"] + wrk["broken"], "miss": (self.origin.settled_count() - count) / requests}

    def some(self, count):
        """How many of so many objects taken at random are answered, on one connection as far as it lasts."""
        found, peer = 0, None
        for _ in range(count):
            try:
                peer = peer or self.lab.lan.connect(ORIGIN, 80, timeout=5)
                peer.request("GET", f"/all/{random.randint(1, self.objects)}", {"Host": ORIGIN})
                message = peer.read_response()
                found += message.status == 200 and len(message.body) == self.body_bytes
                keeps = message.complete and message.keeps_open
            except (OSError, EOFError, Failed, Closed):
                keeps = False
            if not keeps and peer:
                peer = peer.close()
        if peer:
            peer.close()
        return found

    def restart(self, how, miss):
        """Seconds from the start on until the first hit, and until as many are as before; and what share that is."""
        {"stop": self.proxy.stop, "kill": self.proxy.kill}[how]()
        self.origin.pause()
        began = time.monotonic()
        self.proxy.start()
        while not self.some(1):
            self.proxy.check_alive()
            if time.monotonic() - began > 60:
                raise Failed(f"{self.proxy.name}: no hit within a minute")
            time.sleep(0.005)
        first, taken = time.monotonic() - began, 0
        while taken < 60:
            taken = time.monotonic() - began  # when the sample that shows it begins
            found = self.some(SAMPLE)
            if found >= SAMPLE * (1 - miss - 0.01):
                break
        self.origin.go_on()
        return first, taken, found / SAMPLE

    def close(self):
        self.proxy.close()


def per_hit(asked, lab, place):
    origin = Origin(lab, HIT_BYTES)
    rounds = {name: [] for name in asked.proxies}
    for number in range(asked.rounds):
        for name in asked.proxies:
            store = Store(lab, origin, KINDS[name], place / f"{name.replace(' ', '-')}-{number}", HIT_OBJECTS, HIT_BYTES)
            try:
                store.fill()
                time.sleep(1)
                store.hits(1, 1)
                rounds[name].append(store.hits(asked.seconds, 2))
            finally:
                store.close()
            print(f"round {number + 1} {name}: " + ", ".join(f"{key} {value:.3g}" for key, value in rounds[name][-1].items()),
                flush=True)
    print(f"\nMedians of {asked.rounds} rounds: hits of {HIT_BYTES} bytes among {HIT_OBJECTS}")
    middle = {name: {key: statistics.median(one[key] for one in of) for key in of[0]} for name, of in rounds.items()}
    mine = middle.get("weir")
    for name, of in middle.items():
        print(f"  {name:14} {of['cpu_us']:7.1f} us CPU ({of['user_us']:.1f} user)  {of['rate']:7.0f}/s  p99 {of['p99_ms']:.2f} ms"
            f"  misses {of['miss']:.2%}" + (f"  weir/{name} {mine['cpu_us'] / of['cpu_us']:.2f} of the CPU" if mine else ""))


def per_object(asked, lab, place):
    origin = Origin(lab, OBJECT_BYTES)
    for name in asked.proxies:
        store = Store(lab, origin, KINDS[name], place / name.replace(" ", "-"), asked.objects, OBJECT_BYTES)
        try:
            seconds = store.fill()
            time.sleep(1)
            hits = store.hits(asked.seconds, 1)
            resident = family_memory(store.proxy.process.pid)
            print(f"{name}: {asked.objects} objects in {seconds:.0f} s; resident {resident / 1e6:.1f} MB, "
                f"{store.idle_bytes / 1e6:.1f} when it was empty: {(resident - store.idle_bytes) / asked.objects:.1f} bytes an object; "
                f"{hits['cpu_us']:.1f} us CPU a hit, {hits['miss']:.2%} misses", flush=True)
            if hits["miss"] > 0.005:
                print(store.proxy.complaints()[-1500:], flush=True)
                if name == "weir":
                    print({k: v for k, v in store.proxy.weir.stats().items() if v and "disk" in k or k in ("objects", "evictions")}, store.proxy.weir.command("store","status").stdout)
            for how in ("stop", "kill"):
                first, taken, found = store.restart(how, hits["miss"])
                print(f"  {how}: first hit after {first:.2f} s, {found:.1%} of them after {taken:.2f} s", flush=True)
        finally:
            store.close()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["hits", "objects"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each load")
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--proxies", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--place", default="/var/tmp", help="on the disk that is to be used")
    return parser.parse_args()


def main():
    asked = arguments()
    exit_on_signals()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    os.sched_setaffinity(0, {LOAD_CORE})
    place = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-", dir=asked.place))
    place.chmod(0o777)
    tempfile.tempdir = "/dev/shm"
    try:
        with Lab() as lab:
            lab.gw.run("iptables", "-w", "-t", "nat", "-A", "PREROUTING", "-i", "lan", "-p", "tcp", "--dport", "80", "-j",
                "REDIRECT", "--to-ports", str(PORT))
            {"hits": per_hit, "objects": per_object}[asked.what](asked, lab, place)
    except Failed as failure:
        return str(failure)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
