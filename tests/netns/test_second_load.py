"""What was loaded once is loaded again, by another client, while nothing passes between gateway and origin.

Whatever the origin's own headers allow comes from the store byte for byte; the rest fails clearly and soon, and once
the network is back all is as before.
"""
import contextlib
import hashlib
import io
import os
import threading
import time
import zipfile

import pytest

from lab import wait_for
from origin import pattern
from programs import Apt, Site, browse, make_package, sign, write_indexes
from site_files import Files
from web_site import ASKED, FRESH, NEVER, RENEWED, STALE, WebSite, coded
from way import DEFAULT_CONFIG

CONFIG = "cache_mem 160M\n"
SOON = 10  # seconds; the timeouts of the tests end each wait for the origin after one or two
CUTS = ["link", "silent", "refused"]
ROUTES = ("addr replace 2001:db8::1/64 dev wan nodad\nroute replace default via 192.0.2.254\n"
    "route replace default via 2001:db8::254\nroute replace unreachable 203.0.113.0/25\n")


@contextlib.contextmanager
def cut(lab, how):
    """Nothing passes between gateway and origin: no link and so no route, packets that vanish, or RST for all."""
    target = {"silent": ["DROP"], "refused": ["REJECT", "--reject-with", "tcp-reset"]}
    rule = ["INPUT", "-i", "eth0", "-p", "tcp", "--dport", "80", "-j", *target.get(how, [])]
    if how == "link":
        lab.gw.batch("link set wan down\n")
    else:
        lab.wan.run("iptables", "-w", "-I", *rule)
    try:
        yield
    finally:
        if how == "link":
            lab.gw.batch(f"link set wan up\n{ROUTES}")
        else:
            lab.wan.run("iptables", "-w", "-D", *rule)


@contextlib.contextmanager
def configured(way, line, instead_of=""):
    config = f"listen 3129 {way.lab.mode}\n{DEFAULT_CONFIG}{CONFIG}"
    assert instead_of in config
    way.daemon.reload(f"{config.replace(instead_of, '')}{line}\n")
    try:
        yield
    finally:
        way.daemon.reload(config)


@contextlib.contextmanager
def another_host(way, number):
    """What runs in the LAN meanwhile comes from another address."""
    route = "route replace default via 10.57.0.1"
    way.lab.lan.batch(f"{route} src 10.57.1.{number}\n")
    try:
        yield
    finally:
        way.lab.lan.batch(f"{route}\n")


@pytest.fixture
def web(way4):
    made = way4._keep(WebSite(way4.lab.wan, way4.free_address()))
    return made


def get(way, origin, path, fields=(), **options):
    """The answer, which comes whole and soon whatever it is."""
    began = time.monotonic()
    answer = way.fetch(path, to=origin, fields=[("Accept-Encoding", "gzip, deflate"), *fields], **options)
    assert answer.complete and time.monotonic() - began < SOON, f"{path}: {answer}"
    return answer


def check_part(answer, part):
    coding, body = coded(part, "gzip, deflate")
    assert (answer.status, answer.get("Content-Encoding", ""), answer.body) == (int(part.status[:3]), coding, body)
    assert [answer.get(name) for name in part.fields] == list(part.fields.values())


def check_parts(way, origin, refused):
    """All parts as the origin has them, but those of the refused uses: an error of the gateway's own."""
    for path, part in origin.parts.items():
        answer = get(way, origin, path, source="10.57.1.9")
        if part.use not in refused:
            check_part(answer, part)
        else:
            assert answer.status in (502, 504) and part.body not in answer.body, f"{path}: {answer}"
            assert answer.get("Content-Type").startswith("text/html") and answer.body.rstrip().endswith(b"</html>")


def check_report(report, direct, origin, refused):
    """The same page as over a direct connection, but for what is refused."""
    assert {**report, "parts": None} == {**direct, "parts": None}
    for path, told in report["parts"].items():
        if origin.parts[path].use in refused:
            assert told[0] in (502, 504), f"{path}: {told}"
        else:
            assert told == direct["parts"][path], path


