"""Cases that weir does not pass, each with the reason why that is right. docs/standards.md says the same to people."""

EXCEPTIONS = {
    "method-head-then-head": "of a HEAD response nothing but a head could be kept; its URL is mostly fetched next [RFC 9110 §9.3.2]",
    "syntax-bare-lf": "a lone LF may end a line [RFC 9112 §2.2]; two parties that differ in it read two messages: refused",
}
