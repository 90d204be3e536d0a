"""Cache-Status [RFC 9211], of servers that send it."""
import dataclasses
import re

from case import *  # noqa: F403

HOUR = "Cache-Control: max-age=3600"
TAG = 'ETag: "a"'


def own(*wanted, without=()):
    """The last member of Cache-Status, the server's own, has these parameters (as they are written) and not those."""
    def find(seen):
        member = ", ".join(seen.lines("Cache-Status")).rpartition(",")[2]
        have = [one.strip() for one in member.split(";")[1:]]
        names = [one.partition("=")[0] for one in have]
        good = all(one in have or one in names for one in wanted) and not set(without) & set(names)
        return None if good else f"Cache-Status is {seen.lines('Cache-Status')}, not with {list(wanted)} without {list(without)}"
    return Check(f"Cache-Status: {wanted}", find)


def says(kind, name, section, first, second, *wanted, without=()):
    """Two steps; the second one's own member is looked at."""
    case(kind, f"cache-status-{name}", section, first, dataclasses.replace(second, given=second.given + (has("Cache-Status"),),
        expect=(own(*wanted, without=without),)))


STORE = step(answer=answer(HOUR, TAG))
OLD = step(answer=answer("Cache-Control: max-age=1", "Age: 10", TAG))
must("cache-status-miss", "9211 §2.2", step(answer=answer(HOUR), given=has("Cache-Status"), expect=own("fwd", without=("hit",))))
should("cache-status-uri-miss", "9211 §2.2", step(answer=answer(HOUR), given=has("Cache-Status"), expect=own("fwd=uri-miss")))
should("cache-status-stored", "9211 §2.5", step(answer=answer(HOUR), given=has("Cache-Status"), expect=own("stored")))
must("cache-status-not-stored", "9211 §2.5",
    step(answer=answer("Cache-Control: no-store"), given=has("Cache-Status"), expect=own("fwd", without=("stored",))))
says(MUST, "hit", "9211 §2.1", STORE, step(given=STORED), "hit", without=("fwd", "stored", "collapsed"))
says(SHOULD, "hit-ttl", "9211 §2.4", STORE, step(given=STORED), "ttl")
should("cache-status-ttl-is-what-is-left", "9211 §2.4", step(answer=answer("Cache-Control: max-age=3600", "Age: 1000")),
    step(given=(STORED, has("Cache-Status")), expect=Check("ttl about 2600", lambda seen:
        None if (found := re.search(r"ttl=(-?\d+)", ", ".join(seen.lines("Cache-Status")))) and 2590 <= int(found[1]) <= 2600
        else f"Cache-Status is {seen.lines('Cache-Status')}")))
says(SHOULD, "stale", "9211 §2.2", OLD, step(answer=answer(HOUR)), "fwd=stale", without=("hit",))
says(SHOULD, "confirmed", "9211 §2.3", OLD, step(answer=answer(HOUR, on_condition=answer(HOUR, TAG, status=304)), given=CONDITIONAL),
    "fwd=stale", "fwd-status=304", without=("hit",))
says(SHOULD, "request", "9211 §2.2", STORE, step("Cache-Control: no-cache", answer=answer(HOUR), given=ASKED), "fwd=request")
says(SHOULD, "vary-miss", "9211 §2.2", step("Foo: 1", answer=answer(HOUR, "Vary: Foo")), step("Foo: 2", answer=answer(HOUR), given=ASKED),
    "fwd=vary-miss")
says(SHOULD, "method", "9211 §2.2", STORE, step(method="POST", body=b"x"), "fwd=method")
says(MUST, "not-collapsed", "9211 §2.6", STORE, step("Foo: 1", path="/b", given=ASKED, answer=answer(HOUR)), "fwd",
    without=("collapsed",))
must("cache-status-keeps-earlier", "9211 §2", step(answer=answer(HOUR, "Cache-Status: up; fwd=uri-miss", "Cache-Status: mid; hit")),
    step(given=(STORED, has("Cache-Status"), Check("one of its own", lambda seen: None if len(", ".join(
        seen.lines("Cache-Status")).split(",")) > 2 else "none of its own")), expect=Check("earlier members first", lambda seen:
        None if re.match(r"up;\s*fwd=uri-miss,\s*mid;\s*hit,", ", ".join(seen.lines("Cache-Status"))) else
        f"Cache-Status is {seen.lines('Cache-Status')}")))
