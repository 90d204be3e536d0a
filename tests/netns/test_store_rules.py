"""What the configuration says about storing, through the daemon: each option of refresh_pattern,
default_refresh_pattern, pragma_no_cache, store_type and its kin, store_cookies; and what is counted.

Each rule holds for URLs of its own, so one daemon serves them all.
"""
import email.utils
import time

import pytest

from lab import wait_for
from origin import MODIFIED
from way import DEFAULT_CONFIG

CONFIG = """\
refresh_pattern /override-expire/   60 0% 120 override-expire
refresh_pattern /plain-min/         60 0% 120
refresh_pattern /percent/            0 50% 1000000
refresh_pattern /max/                0 10000% 1s
refresh_pattern /override-lastmod/  60 0% 120 override-lastmod
refresh_pattern /reload-into-ims/    0 20% 120 reload-into-ims
refresh_pattern /ignore-reload/      0 20% 120 ignore-reload
refresh_pattern /ignore-no-store/    0 20% 120 ignore-no-store
refresh_pattern /ignore-private/     0 20% 120 ignore-private
refresh_pattern /refresh-ims/        0 20% 120 refresh-ims
refresh_pattern /store-stale/        0 20% 120 store-stale max-stale=60
refresh_pattern /max-stale/          0 20% 120 max-stale=60
refresh_pattern /no-max-stale/       0 20% 120 max-stale=0
refresh_pattern -i /CASE/           60 0% 120
refresh_pattern ^http://[0-9.]+/static/100/host/ 60 0% 120
default_refresh_pattern 1 0 0 120 60 60
pragma_no_cache 2
store_type text/keep
no_store_type text/* video/mp4
no_store_status 404
"""
DAY = 86400


def date(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True).replace(" ", "%20")


def bare(path, *fields):
    """A page that says nothing of its lifetime but what is named here."""
    named = "".join(f"&h={field}" for field in fields)
    dropped = "".join(f"&d={name}" for name in ("Cache-Control", "Last-Modified", "ETag")
        if not any(field.startswith(name) for field in fields))
    return f"/static/100{path}?x{named}{dropped}"


def counted(daemon, name, before):
    return wait_for(lambda: daemon.stats()[name] > before, what=f"{name} above {before}")


def asked_twice(way, target, **second):
    """How often the origin is asked for two requests, and the second answer."""
    assert way.fetch(target).status in (200, 301, 404, 410)
    answer = way.fetch(target, **second)
    return way.origin.count(target), answer


# ---- the lifetimes ----

@pytest.mark.parametrize("target, asked", [
    (bare("/plain-min/"), 1),                                             # MIN, without Last-Modified
    (bare("/plain-min/", f"Last-Modified:{MODIFIED.replace(' ', '%20')}"), 2),  # with one PERCENT alone
    (bare("/override-lastmod/", f"Last-Modified:{MODIFIED.replace(' ', '%20')}"), 1),
    (bare("/plain-min/", "Cache-Control:max-age=0", "ETag:%22a%22"), 2),
    (bare("/override-expire/", "Cache-Control:max-age=0", "ETag:%22a%22"), 1),
    (bare("/override-expire/", "Cache-Control:max-age=0,must-revalidate", "ETag:%22a%22"), 2),
    (bare("/case/"), 1),
    (bare("/host/"), 1),
    (bare("/nothing/host/"), 2),                                          # anchored: another URL
], ids=["min", "min-with-last-modified", "override-lastmod", "explicit", "override-expire",
    "override-expire-must-revalidate", "case", "host", "not-host"])
def test_lifetimes(way4, target, asked):
    target = way4.unique(target)
    assert asked_twice(way4, target)[0] == asked


