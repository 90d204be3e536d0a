"""The load: an origin that answers every URL with so many bytes, 8 KiB if nothing is said, and counts; and wrk in the LAN.
Both on one core."""
import json
import os
import re
import subprocess
import time

from lab import Failed, Namespace, wait_for

ORIGIN = "198.51.100.10"
LOAD_CORE = 1
BODY_BYTES = 8192
PART_BYTES = 2048
CONNECTIONS = 100
STATUS_PORT = 8081

# nginx reads words of 4 KiB at the most.
ORIGIN_CONFIG = """\
daemon off;
worker_processes 1;
pid {directory}/origin.pid;
error_log {directory}/origin.err;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    client_body_temp_path {directory}/origin-client;
    proxy_temp_path {directory}/origin-proxy;
    fastcgi_temp_path {directory}/origin-fastcgi;
    uwsgi_temp_path {directory}/origin-uwsgi;
    scgi_temp_path {directory}/origin-scgi;
    server {{
        listen {origin}:80 backlog=4096;
        set $part {part};
        location / {{
            default_type text/plain;
            add_header Cache-Control max-age=3600;
            return 200 {parts};
        }}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ stub_status; }}
    }}
}}
"""

# A script without request() sends the same bytes again and again; with it, each request is another URL.
SUMMARY = """\
done = function(summary, latency)
    local errors = summary.errors
    io.write(string.format(
        'SUMMARY {"requests":%d,"microseconds":%d,"bad_status":%d,"broken":%d,"p50_us":%d,"p99_us":%d}\\n',
        summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write +
        errors.timeout, latency:percentile(50), latency:percentile(99)))
end
"""
COUNTER = """\
local number = FROM
request = function()
    number = number % WRAP + 1
    return "GET /PREFIX/" .. number .. " HTTP/1.1\\r\\nHost: HOST\\r\\n\\r\\n"
end
"""
RANDOM = """\
math.randomseed(FROM)
request = function()
    return "GET /PREFIX/" .. math.random(1, COUNT) .. " HTTP/1.1\\r\\nHost: HOST\\r\\n\\r\\n"
end
"""


def on_core(core, *command):
    return ["taskset", "-c", str(core), *map(str, command)]


def fetch(namespace: Namespace, address, target, port=80):
    """One request on a connection of its own; the body."""
    with namespace.connect(address, port) as peer:
        peer.request("GET", target, {"Host": address, "Connection": "close"})
        message = peer.read_response()
        if message.status != 200 or not message.complete:
            raise Failed(f"{target}: {message}")
        return message.body


class Origin:
    def __init__(self, lab, body_bytes=BODY_BYTES):
        self.lab, self.body_bytes = lab, body_bytes
        file = lab.directory / "origin.conf"
        file.write_text(ORIGIN_CONFIG.format(directory=lab.directory, origin=ORIGIN, port=STATUS_PORT,
            part="x" * PART_BYTES, parts="$part" * (body_bytes // PART_BYTES)))
        self.process = lab.wan.start(*on_core(LOAD_CORE, "nginx", "-c", file, "-e", lab.directory / "origin.err"),
            stdin=subprocess.DEVNULL)
        lab.keep(self)
        wait_for(self._answers, what="the origin")
        self.looks = 0

    def _answers(self):
        if self.process.poll() is not None:
            raise Failed(f"the origin ended: {(self.lab.directory / 'origin.err').read_text()}")
        try:
            return len(fetch(self.lab.wan, ORIGIN, "/")) == self.body_bytes
        except ConnectionRefusedError:
            return False

    def count(self):
        """Requests so far, these looks not counted."""
        text = fetch(self.lab.wan, "127.0.0.1", "/", STATUS_PORT).decode()
        self.looks += 1
        return int(re.search(r"\n *\d+ +\d+ +(\d+)", text).group(1)) - self.looks

    def settled_count(self):
        """The same, once what was under way has arrived."""
        before = self.count()
        while True:
            time.sleep(0.3)
            now = self.count()
            if now == before:
                return now
            before = now

    def pause(self):
        """Refuses connections until go_on."""
        self.lab.wan.run("iptables", "-w", "-I", "INPUT", "-p", "tcp", "-d", ORIGIN, "--dport", "80", "-j", "REJECT",
            "--reject-with", "tcp-reset")

    def go_on(self):
        self.lab.wan.run("iptables", "-w", "-F", "INPUT")

    def close(self):
        self.process.terminate()
        self.process.wait(10)


def run_wrk(lab, seconds, prefix=None, begin=0, among=0, wrap=1 << 40, may_fail=False):
    """One load of `seconds`: the same URL always, or under `prefix` every time the one behind, from `begin` on and at `wrap`
    from the first one again, or one at random `among` so many. wrk's own figures, and the CPU seconds it took. Errors end it unless it `may_fail`."""
    script = lab.directory / f"wrk-{prefix or 'same'}.lua"
    changing = (RANDOM if among else COUNTER) if prefix else ""
    for word, value in (("PREFIX", prefix), ("HOST", ORIGIN), ("FROM", begin), ("WRAP", wrap),
            ("COUNT", among)):
        changing = changing.replace(word, str(value))
    script.write_text(changing + SUMMARY)
    process = lab.lan.start(*on_core(LOAD_CORE, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s",
        "-s", script, f"http://{ORIGIN}/same"), stdout=subprocess.PIPE, text=True)
    with process.stdout:
        output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    found = re.search("SUMMARY (.*)", output)
    if process.returncode != 0 or not found:
        raise Failed(f"wrk: exit {process.returncode}\n{output}")
    figures = json.loads(found.group(1))
    if not may_fail and (figures["bad_status"] or figures["broken"] or not figures["requests"]):
        raise Failed(f"wrk met errors: {figures}\n{output}")
    figures["cpu"] = usage.ru_utime + usage.ru_stime
    return figures
