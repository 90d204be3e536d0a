"""What the tests of `weir rules` share: the command on the gateway, what the kernel holds, and plain sockets in
place of the daemon, so that the rules are seen at work on their own.
"""
import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading

from lab import BINARY

SO_ORIGINAL_DST = 80  # the same number at both levels
IP_TRANSPARENT = 19
IPV6_TRANSPARENT = 75
INTERCEPT, UPSTREAM = 0x57000000, 0x56000000
PORT = 3129


def plain(address):
    return address.removeprefix("::ffff:")


class Listener:
    """Accepts on a port of every address, remembers each connection, answers with its name and the end."""

    def __init__(self, namespace, name, port, transparent=False, answer=None):
        self.name, self.answer, self.seen = name, answer, []
        with namespace:
            self.socket = socket.socket(socket.AF_INET6)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if transparent:
            self.socket.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
            self.socket.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
        self.socket.bind(("::", port))
        self.socket.listen(128)
        self.namespace = namespace
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                connection, peer = self.socket.accept()
            except OSError:
                return
            connection.settimeout(15)
            self.seen.append(Arrival(connection, peer))
            threading.Thread(target=self._reply, args=(connection,), daemon=True).start()

    def _reply(self, connection):
        with connection, contextlib.suppress(OSError):
            if self.answer:
                with self.namespace:
                    self.answer(connection, self.seen[-1])
            else:
                connection.sendall(self.name.encode())

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(5)


class Arrival:
    """What a listener learns of a connection."""

    def __init__(self, connection, peer):
        self.client = plain(peer[0])
        self.port = peer[1]
        self.name = (plain(connection.getsockname()[0]), connection.getsockname()[1])
        self.mark = connection.getsockopt(socket.SOL_SOCKET, socket.SO_MARK)
        self.original = self._original(connection)

    def _original(self, connection):
        with contextlib.suppress(OSError):
            if ":" not in self.client:
                raw = connection.getsockopt(socket.IPPROTO_IP, SO_ORIGINAL_DST, 16)
                return socket.inet_ntop(socket.AF_INET, raw[4:8]), int.from_bytes(raw[2:4], "big")
            raw = connection.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
            return socket.inet_ntop(socket.AF_INET6, raw[8:24]), int.from_bytes(raw[2:4], "big")
        return None

    def destination(self, mode):
        return self.name if mode == "tproxy" else self.original


class Gateway:
    """`weir rules` on the lab's gateway."""

    def __init__(self, lab):
        self.lab = lab
        self.file = lab.directory / "rules.conf"

    def configure(self, text):
        self.file.write_text(text)

    def command(self, verb, *words, binary=BINARY, prefix=(), config=True):
        # The guard of --confirm and killed commands leave programs behind that must not hold our pipes.
        return [*prefix, binary, "rules", verb, *(("-c", str(self.file)) if config else ()), *words]

    def rules(self, verb, *words, check=True, environment=None, **options):
        environment = dict(os.environ, **environment) if environment else None
        return self.lab.gw.run(*self.command(verb, *words, **options), check=check, env=environment,
            stdin=subprocess.DEVNULL)

    def run(self, *command, **options):
        return self.lab.gw.run(*command, **options).stdout

    def snapshot(self):
        """Everything rules could touch, byte for byte but for dates in comments and counters of packets."""
        texts = {}
        for tool in ("iptables-save", "ip6tables-save"):
            text = re.sub(r"(?m)^# (Generated|Completed|Warning).*\n", "", self.run(tool))
            texts[tool] = re.sub(r"\[\d+:\d+\]", "[0:0]", text)
        texts["nft"] = self.run("nft", "-s", "list", "ruleset")
        for family in ("-4", "-6"):
            texts["rule", family] = self.run("ip", family, "rule", "show")
            # Neighbour discovery's multicast routes come and go by themselves.
            routes = self.run("ip", family, "route", "show", "table", "all").splitlines()
            texts["route", family] = sorted(line for line in routes if not line.startswith("multicast"))
        return texts

    def clear(self):
        """The state of a kernel that never had rules, whatever the test before left."""
        self.run("nft", "flush", "ruleset")
        for family in ("-4", "-6"):
            for line in self.run("ip", family, "rule", "show").splitlines():
                if "proto 57" in line or "lookup 100" in line:
                    self.run("ip", family, "rule", "del", "priority", line.split(":")[0])
            self.lab.gw.run("ip", family, "route", "flush", "table", "all", "proto", "57", check=False)


def path_with_legacy_iptables(directory):
    """The same programs, with iptables-legacy behind the names of iptables."""
    path = path_without(directory, ())
    for link in pathlib.Path(directory).glob("ip*tables*"):
        link.unlink()
        link.symlink_to(shutil.which(link.name.replace("tables", "tables-legacy", 1)))
    return path


def path_without(directory, missing, replaced=()):
    """A PATH with every program the command runs but `missing`; `replaced` maps names to shell scripts."""
    directory = pathlib.Path(directory)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in ("ip", "nft", "iptables-save", "iptables-restore", "ip6tables-save", "ip6tables-restore",
            "iptables", "ip6tables", "setpriv", "sh", "cat", "grep", "readlink", "tee"):
        if name not in missing and name not in replaced:
            (directory / name).symlink_to(shutil.which(name))
    for name, script in dict(replaced).items():
        (directory / name).write_text(f"#!/bin/sh\nreal={shutil.which(name)}\n{script}\n")
        (directory / name).chmod(0o755)
    return {"PATH": str(directory)}
