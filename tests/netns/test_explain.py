"""`weir explain`: what it says is what happens, and it makes nothing happen."""
import json
import re

import pytest

from lab import wait_for

CONFIG = "refresh_pattern /long/ 60 50% 120 override-expire\nno_cache */never/*\nblock */blocked/*\ndeny 10.57.1.66\n"


def explain(way, target, *words, host=None, check=True):
    told = way.daemon.command("explain", f"http://{host or way.host}{target}", "--json", *words, check=check)
    return json.loads(told.stdout) if check else told


def lines_of(way, target, count):
    """The log lines of this target; there have to be `count`."""
    return wait_for(lambda: len(found := [entry for entry in way.daemon.entries() if entry["url"].endswith(target)])
        == count and found, what=f"{count} log lines")


def only(told):
    assert len(told["destinations"]) == 1
    return told["destinations"][0]


def test_before_and_after_a_request(way):
    target = way.unique("/static/100?h=Vary:Accept-Language")
    before = only(explain(way, target))
    assert (before["lookup"], before["reason"], before["variants"]) == ("MISS", "absent", [])
    assert way.origin.count(target) == 0
    way.fetch(target, fields={"Accept-Language": "cs"})
    after = only(explain(way, target, "--header", "Accept-Language: cs"))
    assert (after["lookup"], after["reason"], after["variant_count"]) == ("HIT", "fresh", 1)
    variant = after["variants"][0]
    assert (variant["status"], variant["content_length"], variant["selected"]) == (200, 100, True)
    assert (variant["etag"], variant["lifetime_s"], variant["vary"]) == ('"s-100"', 3600, {"accept-language": "cs"})
    assert 0 <= variant["age_s"] < 60
    other = only(explain(way, target, "--header", "Accept-Language: en"))
    assert (other["lookup"], other["reason"], other["variants"][0]["selected"]) == ("MISS", "variant", False)
    assert way.origin.count(target) == 1


@pytest.mark.parametrize("fields", [{}, {"Cache-Control": "no-cache"}, {"Cache-Control": "max-age=0"},
    {"Cache-Control": "no-store"}, {"If-Match": '"x"'}, {"Cache-Control": "only-if-cached"}])
def test_it_says_what_then_happens(way4, fields):
    target = way4.unique("/static/100")
    way4.fetch(target)
    words = [word for name, value in fields.items() for word in ("--header", f"{name}: {value}")]
    told = only(explain(way4, target, *words))
    assert way4.origin.count(target) == 1
    way4.fetch(target, fields=fields)
    entry = lines_of(way4, target, 2)[-1]
    assert told["reason"] == entry["lookup"]
    assert (told["lookup"] == "HIT") == (way4.origin.count(target) == 1)
    asked = way4.origin.seen(target)[-1]
    for line in told["sent"]:
        name, value = line.split(": ", 1)
        assert asked.get(name) == value


def test_it_changes_nothing(way4):
    target = way4.unique("/static/100?h=Cache-Control:max-age=0")
    way4.fetch(target)
    lines_of(way4, target, 1)
    before = {name: value for name, value in way4.daemon.stats().items() if not isinstance(value, dict)}
    for _ in range(20):
        told = only(explain(way4, target))
    assert (told["lookup"], told["reason"]) == ("STALE", "expired")
    assert 'If-None-Match: "s-100"' in told["sent"]
    after = way4.daemon.stats()
    moving = ("uptime_s", "sessions", "sessions_open")
    assert [name for name in before if after[name] != before[name] and name not in moving] == []
    assert way4.origin.count(target) == 1 and len(lines_of(way4, target, 1)) == 1


def test_a_hit_that_would_be_refreshed(way4):
    target = way4.unique("/static/100?h=Cache-Control:max-age=0,stale-while-revalidate=100")
    way4.fetch(target)
    for _ in range(2):
        told = only(explain(way4, target))
        assert (told["lookup"], told["reason"], told["refreshed"]) == ("HIT", "stale-while-revalidate", True)
        assert 'If-None-Match: "s-100"' in told["sent"]
    assert way4.origin.count(target) == 1


def test_what_is_stored_in_parts(way4):
    target = way4.unique("/static/1000")
    for range_ in ("bytes=0-9", "bytes=100-199"):
        assert way4.fetch(target, fields={"Range": range_}).status == 206
    told = only(explain(way4, target))
    variant = told["variants"][0]
    assert (variant["partial"], variant["spans"]) == (True, [[0, 9], [100, 199]])
    assert (variant["content_length"], variant["content_bytes"]) == (1000, 110)
    assert (told["lookup"], told["reason"]) == ("MISS", "incomplete")
    way4.fetch(target)
    asked = way4.origin.seen(target)[2:]
    assert [request.get("Range") for request in asked] == ["bytes=10-99", "bytes=200-"]  # hole by hole
    assert told["sent"] == ["Range: bytes=10-99", f"If-Range: {asked[0].get('If-Range')}"]
    whole = only(explain(way4, target))
    assert (whole["lookup"], whole["variants"][0]["partial"]) == ("HIT", False)
    assert (whole["variants"][0]["content_length"], whole["variants"][0]["content_bytes"]) == (1000, 1000)


def test_all_validators_would_be_sent(way4):
    target = way4.unique("/static/100?h=Vary:Accept-Language")
    for language in ("cs", "en"):
        way4.fetch(target, fields={"Accept-Language": language})
    told = only(explain(way4, target, "--header", "Accept-Language: de"))
    assert (told["lookup"], told["reason"], told["variant_count"]) == ("MISS", "variant", 2)
    way4.fetch(target, fields={"Accept-Language": "de"})
    assert told["sent"] == [f"If-None-Match: {way4.origin.seen(target)[-1].get('If-None-Match')}"]


