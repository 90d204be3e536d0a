"""The proxies under test, each started anew and empty on the gateway's port, alone on one core.

Each is given what makes it fast here: a buffered access log, nginx open_file_cache no tcp_nopush (which costs two calls a
response), room for all idle connections to the one origin. None has more than one process or thread for requests.
Each class has a `name`, `process` and `close`.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from lab import Failed, Weir
from load import ORIGIN, on_core

PROXY_CORE = 0
PORT = 3129
TICK = os.sysconf("SC_CLK_TCK")

WEIR_CONFIG = f"""\
listen {PORT} redirect
cache_mem 256M
upstream_idle_per_origin 200
client_connections_per_host 1000
"""

# Squid checks Host against the destination, by DNS unless it is an address: the load names an address.
SQUID_CONFIG = f"""\
http_port {PORT} intercept
http_port 127.0.0.1:{PORT + 1}
workers 1
acl all_hosts src all
http_access allow all_hosts
cache_mem 256 MB
maximum_object_size_in_memory 1 MB
memory_cache_shared off
access_log daemon:{{directory}}/access.log squid
buffered_logs on
cache_log {{directory}}/cache.log
cache_store_log none
pid_filename {{directory}}/squid.pid
coredump_dir {{directory}}
netdb_filename none
pinger_enable off
icp_port 0
htcp_port 0
visible_hostname bench.invalid
shutdown_lifetime 1 second
max_filedescriptors 16384
"""

NGINX_CONFIG = f"""\
daemon off;
worker_processes 1;
pid {{directory}}/nginx.pid;
events {{{{ worker_connections 4096; }}}}
http {{{{
    access_log {{directory}}/access.log combined buffer=64k flush=1s;
    sendfile on;
    open_file_cache max=20000 inactive=60s;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    client_body_temp_path {{directory}}/client;
    proxy_temp_path {{directory}}/proxy;
    fastcgi_temp_path {{directory}}/fastcgi;
    uwsgi_temp_path {{directory}}/uwsgi;
    scgi_temp_path {{directory}}/scgi;
    proxy_cache_path {{directory}}/cache levels=1:2 keys_zone=bench:64m max_size=256m use_temp_path=off;
    upstream origin {{{{
        server {ORIGIN}:80;
        keepalive 200;
        keepalive_requests 1000000000;
    }}}}
    server {{{{
        listen {PORT} backlog=4096;
        location / {{{{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_cache bench;
        }}}}
    }}}}
}}}}
"""


def stat_fields(pid):
    """/proc/PID/stat from the third field on; None when there is no such process any more."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def cpu_of(root):
    """(user, system) seconds of a process, its descendants, and those of them that have ended."""
    stats = {int(name): stat_fields(name) for name in os.listdir("/proc") if name.isdigit()}
    family = {root}
    while True:
        more = {pid for pid, fields in stats.items() if fields and int(fields[1]) in family} - family
        if not more:
            break
        family |= more
    members = [stats[pid] for pid in family if stats.get(pid)]
    return (sum(int(fields[11]) + int(fields[13]) for fields in members) / TICK,
            sum(int(fields[12]) + int(fields[14]) for fields in members) / TICK)


class WeirProxy:
    name = "weir"

    def __init__(self, lab):
        self.weir = Weir(lab, WEIR_CONFIG, rules=False, workers=1, prefix=on_core(PROXY_CORE))
        self.process = self.weir.process

    def complaints(self):
        return self.weir.stderr()

    def close(self):
        self.weir.close()
        shutil.rmtree(self.weir.directory, ignore_errors=True)


class Foreign:
    """A proxy that is one command in the foreground and one configuration file."""

    def __init__(self, lab):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=lab.directory))
        self.directory.chmod(0o777)
        self.file = self.directory / f"{self.name}.conf"
        self.file.write_text(self.config.format(directory=self.directory))
        with open(self.directory / "output", "wb") as output:
            self.process = lab.gw.start(*on_core(PROXY_CORE, *self.command()), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True)

    def complaints(self):
        return "".join(file.read_text(errors="replace") for file in self.directory.glob("*")
            if file.name in ("output", "cache.log", "error.log"))

    def close(self):
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"{self.name} did not stop") from None
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)


class Squid(Foreign):
    name = "squid"
    config = SQUID_CONFIG
    stop_signal = 2  # at once

    def command(self):
        return ["squid", "-N", "-n", f"bench{os.getpid()}", "-f", self.file]


class Nginx(Foreign):
    name = "nginx"
    config = NGINX_CONFIG
    stop_signal = 15

    def command(self):
        return ["nginx", "-c", self.file, "-e", self.directory / "error.log"]


KINDS = {kind.name: kind for kind in (WeirProxy, Squid, Nginx)}


@contextlib.contextmanager
def running(kind, lab):
    proxy = kind(lab)
    try:
        yield proxy
    finally:
        proxy.close()
