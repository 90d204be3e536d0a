"""The library that makes disks misbehave does so, where it is told to and nowhere else."""
import errno
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from faults import Faults

VICTIM = pathlib.Path(__file__).with_name("victim.py")
NAMED = [("openat", "open"), ("open", "open"), ("read", "read"), ("pread", "read"), ("preadv2", "read"),
    ("write", "write"), ("pwritev", "write"), ("fsync", "sync"), ("fdatasync", "sync"), ("fallocate", "allocate"),
    ("ftruncate", "truncate"), ("unlinkat", "unlink"), ("mkdirat", "mkdir"), ("renameat", "rename"), ("flock", "lock")]


class Victim:
    """A program with the library in it, that makes calls as it is told."""

    def __init__(self, faults, directory):
        (directory / "old").write_bytes(b"U" * 1200)
        (directory / "new").write_bytes(b"")
        self.process = subprocess.Popen([sys.executable, VICTIM, directory], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, **faults.environment()})
        assert self.process.stdout.readline() == "ready\n"

    def begin(self, name):
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()

    def outcome(self):
        result, code, seconds, wrong = self.process.stdout.readline().split()
        return int(result), code, float(seconds), int(wrong)

    def do(self, name):
        self.begin(name)
        return self.outcome()

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


@pytest.fixture
def faults(tmp_path):
    with Faults(tmp_path) as made:
        yield made


@pytest.fixture
def victim(faults, tmp_path):
    (tmp_path / "disk").mkdir()
    made = Victim(faults, tmp_path / "disk")
    yield made
    made.close()


@pytest.mark.parametrize("name,kind", NAMED)
def test_each_call_fails_while_a_rule_says_so(faults, victim, tmp_path, name, kind):
    with faults.rule(tmp_path / "disk", kind, error=errno.EIO) as rule:
        assert victim.do(name)[:2] == (-1, "EIO")
        assert rule.hits == 1
    result, code, _, wrong = victim.do(name)
    assert result >= 0 and code == "-" and wrong == 0


@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EROFS"])
def test_the_error_is_the_one_asked_for(faults, victim, tmp_path, error):
    faults.rule(tmp_path / "disk", "write", error=getattr(errno, error))
    assert victim.do("pwritev")[:2] == (-1, error)
    assert victim.do("pread")[0] == 600


def test_other_paths_are_left_alone(faults, victim, tmp_path):
    faults.rule(tmp_path / "dis", error=errno.EIO)
    faults.rule(tmp_path / "disk/other", error=errno.EIO)
    assert victim.do("preadv2")[0] == 1200
    assert victim.do("openat")[0] > 0


def test_one_file_alone(faults, victim, tmp_path):
    faults.rule(tmp_path / "disk/old", error=errno.EIO)
    assert victim.do("preadv2")[1] == "EIO"
    assert victim.do("openat")[0] > 0


def test_a_delay_is_waited_for_but_not_by_who_may_not_wait(faults, victim, tmp_path):
    faults.rule(tmp_path / "disk", "read", delay=.3)
    result, _, seconds, _ = victim.do("preadv2")
    assert result == 1200 and .3 <= seconds < 2
    result, code, seconds, _ = victim.do("preadv2-nowait")
    assert (result, code) == (-1, "EAGAIN") and seconds < .2


def test_a_hang_lasts_until_it_is_released(faults, victim, tmp_path):
    rule = faults.rule(tmp_path / "disk", "sync", hang=True)
    victim.begin("fdatasync")
    got = []
    reader = threading.Thread(target=lambda: got.append(victim.outcome()))
    reader.start()
    time.sleep(.3)
    assert got == []
    rule.remove()
    reader.join(5)
    assert got[0][:2] == (0, "-") and got[0][2] >= .2


@pytest.mark.parametrize("name", ["pread", "preadv2", "read"])
def test_one_bit_is_flipped(faults, victim, tmp_path, name):
    faults.rule(tmp_path / "disk", "read", flip=True)
    assert victim.do(name)[3] == 1


def test_short_writes_and_reads(faults, victim, tmp_path):
    faults.rule(tmp_path / "disk", "write read", short=True)
    assert victim.do("pwritev")[0] == 300
    assert victim.do("preadv2")[0] == 300
    assert victim.do("write")[0] == 300


def test_chance_and_number_of_times(faults, victim, tmp_path):
    often = faults.rule(tmp_path / "disk", "read", error=errno.EIO, chance=.3)
    failed = sum(victim.do("pread")[0] < 0 for _ in range(300))
    assert failed == often.hits and 45 <= failed <= 135
    often.remove()
    faults.rule(tmp_path / "disk", "read", error=errno.EIO, times=2)
    assert [victim.do("pread")[0] for _ in range(4)] == [-1, -1, 600, 600]
