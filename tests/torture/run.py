#!/usr/bin/python3
"""The daemon among many clients and a treacherous origin, its disks failing, itself killed and started again.

    tests/torture/run.py [--seconds N] [--seed N] [--clients N] [--without EVENT,EVENT] [--only EVENT,EVENT] [--keep]

Every byte that stands under an URL follows from the URL, the version and the variant (world.c), every response says which
it is and when the origin gave it: so clients (clients.c) know of each byte whether it may have come. Any failure ends the
run with 1; the seed, which is printed, brings back the same events and requests, if not the same meetings of threads.
"""
import argparse
import collections
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "faults"), str(HERE.parent / "netns")]
from faults import ALL, Faults  # noqa: E402
from lab import BINARY, Lab, origin_address  # noqa: E402

BINARY = pathlib.Path(BINARY)
LOAD = ROOT / "build/load"
URLS, HOSTS, FOLDERS = 400, 4, 8
RUN, QUIET, CALM, END = range(4)
COUNTERS = re.findall(r"^COUNTER\((\w+)\)", (HERE / "counter.tbl").read_text(), re.M)
FAILURES_MAX = 8
VOLUMES = {"v1": 48, "v2": 32}  # MiB
CACHE_MEM = 8 << 20

CONFIG = """\
user nobody
workers 2
listen 127.0.0.1:3128 forward
lan lan
control {directory}/control.sock
access_log {directory}/access.log json
cache_mem {memory}
cache_status on
client_connections_per_host 10000
timeout drain 2s
timeout client_idle 20s
timeout upstream_keep 1s
timeout upstream_idle 20s
"""


class Purge(ctypes.Structure):
    _fields_ = [("done", ctypes.c_double), ("since", ctypes.c_double)]


class Calm(ctypes.Structure):
    _fields_ = [("since", ctypes.c_double), ("until", ctypes.c_double)]


class World(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("start", ctypes.c_double), ("outage_from", ctypes.c_double),
        ("outage_until", ctypes.c_double), ("phase", ctypes.c_uint32), ("active", ctypes.c_uint32),
        ("mischief", ctypes.c_uint32), ("hang_s", ctypes.c_uint32), ("counters", ctypes.c_uint64 * len(COUNTERS)),
        ("purges", Purge * URLS), ("calms", Calm * 64), ("calm_count", ctypes.c_uint32),
        ("was_damaged", ctypes.c_uint32)]


class Daemon:
    """weir, from start to its end, and again."""

    def __init__(self, torture):
        self.torture, self.directory = torture, torture.directory
        self.errors = self.directory / "stderr"
        self.process = None

    def start(self):
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = self.directory / "notify"
        path.unlink(missing_ok=True)
        notify.bind(str(path))
        path.chmod(0o777)
        notify.settimeout(60)
        environment = {**os.environ, **self.torture.faults.environment(), "NOTIFY_SOCKET": str(path)}
        with contextlib.closing(notify), open(self.errors, "ab") as errors:
            self.process = self.torture.lab.gw.start(BINARY, "run", "-c", self.directory / "weir.conf", env=environment,
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
            began = time.monotonic()
            while b"READY=1" not in notify.recv(4096):
                pass
        return time.monotonic() - began

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.torture.fail("does not stop", self.stacks())
            self.kill()
            return 0

    def stacks(self):
        done = subprocess.run(["gdb", "-q", "-batch", "-p", str(self.process.pid), "-ex", "thread apply all bt 12"],
            capture_output=True, text=True, check=False) if shutil.which("gdb") else None
        return done.stdout[-6000:] if done else ""

    def command(self, *words, timeout=60):
        try:
            return subprocess.run([BINARY, *words, "-c", self.directory / "weir.conf"], capture_output=True, text=True,
                timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            self.torture.fail(f"weir {' '.join(words)} hangs", self.stacks())
            return subprocess.CompletedProcess(words, 1, "", "")

    def stats(self):
        told = json.loads(self.command("stats", "--json").stdout or "{}")
        return {**told, **told.get("counters", {})}

    def descriptors(self):
        """What its descriptors are of."""
        folder = f"/proc/{self.process.pid}/fd"
        names = []
        for one in os.listdir(folder):
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"{folder}/{one}"))
        return names

    def rss(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+)", text)[1]) << 10


