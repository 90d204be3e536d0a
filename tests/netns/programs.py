"""Programs as people run them, in the LAN of a way, and a folder of files for them to load."""
import json
import os
import re
import subprocess
import tempfile

from lab import Failed, wait_for
from origin import pattern
from site_files import Files

QUIET = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


class Site:
    """A folder served by an origin of its own; `run` runs a program in the LAN, in the folder `work`."""

    def __init__(self, way, directory, origin=Files):
        self.way, self.root, self.work = way, directory / "site", directory / "work"
        self.root.mkdir()
        self.work.mkdir()
        self.origin = way.lab.keep(origin(way.lab.wan, way.free_address(), self.root))
        self.url = f"http://{self.origin.address}"

    def put(self, name, data):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def attempt(self, *command, namespace=None, timeout=60, **options):
        return (namespace or self.way.lab.lan).run(*map(str, command), check=False, cwd=self.work, timeout=timeout,
            env=dict(ENVIRONMENT, HOME=str(self.work), **options))

    def run(self, *command, **options):
        done = self.attempt(*command, **options)
        if done.returncode:
            raise Failed(f"{command[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}\n"
                f"{self.way.daemon.entries()[-10:]}")
        return done.stdout

    def loaded(self, name):
        return (self.work / name).read_bytes()

    def results(self, end=""):
        return [e["result"] for e in self.way.daemon.entries()
            if e["url"].startswith(self.url) and e["url"].endswith(end)]


def bmp(width, height):
    """A small picture any browser draws."""
    row = (width * 3 + 3) // 4 * 4
    head = b"BM" + (54 + row * height).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    info = (40).to_bytes(4, "little") + width.to_bytes(4, "little") + height.to_bytes(4, "little")
    return head + info + b"\1\0\x18\0" + bytes(24) + pattern(row * height)


CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-default-apps", "--no-proxy-server"]


def browse(namespace, profile, url, timeout=60):
    """Opens a page with a new profile and returns what it logs to its console as `REPORT {JSON}`."""
    profile.mkdir()
    console = profile / "console"
    with open(console, "wb") as output:
        process = namespace.start(*CHROMIUM, "--enable-logging=stderr", f"--user-data-dir={profile}", url,
            stdout=output, stderr=output, cwd=profile, env=dict(ENVIRONMENT, HOME=str(profile)))
    def report():
        assert process.poll() is None, f"the browser ended with {process.returncode}"
        return re.search(r'"REPORT (\{.*\})", source: ', console.read_text(errors="replace"))
    try:
        return json.loads(wait_for(report, timeout, lambda: f"the report of {url}, after {console.read_text()},")[1])
    finally:
        process.terminate()
        process.wait()


# apt and its repository

def make_package(site, name, size):
    tree = site.work / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1.0\nArchitecture: all\n"
        "Maintainer: Nobody <nobody@example.com>\nDescription: a package\n")
    (tree / "usr/share").mkdir(parents=True)
    (tree / "usr/share" / name).write_bytes(pattern(size))
    (site.root / "pool").mkdir(exist_ok=True)
    site.run("dpkg-deb", "-Zgzip", "--root-owner-group", "--build", tree, site.root / "pool" / f"{name}.deb")


def write_indexes(site, *options):
    """Packages and Release of the flat repository in the site's folder."""
    for name, words in (("Packages", ["packages", "pool"]), ("Release", [*options, "release", "."])):
        done = subprocess.run(["apt-ftparchive", *words], check=True, cwd=site.root, **QUIET)
        (site.root / name).write_text(done.stdout)


def sign(site, keyring):
    """InRelease out of Release, by a key of its own whose public part goes to the file `keyring`."""
    with tempfile.TemporaryDirectory(prefix="weir-gpg-") as home:  # short: a socket's name goes there
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
        try:
            site.run(*gpg, "--quick-gen-key", "archive@example.com", "ed25519", "sign", "never")
            site.run(*gpg, "--output", site.root / "InRelease", "--clearsign", site.root / "Release")
            site.run(*gpg, "--output", keyring, "--export")
        finally:
            site.attempt("gpgconf", "--homedir", home, "--kill", "all")


class Apt:
    """apt with a state and a cache of its own, as on another machine."""

    def __init__(self, site, name, trust="trusted=yes"):
        self.site, self.home = site, site.work / name
        for folder in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "state/lists/partial", "cache/archives/partial"):
            (self.home / folder).mkdir(parents=True)
        (self.home / "status").touch()
        (self.home / "sources.list").write_text(f"deb [{trust}] {site.url} ./\n")
        self.options = [word for option in (f"Dir::Etc={self.home}/etc/apt",
            f"Dir::Etc::sourcelist={self.home}/sources.list", "Dir::Etc::sourceparts=-",
            f"Dir::State={self.home}/state", f"Dir::State::status={self.home}/status",
            f"Dir::Cache={self.home}/cache", "APT::Sandbox::User=root", "Acquire::http::Proxy=DIRECT",
            "Acquire::Retries=0", "Acquire::http::Timeout=10", "APT::Architecture=amd64", "Acquire::Languages=none")
            for word in ("-o", option)]

    def update(self):
        """An index that did not come is a failure."""
        self.site.run("apt-get", *self.options, "-q", "--error-on=any", "update")

    def install(self, names):
        self.site.run("apt-get", *self.options, "-q", "-y", "--download-only", "install", *names)

    def check_and_drop(self, names):
        """What was downloaded is what the pool has."""
        for name in names:
            fetched = self.home / "cache/archives" / f"{name}_1.0_all.deb"
            assert fetched.read_bytes() == (self.site.root / "pool" / f"{name}.deb").read_bytes()
            fetched.unlink()
