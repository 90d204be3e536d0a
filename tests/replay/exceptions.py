"""Where weir knowingly does less than the model would: each with its reason. Nothing that is wrong is ever listed here."""
from collections import namedtuple

import model

# `names`: beginnings of the misses it explains. `applies(stored, seen)`: of which stored response, at which request.
Exception_ = namedtuple("Exception_", "title names applies reason")


def has_cookie_without_a_word(stored, _):
    response = stored.response
    return response.has("Set-Cookie") and not model.directive(response, "public") and not any(
        argument is not None and model.parse_delta(argument) is not None
        for name in ("s-maxage", "max-age") for argument in model.directive(response, name)[:1])


def is_over_on_arrival(stored, _):
    windows = [model.parse_delta(argument) for name in ("stale-while-revalidate", "stale-if-error")
        for argument in model.directive(stored.response, name)[:1]]
    is_over = stored.lifetime.wanted <= 0 or model.directive(stored.response, "no-cache")
    return bool(is_over) and not any(stored.validators()) and not any(windows)


def is_trouble(stored, _):
    return stored.response.status >= 500 or stored.response.status in (408, 421, 425, 429)


def is_judged_by_the_origin(stored, _):
    return stored.request.has("If-Match") or stored.request.has("If-Unmodified-Since")


def is_of_patch(stored, _):
    return stored.by == "PATCH"


def is_stale_of_post(stored, _):
    return stored.by == "POST" and stored.lifetime.wanted == 0


EXCEPTIONS = [
    Exception_("patch", ["not-", "reused-older", "asked-though-usable"], is_of_patch,
        "RFC 5789 §2 lets the answer to a PATCH be stored as RFC 9110 §9.3.3 does with POST; nobody is known to rely on it."),
    Exception_("stale answer to POST", ["not-", "reused-older"], is_stale_of_post,
        "The answer to a POST is kept for GET when it is fresh alone: RFC 9110 §9.3.3 asks for explicit freshness."),
    Exception_("only-if-cached in the window", ["not-reused-stale-while-revalidate"],
        lambda stored, seen: bool(model.directive(seen.request, "only-if-cached")),
        "RFC 5861 §3 has a stale response served while it is refreshed, and only-if-cached asks for no contact: 504, as "
        "RFC 9111 §5.2.1.7 leaves open."),
    Exception_("one for each", ["not-shared-after-one-for-each"], lambda stored, seen: True,
        "When the last answer of a URL was of no use to others, those who ask at the same time do not queue for each other: "
        "they would most likely wait in vain."),
    Exception_("trouble", ["not-", "reused-older", "asked-though-usable"], is_trouble,
        "An answer that tells of the origin's trouble does not take the place of a stored good one, whatever lifetime it "
        "carries: RFC 9111 §4.3.3 leaves it to the cache."),
    Exception_("for the origin", ["not-", "reused-older", "asked-though-usable"], is_judged_by_the_origin,
        "If-Match and If-Unmodified-Since are the origin's to judge [RFC 9111 §4.3.2]: such a request passes the store by, "
        "and so does its answer."),
    Exception_("cookie", ["not-", "reused-older"], has_cookie_without_a_word,
        "A response that sets a cookie and says neither public nor s-maxage nor max-age is most likely made for one user; "
        "RFC 9111 §7.3 leaves it to the cache."),
    Exception_("over on arrival", ["not-reused-max-stale", "not-stood-in", "reused-older"], is_over_on_arrival,
        "What has no lifetime at all, or must be confirmed before every use, and has no validator could serve max-stale and "
        "outages alone, or nothing; the memory goes to what can be used."),
]


def exception_for(finding):
    if finding.kind != "miss" or not finding.stored:
        return None
    for one in EXCEPTIONS:
        if any(finding.name.startswith(name) for name in one.names) and one.applies(finding.stored, finding.seen):
            return one
    return None