def test_percent_and_max(way4):
    half = bare("/percent/", f"Last-Modified:{date(-DAY)}")
    target = way4.unique(half)
    assert asked_twice(way4, target)[0] == 1
    target = way4.unique(bare("/max/", f"Last-Modified:{date(-DAY)}"))
    assert asked_twice(way4, target)[0] == 1
    wait_for(lambda: way4.fetch(target) and way4.origin.count(target) == 2, 10, "the end of MAX")


@pytest.mark.parametrize("name, target", [
    ("refresh_override_expire", bare("/override-expire/", "Cache-Control:max-age=0", "ETag:%22a%22")),
    ("refresh_override_lastmod", bare("/override-lastmod/", f"Last-Modified:{MODIFIED.replace(' ', '%20')}")),
])
def test_lifetimes_are_counted(way4, name, target):
    before = way4.daemon.stats()[name]
    asked_twice(way4, way4.unique(target))
    counted(way4.daemon, name, before)


def test_smart_caches_default(way4):
    expire = way4.unique(bare("/default/", "Cache-Control:max-age=0", "ETag:%22a%22"))
    assert asked_twice(way4, expire)[0] == 1                    # EXPIRE
    redirect = way4.unique("/status/301/default/?h=Location:/x")
    assert asked_twice(way4, redirect)[0] == 1                  # REDIRECT
    reload = way4.unique("/static/100/default/")
    assert asked_twice(way4, reload, fields={"Cache-Control": "no-cache"})[0] == 1  # RELOAD
    assert way4.fetch(reload, fields={"Pragma": "no-cache"}).status == 200
    assert way4.origin.count(reload) == 1


# ---- reloads and conditions ----

def test_a_reload_is_one_without_the_options(way4):
    target = way4.unique("/static/100/plain-min/")
    assert asked_twice(way4, target, fields={"Cache-Control": "no-cache"})[0] == 2


def test_ignore_reload(way4):
    before = way4.daemon.stats()["refresh_ignore_reload"]
    for fields in ({"Cache-Control": "no-cache"}, {"Pragma": "no-cache"}, {"Cache-Control": "max-age=0"}):
        target = way4.unique("/static/100/ignore-reload/")
        assert asked_twice(way4, target, fields=fields)[0] == 1, fields
    counted(way4.daemon, "refresh_ignore_reload", before + 2)


def test_reload_into_ims(way4):
    before = way4.daemon.stats()["refresh_reload_into_ims"]
    target = way4.unique("/static/100/reload-into-ims/")
    asked, answer = asked_twice(way4, target, fields={"Cache-Control": "no-cache"})
    assert (asked, answer.status) == (2, 200)
    assert way4.origin.seen(target)[1].get("If-None-Match") == '"s-100"'
    counted(way4.daemon, "refresh_reload_into_ims", before)


def test_refresh_ims(way4):
    before = way4.daemon.stats()["refresh_refresh_ims"]
    target = way4.unique("/static/100/refresh-ims/")
    asked, answer = asked_twice(way4, target, fields={"If-Modified-Since": MODIFIED})
    assert (asked, answer.status) == (2, 304)
    counted(way4.daemon, "refresh_refresh_ims", before)
    target = way4.unique("/static/100/plain-min/")
    assert asked_twice(way4, target, fields={"If-Modified-Since": MODIFIED})[0] == 1


# ---- what is stored ----

@pytest.mark.parametrize("path, control, counter", [
    ("/ignore-no-store/", "no-store,max-age=60", "refresh_ignore_no_store"),
    ("/ignore-private/", "private,max-age=60", "refresh_ignore_private"),
])
def test_stored_all_the_same(way4, path, control, counter):
    before = way4.daemon.stats()[counter]
    assert asked_twice(way4, way4.unique(f"/static/100{path}?h=Cache-Control:{control}"))[0] == 1
    counted(way4.daemon, counter, before)
    assert asked_twice(way4, way4.unique(f"/static/100/plain-min/?h=Cache-Control:{control}"))[0] == 2