def test_the_rules_and_their_place(way4):
    told = explain(way4, "/blocked/x", "--client", "10.57.1.66")
    assert not told["client"]["allowed"] and told["client"]["rule"] == "deny 10.57.1.66"
    place = only(told)
    assert (place["url"]["allowed"], place["url"]["rule"], place["refused"]) == (False, "block */blocked/*", True)
    line = open(place["url"]["file"], encoding="utf-8").read().splitlines()[place["url"]["line"] - 1]
    assert line == "block */blocked/*"
    never = only(explain(way4, "/static/never/5", "--client", "10.57.0.2"))
    assert (never["storing"]["allowed"], never["storing"]["rule"]) == (False, "no_cache */never/*")
    assert (never["lookup"], never["reason"]) == ("PASS", "not-allowed")


def test_the_refresh_pattern_that_holds(way4):
    target = way4.unique("/static/100?h=Cache-Control:max-age=1&where=/long/")
    way4.fetch(target)
    place = only(explain(way4, target))
    assert place["refresh"]["rule"] == "refresh_pattern /long/ 60 50% 120 override-expire"
    assert open(place["refresh"]["file"], encoding="utf-8").read().splitlines()[place["refresh"]["line"] - 1] == (
        place["refresh"]["rule"])
    assert place["variants"][0]["lifetime_s"] == 3600 and place["lookup"] == "HIT"
    assert only(explain(way4, way4.unique("/static/100")))["refresh"] is None


def test_every_destination(way):
    target = way.unique("/static/50")
    here, there = way.new_origin(), way.new_origin()
    for origin in (here, there):
        way.fetch(target, to=origin, host="many.example")
    told = explain(way, target, host="many.example")
    assert told["destination_count"] == 2
    names = {place["destination"] for place in told["destinations"]}
    assert all(any(origin.address in name for name in names) for origin in (here, there))
    address = f"[{here.address}]:80" if ":" in here.address else here.address
    one = only(explain(way, target, "--destination", address, host="many.example"))
    assert here.address in one["destination"] and one["lookup"] == "HIT"
    elsewhere = only(explain(way, target, "--destination", "192.0.2.77", host="many.example"))
    assert (elsewhere["lookup"], elsewhere["variants"]) == ("MISS", [])


def test_for_people(way4):
    target = way4.unique("/static/100")
    way4.fetch(target)
    text = way4.daemon.command("explain", f"http://{way4.host}{target}", "--client", "10.57.0.2").stdout
    assert re.search(r"client 10\.57\.0\.2: allowed", text)
    assert re.search(r"answer +from the store\n +because +fresh: within its freshness lifetime", text)
    assert re.search(r"stored +200, 100 bytes", text) and 'ETag: "s-100"' in text
    asked = way4.daemon.command("explain", f"http://{way4.host}{target}", "--header", "Cache-Control: no-cache").stdout
    assert re.search(r"because +request-no-cache: ", asked) and 'asks      If-None-Match: "s-100"' in asked


@pytest.mark.parametrize("words, why", [
    ((), "name a URL"), (("foo",), 'URL "foo": write the whole URL'), (("https://a.example/",), "HTTPS"),
    (("http:///x",), "its host is missing"), (("http://u@a/",), "user and password"),
    (("http://a:99999/",), "its host is missing or malformed"), (("http://a/x y",), "%20 for a blank"),
    (("http://a/", "http://b/"), "one word too many"), (("http://a/", "--nonsense"), "no option is called"),
    (("http://a/", "--client", "nope"), '--client "nope": write an IP address'),
    (("http://a/", "--destination", "1.2.3"), '--destination "1.2.3": write IP or IP:PORT'),
    (("http://a/", "--destination", "1.2.3.4:x"), "--destination"),
    (("http://a/", "--method", "G@T"), '--method "G@T": write a method'),
    (("http://a/", "--method", "CONNECT"), "--method CONNECT: a tunnel"),
    (("http://a/", "--header"), "--header needs a value"),
    (("http://a/", "--header", "no colon"), '--header "no colon": write "Name: value"'),
    (("http://a/", "--header", "Host: other"), "the host is the URL's"),
    (("http://a/", "--header", "a b: c"), '--header "a b: c": weir refuses'),
    (("http://a/", "--header", "Content-Length: x"), '--header "Content-Length: x": weir refuses'),
    (("http://a/", "--header", "A: b\r\nC: d"), "needs a value")])
def test_wrong_usage(way4, words, why):
    told = way4.daemon.command("explain", *words, check=False)
    assert (told.returncode, told.stdout) == (2, "") and why in told.stderr and "usage: weir explain" in told.stderr


@pytest.mark.parametrize("words, why", [((), "name what"), (("foo",), 'URL "foo": write the whole URL'),
    (("https://a/",), "HTTPS"), (("http:///",), "its host is missing"), (("http://a/b c",), "%20"),
    (("--host", "a b"), '--host "a b": write NAME or NAME:PORT'), (("--host", ""), "--host"), (("--nothing",), "has no option --nothing"),
    (("--prefix", "a/b"), '--prefix "a/b": write the whole URL'), (("--prefix",), "--prefix needs a URL"),
    (("--mask", "http://a/#b"), '--mask "http://a/#b": '), (("--mask", ""), "--mask"),
    (("--all", "x"), '"x" is one word too many')])
def test_wrong_usage_of_purge(way4, words, why):
    told = way4.daemon.command("purge", *words, check=False)
    assert (told.returncode, told.stdout) == (2, "") and why in told.stderr and "usage: weir purge" in told.stderr
