"""A LAN, a gateway and the wide side in network namespaces, with weir on the gateway.

    lan  10.57.0.2, fd57::2            clients; any address of 10.57.1.0/24 and fd57:1::/64 can be bound, too
     |
    gw   10.57.0.1, fd57::1            the gateway: forwards, and runs weir
         192.0.2.1, 2001:db8::1
     |
    wan  192.0.2.254, 2001:db8::254    origins: any address of 198.51.100.0/24 and 2001:db8:1::/64 can be bound

203.0.113.0/25 and 2001:db8:2::/64 are unreachable (the gateway has it from its routing table at once);
203.0.113.128/25 and 2001:db8:3::/64 are silent (packets vanish on the wide side).

A socket belongs to the namespace its thread was in when it was made, a process to its parent's: so scripted
peers are plain threads of the test, and `with lab.gw:` is all it takes to be there.
"""
import atexit
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from peer import Peer

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("WEIR", str(ROOT / "build/release/weir"))
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)

CLIENT = {4: "10.57.0.2", 6: "fd57::2"}
GATEWAY = {4: "10.57.0.1", 6: "fd57::1"}
GATEWAY_WAN = {4: "192.0.2.1", 6: "2001:db8::1"}
WIDE = {4: "192.0.2.254", 6: "2001:db8::254"}
UNREACHABLE = {4: "203.0.113.7", 6: "2001:db8:2::7"}
SILENT = {4: "203.0.113.135", 6: "2001:db8:3::7"}


def origin_address(number, family):
    return f"198.51.100.{number}" if family == 4 else f"2001:db8:1::{number:x}"


def client_address(number, family):
    return f"10.57.1.{number}" if family == 4 else f"fd57:1::{number:x}"


def bracketed(address):
    return f"[{address}]" if ":" in address else address


class Failed(AssertionError):
    """A condition did not come true in time, or a command failed."""