@pytest.mark.parametrize("fields, asked", [
    ("h=Content-Type:text/keep", 1), ("h=Content-Type:text/html", 2), ("h=Content-Type:TEXT/Html;%20x=y", 2),
    ("h=Content-Type:video/mp4", 2), ("h=Content-Type:video/webm", 1), ("d=Content-Type", 1),
])
def test_types(way4, fields, asked):
    assert asked_twice(way4, way4.unique(f"/static/100?{fields}"))[0] == asked


def test_statuses(way4):
    assert asked_twice(way4, way4.unique("/status/404?h=Cache-Control:max-age=60"))[0] == 2
    assert asked_twice(way4, way4.unique("/status/410?h=Cache-Control:max-age=60"))[0] == 1


@pytest.mark.parametrize("fields, asked", [
    ("h=Pragma:no-cache&h=Content-Type:image/png&d=Cache-Control", 1),
    ("h=Cache-Control:no-cache,max-age=60&h=Content-Type:image/png", 1),
    ("h=Cache-Control:no-cache,max-age=60", 2),
    ("h=Cache-Control:no-store,max-age=60&h=Content-Type:image/png", 2),
], ids=["pragma", "cache-control", "no-image", "no-store"])
def test_no_cache_of_images_is_not_seen(way4, fields, asked):
    assert asked_twice(way4, way4.unique(f"/static/100/percent/?{fields}"))[0] == asked


# ---- an origin that fails ----

@pytest.mark.parametrize("path, status, counts", [("/max-stale/", 200, True), ("/no-max-stale/", 504, False)])
def test_max_stale(way4, path, status, counts):
    origin = way4.new_origin()
    target = way4.unique(f"/static/100{path}?h=Cache-Control:max-age=1")
    before = way4.daemon.stats()["refresh_max_stale"]
    assert way4.fetch(target, to=origin).status == 200
    origin.close()
    wait_for(lambda: way4.fetch(target, to=origin.address).get("Age") != "0", what="the end of max-age")
    answer = wait_for(lambda: stale(way4, target, origin.address), what="an answer past max-age")
    assert answer.status == status
    if counts:
        counted(way4.daemon, "refresh_max_stale", before)


def stale(way, target, address):
    answer = way.fetch(target, to=address)
    return answer if answer.status != 200 or int(answer.get("Age")) > 1 else None


def test_store_stale(way4):
    origin = way4.new_origin()
    target = way4.unique(bare("/store-stale/", "Cache-Control:max-age=0"))
    before = way4.daemon.stats()["refresh_store_stale"]
    assert way4.fetch(target, to=origin).status == 200
    counted(way4.daemon, "refresh_store_stale", before)
    origin.close()
    assert way4.fetch(target, to=origin.address).status == 200


# ---- cookies: by reload, since the setting holds for all URLs ----

@pytest.mark.parametrize("setting, stored", [
    ("explicit", {"max-age=60", "public,max-age=60", "s-maxage=60"}),
    ("shared", {"public,max-age=60", "s-maxage=60"}),
    ("off", set()),
])
def test_cookies(gateway, way4, setting, stored):
    config = f"listen 3129 {gateway.mode}\n{DEFAULT_CONFIG}{CONFIG}"
    gateway.daemon.reload(f"{config}store_cookies {setting}\n")
    try:
        for control in ("max-age=60", "public,max-age=60", "s-maxage=60"):
            target = way4.unique(f"/static/100/plain-min/?h=Set-Cookie:a=b&h=Cache-Control:{control}")
            asked, answer = asked_twice(way4, target)
            assert asked == (1 if control in stored else 2), control
            assert answer.get("Set-Cookie") == "a=b"
        heuristic = f"/static/100/percent/?h=Set-Cookie:a=b&d=Cache-Control&h=Last-Modified:{date(-DAY)}"
        assert asked_twice(way4, way4.unique(heuristic))[0] == 2
    finally:
        gateway.daemon.reload(config)
