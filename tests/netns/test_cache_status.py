"""Cache-Status [RFC 9211] and the log's words, held against what really happened: what the origin was asked."""
import json
import re

import pytest

from lab import Lab, wait_for
from origin import pattern
from way import DEFAULT_CONFIG, Way

CONFIG = "no_cache */never/*\nblock */blocked/*\n"
PARAMETERS = {"hit", "fwd", "fwd-status", "stored", "collapsed", "ttl", "key", "detail"}
FORWARD = {"bypass", "method", "uri-miss", "vary-miss", "miss", "request", "stale", "partial"}


class Member:
    """Our member, parsed strictly [RFC 8941 §4.2]: one token, parameters without repeats."""

    def __init__(self, text):
        self.text = text
        assert re.fullmatch(r'weir(; [a-z-]+(=(-?\d{1,15}|"[ !#-\[\]-~]*"|[A-Za-z*][!#$%&\'*+.^_`|~:/\w-]*))?)+', text), text
        pairs = [word.partition("=") for word in text.split("; ")[1:]]
        self.all = {name: value if sign else True for name, sign, value in pairs}
        assert len(self.all) == len(pairs) and set(self.all) <= PARAMETERS
        assert ("hit" in self.all) != ("fwd" in self.all), "the two exclude one another [§2.2]"
        assert self.all.get("fwd", "miss") in FORWARD
        assert not {"fwd-status", "stored", "collapsed"} & set(self.all) or "fwd" in self.all

    def __getitem__(self, name):
        value = self.all.get(name)
        return int(value) if name in ("ttl", "fwd-status") and value is not None else value


def member(answer):
    return Member(answer.all("Cache-Status")[-1])


def lines_of(way, target):
    return [entry for entry in way.daemon.entries() if entry["url"].endswith(target)]


def ask(way, target, method="GET", **options):
    """Fetches, and waits for the request's log line (`answer.line`): workers write theirs in no order."""
    before = len(lines_of(way, target))
    answer = way.fetch(target, method, **options)
    answer.line = wait_for(lambda: len(lines := lines_of(way, target)) > before and lines, what="the log line")[before]
    return answer


def test_a_miss_and_a_hit(way):
    target = way.unique("/static/100")
    answers = [ask(way, target) for _ in range(2)]
    miss, hit = map(member, answers)
    assert (miss["fwd"], miss["fwd-status"], miss["stored"], miss["collapsed"]) == ("uri-miss", 200, True, None)
    assert 3590 <= miss["ttl"] <= 3600 and 3590 <= hit["ttl"] <= 3600
    assert way.origin.count(target) == 1 and "detail" not in hit.all
    assert way.host in hit["key"] and hit["key"].endswith(':80"')
    assert [answer.line["result"] for answer in answers] == ["MISS", "HIT"]
    assert [answer.line["lookup"] for answer in answers] == ["absent", "fresh"]


@pytest.mark.parametrize("field, detail", [("Cache-Control:no-store", "no-store"),
    ("Cache-Control:private", "private"), ("Vary:*", "vary-any")])
def test_what_is_not_stored(way4, field, detail):
    target = way4.unique(f"/static/100?h={field}")
    answer = ask(way4, target)
    said = member(answer)
    assert (said["fwd"], said["stored"], said["ttl"], said["detail"]) == ("uri-miss", None, None, detail)
    again = member(ask(way4, target))
    assert again["fwd"] and not again["stored"] and way4.origin.count(target) == 2
    assert answer.line["reason"] == detail


def test_another_variant(way4):
    target = way4.unique("/static/100?h=Vary:Accept-Language")
    for language, wanted in (("cs", "uri-miss"), ("en", "vary-miss"), ("cs", None), ("en", None)):
        said = member(ask(way4, target, fields={"Accept-Language": language}))
        assert said["fwd"] == wanted and (wanted is None) == bool(said["hit"])
    assert way4.origin.count(target) == 2


@pytest.mark.parametrize("path, status, stored, result", [("/static/100", 304, None, "REVALIDATED"),
    ("/chunked/100", 200, True, "MISS")])
