"""Programs as people run them, through the gateway: what they load is what the origin has, byte for byte."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import subprocess

import pytest

from lab import Failed, wait_for
from origin import pattern
from site_files import Files

QUIET = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


@pytest.fixture
def site(way4, tmp_path):
    """A folder served by an origin of the test's own; `site.run` runs a program in the LAN."""
    return Site(way4, tmp_path)


class Site:
    def __init__(self, way, directory):
        self.way, self.root, self.work = way, directory / "site", directory / "work"
        self.root.mkdir()
        self.work.mkdir()
        self.origin = way.lab.keep(Files(way.lab.wan, way.free_address(), self.root))
        self.url = f"http://{self.origin.address}"

    def put(self, name, data):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def run(self, *command, namespace=None, timeout=60, **options):
        done = (namespace or self.way.lab.lan).run(*map(str, command), check=False, cwd=self.work, timeout=timeout,
            env=dict(ENVIRONMENT, HOME=str(self.work), **options))
        if done.returncode:
            raise Failed(f"{command[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}\n"
                f"{self.way.daemon.entries()[-10:]}")
        return done.stdout

    def loaded(self, name):
        return (self.work / name).read_bytes()

    def results(self, end=""):
        return [e["result"] for e in self.way.daemon.entries()
            if e["url"].startswith(self.url) and e["url"].endswith(end)]


def test_curl(site):
    site.put("big.bin", pattern(5_000_000))
    for name in ("first", "second"):
        site.run("curl", "-sSf", "-o", name, f"{site.url}/big.bin")
        assert site.loaded(name) == pattern(5_000_000)
    wait_for(lambda: sorted(site.results()) == ["HIT", "MISS"], what="MISS and HIT")


def test_curl_knows_what_was_cut_short(site):
    url = f"http://{site.way.host}{site.way.unique('/truncate/100000')}"
    with site.way.lab.lan:
        done = subprocess.run(["curl", "-sS", "-o", "/dev/null", url], env=ENVIRONMENT)
    assert done.returncode in (18, 56)


def test_curl_uploads_with_expect(site):
    body = pattern(3_000_000)
    (site.work / "upload").write_bytes(body)
    target = site.way.unique("/expect-delay")
    site.way.origin.release(target)
    report = json.loads(site.run("curl", "-sSf", "-T", "upload", "-H", "Expect: 100-continue",
        f"http://{site.way.host}{target}"))
    assert report["sha256"] == hashlib.sha256(body).hexdigest()


def test_wget(site):
    for number in range(5):
        site.put(f"tree/{number}.txt", pattern(1000 * number + 1))
    site.put("tree/index.html", b"".join(b'<a href="%d.txt">x</a>' % number for number in range(5)))
    site.run("wget", "-q", "-r", "-np", "-nH", f"{site.url}/tree/index.html")
    for number in range(5):
        assert site.loaded(f"tree/{number}.txt") == pattern(1000 * number + 1)


def test_aria2_with_several_ranges_at_once(site):
    site.put("big.iso", pattern(20_000_000))
    for name in ("first.iso", "second.iso"):
        site.run("aria2c", "-q", "-x4", "-s4", "-k1M", "--async-dns=false", "-o", name, f"{site.url}/big.iso")
        assert site.loaded(name) == pattern(20_000_000)
    assert len([r for r in site.origin.requests if r.get("Range")]) >= 2


def test_git_over_dumb_http(site):
    repository = site.work / "source"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
    site.run(*git, "init", "-q", repository)
    for number in range(20):
        (repository / f"file{number}").write_bytes(pattern(3000 + number))
        site.run(*git, "-C", repository, "add", "-A")
        site.run(*git, "-C", repository, "commit", "-q", "-m", f"number {number}")
    site.run("git", "clone", "-q", "--bare", repository, site.root / "repository.git")
    site.run("git", "-C", site.root / "repository.git", "update-server-info")
    for name in ("first", "second"):
        site.run("git", "clone", "-q", f"{site.url}/repository.git", site.work / name, GIT_HTTP_LOW_SPEED_TIME="20")
    heads = {site.run("git", "-C", site.work / name, "rev-parse", "HEAD") for name in ("source", "first", "second")}
    assert len(heads) == 1
    assert site.loaded("second/file19") == pattern(3019)


def make_package(site, name, size):
    tree = site.work / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1.0\nArchitecture: all\n"
        "Maintainer: Nobody <nobody@example.com>\nDescription: a package\n")
    (tree / "usr/share").mkdir(parents=True)
    (tree / "usr/share" / name).write_bytes(pattern(size))
    (site.root / "pool").mkdir(exist_ok=True)
    site.run("dpkg-deb", "-Zgzip", "--root-owner-group", "--build", tree, site.root / "pool" / f"{name}.deb")