class Torture:
    def __init__(self, seed, clients=64, verbose=False, without=(), only=()):
        self.seed, self.clients, self.verbose = seed, clients, verbose
        self.dice = random.Random(seed)
        self.failures, self.events = [], collections.deque(maxlen=60)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="torture-"))
        self.directory.chmod(0o777)
        self.closers = contextlib.ExitStack()
        self.lab = self.closers.enter_context(Lab(f"torture{os.getpid()}"))
        self.faults = self.closers.enter_context(Faults(self.directory, seed))
        self.has_volumes = self.knows_volumes()
        self.volumes = [self.directory / name for name in VOLUMES] if self.has_volumes else []
        self.has_prefix = "--prefix" in self.usage("purge")
        self.world = self.make_world()
        self.events_known = {name[6:]: getattr(self, name) for name in dir(Torture) if name.startswith("event_")}
        disks = {name for name in self.events_known if name.startswith(("disk_", "flip_", "directory_"))}
        self.chosen = sorted(name for name in self.events_known if (not only or name in only) and name not in without
            and (self.volumes or name not in disks))
        self.daemon = Daemon(self)
        self.is_away = self.is_moving = False
        self.expected_end = False
        self.peak = 0

    # ---- setting up ----

    @staticmethod
    def usage(verb):
        done = subprocess.run([BINARY, verb, "--help"], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def knows_volumes(self):
        file = self.directory / "try.conf"
        file.write_text(f"cache_dir {self.directory}/v0 32M\nuser nobody\n")
        done = subprocess.run([BINARY, "check", "-c", file], capture_output=True, text=True, check=False)
        return done.returncode == 0 and "cache_dir" not in done.stdout + done.stderr

    def make_world(self):
        file = self.directory / "world"
        file.write_bytes(bytes(ctypes.sizeof(World)))
        self.world_file = file
        with open(file, "r+b") as opened:
            import mmap
            world = World.from_buffer(mmap.mmap(opened.fileno(), ctypes.sizeof(World)))
        world.seed, world.start, world.mischief = self.seed, time.monotonic(), 1
        world.hang_s = int(os.environ.get("TORTURE_HANG_S", 30))
        world.outage_until = float("inf")
        world.phase = QUIET
        for purge in world.purges:
            purge.done = float("inf")
        return world

    def write_config(self, memory=CACHE_MEM):
        text = CONFIG.format(directory=self.directory, memory=memory)
        text += "".join(f"cache_dir {one} {VOLUMES[one.name]}M\n" for one in self.volumes)
        (self.directory / "weir.conf").write_text(text)

    def start(self):
        nobody = pwd.getpwnam("nobody")
        for volume in self.volumes:
            volume.mkdir()
            os.chown(volume, nobody.pw_uid, nobody.pw_gid)
        self.write_config()
        origin = self.start_load(self.lab.wan, "origin", stdout=subprocess.PIPE)
        self.origin_port = int(origin.stdout.readline().split()[1])
        self.daemon.start()
        self.clients_process = self.start_load(self.lab.gw, "clients", "3128", str(self.origin_port), str(self.clients),
            stdout=subprocess.PIPE)
        self.reader = threading.Thread(target=self.read_clients, daemon=True)
        self.reader.start()
        self.world.outage_until = time.monotonic()

    def start_load(self, namespace, *words, **options):
        process = namespace.start(LOAD, self.world_file, *words, text=True, **options)
        self.closers.callback(process.wait)
        self.closers.callback(process.kill)
        return process

    def read_clients(self):
        for line in self.clients_process.stdout:
            if not re.search("without an answer|refused", line) or not self.is_dead():
                self.fail(line.strip())

    def is_dead(self):
        """Then that alone is told of. Its clients know before its parent does."""
        for _ in range(20):
            if self.daemon.process.poll() is not None or self.world.outage_until == float("inf"):
                return True
            time.sleep(.005)
        return time.monotonic() - self.world.outage_until < 1

    def close(self, keep=False):
        self.world.phase = END
        self.faults.clear()
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.kill()
        self.closers.close()
        if keep:
            print(f"kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---- telling ----

    @property
    def now(self):
        return time.monotonic() - self.world.start

    def say(self, text):
        self.events.append(f"{self.now:9.3f} {text}")
        if self.verbose:
            print(self.events[-1], flush=True)

    def fail(self, *texts):
        self.failures.append("\n".join(texts))
        self.say("FAILURE " + self.failures[-1])

    def counts(self):
        return dict(zip(COUNTERS, self.world.counters))

    def report(self):
        counts, stats = self.counts(), self.daemon.stats() if self.daemon.process.poll() is None else {}
        told = " ".join(f"{name} {value}" for name, value in counts.items() if value)
        return f"{self.now:.0f} s: {told}; " + " ".join(f"{name} {stats.get(name)}" for name in
            ("hits", "joined", "misses", "revalidated", "stale", "passed", "cut_short"))

    # ---- the daemon's ends ----

    def check_alive(self):
        if self.daemon.process.poll() is not None:
            self.fail(f"weir ended with {self.daemon.process.returncode}", self.daemon.errors.read_text()[-6000:])
            self.world.outage_until = float("inf")
            self.restart()

    def restart(self):
        took = self.daemon.start()
        self.is_away = self.is_moving
        self.world.outage_until = time.monotonic()
        self.say(f"ready after {took:.2f} s")

    def down(self):
        self.world.outage_from = time.monotonic()
        self.world.outage_until = float("inf")

    def stop(self):
        self.down()
        status = self.daemon.stop()
        if status:
            self.fail(f"weir stopped with {status}", self.daemon.errors.read_text()[-6000:])

    def event_kill(self):
        self.down()
        self.daemon.kill()
        self.restart()

    def event_kill_twice(self):
        """Again while what was killed is being read."""
        self.event_kill()
        time.sleep(self.dice.random() * .5)
        self.event_kill()

    def event_stop(self):
        self.stop()
        self.restart()

    def event_reload(self):
        self.write_config(self.dice.choice([CACHE_MEM, CACHE_MEM, CACHE_MEM // 2, CACHE_MEM * 2]))
        done = self.daemon.command("reload")
        if done.returncode:
            self.fail(f"reload: {done.stdout}{done.stderr}")

    # ---- purges ----

    def purge(self, numbers, *words):
        since = time.monotonic()
        for number in numbers:
            self.world.purges[number].done = float("inf")
            self.world.purges[number].since = since
        done = self.daemon.command("purge", *words)
        if done.returncode == 0 and not self.is_away:
            for number in numbers:
                self.world.purges[number].done = time.monotonic()
        self.say(f"purge {' '.join(words)}: {done.returncode} {(done.stdout + done.stderr).strip()}")

    def host(self, number):
        return f"{origin_address(20 + number % HOSTS, 4)}:{self.origin_port}"

    def event_purge(self):
        for _ in range(self.dice.randint(1, 10)):
            number = self.dice.randrange(URLS)
            self.purge([number], f"http://{self.host(number)}/d{number % FOLDERS}/u{number}")

    def event_purge_host(self):
        first = self.dice.randrange(HOSTS)
        self.purge([one for one in range(URLS) if one % HOSTS == first], "--host", self.host(first))

    def event_purge_prefix(self):
        if self.has_prefix:
            folder = self.dice.randrange(FOLDERS)
            numbers = [one for one in range(URLS) if one % FOLDERS == folder]
            self.purge(numbers, "--prefix", f"http://{self.host(folder)}/d{folder}/")

    def event_purge_all(self):
        self.purge(range(URLS), "--all")

    def event_purge_and_kill(self):
        self.event_purge_prefix() if self.has_prefix else self.event_purge()
        self.event_kill()

    # ---- disks ----

    def some_volumes(self):
        return [self.dice.choice(self.volumes)] if self.dice.random() < .7 else self.volumes

    def trouble(self, calls, seconds=(1, 5), **effects):
        volumes = self.some_volumes()
        rules = [self.faults.rule(volume, calls, **effects) for volume in volumes]
        self.say(f"{[one.name for one in volumes]}: {calls} {effects}")
        self.wait(self.dice.uniform(*seconds))
        hits = sum(rule.hits for rule in rules)
        for rule in rules:
            rule.remove()
        self.say(f"well again after {hits} calls")

    def chance(self):
        return self.dice.choice([.01, .1, 1])

    def event_disk_read_fails(self):
        self.trouble("read", error=errno.EIO, chance=self.chance())

    def event_disk_write_fails(self):
        self.trouble("write", error=errno.EIO, chance=self.chance())

    def event_disk_sync_fails(self):
        self.trouble("sync", error=errno.EIO, chance=self.chance())

    def event_disk_full(self):
        self.trouble("write allocate", error=self.dice.choice([errno.ENOSPC, errno.EDQUOT]), chance=self.chance())

    def event_disk_no_inodes(self):
        self.trouble("open mkdir", error=errno.ENOSPC, chance=self.chance())

    def event_disk_read_only(self):
        self.trouble("write sync allocate truncate unlink mkdir rename", error=errno.EROFS)

    def event_disk_open_fails(self):
        self.trouble("open unlink list status", error=self.dice.choice([errno.EIO, errno.EACCES]), chance=self.chance())

    def event_disk_slow_reads(self):
        self.trouble("read", delay=self.dice.choice([.05, .5, 2]), chance=self.chance())

    def event_disk_slow_writes(self):
        self.trouble("write sync", delay=self.dice.choice([.05, .5, 2]), chance=self.chance())

    def event_disk_hangs(self):
        self.trouble(self.dice.choice(["read", "write", "sync", ALL]), hang=True)

    def event_disk_lies(self):
        self.trouble("read", flip=True, chance=self.chance())

    def event_disk_short(self):
        self.trouble("read write", short=True, chance=self.chance())

    def event_disk_fails_and_kill(self):
        rule = self.faults.rule(self.dice.choice(self.volumes), "write sync", error=errno.EIO, chance=.3)
        self.wait(self.dice.random() * 2)
        self.down()
        self.daemon.kill()
        rule.remove()
        self.restart()

    def flip_bits(self):
        files = [file for volume in self.volumes for file in volume.rglob("*") if file.is_file() and file.stat().st_size]
        told = []
        for _ in range(self.dice.randint(1, 30) if files else 0):
            file = self.dice.choice(files)
            with contextlib.suppress(OSError), open(file, "r+b", 0) as opened:
                at = self.dice.randrange(os.fstat(opened.fileno()).st_size)
                octet = os.pread(opened.fileno(), 1, at)
                os.pwrite(opened.fileno(), bytes([octet[0] ^ 1 << self.dice.randrange(8)]), at)
                told.append(f"{file.relative_to(self.directory)}@{at}")
        self.world.was_damaged = 1
        self.say(f"flipped {' '.join(told)}")

    def event_flip_running(self):
        self.flip_bits()

    def event_flip_stopped(self):
        self.stop()
        self.flip_bits()
        self.restart()

    def event_flip_killed(self):
        self.down()
        self.daemon.kill()
        self.flip_bits()
        self.restart()

    def event_directory_away(self):
        volume = self.dice.choice(self.volumes)
        self.away(volume, lambda: self.wait(self.dice.uniform(.5, 4)))

    def event_directory_away_at_start(self):
        volume = self.dice.choice(self.volumes)
        def again():
            self.event_kill()
            self.wait(self.dice.uniform(.5, 2))
        self.away(volume, again)

    def away(self, volume, meanwhile):
        """What is purged while its volume is not there may come back with it. A running weir finds out that the path is
        another directory when it makes its next file there, and holds on to the deleted one until then: whoever moves
        directories about starts it again."""
        self.is_away = self.is_moving = True
        for purge in self.world.purges:
            purge.done = float("inf")
        away, trash = volume.with_name("away"), volume.with_name("trash")
        volume.rename(away)
        meanwhile()
        if volume.exists():
            volume.rename(trash)
        away.rename(volume)
        shutil.rmtree(trash, ignore_errors=True)
        self.is_moving = False
        self.event_kill()

    # ---- quiet points ----

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.is_over():
            time.sleep(min(.05, max(0, end - time.monotonic())))
            self.check_alive_if_up()

    def check_alive_if_up(self):
        if self.world.outage_until != float("inf"):
            self.check_alive()

    def until(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            self.check_alive_if_up()
            if time.monotonic() > end:
                self.fail(f"{what() if callable(what) else what} within {seconds} s", self.daemon.stacks())
                return False
            time.sleep(.05)
        return True

    def is_over(self):
        return len(self.failures) >= FAILURES_MAX

    def quiet(self):
        self.faults.clear()
        self.world.phase = QUIET
        if not self.until(lambda: self.world.active == 0, 60, "not all operations ended"):
            return
        self.until(self.is_idle, 30, lambda: f"not idle: {self.idle_values()}")
        self.check_descriptors()
        self.check_memory()
        self.check_sizes()
        self.say("quiet: " + self.report())

    IDLE = ("sessions", "upstreams", "cache_fills")

    def idle_values(self):
        stats = self.daemon.stats()
        return {name: value for name, value in flat(stats).items() if name.rpartition(".")[2] in self.IDLE}

    def is_idle(self):
        return not any(self.idle_values().values())

    def check_descriptors(self):
        def told():
            names = self.daemon.descriptors()
            return [one for one in names if one.endswith("(deleted)")], [one for one in names if one.startswith("socket")]
        # Kept connections to origins close after a while; the rest are listeners, control and its like.
        self.until(lambda: not told()[0] and len(told()[1]) <= 16, 20, lambda: f"descriptors left: {told()}")
        files = [one for one in self.daemon.descriptors() if any(one.startswith(f"{volume}/") for volume in self.volumes)]
        most = 64 + sum(1 for volume in self.volumes for _ in volume.rglob("*"))
        if len(files) > most:
            self.fail(f"{len(files)} descriptors of {most} files: {files[:100]}")

    def check_memory(self):
        rss = self.daemon.rss()
        self.peak = max(self.peak, rss)
        bound = 2 * CACHE_MEM + (48 << 20)
        if BINARY.parent.name == "release" and rss > bound:
            self.fail(f"{rss >> 20} MiB of memory, {bound >> 20} are the bound")

    def check_sizes(self):
        for volume in self.volumes:
            def size():
                total = 0
                for file in volume.rglob("*"):
                    with contextlib.suppress(FileNotFoundError):
                        total += file.stat().st_blocks * 512
                return total
            limit = VOLUMES[volume.name] << 20
            self.until(lambda: size() <= limit, 10, lambda: f"{volume.name} takes {size()} bytes of {limit}")

    def calm(self):
        """Nothing is wrong, and so nothing may go wrong."""
        self.say("calm")
        self.world.mischief = 0
        calm = self.world.calms[self.world.calm_count]
        calm.since, calm.until = time.monotonic(), float("inf")
        self.world.calm_count += 1
        before = self.counts()
        self.world.phase = CALM
        self.until(lambda: self.world.active > 0, 10, "clients did not begin")
        self.until(lambda: self.world.active == 0, 240, "the calm did not end")
        self.world.phase = QUIET
        after = self.counts()
        self.say("calm: " + " ".join(f"{name} {after[name] - before[name]}" for name in COUNTERS
            if after[name] != before[name]))
        calm.until = time.monotonic()
        self.world.mischief = 1

    # ---- the whole ----

    def run(self, seconds):
        end = time.monotonic() + seconds
        calm_at = time.monotonic() + 240
        quiet_every = max(12, min(60, seconds / 3))
        self.start()
        while time.monotonic() < end and not self.is_over():
            self.world.phase = RUN
            part_end = min(end, time.monotonic() + quiet_every)
            self.wait(min(2, seconds / 10))
            while time.monotonic() < part_end and not self.is_over():
                name = self.dice.choice(self.chosen) if self.chosen else None
                if name:
                    self.say(name)
                    self.events_known[name]()
                self.wait(self.dice.uniform(0, 3))
            self.quiet()
            if not self.is_over() and (time.monotonic() > end or time.monotonic() > calm_at):
                self.calm()
                self.quiet()
                calm_at = time.monotonic() + 240
        if not self.is_over():
            self.stop()
        counts = self.counts()
        if counts["wrong"] or counts["hangs"] or counts["refused"]:
            self.reader.join(1)
            self.failures = self.failures or [f"counted: {counts}"]
        if b"Sanitizer" in self.daemon.errors.read_bytes() or b"runtime error" in self.daemon.errors.read_bytes():
            self.fail(self.daemon.errors.read_text()[-20000:])
        return self.failures


def flat(told, name=""):
    """{"a": {"b": 1}} as {"a.b": 1}"""
    if not isinstance(told, dict):
        return {name: told}
    return {key: value for part, inner in told.items() for key, value in flat(inner, f"{name}.{part}").items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--without", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    words = parser.parse_args()
    print(f"seed {words.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    torture = Torture(words.seed, words.clients, True, words.without.split(","), set(filter(None, words.only.split(","))))
    try:
        failures = torture.run(words.seconds)
        print(torture.report() if torture.daemon.process.poll() is None else torture.counts())
        print(f"{len(failures)} failures; at most {torture.peak >> 20} MiB of memory; seed {words.seed}")
    finally:
        torture.close(words.keep)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