@pytest.fixture
def loaded(way4, web, tmp_path):
    """The site, after a browser has loaded it directly and another one through the gateway: what both saw."""
    direct = browse(way4.lab.wan, tmp_path / "direct", f"{web.url}/index.html")
    assert direct["marker"] == "script-ran" and direct["colour"] == "rgb(1, 2, 3)" and direct["fonts"] == 1
    assert direct["pictures"] == ["20x40", "21x40", "22x40", "23x40", "24x40"] and direct["clip"] == 250
    assert [path for path, told in direct["parts"].items() if told[0] != 200] == ["/missing.js"]
    web.requests.clear()
    with another_host(way4, 1):
        assert browse(way4.lab.lan, tmp_path / "first", f"{web.url}/index.html") == direct
    return direct


def browse_again(way, web, tmp_path, name):
    with another_host(way, 2):
        return browse(way.lab.lan, tmp_path / name, f"{web.url}/index.html")


@pytest.mark.parametrize("how", CUTS)
def test_a_browser_with_the_network_cut(way4, web, loaded, tmp_path, how):
    refused = (ASKED, NEVER)
    for path in web.named(FRESH, RENEWED, STALE, ASKED):  # the clip in parts, as the browser likes
        assert len(web.full(path)) == 1 or path == "/clip.wav", path
    before = len(web.requests)
    with cut(way4.lab, how):
        check_report(browse_again(way4, web, tmp_path, "cut"), loaded, web, refused)
        check_parts(way4, web, refused)
        assert len(web.requests) == before
    check_parts(way4, web, ())
    check_report(browse_again(way4, web, tmp_path, "after"), loaded, web, ())


@pytest.mark.parametrize("how", ["link", "silent"])
def test_a_kept_connection_is_no_reason_to_wait(way4, web, how):
    """Nobody acknowledges what is sent on it: known as soon as a new one would have failed, not after first_byte."""
    with configured(way4, "timeout first_byte 1m", "timeout first_byte 1s\n"):
        def ask_all():
            for _ in range(4):                      # with a connection of either worker
                for path in ("/old.html", "/stale-if-error.bmp", "/validator.json"):
                    check_part(get(way4, web, path), web.parts[path])
                get(way4, web, "/must.html")
        ask_all()
        assert way4.daemon.stats()["upstreams"] >= 1
        before = way4.daemon.stats()["upstream_retried"]
        with cut(way4.lab, how):
            ask_all()
        assert way4.daemon.stats()["upstream_retried"] > before


@pytest.mark.parametrize("setting", ["on", "auto"])
def test_a_browser_while_offline(way4, web, loaded, tmp_path, setting):
    """Whatever is stored is served without asking: only what is not stored is an error, and that at once."""
    with configured(way4, f"offline {setting}"):
        with cut(way4.lab, "link"):
            wait_for(lambda: way4.daemon.stats()["offline"] == 1, 15, "offline")
            before = len(web.requests)
            check_report(browse_again(way4, web, tmp_path, "cut"), loaded, web, (NEVER,))
            check_parts(way4, web, (NEVER,))
        if setting == "auto":
            wait_for(lambda: way4.daemon.stats()["offline"] == 0, 15, "online")
            check_parts(way4, web, ())
        else:
            check_parts(way4, web, (NEVER,))
            assert len(web.requests) == before
    check_parts(way4, web, ())
    check_report(browse_again(way4, web, tmp_path, "after"), loaded, web, ())


@pytest.mark.parametrize("how", CUTS)
def test_each_coding_with_the_network_cut(way4, web, how):
    part = web.parts["/script.js"]
    accepted = {"br": "gzip, deflate, br", "gzip": "gzip", "": "identity"}
    for value in accepted.values():
        way4.fetch("/script.js", to=web, fields={"Accept-Encoding": value})
    with cut(way4.lab, how):
        for value in [*accepted.values(), "br, gzip;q=1.0,  Deflate"]:
            answer = way4.fetch("/script.js", to=web, fields={"Accept-Encoding": value})
            coding, body = coded(part, value)
            assert (answer.status, answer.get("Content-Encoding", ""), answer.body) == (200, coding, body)
    assert web.count("/script.js") == 3


