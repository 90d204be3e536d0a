#!/usr/bin/python3
"""`make run`: a LAN, a gateway and an origin in namespaces, weir on the gateway with real rules. Shows what it
does, then stays up until Ctrl-C."""
import argparse
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "netns"))
from lab import BINARY, Failed, Lab, exit_on_signals, origin_address, wait_for  # noqa: E402
from origin import Http, Service, pattern, speaks_first  # noqa: E402

ORIGIN, SSH, DENIED = origin_address(10, 4), origin_address(22, 4), "10.57.1.66"
CONFIG = f"""\
cache_status on
deny {DENIED}
block ads.example
timeout server_first 300ms
timeout drain 2s
"""
HOSTS = f"""\
127.0.0.1 localhost
{ORIGIN} origin.example ads.example
{origin_address(10, 6)} origin6.example
{SSH} ssh.example
"""


class Show:
    def __init__(self, lab, mode, backend):
        self.lab, self.number = lab, 0
        print(f"  LAN host 10.57.0.2  ---  gateway 10.57.0.1 | 192.0.2.1  ---  origin.example {ORIGIN}")
        print(f"  weir on the gateway, {mode} by {backend}, IPv4 and IPv6; the LAN host knows nothing of it")
        self.origin = lab.keep(Http(lab.wan, ORIGIN))
        lab.keep(Http(lab.wan, origin_address(10, 6)))
        lab.keep(Service(lab.wan, SSH, speaks_first(b"SSH-2.0-OpenSSH_9.2 weir-lab\r\n")))
        lab.lan.etc("hosts", HOSTS)
        self.weir = lab.weir(f"listen 3129 {mode}\n{CONFIG}", backend=backend)

    def step(self, title):
        self.number += 1
        print(f"\n{self.number}. {title}")

    def need(self, condition, what):
        if not condition:
            raise Failed(f"step {self.number} is not as it should be: {what}")

    def log_line(self, count):
        """Prints the newest access log line; there have to be `count`."""
        entries = wait_for(lambda: len(now := self.weir.entries()) >= count and now, what=f"log line {count}")
        self.need(len(entries) == count, f"{len(entries)} log lines instead of {count}")
        line = self.weir.log_file.read_text().splitlines()[-1]
        print(f"   log  {line}")
        return entries[-1]

    def curl(self, url, *options):
        print(f"   lan$ curl {' '.join([*options, url])}")
        answer = self.lab.lan.run("ip", "netns", "exec", self.lab.lan.name, "curl", "-sS", "-g", "-i", "--noproxy",
            "*", "-m", "10", *options, url, text=False).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        for line in lines:
            if re.match("HTTP/|Cache-Status|Age|Via", line, re.I):
                print(f"        {line}")
        return int(lines[0].split()[1]), body

    def fetched(self, title, url, status, result, *options, says=None, body=None):
        self.step(title)
        entry_number = self.number
        got, answer = self.curl(url, *options)
        if says:
            found = [line for line in strip_tags(answer.decode(errors="replace")) if says in line]
            self.need(found, f"the page does not say {says!r}: {answer[:400]!r}")
            print(f"        {found[0]}")
        entry = self.log_line(entry_number)
        self.need(got == status, f"status {got} instead of {status}")
        self.need(entry["result"] == result, f"{entry['result']} instead of {result}")
        self.need(body is None or answer == body, f"{len(answer)} bytes that are not the origin's")

    def all(self):
        page = "http://origin.example/static/20000"
        self.fetched("A LAN host fetches a page: from the origin", page, 200, "MISS", body=pattern(20000))
        self.fetched("Again: from the store, the origin is not asked", page, 200, "HIT", body=pattern(20000))
        self.need(self.origin.count("/static/20000") == 1, "the origin was asked twice")
        self.fetched("The same over IPv6", "http://origin6.example/static/20000", 200, "MISS", body=pattern(20000))
        self.fetched(f"A host that the config denies ({DENIED})", page, 403, "DENIED", "--interface", DENIED,
            says="Cache access denied")
        self.fetched("A blocked URL", "http://ads.example/banner.gif", 403, "BLOCKED", says="ads.example")
        self.tunnel()

    def tunnel(self):
        self.step("Not HTTP at all, and the server speaks first: passes byte for byte")
        print("   lan$ nc ssh.example 80")
        with self.lab.connect(SSH) as client:
            banner = client.read_until(b"\n")
            client.send(b"SSH-2.0-client\r\n")
            echo = client.read_until(b"\n")
            client.half_close()
            client.read_to_end()
        print(f"        {banner.decode().strip()}")
        self.need(echo == b"SSH-2.0-client\r\n", f"the echo is {echo!r}")
        self.need(self.log_line(self.number)["result"] == "TUNNEL", "not a tunnel")

    def stay(self):
        print(f"""
The lab stays up until Ctrl-C.

  a shell in the LAN    ip netns exec {self.lab.lan.name} bash      (try: curl -i http://origin.example/static/20000)
  on the gateway        ip netns exec {self.lab.gw.name} bash       (try: {BINARY} stats -c {self.weir.file})
  at the origin         ip netns exec {self.lab.wan.name} bash
  access log            tail -f {self.weir.log_file}
  weir's own messages   {self.weir.errors}
  configuration         {self.weir.file}     (after a change, on the gateway: {BINARY} reload -c {self.weir.file})

http://origin.example/ has pages for every behaviour: the list is at the top of tests/netns/origin.py.""",
            flush=True)
        self.weir.process.wait()
        raise Failed(f"weir ended:\n{self.weir.stderr()}")


def strip_tags(text):
    return [line.strip() for line in re.sub("<style.*?</style>|<[^>]*>", " ", text, flags=re.S).split("\n")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="show, then leave")
    parser.add_argument("--mode", choices=["redirect", "tproxy"], default="redirect")
    parser.add_argument("--backend", choices=["iptables", "nft"], default="iptables")
    return parser.parse_args()


def main():
    asked = arguments()
    if os.geteuid() != 0:
        return "make run: network namespaces and netfilter rules need root"
    if not os.access(BINARY, os.X_OK):
        return f"make run: {BINARY} is not built; run make"
    exit_on_signals()
    try:
        with Lab() as lab:
            show = Show(lab, asked.mode, asked.backend)
            show.all()
            print(f"\nAll {show.number} steps are as they should be.", flush=True)
            if not asked.once:
                show.stay()
    except KeyboardInterrupt:
        print("\nThe lab is gone.")
    except Failed as failure:
        return f"make run: {failure}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
