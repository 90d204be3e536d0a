"""Cases that weir does not pass, each with the reason why that is right. docs/standards.md says the same to people."""

EXCEPTIONS = {
    "syntax-bare-lf": "a lone LF may end a line [RFC 9112 §2.2]; two parties that differ in it read two messages: refused",
}