def wait_for(condition, timeout=10, what="the condition"):
    """Returns the first true value of condition(); fails after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"{what() if callable(what) else what} did not come within {timeout} s")
        time.sleep(0.005)
    return value


class Namespace:
    """A named network namespace. `with namespace:` moves the calling thread there and back; it nests."""

    def __init__(self, name):
        self.name = name
        subprocess.run(["ip", "netns", "add", name], check=True)
        self.descriptor = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        self.before = threading.local()

    def __enter__(self):
        stack = self.before.__dict__.setdefault("stack", [])
        stack.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        enter(self.descriptor)
        return self

    def __exit__(self, *_):
        descriptor = self.before.stack.pop()
        enter(descriptor)
        os.close(descriptor)

    def run(self, *command, check=True, text=True, **options):
        with self:
            done = subprocess.run(command, capture_output=True, text=text, **options)
        if check and done.returncode != 0:
            raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def start(self, *command, **options):
        with self:
            return subprocess.Popen(command, **options)

    def batch(self, lines):
        self.run("ip", "-batch", "-", input=lines)

    def set(self, **values):
        """Sysctls below net: ipv4__ip_forward=1."""
        with self:
            for name, value in values.items():
                pathlib.Path("/proc/sys/net", *name.split("__")).write_text(str(value))

    def socket(self, family, kind=socket.SOCK_STREAM):
        with self:
            return socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6, kind)

    def connect(self, address, port=80, source=None, before=lambda sock: None, timeout=15):
        """A connected Peer. `before` may set options on the socket first."""
        sock = self.socket(6 if ":" in address else 4)
        try:
            sock.settimeout(timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            before(sock)
            if source:
                sock.bind((source, 0))
            sock.connect((address, port))
        except BaseException:
            sock.close()
            raise
        return Peer(sock)

    def remove(self):
        os.close(self.descriptor)
        subprocess.run(["ip", "netns", "del", self.name], check=False)
        shutil.rmtree(f"/etc/netns/{self.name}", ignore_errors=True)

    def etc(self, name, text):
        """A file that replaces /etc/NAME for what `ip netns exec` runs here."""
        directory = pathlib.Path("/etc/netns", self.name)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def enter(descriptor):
    if LIBC.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def remove_locks(inode):
    """What `weir rules` leaves in /run for a namespace that will not come again."""
    for path in pathlib.Path("/run").glob(f"weir-rules-{inode}.*"):
        path.unlink(missing_ok=True)


class Lab:
    """The three namespaces, what runs in them, and a directory for it all. Use as a context manager."""

    numbers = itertools.count()
    standing = []

    def __init__(self, name=None):
        name = name or f"weir{os.getpid()}-{next(Lab.numbers)}"
        self.closers = contextlib.ExitStack()
        self.origin_numbers = iter(range(20, 250))
        Lab.standing.append(self)
        try:
            self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-"))
            self.directory.chmod(0o1777)  # the daemon's user writes its logs here
            self.closers.callback(shutil.rmtree, self.directory, ignore_errors=True)
            self.lan, self.gw, self.wan = (self._namespace(f"{name}-{side}") for side in ("lan", "gw", "wan"))
            self._wire()
        except BaseException:
            self.close()
            raise

    def _namespace(self, name):
        namespace = Namespace(name)
        self.closers.callback(namespace.remove)
        self.closers.callback(remove_locks, pathlib.Path(f"/run/netns/{name}").stat().st_ino)
        return namespace

    def _wire(self):
        for side in (self.lan, self.gw, self.wan):
            side.set(ipv6__conf__all__accept_dad=0, ipv6__conf__default__accept_dad=0)
        self.gw.set(ipv4__ip_forward=1, ipv6__conf__all__forwarding=1, ipv4__conf__all__rp_filter=2)
        self.wan.set(ipv6__ip_nonlocal_bind=1)
        self.lan.set(ipv6__ip_nonlocal_bind=1)
        self.gw.batch(GW_LINKS.format(lan=self.lan.name, wan=self.wan.name))
        self.lan.batch(LAN_LINKS)
        self.wan.batch(WAN_LINKS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Everything that was started ends, last first; safe to call again."""
        if self in Lab.standing:
            Lab.standing.remove(self)
        self.closers.close()

    def keep(self, thing):
        """Closes `thing` together with the lab, before what stood when it came."""
        self.closers.callback(thing.close)
        return thing

    def next_origin(self):
        return next(self.origin_numbers)

    def connect(self, address, port=80, **options):
        return self.lan.connect(address, port, **options)

    def weir(self, config, **options):
        return self.keep(Weir(self, config, **options))


GW_LINKS = """\
link set lo up
link add lan type veth peer name eth0 netns {lan}
link add wan type veth peer name eth0 netns {wan}
addr add 10.57.0.1/24 dev lan
addr add fd57::1/64 dev lan nodad
addr add 192.0.2.1/24 dev wan
addr add 2001:db8::1/64 dev wan nodad
link set lan up
link set wan up
route add 10.57.1.0/24 via 10.57.0.2
route add fd57:1::/64 via fd57::2
route add default via 192.0.2.254
route add default via 2001:db8::254
route add unreachable 203.0.113.0/25
route add unreachable 2001:db8:2::/64
"""

LAN_LINKS = """\
link set lo up
addr add 10.57.0.2/24 dev eth0
addr add fd57::2/64 dev eth0 nodad
link set eth0 up
route add local 10.57.1.0/24 dev lo
route add local fd57:1::/64 dev lo
route add default via 10.57.0.1
route add default via fd57::1
"""

WAN_LINKS = """\
link set lo up
addr add 192.0.2.254/24 dev eth0
addr add 2001:db8::254/64 dev eth0 nodad
link set eth0 up
route add local 198.51.100.0/24 dev lo
route add local 2001:db8:1::/64 dev lo
route add blackhole 203.0.113.128/25
route add blackhole 2001:db8:3::/64
route add default via 192.0.2.1
route add default via 2001:db8::1
"""


@atexit.register
def close_all():
    for lab in list(Lab.standing):
        lab.close()


def exit_on_signals():
    """SIGTERM and SIGHUP end the program the ordinary way, so that labs are taken down."""
    def leave(number, _):
        raise SystemExit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