def test_stale(way, path, status, stored, result):
    target = way.unique(f"{path}?h=Cache-Control:max-age=0")
    ask(way, target)
    answer = ask(way, target)
    said = member(answer)
    assert (answer.status, answer.body) == (200, pattern(100))
    assert (said["fwd"], said["fwd-status"], said["stored"], said["hit"]) == ("stale", status, stored, None)
    assert way.origin.count(target) == 2 and way.origin.seen(target)[1].get("If-None-Match") == '"s-100"'
    assert (answer.line["result"], answer.line["lookup"]) == (result, "expired")


@pytest.mark.parametrize("field, detail", [("no-cache", "request-no-cache"), ("max-age=0", "request-max-age"),
    ("min-fresh=9999", "request-min-fresh")])
def test_the_request_insists(way4, field, detail):
    target = way4.unique("/static/100")
    ask(way4, target)
    if field == "max-age=0":
        wait_for(lambda: int(ask(way4, target).get("Age")) >= 1, what="an age")
    before = way4.origin.count(target)
    said = member(ask(way4, target, fields={"Cache-Control": field}))
    assert (said["fwd"], said["fwd-status"], said["detail"]) == ("request", 304, detail)
    assert way4.origin.count(target) == before + 1


def test_max_stale(way4):
    target = way4.unique("/static/100?h=Cache-Control:max-age=0")
    ask(way4, target)
    answer = ask(way4, target, fields={"Cache-Control": "max-stale=100"})
    said = member(answer)
    assert said["hit"] and said["ttl"] <= 0 and said["detail"] == "max-stale" and way4.origin.count(target) == 1
    line = answer.line
    assert (line["result"], line["reason"], line["upstream"]) == ("STALE", "max-stale", False)
    assert way4.daemon.stats()["stale"] >= 1


def test_stale_while_it_is_refreshed(way):
    target = way.unique("/static/100?h=Cache-Control:max-age=0,stale-while-revalidate=100")
    ask(way, target)
    answer = ask(way, target)
    said = member(answer)
    assert said["hit"] and said["ttl"] <= 0 and said["detail"] == "stale-while-revalidate"
    wait_for(lambda: way.origin.count(target) == 2, what="the refresh")
    assert way.origin.seen(target)[1].get("If-None-Match") == '"s-100"'
    line = answer.line
    assert (line["result"], line["reason"]) == ("STALE", "stale-while-revalidate")


class Failing:
    """An origin that answers once, and has trouble from then on: a status, or no answer at all."""

    def __init__(self, status, control):
        self.status, self.control, self.requests = status, control, []

    def __call__(self, peer, _):
        while (request := peer.read_request()) and request.start:
            self.requests.append(request)
            if len(self.requests) == 1:
                peer.respond("200 OK", {"Content-Length": 5, "Cache-Control": self.control, "ETag": '"f"'}, b"first")
            elif self.status:
                peer.respond(f"{self.status} Trouble", {"Content-Length": 7}, b"trouble")
            else:
                return peer.reset()


@pytest.mark.parametrize("status, control, detail", [(503, "max-age=0, stale-if-error=100", "stale-if-error"),
    (500, "max-age=0, stale-if-error=100", "stale-if-error"), (None, "max-age=0", "disconnected")])
def test_stale_since_the_origin_failed(way4, status, control, detail):
    handler = Failing(status, control)
    origin, target = way4.serve(handler), way4.unique("/x")
    assert ask(way4, target, to=origin).body == b"first"
    answer = ask(way4, target, to=origin)
    said = member(answer)
    assert (answer.status, answer.body) == (200, b"first")
    assert (said["fwd"], said["fwd-status"], said["stored"], said["detail"]) == ("stale", status, None, detail)
    assert said["ttl"] <= 0 and handler.requests[1].get("If-None-Match") == '"f"'
    line = answer.line
    assert (line["result"], line["lookup"], line["reason"]) == ("STALE", "expired", detail)


@pytest.mark.parametrize("status, control", [(503, "max-age=0"), (503, "max-age=0, must-revalidate, stale-if-error=9"),
    (None, "max-age=0, must-revalidate")])