def test_a_crowd_loads_the_site_at_once(way4, web):
    """Twenty hosts that know nothing of each other: the origin is asked once for whatever one answer may serve."""
    start, failures = threading.Barrier(20), []
    paths = list(web.parts)
    def load(number):
        try:
            start.wait(20)
            for path in paths if number % 2 else reversed(paths):
                check_part(get(way4, web, path, source=f"10.57.1.{100 + number}"), web.parts[path])
        except Exception as error:
            failures.append(error)
    crowd = [threading.Thread(target=load, args=(number,), daemon=True) for number in range(20)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join(60)
    assert not failures and not any(one.is_alive() for one in crowd)
    assert {path: web.count(path) for path in web.named(FRESH)} == dict.fromkeys(web.named(FRESH), 1)
    asked = web.named(RENEWED, STALE, ASKED)
    assert {path: len(web.full(path)) for path in asked} == dict.fromkeys(asked, 1)
    assert {path: web.count(path) for path in web.named(NEVER)} == dict.fromkeys(web.named(NEVER), 20)


# Programs that fetch files

@pytest.fixture
def mirror(way4, tmp_path):
    """A mirror as many are: validators and nothing else, so that what was not touched for long has a lifetime."""
    return Site(way4, tmp_path, Mirror)


class Mirror(Files):
    lifetimes = ()  # (how a path begins, its Cache-Control)

    def lifetime(self, path):
        name = f"/{path.relative_to(self.root)}"
        return next((value for start, value in self.lifetimes if name.startswith(start)), None)


def make_repository(site, names):
    for number, name in enumerate(names):
        make_package(site, name, 100_000 + number)
    write_indexes(site, "-o", "APT::FTPArchive::Release::Acquire-By-Hash=yes")
    sign(site, site.work / "archive.gpg")
    index = (site.root / "Packages").read_bytes()
    site.put(f"by-hash/SHA512/{hashlib.sha512(index).hexdigest()}", index)
    for path in site.root.rglob("*"):
        if path.name != "InRelease":
            os.utime(path, (time.time() - 100 * 86400,) * 2)


@pytest.mark.parametrize("how", CUTS)
def test_apt_with_the_network_cut(way4, mirror, how):
    """The second host's apt knows of new packages what the first one's knew, and gets them."""
    names = [f"weir-test-{number}" for number in range(5)]
    make_repository(mirror, names)
    trust = f"signed-by={mirror.work / 'archive.gpg'}"
    first, second = Apt(mirror, "first", trust), Apt(mirror, "second", trust)
    with another_host(way4, 1):
        first.update()
        first.install(names)
    first.check_and_drop(names)
    asked = [request.target for request in mirror.origin.requests]
    assert len(set(asked)) == len(asked) == len(names) + 2 and any("/by-hash/" in target for target in asked)
    with cut(way4.lab, how):
        with another_host(way4, 2):
            second.update()
            second.install(names)
        second.check_and_drop(names)
        with another_host(way4, 1):
            first.update()
            first.install(names)
        first.check_and_drop(names)
        assert len(mirror.origin.requests) == len(asked)
    with another_host(way4, 2):
        second.update()
    later = mirror.origin.requests[len(asked):]
    assert {request.target for request in later} == {"/./InRelease"}  # its lifetime is over


def make_index(site, names):
    """What pip reads: a page for each project, with the hashes of its files."""
    for name in names:
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as out:
            out.writestr(f"{name}/data", pattern(300_000))
            out.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            out.writestr(f"{name}-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            out.writestr(f"{name}-1.0.dist-info/RECORD", "")
        file = f"packages/{name}-1.0-py3-none-any.whl"
        site.put(file, wheel.getvalue())
        digest = hashlib.sha256(wheel.getvalue()).hexdigest()
        site.put(f"simple/{name}/index.html", f'<a href="/{file}#sha256={digest}">{file}</a>'.encode())


def pip(site, folder, names):
    site.run("/usr/bin/python3", "-m", "pip", "download", "--no-cache-dir", "--disable-pip-version-check", "--no-input",
        "--retries", "0", "--timeout", "10", "-q", "-d", folder, "--index-url", f"{site.url}/simple", "--trusted-host",
        site.origin.address, *names)
    for name in names:
        file = f"{name}-1.0-py3-none-any.whl"
        assert site.loaded(f"{folder}/{file}") == (site.root / "packages" / file).read_bytes()


@pytest.mark.parametrize("how", CUTS)
def test_pip_with_the_network_cut(way4, mirror, how):
    names = [f"weirtest{number}" for number in range(3)]
    make_index(mirror, names)
    mirror.origin.lifetimes = [("/simple/", "max-age=600, public"),
        ("/packages/", "max-age=365000000, immutable, public")]
    with another_host(way4, 1):
        pip(mirror, "first", names)
    asked = len(mirror.origin.requests)
    assert asked == 2 * len(names)
    with cut(way4.lab, how), another_host(way4, 2):
        pip(mirror, "second", names)
        assert len(mirror.origin.requests) == asked
    with another_host(way4, 3):
        pip(mirror, "third", names)


IMAGE = 24_000_000
WHOLE = {
    "curl": ["curl", "-sSf", "-o"],
    "wget": ["wget", "-q", "--tries=1", "-O"],
    "aria2": ["aria2c", "-q", "-x4", "-s4", "-k1M", "--max-tries=1", "--async-dns=false", "-o"],
}
RESUMED = {
    "curl": ["curl", "-sSf", "-C", "-", "-o"],
    "wget": ["wget", "-q", "-c", "--tries=1", "-O"],
}


def download(site, words, name, begun=None):
    """A program loads the image into a file, of which the first bytes may be there already."""
    path = site.work / name
    if begun is not None:
        path.write_bytes(pattern(begun))
    site.run(*words, name, f"{site.url}/image.iso")
    assert path.read_bytes() == pattern(IMAGE)
    path.unlink()


def download_with_all(site):
    for name, words in WHOLE.items():
        download(site, words, name)
    for name, words in RESUMED.items():
        download(site, words, name, 5_000_000)


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("first", list(WHOLE))
def test_an_image_with_the_network_cut(way4, mirror, how, first):
    """However it was loaded, whole or in parts at once: every program gets all of it, or the rest of it."""
    mirror.put("image.iso", pattern(IMAGE))
    os.utime(mirror.root / "image.iso", (time.time() - 100 * 86400,) * 2)
    with another_host(way4, 1):
        download(mirror, WHOLE[first], "first")
    asked = len(mirror.origin.requests)
    with cut(way4.lab, how), another_host(way4, 2):
        download_with_all(mirror)
    assert len(mirror.origin.requests) == asked
    with another_host(way4, 3):
        download_with_all(mirror)
    assert len(mirror.origin.requests) == asked


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("program", list(RESUMED))
def test_the_rest_of_an_image_with_the_network_cut(way4, mirror, program, how):
    """Only the end was ever loaded: what lies in it comes again, the whole does not, and does when it can."""
    mirror.put("image.iso", pattern(IMAGE))
    os.utime(mirror.root / "image.iso", (time.time() - 100 * 86400,) * 2)
    with another_host(way4, 1):
        download(mirror, RESUMED[program], "first", 5_000_000)
    with cut(way4.lab, how), another_host(way4, 2):
        for name, words in RESUMED.items():
            download(mirror, words, name, 5_000_000)
            download(mirror, words, name, 23_000_000)
        assert mirror.attempt(*WHOLE["curl"], "whole", f"{mirror.url}/image.iso").returncode == 22
        assert [request.get("Range") for request in mirror.origin.requests] == ["bytes=5000000-"]
    download_with_all(mirror)
