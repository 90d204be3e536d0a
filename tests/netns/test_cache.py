"""The store seen from outside: what is reused, what never is, joining, revalidation, purge."""
import threading

import pytest

from lab import wait_for
from origin import pattern

CONFIG = "no_cache */never/*\ncache_mem 32M\nmaximum_object_size 4M\n"
LATER = "Wed, 01 Jan 2098 00:00:00 GMT"


def twice(way, target, fields=(), **options):
    """Fetches twice; returns the second answer and how often the origin was asked."""
    way.fetch(target, fields=fields, **options)
    answer = way.fetch(target, fields=fields, **options)
    return answer, (options.get("to") or way.origin).count(target)


def results_of(way, target):
    return [entry["result"] for entry in way.daemon.entries() if entry["url"].endswith(target)]


@pytest.mark.parametrize("path", ["/static/5000", "/chunked/5000", "/close/5000", "/static/0",
    "/static/100?h=Cache-Control:s-maxage=60", "/static/100?h=Cache-Control:public,max-age=60",
    f"/static/100?d=Cache-Control&h=Expires:{LATER.replace(' ', '%20')}"])
def test_reused(way, path):
    target = way.unique(path)
    answer, asked = twice(way, target)
    assert (answer.cache, asked, answer.complete) == ("hit", 1, True)
    assert int(answer.get("Age")) >= 0


@pytest.mark.parametrize("path", ["/static/100?h=Cache-Control:no-store", "/static/100?h=Cache-Control:private",
    "/static/100?h=Cache-Control:max-age=0&d=ETag&d=Last-Modified", "/static/100?h=Vary:*",
    "/static/100?d=Cache-Control&h=Expires:0&d=ETag&d=Last-Modified", "/status/500",
    "/static/5000000", "/static/never/100?/never/"])
def test_never_reused(way, path):
    answer, asked = twice(way, way.unique(path))
    assert (answer.cache == "hit", asked) == (False, 2)


def test_authorization_is_not_shared(way):
    answer, asked = twice(way, way.unique("/static/100"), {"Authorization": "Basic eDp5"})
    assert (answer.cache == "hit", asked) == (False, 2)


def test_the_request_can_insist(way4):
    target = way4.unique("/static/100")
    way4.fetch(target)
    assert way4.fetch(target, fields={"Cache-Control": "no-cache"}).cache != "hit"
    assert way4.fetch(target, fields={"Cache-Control": "only-if-cached"}).cache == "hit"
    assert way4.fetch(way4.unique("/static/100"), fields={"Cache-Control": "only-if-cached"}).status == 504


def test_vary(way):
    target = way.unique("/static/100?h=Vary:Accept-Language")
    for language in ("cs", "en", "cs", "en"):
        answer = way.fetch(target, fields={"Accept-Language": language})
    assert answer.cache == "hit" and way.origin.count(target) == 2


def test_revalidation(way):
    target = way.unique("/static/100?h=Cache-Control:max-age=0")
    answer, asked = twice(way, target)
    assert (answer.status, answer.body, asked) == (200, pattern(100), 2)
    assert way.origin.seen(target)[1].get("If-None-Match") == '"s-100"'
    wait_for(lambda: sorted(results_of(way, target)) == ["MISS", "REVALIDATED"], what="MISS and REVALIDATED in the log")


def test_a_clients_own_condition_is_answered_from_the_store(way):
    target = way.unique("/static/100")
    way.fetch(target)
    answer = way.fetch(target, fields={"If-None-Match": '"s-100"'})
    assert (answer.status, answer.body, way.origin.count(target)) == (304, b"", 1)
    assert way.fetch(target, fields={"If-None-Match": '"other"'}).status == 200
    assert way.origin.count(target) == 1


def test_head_from_a_stored_get(way):
    target = way.unique("/static/100")
    way.fetch(target)
    answer = way.fetch(target, "HEAD")
    assert (answer.get("Content-Length"), answer.cache, way.origin.count(target)) == ("100", "hit", 1)


@pytest.mark.parametrize("range_, expected", [("bytes=10-19", pattern(10, 10)), ("bytes=-5", pattern(5, 995)),
    ("bytes=990-", pattern(10, 990))])
def test_a_range_of_a_stored_object(way4, range_, expected):
    target = way4.unique("/static/1000")
    way4.fetch(target)
    answer = way4.fetch(target, fields={"Range": range_})
    assert (answer.status, answer.body) == (206, expected)


def test_a_partial_response_is_not_taken_for_the_whole(way):
    target = way.unique("/static/1000")
    assert way.fetch(target, fields={"Range": "bytes=0-9"}).body == pattern(10)
    assert way.fetch(target).body == pattern(1000)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_an_unsafe_method_invalidates(way4, method):
    target = way4.unique("/static/100")
    way4.fetch(target)
    way4.fetch(target, method, body=b"x")
    assert way4.fetch(target).cache != "hit"


# Destination scope: who asks one address for a name never gets what another address said

