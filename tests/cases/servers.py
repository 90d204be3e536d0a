"""weir and the servers beside it, each started empty on the gateway, with its default policy.

Each has `name`, `package`, `program`, `port` (None: intercepted on port 80), `absolute` (the request target is the whole
URL) and, once started, `process`. Configurations are written to a temporary folder; nothing of the machine's own is read.
"""
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from lab import GATEWAY, BINARY, Failed, Weir, wait_for

WEIR_CONFIG = """\
listen 3129 redirect
listen 3128 forward
cache_mem 64M
timeout drain 2s
cache_status on
"""

SQUID_CONFIG = """\
http_port {port}
acl all_hosts src all
http_access allow all_hosts
refresh_pattern -i (/cgi-bin/|\\?) 0 0% 0
refresh_pattern . 0 20% 4320
access_log none
cache_log {directory}/cache.log
cache_store_log none
pid_filename {directory}/squid.pid
coredump_dir {directory}
netdb_filename none
pinger_enable off
icp_port 0
htcp_port 0
visible_hostname cases.invalid
shutdown_lifetime 1 second
"""

APACHE_CONFIG = """\
ServerRoot {directory}
DocumentRoot {directory}
PidFile {directory}/apache.pid
DefaultRuntimeDir {directory}
Mutex file:{directory}
ErrorLog {directory}/error.log
ServerName cases.invalid
User www-data
Group www-data
Listen {port}
{modules}
<Location "/">
    Require all granted
</Location>
CacheRoot {directory}/cache
CacheEnable disk /
ProxyPreserveHost On
ProxyPass / http://{origin}/ disablereuse=On
"""
APACHE_MODULES = ("mpm_event", "authz_core", "proxy", "proxy_http", "cache", "cache_disk")

TRAFFICSERVER_RECORDS = """\
CONFIG proxy.config.http.server_ports STRING {port}
CONFIG proxy.config.reverse_proxy.enabled INT 1
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.url_remap.pristine_host_hdr INT 1
CONFIG proxy.config.admin.user_id STRING nobody
CONFIG proxy.config.diags.debug.enabled INT 0
CONFIG proxy.config.log.logging_enabled INT 0
"""

NGINX_CONFIG = """\
daemon off;
pid {directory}/nginx.pid;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {directory}/client;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    proxy_cache_path {directory}/cache keys_zone=cases:16m max_size=256m;
    server {{
        listen {port};
        location / {{
            proxy_pass http://{origin};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_cache cases;
        }}
    }}
}}
"""


class WeirServer:
    name = program = package = "weir"

    def __init__(self, lab, _, way):
        self.weir = Weir(lab, WEIR_CONFIG, rules=way == "redirect")
        self.process = self.weir.process
        self.port, self.absolute = (None, False) if way == "redirect" else (3128, True)

    def close(self):
        self.weir.close()


class Foreign:
    absolute = False

    def __init__(self, lab, origin, _):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=lab.directory))
        self.directory.chmod(0o777)
        self.configure(dict(directory=self.directory, port=self.port, origin=origin))
        with open(self.directory / "output", "wb") as output:
            # With a resolv.conf of its own: some ask for their own name at start, and would wait for an answer.
            self.process = lab.gw.start("ip", "netns", "exec", lab.gw.name, *self.command(), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True, cwd=self.directory)
        try:
            wait_for(lambda: self.accepts(lab), 30, lambda: f"{self.name}'s first answer ({self.complaints()})")
        except BaseException:
            self.close()
            raise

    def accepts(self, lab):
        """Whether it answers: some accept connections before they can serve."""
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended at start: {self.complaints()}")
        try:
            with lab.connect(GATEWAY[4], self.port, timeout=2) as client:
                client.socket.sendall(b"GET /none HTTP/1.1\r\nHost: none\r\nConnection: close\r\n\r\n")
                return client.socket.recv(12).startswith(b"HTTP/1.")
        except OSError:
            time.sleep(0.05)
            return False

    def complaints(self):
        return "".join(file.read_text(errors="replace")[-2000:] for file in self.directory.rglob("*")
            if file.name in ("output", "cache.log", "error.log", "diags.log"))

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    stop_signal = 15


class Squid(Foreign):
    name, package, program, port, absolute = "squid", "squid", "squid", 8001, True

    def configure(self, words):
        (self.directory / "squid.conf").write_text(SQUID_CONFIG.format(**words))

    def command(self):
        return ["squid", "-N", "-n", f"cases{id(self)}", "-f", self.directory / "squid.conf"]

    stop_signal = 2  # at once


class TrafficServer(Foreign):
    name, package, program, port = "trafficserver", "trafficserver", "traffic_server", 8002

    def configure(self, words):
        """A layout of its own: traffic_server finds all its folders by `runroot.yaml`."""
        folders = {name: self.directory / name for name in ("sysconfdir", "localstatedir", "runtimedir", "logdir", "cachedir")}
        for folder in folders.values():
            folder.mkdir()
            folder.chmod(0o777)
        own = {"prefix": "/usr", "exec_prefix": "/usr", "bindir": "/usr/bin", "sbindir": "/usr/bin",
            "datadir": "/usr/share/trafficserver", "libdir": "/usr/lib/trafficserver",
            "libexecdir": "/usr/lib/trafficserver/modules", "includedir": "/usr/include", **folders}
        (self.directory / "runroot.yaml").write_text("".join(f"{name}: {path}\n" for name, path in own.items()))
        config = folders["sysconfdir"]
        (config / "records.config").write_text(TRAFFICSERVER_RECORDS.format(**words))
        (config / "remap.config").write_text("map / http://{origin}/\n".format(**words))
        (config / "storage.config").write_text(f"{folders['cachedir']} 64M\n")
        (config / "ip_allow.yaml").write_text(
            "ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n    action: allow\n    methods: ALL\n")

    def command(self):
        return ["traffic_server", f"--run-root={self.directory}/runroot.yaml"]


class Apache(Foreign):
    name, package, program, port = "apache2", "apache2", "apache2", 8003

    def configure(self, words):
        (self.directory / "cache").mkdir()
        (self.directory / "cache").chmod(0o777)
        modules = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in APACHE_MODULES)
        (self.directory / "apache.conf").write_text(APACHE_CONFIG.format(modules=modules, **words))

    def command(self):
        return ["apache2", "-DFOREGROUND", "-f", self.directory / "apache.conf"]


class Nginx(Foreign):
    name, package, program, port = "nginx", "nginx-light", "nginx", 8004

    def configure(self, words):
        (self.directory / "nginx.conf").write_text(NGINX_CONFIG.format(**words))

    def command(self):
        return ["nginx", "-c", self.directory / "nginx.conf", "-e", self.directory / "error.log"]


class Varnish(Foreign):
    name, package, program, port = "varnish", "varnish gcc libc6-dev", "varnishd", 8005

    def configure(self, words):
        self.origin = words["origin"]

    def command(self):
        return ["varnishd", "-F", "-j", "none", "-n", self.directory / "work", "-a", f":{self.port}", "-b",
            f"{self.origin}:80", "-T", "none", "-s", "malloc,64m"]


KINDS = {kind.name: kind for kind in (WeirServer, Squid, TrafficServer, Apache, Nginx, Varnish)}


def is_installed(kind):
    return kind is WeirServer or shutil.which(kind.program, path="/usr/sbin:/usr/bin:/sbin:/bin") is not None


def version(kind):
    if kind is WeirServer:
        done = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
    else:
        text = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", kind.package.split()[0]], capture_output=True,
            text=True, check=False).stdout
    found = re.search(r"\d+(\.\d+)+", text)
    return found[0] if found else "?"
