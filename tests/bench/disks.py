"""The proxies of proxies.py with a store on disk: a memory tier of 16 MB, and room for everything else on a disk. Each can be
stopped or killed, and started again on what it has stored."""
import os
import pathlib
import shutil
import subprocess

from lab import Failed, Weir, wait_for
from load import ORIGIN, on_core
from proxies import NGINX_CONFIG, PORT, PROXY_CORE, SQUID_CONFIG

WEIR = f"""\
listen {PORT} redirect
cache_mem {{memory}}
cache_dir {{directory}}/store {{megabytes}}M
store_objects {{objects}}
upstream_idle_per_origin 200
client_connections_per_host 1000
"""
SQUID = SQUID_CONFIG.replace("cache_mem 256 MB", "cache_mem 16 MB") + "cache_effective_user proxy\n"
NGINX = NGINX_CONFIG.replace("keys_zone=bench:64m max_size=256m", "keys_zone=bench:{zone}m max_size={megabytes}m")
TRAFFIC_SERVER = f"""\
CONFIG proxy.config.http.server_ports STRING {PORT}
CONFIG proxy.config.reverse_proxy.enabled INT 1
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.url_remap.pristine_host_hdr INT 1
CONFIG proxy.config.admin.user_id STRING nobody
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.cache.ram_cache.size INT 16M
CONFIG proxy.config.cache.min_average_object_size INT 8000
CONFIG proxy.config.log.logging_enabled INT 3
"""


class OnDisk:
    """One in `directory`, for `objects` of `body_bytes`."""

    binary = stop_signal = None

    def __init__(self, lab, directory, objects, body_bytes):
        self.lab, self.directory, self.process = lab, pathlib.Path(directory), None
        megabytes = objects * (body_bytes + 2048) * 5 // 4 // 1_000_000 + 256
        self.words = dict(directory=directory, objects=objects * 5 // 4, megabytes=megabytes, zone=max(16, objects // 4000),
            memory="16M")
        self.directory.mkdir(parents=True)
        self.directory.chmod(0o777)
        self.configure()

    def start(self):
        with open(self.directory / "output", "ab") as output:
            self.process = self.lab.gw.start(*on_core(PROXY_CORE, *self.command()), stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True, cwd=self.directory)

    def complaints(self):
        return "".join(file.read_text(errors="replace")[-3000:] for file in self.directory.rglob("*")
            if file.name in ("output", "cache.log", "error.log", "diags.log"))

    def check_alive(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.complaints()}")

    def stop(self):
        self.process.send_signal(self.stop_signal)
        self.process.wait(120)

    def kill(self):
        os.killpg(self.process.pid, 9)
        self.process.wait()

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class WeirStore(OnDisk):
    name = "weir"

    def configure(self):
        (self.directory / "store").mkdir()
        shutil.chown(self.directory / "store", "nobody")
        self.weir = None

    def start(self):
        if self.weir is None:
            self.weir = Weir(self.lab, WEIR.format(**self.words), rules=False, workers=1, prefix=on_core(PROXY_CORE))
        else:
            (self.weir.directory / "notify").unlink()
            self.weir._start(on_core(PROXY_CORE), {}, 20)
        self.process = self.weir.process

    def fill(self, program):
        """All objects at once, while it is stopped."""
        self.stop()
        subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", program, self.directory / "store",
            str(self.words["megabytes"]), str(self.words["objects"]), ORIGIN, str(self.words["objects"] * 4 // 5)], check=True,
            stderr=subprocess.DEVNULL)
        self.start()

    def complaints(self):
        return self.weir.stderr() if self.weir else ""

    stop_signal = 15


class SquidStore(OnDisk):
    stop_signal = 15

    def configure(self):
        file = self.directory / "squid.conf"
        file.write_text(SQUID.format(**self.words) + self.store.format(**self.words))
        self.lab.gw.run(*self.command(), "-z", timeout=120)
        wait_for(lambda: not (self.directory / "squid.pid").exists(), 30, "squid -z")

    def command(self):
        return ["squid", "-N", "-n", f"bench{os.getpid()}", "-f", self.directory / "squid.conf"]


class SquidUfs(SquidStore):
    name = "squid ufs"
    store = "cache_dir ufs {directory}/store {megabytes} 16 256\n"


class SquidRock(SquidStore):
    name = "squid rock"
    store = "cache_dir rock {directory}/store {megabytes}\n"


class NginxStore(OnDisk):
    name, stop_signal = "nginx", 3

    def configure(self):
        (self.directory / "nginx.conf").write_text(NGINX.format(**self.words))

    def command(self):
        return ["nginx", "-c", self.directory / "nginx.conf", "-e", self.directory / "error.log"]


class TrafficServer(OnDisk):
    name, stop_signal = "traffic server", 15

    def configure(self):
        folders = {name: self.directory / name for name in ("sysconfdir", "localstatedir", "runtimedir", "logdir", "cachedir")}
        for folder in folders.values():
            folder.mkdir()
            folder.chmod(0o777)
        own = {"prefix": "/usr", "exec_prefix": "/usr", "bindir": "/usr/bin", "sbindir": "/usr/bin",
            "datadir": "/usr/share/trafficserver", "libdir": "/usr/lib/trafficserver",
            "libexecdir": "/usr/lib/trafficserver/modules", "includedir": "/usr/include", **folders}
        (self.directory / "runroot.yaml").write_text("".join(f"{name}: {path}\n" for name, path in own.items()))
        config = folders["sysconfdir"]
        (config / "records.config").write_text(TRAFFIC_SERVER)
        (config / "remap.config").write_text(f"map / http://{ORIGIN}/\n")
        (config / "storage.config").write_text(f"{folders['cachedir']} {self.words['megabytes']}M\n")
        (config / "ip_allow.yaml").write_text("ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n    action: allow\n    methods: ALL\n")

    def command(self):
        return ["traffic_server", f"--run-root={self.directory}/runroot.yaml"]


KINDS = {kind.name: kind for kind in (WeirStore, SquidUfs, SquidRock, NginxStore, TrafficServer)}