class Weir:
    """A daemon on the gateway, started and ready, with its rules applied unless rules=False.

    `config` is the text after the lines every test needs (control socket, user, log, lan interface).
    """

    def __init__(self, lab, config, backend="iptables", rules=True, workers=2, prefix=(), environment=None,
            ready=5):
        self.lab, self.backend, self.rules = lab, backend, rules
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="weir-", dir=lab.directory))
        self.directory.chmod(0o777)
        self.file = self.directory / "weir.conf"
        self.log_file = self.directory / "access.log"
        self.errors = self.directory / "stderr"
        self.common = COMMON.format(directory=self.directory, workers=workers)
        self.write_config(config)
        self._start(prefix, environment or {}, ready)
        if rules:
            try:
                self.rules_do("apply")
            except BaseException:
                self.close()
                raise

    def write_config(self, config):
        self.file.write_text(self.common + config)

    def _start(self, prefix, environment, ready):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as notify:
            notify.bind(str(self.directory / "notify"))
            (self.directory / "notify").chmod(0o777)
            notify.setblocking(False)
            environment = {"ASAN_OPTIONS": "quarantine_size_mb=16", **os.environ, **environment,
                "NOTIFY_SOCKET": str(self.directory / "notify")}
            with open(self.errors, "wb") as errors:
                self.process = self.lab.gw.start(*prefix, BINARY, "run", "-c", self.file, env=environment,
                        stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                        start_new_session=True)
            try:
                wait_for(lambda: self._is_ready(notify), ready, "READY=1 from weir")
            except BaseException:
                self.kill()
                raise

    def _is_ready(self, notify):
        if self.process.poll() is not None:
            raise Failed(f"weir ended with {self.process.returncode} at start:\n{self.stderr()}")
        with contextlib.suppress(BlockingIOError):
            return b"READY=1" in notify.recv(4096)
        return False

    def stderr(self):
        return self.errors.read_text(errors="replace")

    def command(self, *words, check=True, **options):
        """`weir WORDS -c FILE` on the gateway."""
        return self.lab.gw.run(BINARY, *words, "-c", self.file, check=check, **options)

    def rules_do(self, verb):
        return self.command("rules", verb, "--backend", self.backend)

    def reload(self, config):
        """Writes a new configuration and waits until `weir reload` says that it is in force."""
        self.write_config(config)
        return self.command("reload")

    def stats(self):
        """`weir stats --json`, counters and gauges in one."""
        told = json.loads(self.command("stats", "--json").stdout)
        return {**told, **told["counters"]}

    # The access log

    def entries(self):
        """Every whole line of the JSON access log so far."""
        text = self.log_file.read_text(errors="replace") if self.log_file.exists() else ""
        return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def wait_entry(self, timeout=10, **wanted):
        """The one log line whose fields hold `wanted` (url: what it ends with). More than one is a failure."""
        def find():
            return [one for one in self.entries() if all(matches(one, k, v) for k, v in wanted.items())]
        def what():
            return f"an access log line with {wanted}; the last ones are {self.entries()[-5:]}, it"
        found = wait_for(find, timeout, what)
        assert len(found) == 1, f"one line expected for {wanted}: {found}"
        return found[0]

    # The process

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def rss_bytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        raise Failed("weir has no VmRSS")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def check_alive(self):
        assert self.process.poll() is None, f"weir ended with {self.process.returncode}:\n{self.stderr()}"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def close(self):
        """Removes the rules and stops the daemon; an ugly end is a failure of the test."""
        if self.rules:
            self.rules = False
            self.command("rules", "remove", "--backend", self.backend, check=False)
        if self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            status = self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"weir did not stop:\n{self.stderr()}") from None
        assert status == 0, f"weir stopped with {status}:\n{self.stderr()}"


def matches(entry, name, value):
    found = entry.get(name)
    if name == "url":
        return str(found).endswith(value)
    return value(found) if callable(value) else found == value


COMMON = """\
user nobody
workers {workers}
control {directory}/control.sock
access_log {directory}/access.log json
lan lan
"""
