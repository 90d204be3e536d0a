"""Steers tests/faults/faults.c, the library that makes disks misbehave for a program it is preloaded into.

    with Faults(directory) as faults:
        ... start the program with faults.environment() added to its environment ...
        with faults.rule(volume, "read", delay=2):        # seconds; reads that may not wait get EAGAIN at once
            ...
        rule = faults.rule(volume, "write sync", error=errno.EIO, chance=.01)
        ... rule.hits ...
        rule.remove()

A rule holds for a path and what lies below it, and for the calls it names (CALLS). Effects add up: a delay, then a hang
until the rule is removed, then an error, or else `short` (half of what was asked for) or `flip` (one bit of what was
read). `times` ends it after so many calls. Rules may come and go at any moment.
"""
import ctypes
import mmap
import os
import pathlib
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/faults.so"
CALLS = ["open", "read", "write", "sync", "allocate", "truncate", "status", "room", "unlink", "mkdir", "rename", "lock",
    "list"]
ALL = " ".join(CALLS)
RULES = 32
HEAD = struct.Struct("=IIQ")
RULE = struct.Struct("=IIIIIIII224s")
HANG, SHORT, FLIP = 1, 2, 4
ENDLESS = 0xffffffff


class Rule:
    """One line of the table; removed by remove() or by the end of a `with`."""

    def __init__(self, faults, number):
        self.faults, self.number = faults, number

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def hits(self):
        """Calls that it was done to."""
        return self.faults.field(self.number, 6)

    def remove(self):
        self.faults.remove(self)


class Faults:
    def __init__(self, directory=None, seed=1):
        if not LIBRARY.exists():
            subprocess.run(["make", "-s", "-C", ROOT, "build/faults.so"], check=True)
        descriptor, self.path = tempfile.mkstemp(prefix="faults-", dir=directory)
        size = HEAD.size + RULES * RULE.size
        os.truncate(descriptor, size)
        os.fchmod(descriptor, 0o666)
        self.memory = mmap.mmap(descriptor, size)
        os.close(descriptor)
        self.count = ctypes.c_uint32.from_buffer(self.memory, 0)
        HEAD.pack_into(self.memory, 0, 0, seed & 0xffffffff, 0)
        self.rules = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.clear()
        pathlib.Path(self.path).unlink(missing_ok=True)

    def environment(self):
        """What the program must find in its environment."""
        return {"LD_PRELOAD": str(LIBRARY), "WEIR_FAULTS": self.path,
            "ASAN_OPTIONS": "quarantine_size_mb=16:verify_asan_link_order=0"}

    def field(self, number, index):
        return struct.unpack_from("=I", self.memory, HEAD.size + number * RULE.size + 4 * index)[0]

    def rule(self, path, calls=ALL, *, error=0, delay=0, hang=False, short=False, flip=False, chance=1, times=None):
        number = next((one for one in range(RULES) if one not in self.rules), None)
        if number is None:
            raise ValueError(f"more than {RULES} rules at once")
        path = os.fsencode(os.path.realpath(path))
        if len(path) > 223:
            raise ValueError(f"a path of over 223 octets: {path}")
        bits = sum(1 << CALLS.index(call) for call in set(calls.split()))
        effects = HANG * hang | SHORT * short | FLIP * flip
        at = HEAD.size + number * RULE.size
        RULE.pack_into(self.memory, at, 0, bits, effects, error, round(delay * 1000), round(chance * 1e6), 0,
            ENDLESS if times is None else times, path)
        struct.pack_into("=I", self.memory, at, 1)
        self.rules[number] = Rule(self, number)
        self.count.value = len(self.rules)
        return self.rules[number]

    def remove(self, rule):
        if self.rules.get(rule.number) is not rule:
            return
        del self.rules[rule.number]
        self.count.value = len(self.rules)
        struct.pack_into("=I", self.memory, HEAD.size + rule.number * RULE.size, 0)

    def clear(self):
        """The disk is well again; what hangs goes on."""
        for rule in list(self.rules.values()):
            rule.remove()