def test_apt(site):
    """apt pipelines, asks with conditions, and checks every hash itself."""
    for number in range(10):
        make_package(site, f"weir-test-{number}", 100_000 + number)
    with contextlib.chdir(site.root):
        packages = subprocess.run(["apt-ftparchive", "packages", "pool"], check=True, **QUIET).stdout
        pathlib.Path("Packages").write_text(packages)
        release = subprocess.run(["apt-ftparchive", "release", "."], check=True, **QUIET).stdout
        pathlib.Path("Release").write_text(release)
    apt = site.work / "apt"
    for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [trusted=yes] {site.url} ./\n")
    options = [word for option in (f"Dir::Etc={apt}/etc/apt", f"Dir::Etc::sourcelist={apt}/sources.list",
        "Dir::Etc::sourceparts=-", f"Dir::State={apt}/state", f"Dir::State::status={apt}/status",
        f"Dir::Cache={apt}/cache", "APT::Sandbox::User=root", "Acquire::http::Proxy=DIRECT", "Acquire::Retries=0",
        "Acquire::http::Timeout=10", "APT::Architecture=amd64", "Acquire::Languages=none")
        for word in ("-o", option)]
    names = [f"weir-test-{number}" for number in range(10)]
    for _ in ("from the origin", "from the store"):
        site.run("apt-get", *options, "-q", "update")
        site.run("apt-get", *options, "-q", "-y", "--download-only", "install", *names)
        for name in names:
            fetched = apt / "cache/archives" / f"{name}_1.0_all.deb"
            assert fetched.read_bytes() == (site.root / "pool" / f"{name}.deb").read_bytes()
            fetched.unlink()
    wait_for(lambda: "HIT" in site.results(".deb"), what="a package from the store")


PAGE = """<!doctype html><meta charset=utf-8><title>page</title><link rel=stylesheet href=style.css>
<script src=script.js></script><p id=out>waiting</p>{images}
<script>
async function sum(name) {{
  const bytes = new Uint8Array(await (await fetch(name)).arrayBuffer());
  let a = 1, b = 0;
  for (const byte of bytes) {{ a = (a + byte) % 65521; b = (b + a) % 65521; }}
  return name + ":" + bytes.length + ":" + (b * 65536 + a);
}}
window.onload = async () => {{
  const names = [...Array({count}).keys()].map(number => "data" + number + ".bin");
  const sums = await Promise.all(names.map(sum));
  const sizes = [...document.images].map(image => image.naturalWidth + "x" + image.naturalHeight);
  const colour = getComputedStyle(document.getElementById("out")).color;
  document.getElementById("out").textContent = ["ready", marker, colour, ...sizes, ...sums].join(" ");
}};
</script>"""
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-default-apps", "--no-proxy-server", "--virtual-time-budget=20000", "--dump-dom"]


def bmp(width, height):
    """A small picture any browser draws."""
    row = (width * 3 + 3) // 4 * 4
    head = b"BM" + (54 + row * height).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    info = (40).to_bytes(4, "little") + width.to_bytes(4, "little") + height.to_bytes(4, "little")
    return head + info + b"\1\0\x18\0" + bytes(24) + pattern(row * height)


def chromium(site, profile, namespace=None):
    dom = site.run(*CHROMIUM, f"--user-data-dir={site.work / profile}", f"{site.url}/index.html",
        namespace=namespace, timeout=90)
    return re.search(r'<p id="out">([^<]*)', dom).group(1)


def test_chromium(site):
    count = 12
    images = "".join(f"<img src=picture{number}.bmp>" for number in range(8))
    site.put("index.html", PAGE.format(images=images, count=count).encode())
    site.put("style.css", b"#out { color: rgb(1, 2, 3) }")
    site.put("script.js", b"const marker = 'script-ran';" + b"/* padding */" * 10000)
    for number in range(8):
        site.put(f"picture{number}.bmp", bmp(20 + number, 10))
    for number in range(count):
        site.put(f"data{number}.bin", pattern(50_000 * number + 7))
    direct = chromium(site, "direct", site.way.lab.wan)
    assert direct.startswith("ready script-ran rgb(1, 2, 3) 20x10 21x10") and direct.count(".bin:") == count
    assert chromium(site, "first") == direct
    assert chromium(site, "second") == direct
    wait_for(lambda: "HIT" in site.results("data3.bin"), what="a hit for the second browser")
