"""Drives weir-replay (main.c says what that is): the daemon's own steps over a scripted network and clock.

    with Replay("cache_mem 16M\\n") as replay:
        client = replay.connect("192.0.2.1:80", "10.0.0.5")
        client.send(b"GET / HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n")
        origin = replay.accept()           # the connection the daemon opened, or None
        origin.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
        client.received                    # what has come back so far

Nothing waits and nothing is left to chance. What is sent is worked on when something is looked at next (`received`,
`closed`, `accept`, `log`) or at `settle`; what is sent before that arrives in one go. Time passes in `advance` alone.
Leaving the block ends the daemon and raises when it left anything behind: sessions, fetches, fills, descriptors.
"""
import errno
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("WEIR_REPLAY", "build/release/weir-replay")
ANSWER_SECONDS = 60  # the program never waits: only a defect takes so long


class ReplayError(Exception):
    """The program went wrong, or said no."""


class Connection:
    """One end of a connection of the daemon: a client's, or an origin's."""

    def __init__(self, replay, number, destination):
        self.replay = replay
        self.number = number
        self.destination = destination  # "192.0.2.1:80": for an origin where the daemon wanted to go
        self._received = bytearray()
        self._closed = ""

    @property
    def received(self):
        """All bytes the daemon has sent on it so far."""
        self.replay.look()
        return bytes(self._received)

    @property
    def closed(self):
        """How the daemon ended its side: "" not yet, "fin", "rst"."""
        self.replay.look()
        return self._closed

    def send(self, data):
        if data:
            self.replay.touch(f"send {self.number} {bytes(data).hex()}")

    def shutdown(self):
        """Sends nothing more, goes on receiving."""
        self.replay.touch(f"shutdown {self.number}")

    def close(self):
        """Closes once everything sent has gone out."""
        self.replay.touch(f"close {self.number}")

    def reset(self):
        """Resets at once."""
        self.replay.touch(f"reset {self.number}")

    def pause(self):
        """Reads nothing until `resume`."""
        self.replay.touch(f"pause {self.number}")

    def resume(self):
        self.replay.touch(f"resume {self.number}")


class Replay:
    DEFAULTS = {"listen": "3129 redirect", "via_name": "replay"}

    def __init__(self, config=""):
        self.now = 0.0       # steady seconds
        self.wall = 0.0      # the wall clock, seconds since 1970
        self.dials = []      # every attempt of the daemon's: (destination, errno name or "")
        self._log = []
        self._waiting = []   # connections to origins not accepted yet
        self._connections = {}
        self._untouched = False
        self._clients = 0
        self._folder = tempfile.TemporaryDirectory(prefix="weir-replay-")
        self._stderr = open(pathlib.Path(self._folder.name, "stderr"), "w+b")
        file = self._write(config)
        self._process = subprocess.Popen([ROOT / PROGRAM, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._stderr, cwd=ROOT)
        self._command("settle")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.end()
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdin.close()
            self._process.stdout.close()
            self._stderr.close()
            self._folder.cleanup()

    def _write(self, config):
        words = {line.split()[0].lower() for line in config.splitlines() if line.strip()}
        lines = [f"{name} {value}\n" for name, value in self.DEFAULTS.items() if name not in words]
        path = pathlib.Path(self._folder.name, "weir.conf")
        path.write_text("".join(lines) + config + "\n")
        return path

    # ---- what the program says ----

    def _fail(self, what):
        self._stderr.seek(0)
        raise ReplayError(f"{what}\n{self._stderr.read().decode(errors='replace')[-4000:]}")

    def _take(self, line):
        word, _, rest = line.partition(" ")
        if word == "data":
            number, _, data = rest.partition(" ")
            self._connections[int(number)]._received += bytes.fromhex(data)
        elif word in ("fin", "rst"):
            self._connections[int(rest)]._closed = word
        elif word == "dial":
            number, destination, error = rest.split()
            self.dials.append((destination, errno.errorcode[int(error)] if int(error) else ""))
            if int(error) == 0:
                connection = Connection(self, int(number), destination)
                self._connections[int(number)] = connection
                self._waiting.append(connection)
        elif word == "log":
            self._log.append(json.loads(rest))
        else:
            self._fail(f"the program says {line!r}")

    def _command(self, command):
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail(f"{command[:80]}: the program has ended")
        while True:
            line = self._process.stdout.readline().decode().rstrip("\n")
            word, _, rest = line.partition(" ")
            if word == "ok":
                words = rest.split()
                self.now, self.wall = int(words[0]) / 1000, int(words[1]) / 1000
                return words[2:]
            if word == "bad":
                raise ReplayError(f"{command[:80]}: {rest}")
            if not line:
                self._process.wait(ANSWER_SECONDS)
                self._fail(f"{command[:80]}: the program ended with {self._process.returncode}")
            self._take(line)

    def touch(self, command):
        """Something the daemon is to see, but not yet."""
        self._untouched = True
        return self._command(command)

    def look(self):
        if self._untouched:
            self.settle()

    # ---- the script ----

    def connect(self, destination="192.0.2.1:80", address="10.0.0.5"):
        """A client's connection. `destination` None: not intercepted (a `listen ... forward` takes it)."""
        self._clients += 1
        port = 40000 + self._clients % 20000
        peer = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        number = int(self.touch(f"connect {peer} {destination or '-'}")[0])
        self._connections[number] = Connection(self, number, destination)
        return self._connections[number]

    def accept(self):
        """The next connection that the daemon has opened to an origin, or None."""
        self.look()
        return self._waiting.pop(0) if self._waiting else None

    def refuse_next(self, error="ECONNREFUSED", count=1):
        """The daemon's next connection attempts fail. ETIMEDOUT: by never coming to an end."""
        self._command(f"refuse {getattr(errno, error)} {count}")

    def cut(self, error="ENETUNREACH"):
        """Every attempt fails from now on, until `mend`."""
        self._command(f"refuse {getattr(errno, error)} 0")

    def mend(self):
        self._command("refuse 0 0")

    def route(self, there):
        """Whether the gateway has a default route."""
        self.look()
        self._command(f"route {'up' if there else 'down'}")

    def settle(self):
        """Until nothing more can happen without time passing."""
        self._untouched = False
        self._command("settle")

    def advance(self, seconds):
        """Time passes on both clocks; deadlines expire in their order."""
        self._untouched = False
        self._command(f"advance {round(seconds * 1000)}")

    def step_wall(self, seconds):
        """Somebody sets the wall clock, forth or back."""
        self.look()
        self._command(f"wall {round(seconds * 1000)}")

    def reload(self, config):
        self.look()
        self._command(f"reload {self._write(config)}")
        self.settle()

    def purge(self):
        self.look()
        self._command("purge")

    @property
    def log(self):
        """Access log lines so far, parsed."""
        self.look()
        return self._log

    def stats(self):
        """Objects and bytes stored, fills running, clients' and upstream connections open."""
        self.look()
        names = ("objects", "bytes", "fills", "sessions", "upstreams")
        return dict(zip(names, map(int, self._command("stats"))))

    def end(self):
        """Closes everything; raises when the daemon left something behind."""
        if self._process.returncode is None:
            self._command("end")
            self._process.stdin.close()
            if self._process.wait(ANSWER_SECONDS) != 0:
                self._fail(f"ended with status {self._process.returncode}")