def test_the_failure_where_stale_is_not_allowed(way4, status, control):
    handler = Failing(status, control)
    origin, target = way4.serve(handler), way4.unique("/x")
    ask(way4, target, to=origin)
    answer = ask(way4, target, to=origin)
    assert answer.status in ((status,) if status else (502, 504)) and len(handler.requests) >= 2
    line = answer.line
    assert (line["result"], line["lookup"]) == ("PASS" if status else "ERROR", "expired")
    if status:
        said = member(answer)
        assert (said["fwd"], said["fwd-status"], said["stored"]) == ("stale", status, None)
    else:
        assert answer.all("Cache-Status") == []


@pytest.mark.parametrize("path, method, fields, forward, detail", [
    ("/static/100", "POST", {}, "method", None),
    ("/static/never/1", "GET", {}, "bypass", "not-allowed"),
    ("/static/100", "GET", {"Cache-Control": "no-store"}, "bypass", "no-store"),
    ("/static/100", "GET", {"If-Match": '"s-100"'}, "bypass", "for-the-origin")])
def test_past_the_store(way4, path, method, fields, forward, detail):
    target = way4.unique(path)
    answer = ask(way4, target, method, fields=fields)
    said = member(answer)
    assert (said["fwd"], said["detail"], said["stored"], said["key"]) == (forward, detail, None, None)
    assert way4.origin.count(target) == 1
    assert answer.line["result"] == "PASS"


def test_an_answer_to_post_that_may_be_stored(way4):
    target = way4.unique("/posted")
    origin = way4.serve(posted)
    answer = ask(way4, target, "POST", body=b"x", to=origin)
    said = member(answer)
    assert (said["fwd"], said["fwd-status"], said["stored"]) == ("method", 200, True) and said["ttl"] > 90
    assert answer.line["result"] == "MISS"
    again = ask(way4, target, to=origin)
    assert member(again)["hit"] and again.body == b"made" and again.line["result"] == "HIT"


def posted(peer, _):
    while (request := peer.read_request()) and request.start:
        where = f"http://{request.get('Host')}{request.target}"
        peer.respond("200 OK", {"Content-Length": 4, "Cache-Control": "max-age=100", "Content-Location": where}, b"made")


def test_a_fresh_response_whose_confirmation_is_not_to_be_had(way4):
    handler = Failing(None, "max-age=1000")
    origin, target = way4.serve(handler), way4.unique("/x")
    way4.fetch(target, to=origin)
    wait_for(lambda: int(way4.fetch(target, to=origin).get("Age")) >= 1, what="an age")
    answer = ask(way4, target, to=origin, fields={"Cache-Control": "max-age=0"})
    said = member(answer)
    assert (answer.body, said["fwd"], said["detail"]) == (b"first", "request", "request-max-age") and said["ttl"] > 900
    assert answer.line["result"] == "HIT" and len(handler.requests) >= 2


def test_collapsed(way):
    target, before = way.unique("/late/1000"), way.daemon.stats()["client_bytes_in"]
    crowd = [way.connect() for _ in range(4)]
    for client in crowd:
        client.request("GET", target, {"Host": way.host})
    wait_for(lambda: way.daemon.stats()["client_bytes_in"] >= before + 4 * len(target) and way.origin.count(target),
        what="four requests read and one sent")
    way.fetch(way.unique("/static/1"))
    way.origin.release(target)
    answers = [client.read_response() for client in crowd]
    for client in crowd:
        client.close()
    said = [member(answer) for answer in answers]
    assert way.origin.count(target) == 1 and all(answer.body == pattern(1000) for answer in answers)
    assert sum(bool(one["stored"]) for one in said) == 1
    waited = [one for one in said if not one["stored"]]
    assert all(one["hit"] or (one["collapsed"] and one["fwd-status"] is None) for one in waited)
    assert any(one["collapsed"] for one in waited)


@pytest.mark.parametrize("fields, status", [({"If-None-Match": '"s-100"'}, 304), ({"Range": "bytes=0-9"}, 206),
    ({"Range": "bytes=100-"}, 416)])
def test_what_is_made_of_a_stored_response_is_a_hit(way4, fields, status):
    target = way4.unique("/static/100")
    ask(way4, target)
    answer = ask(way4, target, fields=fields)
    assert answer.status == status and member(answer)["hit"] and way4.origin.count(target) == 1
    assert answer.line["result"] == "HIT"


