"""Programs as people run them, through the gateway: what they load is what the origin has, byte for byte."""
import hashlib
import json
import re
import subprocess

import pytest

from lab import wait_for
from origin import pattern
from programs import CHROMIUM, ENVIRONMENT, Apt, Site, bmp, make_package, write_indexes


@pytest.fixture
def site(way4, tmp_path):
    """A folder served by an origin of the test's own; `site.run` runs a program in the LAN."""
    return Site(way4, tmp_path)


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


def test_apt(site):
    """apt pipelines, asks with conditions, and checks every hash itself."""
    for number in range(10):
        make_package(site, f"weir-test-{number}", 100_000 + number)
    write_indexes(site)
    apt, names = Apt(site, "apt"), [f"weir-test-{number}" for number in range(10)]
    for _ in ("from the origin", "from the store"):
        apt.update()
        apt.install(names)
        apt.check_and_drop(names)
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


def chromium(site, profile, namespace=None):
    dom = site.run(*CHROMIUM, "--virtual-time-budget=20000", "--dump-dom", f"--user-data-dir={site.work / profile}",
        f"{site.url}/index.html", namespace=namespace, timeout=90)
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
