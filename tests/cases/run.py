#!/usr/bin/python3
"""Runs the conformance cases in real time through weir, and through the servers beside it.

    run.py                      weir alone; fails when a case fails that exceptions.py does not list
    run.py --peers              all that are installed, side by side, as a table
    run.py --servers weir,squid --only vary --details

Every case runs at once with the others, on a URL of its own, so that their pauses overlap.
"""
import argparse
import asyncio
import contextlib
import pathlib
import secrets
import socket
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "netns")]
import servers  # noqa: E402
from case import CASES, MAY, MUST, SHOULD, Seen, renderer  # noqa: E402
from lab import GATEWAY, Failed, Lab, exit_on_signals, origin_address  # noqa: E402
from message import Cut, MAXIMUM_HEAD, read_response  # noqa: E402
from script import Origin, Play  # noqa: E402
import areas  # noqa: E402,F401
from report import FAILED, PASSED, UNPROVED, Result, judge, print_differences, print_failures, print_table  # noqa: E402

ORIGIN, OTHER = origin_address(10, 4), origin_address(11, 4)
AT_ONCE = 100
RESPONSE_SECONDS = 12


class Run:
    """All cases at one server."""

    def __init__(self, lab, origin, server):
        self.lab, self.origin, self.server = lab, origin, server
        self.gate = asyncio.Semaphore(AT_ONCE)

    async def all(self, cases):
        return await asyncio.gather(*map(self.one, cases))

    async def one(self, case):
        async with self.gate:
            path = f"/{secrets.token_hex(8)}"
            play = Play(case, renderer(path, ORIGIN, OTHER, int(time.time())))
            self.origin.plays[path[1:]] = play
            try:
                return await self.steps(case, path, play)
            finally:
                del self.origin.plays[path[1:]]

    async def steps(self, case, path, play):
        for index, step in enumerate(case.steps):
            await asyncio.sleep(step.pause)
            play.index = index
            all_seen = await asyncio.gather(*(self.request(case, index, path, play) for _ in range(step.times)))
            for seen in all_seen:
                seen.asked = [request for asked_in, request in play.requests if asked_in == index]
            if any(seen.hung for seen in all_seen):
                return Result(case, FAILED, f"step {index + 1}: no end within {RESPONSE_SECONDS} s")
            for checks, outcome in ((step.given, UNPROVED), (step.expect, FAILED)):
                for seen in all_seen:
                    for check in checks:
                        if problem := check.find(seen):
                            return Result(case, outcome, f"step {index + 1}: {problem}")
        return Result(case, PASSED)

    async def request(self, case, index, path, play):
        step = case.steps[index]
        seen = Seen(case, index, render=play.render)
        host = OTHER if step.other else ORIGIN
        target = f"http://{host}{path}{step.path}" if self.server.absolute else path + step.path
        lines = [f"{step.method} {target} HTTP/1.1"]
        if not any(line.lower().startswith("host:") for line in step.fields):
            lines.append(f"Host: {host}")
        lines += map(play.render, step.fields)
        if step.body:
            lines.append(f"Content-Length: {len(step.body)}")
        message = "\r\n".join([*lines, "", ""]).encode("latin-1") + step.body
        sock = self.lab.lan.socket(4)
        sock.setblocking(False)
        writer = None
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                await asyncio.get_running_loop().sock_connect(sock, self.address(host))
                reader, writer = await asyncio.open_connection(sock=sock, limit=MAXIMUM_HEAD)
                writer.write(message)
                await read_response(reader, step.method, seen)
        except TimeoutError:
            seen.hung = True
        except (Cut, OSError) as error:
            seen.body = seen.body or f"({type(error).__name__}: {error})".encode()
        finally:
            if writer:
                writer.transport.abort()
            else:
                sock.close()
        return seen

    def address(self, host):
        return (host, 80) if self.server.port is None else (GATEWAY[4], self.server.port)


async def run_servers(lab, kinds, cases, way):
    origin = Origin()
    for address in (ORIGIN, OTHER):
        sock = lab.wan.socket(4)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, 80))
        sock.listen(1024)
        await origin.start(sock)
    results = {}
    for kind in kinds:
        with contextlib.closing(await asyncio.to_thread(kind, lab, ORIGIN, way)) as server:  # it asks the origin
            started = time.monotonic()
            results[kind.name] = await Run(lab, origin, server).all(cases)
            if server.process.poll() is not None:
                raise Failed(f"{kind.name} died")
            print(f"{kind.name}: {len(cases)} cases in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    await origin.close()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="every installed server")
    parser.add_argument("--servers", default="weir", help="names, with commas between: " + ", ".join(servers.KINDS))
    parser.add_argument("--way", choices=("redirect", "forward"), default="redirect", help="how weir is reached")
    parser.add_argument("--only", default="", help="cases whose id has this in it")
    parser.add_argument("--details", action="store_true", help="each case that a server does not pass")
    parser.add_argument("--differences", action="store_true", help="each case where weir differs from all others")
    parser.add_argument("--list", action="store_true", help="prints the cases")
    options = parser.parse_args()
    cases = [case for case in CASES if options.only in case.id]
    if options.list:
        for case in cases:
            print(f"{case.kind:<5} {case.id} [RFC {case.section}]")
        print(", ".join(f"{sum(case.kind == kind for case in cases)} {kind}" for kind in (MUST, SHOULD, MAY)))
        return 0
    kinds = list(servers.KINDS.values()) if options.peers else [servers.KINDS[name] for name in options.servers.split(",")]
    for kind in kinds:
        if not servers.is_installed(kind):
            print(f"{kind.name} is missing: apt-get install {kind.package}")
    kinds = [kind for kind in kinds if servers.is_installed(kind)]
    exit_on_signals()
    started = time.monotonic()
    with Lab() as lab:
        lab.gw.etc("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        results = asyncio.run(run_servers(lab, kinds, cases, options.way))
    if options.details:
        print_failures(results)
    if options.differences and len(results) > 1 and "weir" in results:
        print_differences(results)
    if len(results) > 1 or options.peers:
        print_table(results)
        return 0
    print_table(results)
    return 1 if "weir" in results and judge(results["weir"], time.monotonic() - started) else 0


if __name__ == "__main__":
    sys.exit(main())