def test_ours_comes_after_what_the_origin_said(way4):
    target = way4.unique("/static/100?h=Cache-Status:Other;%20hit,%20%22far%22")
    for _ in range(2):
        lines = ask(way4, target).all("Cache-Status")
        assert len(lines) == 2 and lines[0] == 'Other; hit, "far"'
        assert Member(lines[1])
    assert way4.origin.count(target) == 1


def test_our_own_pages_carry_none(way4):
    blocked = ask(way4, "/blocked/1")
    absent = ask(way4, way4.unique("/static/100"), fields={"Cache-Control": "only-if-cached"})
    unreachable = ask(way4, way4.unique("/reset"))
    assert [answer.status for answer in (blocked, absent, unreachable)] == [403, 504, 502]
    assert all(answer.all("Cache-Status") == [] for answer in (blocked, absent, unreachable))


@pytest.mark.parametrize("setting, seen", [("", (False, True)), ("cache_status auto", (False, True)),
    ("cache_status on", (True, True)), ("cache_status off", (False, False))])
def test_the_setting(setting, seen):
    """On an intercepted connection, and to a client of a forward port."""
    rest = DEFAULT_CONFIG.replace("cache_status on\n", "")
    with Lab() as lab:
        way = Way(lab, lab.weir(f"listen 3129 redirect\nlisten 3128 forward\n{rest}{setting}\n"), 4)
        target, told = way.unique("/static/100"), []
        told.append(ask(way, target))
        with way.lab.connect(way.gateway_address, 3128) as client:
            client.request("GET", f"http://{way.host}{target}", {"Host": way.host})
            told.append(client.read_response())
        assert tuple("Cache-Status" in dict(answer.fields) for answer in told) == seen
        assert wait_for(lambda: sorted(line["result"] for line in lines_of(way, target)) == ["HIT", "MISS"],
            what="a MISS and a HIT in the log")


def test_offline_and_squids_words():
    """Nothing goes out, what is stored is given with its true age; and Squid's words for all that came before."""
    with Lab() as lab:
        squid = lab.directory / "squid.log"
        config = f"listen 3129 redirect\n{DEFAULT_CONFIG}access_log {squid} squid\n"
        way = Way(lab, lab.weir(config), 4)
        fresh, stale = way.unique("/static/100"), way.unique("/static/100?h=Cache-Control:max-age=0")
        way.fetch(fresh)
        way.fetch(stale)
        way.fetch(stale)
        way.fetch(fresh, fields={"If-None-Match": '"s-100"'})
        way.fetch(fresh, fields={"Cache-Control": "no-cache"})
        asked = len(way.origin.requests)
        way.daemon.reload(f"{config}offline on\n")
        for target, detail, result in ((fresh, None, "HIT"), (stale, "offline", "STALE")):
            answer = way.fetch(target)
            said = member(answer)
            assert (answer.status, answer.body) == (200, pattern(100))
            assert said["hit"] and said["detail"] == detail and int(answer.get("Age")) >= 0
            assert (said["ttl"] <= 0) == (result == "STALE") and not answer.all("Warning")
        absent = way.fetch(way.unique("/static/100"))
        assert absent.status == 504 and not absent.all("Cache-Status")
        assert len(way.origin.requests) == asked
        told = json.loads(way.daemon.command("explain", f"http://{way.host}/nowhere", "--json").stdout)
        place = told["destinations"][0]
        assert (place["reason"], place["unavailable"], place["sent"]) == ("offline", True, [])
        lines = wait_for(lambda: len(found := squid.read_text().splitlines()) == 8 and found, what="eight lines")
        words = sorted(re.search(r" (\w+/\d{3}) ", line).group(1) for line in lines)
        assert words == sorted(["TCP_MISS/200", "TCP_MISS/200", "TCP_REFRESH_UNMODIFIED/200", "TCP_IMS_HIT/304",
            "TCP_REFRESH_UNMODIFIED/200", "TCP_MEM_HIT/200", "TCP_OFFLINE_HIT/200", "TCP_MISS/504"])