def test_another_destination_with_the_same_host_is_another_object(way):
    here, there = way.new_origin(), way.new_origin()
    for origin in (here, there, here, there):
        assert way.fetch("/static/50", to=origin, host="same.example").status == 200
    assert (len(here.requests), len(there.requests)) == (1, 1)


def test_another_host_at_the_same_destination_is_another_object(way):
    origin = way.new_origin()
    for host in ("a.example", "b.example", "A.example"):
        way.fetch("/static/50", to=origin, host=host)
    assert len(origin.requests) == 2


# Joining a fill that runs

class Fetcher(threading.Thread):
    def __init__(self, way, target):
        super().__init__(daemon=True)
        self.way, self.target, self.answer = way, target, None
        self.start()

    def run(self):
        self.answer = self.way.fetch(self.target)

    def result(self):
        self.join(15)
        return self.answer


def begin(way, target):
    """A client that has got the beginning of a held response, so it surely takes part in the fill."""
    client = way.connect()
    client.request("GET", target, {"Host": way.host})
    head = client.read_until(b"\r\n\r\n")
    client.read(1000)
    return client, head


def test_a_crowd_is_one_request_at_the_origin(way):
    target = way.unique("/held/200000")
    crowd = [begin(way, target) for _ in range(8)]
    way.origin.release(target)
    for client, head in crowd:
        with client:
            assert head.startswith(b"HTTP/1.1 200") and client.read(199000) == pattern(199000, 1000)
    assert way.origin.count(target) == 1
    wait_for(lambda: results_of(way, target).count("MISS") == 1 and len(results_of(way, target)) == 8,
        what="one MISS of eight lines")


def test_a_crowd_that_comes_before_the_head(way):
    target, before = way.unique("/late/50000"), way.daemon.stats()["client_bytes_in"]
    crowd = [way.connect() for _ in range(8)]
    for client in crowd:
        client.request("GET", target, {"Host": way.host})
    wait_for(lambda: way.daemon.stats()["client_bytes_in"] >= before + 8 * len(target), what="eight requests")
    way.fetch(way.unique("/static/1"))
    way.origin.release(target)
    for client in crowd:
        with client:
            assert client.read_response().body == pattern(50000)
    assert way.origin.count(target) == 1
    wait_for(lambda: sorted(results_of(way, target)) == ["JOINED"] * 7 + ["MISS"], what="one MISS, seven JOINED")


def test_the_first_client_leaving_does_not_end_the_fill(way):
    target = way.unique("/held/200000")
    (first, _), (second, _) = begin(way, target), begin(way, target)
    first.reset()
    way.origin.release(target)
    with second:
        assert second.read(199000) == pattern(199000, 1000)
    wait_for(lambda: way.fetch(target).cache == "hit", what="the stored object")
    assert way.origin.count(target) == 1


def test_a_fill_that_is_cut_short_is_cut_short_for_all(way):
    target = way.unique("/stall-body/100000")
    fetchers = [Fetcher(way, target) for _ in range(3)]
    assert all(not one.result().complete for one in fetchers)
    assert way.fetch(target).cache != "hit"


def test_what_may_not_be_stored_is_shared_with_nobody(way):
    target = way.unique("/held/20000?h=Cache-Control:private")
    fetchers = [Fetcher(way, target) for _ in range(3)]
    wait_for(lambda: way.origin.count(target) == 3, what="three requests at the origin")
    way.origin.release(target)
    assert all(one.result().body == pattern(20000) for one in fetchers)


# Purge

@pytest.mark.parametrize("what", ["url", "prefix", "host", "mask", "all"])
def test_purge(way, what):
    target = way.unique("/static/70")
    assert twice(way, target)[0].cache == "hit"
    words = {"url": [f"http://{way.host}{target}"], "host": ["--host", way.host],
        "prefix": ["--prefix", f"http://{way.host}/static/"], "mask": ["--mask", "*" + target], "all": ["--all"]}[what]
    way.daemon.command("purge", *words)
    assert way.fetch(target).cache != "hit"
    assert way.fetch(target).cache == "hit"


def test_the_byte_budget_holds(way4):
    """More than cache_mem goes through; memory stays near the budget and fresh objects are still stored."""
    before = way4.daemon.rss_bytes()
    for number in range(60):
        assert way4.fetch(way4.unique(f"/static/{1_000_000 + number}")).complete
    stats = way4.daemon.stats()
    assert stats["cache_bytes"] <= stats["cache_limit_bytes"] == 32 << 20 and stats["cache_evictions"] > 0
    assert way4.daemon.rss_bytes() - before < 64 << 20
    assert twice(way4, way4.unique("/static/1000"))[0].cache == "hit"


def test_hosts_differ_only_in_spelling(way4):
    origin = way4.new_origin()
    for host in ("spell.example", "SPELL.example:80", "spell.example."):
        way4.fetch("/static/50", to=origin, host=host)
    assert len(origin.requests) == 1
