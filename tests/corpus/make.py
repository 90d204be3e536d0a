#!/usr/bin/python3
"""Writes the framing corpus: requests/*.req, responses/*.resp and a table for each. Run it after a change here.

A line of requests.tbl is FILE EXPECTED. EXPECTED is the status of the refusal, after which the connection is
closed, or `ok`: exactly one unambiguous message reaches the origin. Each file is one message, with its whole body
where it has one. In responses.tbl it is `502`, `cut` (the head may have gone out: the client must see a truncated
response; 502 is as good), or `ok`. The origin closes after the last byte. Files named head-* answer a HEAD request,
all others a GET.
"""
import pathlib

HERE = pathlib.Path(__file__).parent
HOST = b"Host: example.test\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: example.test\r\n\r\n"
CL, TE, LAST = b"Content-Length: ", b"Transfer-Encoding: ", b"0\r\n\r\n"
HELLO = b"5\r\nhello\r\n"


def get(fields=b"", line=b"GET /path HTTP/1.1"):
    return line + b"\r\n" + HOST + fields + b"\r\n"


def post(fields, body=b"", line=b"POST /path HTTP/1.1"):
    return line + b"\r\n" + HOST + fields + b"\r\n" + body


def chunked(body):
    return post(TE + b"chunked\r\n", body)


def no_host(fields, line=b"GET /path HTTP/1.1"):
    return line + b"\r\n" + fields + b"\r\n"


REQUESTS = {
    # lengths
    "length-good": ("ok", post(CL + b"5\r\n", b"hello")),
    "length-zero": ("ok", post(CL + b"0\r\n")),
    "length-leading-zeros": ("ok", post(CL + b"0005\r\n", b"hello")),
    "length-same-twice": ("ok", post(CL + b"5\r\n" + CL + b"5\r\n", b"hello")),
    "length-list-same": ("ok", post(CL + b"5, 5\r\n", b"hello")),
    "length-on-get": ("ok", get(CL + b"5\r\n") + b"hello"),
    "length-two-differ": ("400", post(CL + b"5\r\n" + CL + b"50\r\n", b"hello" + SMUGGLED)),
    "length-zero-then-more": ("400", post(CL + b"0\r\n" + CL + b"46\r\n", SMUGGLED)),
    "length-list-differ": ("400", post(CL + b"5, 6\r\n", b"hello!")),
    "length-list-empty-member": ("400", post(CL + b"5,\r\n", b"hello")),
    "length-empty": ("400", post(CL + b"\r\n")),
    "length-plus": ("400", post(CL + b"+5\r\n", b"hello")),
    "length-minus": ("400", post(CL + b"-5\r\n", b"hello")),
    "length-inner-blank": ("400", post(CL + b"1 0\r\n", b"hello")),
    "length-hexadecimal": ("400", post(CL + b"0x5\r\n", b"hello")),
    "length-fraction": ("400", post(CL + b"5.0\r\n", b"hello")),
    "length-exponent": ("400", post(CL + b"5e0\r\n", b"hello")),
    "length-quoted": ("400", post(CL + b'"5"\r\n', b"hello")),
    "length-parameter": ("400", post(CL + b"5;a\r\n", b"hello")),
    "length-overflow-64": ("400", post(CL + b"18446744073709551621\r\n", b"hello")),
    "length-overflow-63": ("400", post(CL + b"9223372036854775808\r\n", b"hello")),
    "length-huge": ("400", post(CL + b"9" * 400 + b"\r\n", b"hello")),
    "length-vertical-tab": ("400", post(b"Content-Length:\x0b5\r\n", b"hello")),
    "length-blank-before-colon": ("400", post(b"Content-Length : 5\r\n", b"hello")),
    "length-folded": ("400", post(b"Content-Length:\r\n 5\r\n", b"hello")),
    "length-nominated": ("ok", post(b"Connection: Content-Length\r\n" + CL + b"46\r\n", SMUGGLED)),
    "host-nominated": ("ok", get(b"Connection: Host, Cache-Control, close\r\n")),
    "nominations-too-many": ("400", get(b"Connection: " + b"a," * 40 + b"close\r\n")),
    # codings
    "chunked-good": ("ok", chunked(HELLO + LAST)),
    "chunked-case": ("ok", post(TE + b"ChUnKeD\r\n", HELLO + LAST)),
    "chunked-trailing-blank": ("ok", post(TE + b"\t chunked \t\r\n", HELLO + LAST)),
    "chunked-and-length": ("400", post(TE + b"chunked\r\n" + CL + b"5\r\n", LAST + SMUGGLED)),
    "length-and-chunked": ("400", post(CL + b"51\r\n" + TE + b"chunked\r\n", LAST + SMUGGLED)),
    "length-and-chunked-nominated": (
        "400", post(CL + b"51\r\n" + TE + b"chunked\r\nConnection: Transfer-Encoding\r\n", LAST + SMUGGLED)),
    "chunked-http10": ("400", post(TE + b"chunked\r\n", HELLO + LAST, b"POST /path HTTP/1.0")),
    "chunked-twice": ("400", post(TE + b"chunked, chunked\r\n", HELLO + LAST)),
    "chunked-two-lines": ("400", post(TE + b"chunked\r\n" + TE + b"chunked\r\n", HELLO + LAST)),
    "chunked-identity": ("400", post(TE + b"chunked, identity\r\n", HELLO + LAST)),
    "identity-chunked": ("501", post(TE + b"identity, chunked\r\n", HELLO + LAST)),
    "identity-alone": ("400", post(TE + b"identity\r\n" + CL + b"5\r\n", b"hello")),
    "gzip-chunked": ("501", post(TE + b"gzip, chunked\r\n", HELLO + LAST)),
    "gzip-alone": ("400", post(TE + b"gzip\r\n", b"hello")),
    "coding-xchunked": ("400", post(TE + b"xchunked\r\n", HELLO + LAST)),
    "coding-chunked-x": ("400", post(TE + b"chunked x\r\n", HELLO + LAST)),
    "coding-quoted": ("400", post(TE + b'"chunked"\r\n', HELLO + LAST)),
    "coding-empty": ("400", post(TE + b"\r\n", HELLO + LAST)),
    "coding-empty-member": ("400", post(TE + b"chunked,\r\n", HELLO + LAST)),
    "coding-parameter": ("400", post(TE + b"chunked;a=b\r\n", HELLO + LAST)),
    "coding-vertical-tab": ("400", post(TE + b"\x0bchunked\r\n", HELLO + LAST)),
    "coding-form-feed": ("400", post(TE + b"chunked\x0c\r\n", HELLO + LAST)),
    "coding-nul": ("400", post(TE + b"chunked\0\r\n", HELLO + LAST)),
    "coding-folded": ("400", post(b"Transfer-Encoding:\r\n chunked\r\n", HELLO + LAST)),
    "coding-blank-before-colon": ("400", post(b"Transfer-Encoding : chunked\r\n" + CL + b"5\r\n", b"hello")),
    "coding-underscore": ("ok", post(b"Transfer_Encoding: chunked\r\n" + CL + b"5\r\n", b"hello")),
    # chunks
    "chunk-many": ("ok", chunked(b"1\r\na\r\n" * 50 + b"000a\r\n0123456789\r\n00000\r\n\r\n")),
    "chunk-extension": ("ok", chunked(b'5;a=b ; c = "d;\\"e"\r\nhello\r\n0;f\r\n\r\n')),
    "chunk-trailers": ("ok", chunked(HELLO + b"0\r\nX-Sum: 1\r\n\r\n")),
    "chunk-trailers-framing": (
        "ok", chunked(HELLO + b"0\r\nContent-Length: 500\r\nTransfer-Encoding: gzip\r\nHost: other.test\r\n\r\n")),
    "chunk-size-plus": ("400", chunked(b"+5\r\nhello\r\n" + LAST)),
    "chunk-size-minus": ("400", chunked(b"-5\r\nhello\r\n" + LAST)),
    "chunk-size-prefix": ("400", chunked(b"0x5\r\nhello\r\n" + LAST)),
    "chunk-size-leading-blank": ("400", chunked(b" 5\r\nhello\r\n" + LAST)),
    "chunk-size-trailing-blank": ("400", chunked(b"5 \r\nhello\r\n" + LAST)),
    "chunk-size-empty": ("400", chunked(b"\r\nhello\r\n" + LAST)),
    "chunk-size-underscore": ("400", chunked(b"0_5\r\nhello\r\n" + LAST)),
    "chunk-size-overflow": ("400", chunked(b"10000000000000005\r\nhello\r\n" + LAST)),
    "chunk-size-sign-bit": ("400", chunked(b"ffffffffffffffff\r\nhello\r\n" + LAST)),
    "chunk-size-sum": ("400", chunked(HELLO + b"7fffffffffffffff\r\nhello\r\n" + LAST)),
    "chunk-size-long-line": ("400", chunked(b"0" * 2000 + b"5\r\nhello\r\n" + LAST)),
    "chunk-overrun": ("400", chunked(b"4\r\nhello\r\n" + LAST)),
    "chunk-underrun": ("400", chunked(b"7\r\nhello\r\n" + LAST + SMUGGLED)),
    "chunk-no-crlf": ("400", chunked(b"5\r\nhello" + LAST)),
    "chunk-ends-lf": ("400", chunked(b"5\r\nhello\n" + LAST)),
    "chunk-line-bare-lf": ("400", chunked(b"5\nhello\r\n" + LAST)),
    "chunk-line-bare-cr": ("400", chunked(b"5\rhello\r\n" + LAST)),
    "chunk-extension-bare-lf": ("400", chunked(b"5;\nhello\r\n" + LAST + SMUGGLED)),
    "chunk-extension-no-name": ("400", chunked(b"5;=a\r\nhello\r\n" + LAST)),
    "chunk-extension-open-quote": ("400", chunked(b'5;a="b\r\nhello\r\n' + LAST)),
    "chunk-extension-nul": ("400", chunked(b"5;a\0\r\nhello\r\n" + LAST)),
    "chunk-extension-long": ("400", chunked(b"5;" + b"a" * 3000 + b"\r\nhello\r\n" + LAST)),
    "chunk-last-bare-lf": ("400", chunked(HELLO + b"0\r\n\n")),
    "chunk-trailer-bare-lf": ("400", chunked(HELLO + b"0\r\nX: a\n\r\n")),
    "chunk-trailer-folded": ("400", chunked(HELLO + b"0\r\nX: a\r\n b\r\n\r\n")),
    "chunk-trailer-no-colon": ("400", chunked(HELLO + b"0\r\n" + SMUGGLED)),
    "chunk-trailers-long": ("400", chunked(HELLO + b"0\r\n" + b"X: 0123456789\r\n" * 700 + b"\r\n")),
    # request lines
    "line-leading-crlf": ("ok", b"\r\n\r\n" + get()),
    "line-leading-crlf-three": ("400", b"\r\n\r\n\r\n" + get()),
    "line-leading-lf": ("400", b"\n" + get()),
    "line-leading-blank": ("400", b" " + get()),
    "line-method-lower": ("ok", get(line=b"get /path HTTP/1.1")),
    "line-method-unknown": ("ok", get(line=b"BREW /path HTTP/1.1")),
    "line-method-bad": ("400", get(line=b"GE(T /path HTTP/1.1")),
    "line-method-long": ("501", get(line=b"A" * 33 + b" /path HTTP/1.1")),
    "line-two-blanks": ("400", get(line=b"GET  /path HTTP/1.1")),
    "line-tab": ("400", get(line=b"GET\t/path\tHTTP/1.1")),
    "line-trailing-blank": ("400", get(line=b"GET /path HTTP/1.1 ")),
    "line-blank-in-target": ("400", get(line=b"GET /pa th HTTP/1.1")),
    "line-no-version": ("400", b"GET /path\r\n"),
    "line-version-20": ("505", get(line=b"GET /path HTTP/2.0")),
    "line-version-09": ("505", get(line=b"GET /path HTTP/0.9")),
    "line-version-12": ("ok", get(line=b"GET /path HTTP/1.2")),
    "line-version-lower": ("400", get(line=b"GET /path http/1.1")),
    "line-version-short": ("400", get(line=b"GET /path HTTP/1")),
    "line-version-long": ("400", get(line=b"GET /path HTTP/1.10")),
    "line-version-plus": ("400", get(line=b"GET /path HTTP/+1.1")),
    "line-bare-lf": ("400", b"GET /path HTTP/1.1\n" + HOST + b"\r\n"),
    "line-bare-cr": ("400", b"GET /path HTTP/1.1\r" + HOST + b"\r\n"),
    "line-nul": ("400", get(line=b"GET /pa\0th HTTP/1.1")),
    "line-target-long": ("414", get(line=b"GET /" + b"a" * 17000 + b" HTTP/1.1")),
    "line-target-utf8": ("ok", get(line="GET /ä HTTP/1.1".encode())),
    "http10-no-host": ("ok", no_host(b"", b"GET /path HTTP/1.0")),
    # fields
    "field-obs-text": ("ok", get(b"X-Name: M\xfcller \xc3\xa9\r\n")),
    "field-tab": ("ok", get(b"X-Name:\ta\tb\t\r\n")),
    "field-empty-value": ("ok", get(b"X-Name:\r\n")),
    "field-folded": ("400", get(b"X-Name: a\r\n b\r\n")),
    "field-folded-first": ("400", b"GET /path HTTP/1.1\r\n " + HOST + b"\r\n"),
    "field-blank-before-colon": ("400", get(b"X-Name : a\r\n")),
    "field-blank-in-name": ("400", get(b"X Name: a\r\n")),
    "field-no-colon": ("400", get(b"X-Name\r\n")),
    "field-no-name": ("400", get(b": a\r\n")),
    "field-nul": ("400", get(b"X-Name: a\0b\r\n")),
    "field-control": ("400", get(b"X-Name: a\x01b\r\n")),
    "field-delete": ("400", get(b"X-Name: a\x7fb\r\n")),
    "field-bare-cr": ("400", get(b"X-Name: a\rContent-Length: 46\r\n") + SMUGGLED),
    "field-bare-lf": ("400", get(b"X-Name: a\nContent-Length: 46\r\n") + SMUGGLED),
    "field-two-cr": ("400", get(b"X-Name: a\r\r\n")),
    "field-end-bare-lf": ("400", b"GET /path HTTP/1.1\r\n" + HOST + b"\n"),
    "field-too-many": ("431", get(b"A: b\r\n" * 200)),
    "field-too-long": ("431", get(b"X-Name: " + b"a" * 66000 + b"\r\n")),
    # Host and targets
    "host-none": ("400", no_host(b"Accept: */*\r\n")),
    "host-two": ("400", no_host(HOST + b"Host: other.test\r\n")),
    "host-same-twice": ("400", no_host(HOST + HOST)),
    "host-blank": ("400", no_host(b"Host: example.test other.test\r\n")),
    "host-list": ("400", no_host(b"Host: example.test, other.test\r\n")),
    "host-userinfo": ("400", no_host(b"Host: other.test@example.test\r\n")),
    "host-path": ("400", no_host(b"Host: example.test/other\r\n")),
    "host-percent": ("400", no_host(b"Host: ex%61mple.test\r\n")),
    "host-port-range": ("400", no_host(b"Host: example.test:65617\r\n")),
    "host-port-sign": ("400", no_host(b"Host: example.test:+80\r\n")),
    "host-empty-label": ("400", no_host(b"Host: example..test\r\n")),
    "host-nul": ("400", no_host(b"Host: example.test\0.other.test\r\n")),
    "target-absolute": ("ok", get(line=b"GET http://example.test/path HTTP/1.1")),
    "target-absolute-port": ("ok", get(line=b"GET http://EXAMPLE.test:80/path HTTP/1.1")),
    "target-absolute-differs": ("400", get(line=b"GET http://other.test/path HTTP/1.1")),
    "target-absolute-port-differs": ("400", get(line=b"GET http://example.test:8080/path HTTP/1.1")),
    "target-absolute-userinfo": ("400", get(line=b"GET http://a:b@example.test/path HTTP/1.1")),
    "target-absolute-no-host": ("400", no_host(b"", b"GET http://example.test/path HTTP/1.1")),
    "target-scheme-https": ("501", get(line=b"GET https://example.test/path HTTP/1.1")),
    "target-fragment": ("400", get(line=b"GET /path#there HTTP/1.1")),
    "target-asterisk": ("400", get(line=b"GET * HTTP/1.1")),
    "target-authority": ("400", get(line=b"GET example.test HTTP/1.1")),
    "target-backslash": ("400", get(line=b"GET \\path HTTP/1.1")),
    # expectations
    "expect-continue": ("ok", post(b"Expect: 100-continue\r\n" + CL + b"5\r\n", b"hello")),
    "expect-continue-chunked": ("ok", post(b"Expect: 100-Continue\r\n" + TE + b"chunked\r\n", HELLO + LAST)),
    "expect-continue-no-body": ("ok", get(b"Expect: 100-continue\r\n")),
    "expect-continue-two-lengths": (
        "400", post(b"Expect: 100-continue\r\n" + CL + b"5\r\n" + CL + b"6\r\n", b"hello!")),
}


def response(fields=b"", body=b"", line=b"HTTP/1.1 200 OK"):
    return line + b"\r\n" + fields + b"\r\n" + body


def chunked_response(body):
    return response(TE + b"chunked\r\n", body)


FORGED = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

RESPONSES = {
    "length-good": ("ok", response(CL + b"5\r\n", b"hello")),
    "length-zero": ("ok", response(CL + b"0\r\n")),
    "length-same-twice": ("ok", response(CL + b"5\r\n" + CL + b"5\r\n", b"hello")),
    "length-list-same": ("ok", response(CL + b"5, 5\r\n", b"hello")),
    "length-surplus": ("ok", response(CL + b"5\r\n", b"hello, world")),
    "length-surplus-response": ("ok", response(CL + b"5\r\n", b"hello" + FORGED)),
    "length-short": ("cut", response(CL + b"50\r\n", b"hello")),
    "length-no-body": ("cut", response(CL + b"50\r\n")),
    "length-two-differ": ("502", response(CL + b"5\r\n" + CL + b"6\r\n", b"hello!")),
    "length-list-differ": ("502", response(CL + b"5, 6\r\n", b"hello!")),
    "length-empty": ("502", response(CL + b"\r\n", b"hello")),
    "length-plus": ("502", response(CL + b"+5\r\n", b"hello")),
    "length-minus": ("502", response(CL + b"-1\r\n", b"hello")),
    "length-inner-blank": ("502", response(CL + b"5 0\r\n", b"hello")),
    "length-hexadecimal": ("502", response(CL + b"0x5\r\n", b"hello")),
    "length-overflow": ("502", response(CL + b"18446744073709551621\r\n", b"hello")),
    "length-blank-before-colon": ("502", response(b"Content-Length : 5\r\n", b"hello")),
    "close-good": ("ok", response(b"Connection: close\r\n", b"hello")),
    "close-http10": ("ok", response(b"", b"hello", b"HTTP/1.0 200 OK")),
    "close-empty": ("ok", response(b"Connection: close\r\n")),
    "close-looks-chunked": ("ok", response(b"Connection: close\r\n", HELLO + LAST)),
    "chunked-good": ("ok", chunked_response(HELLO + LAST)),
    "chunked-empty": ("ok", chunked_response(LAST)),
    "chunked-extension": ("ok", chunked_response(b'5;a="b"\r\nhello\r\n' + LAST)),
    "chunked-trailers": ("ok", chunked_response(HELLO + b"0\r\nX-Sum: 1\r\n\r\n")),
    "chunked-trailers-framing": (
        "ok", chunked_response(HELLO + b"0\r\nContent-Length: 3\r\nSet-Cookie: a=b\r\nCache-Control: public\r\n\r\n")),
    "chunked-surplus": ("ok", chunked_response(HELLO + LAST + FORGED)),
    "chunked-and-length": ("502", response(TE + b"chunked\r\n" + CL + b"5\r\n", HELLO + LAST)),
    "length-and-chunked": ("502", response(CL + b"5\r\n" + TE + b"chunked\r\n", HELLO + LAST)),
    "chunked-http10": ("502", response(TE + b"chunked\r\n", HELLO + LAST, b"HTTP/1.0 200 OK")),
    "chunked-twice": ("502", response(TE + b"chunked, chunked\r\n", HELLO + LAST)),
    "gzip-chunked": ("502", response(TE + b"gzip, chunked\r\n", HELLO + LAST)),
    "chunked-identity": ("502", response(TE + b"chunked, identity\r\n", HELLO + LAST)),
    "coding-xchunked": ("502", response(TE + b"xchunked\r\n", HELLO + LAST)),
    "coding-vertical-tab": ("502", response(TE + b"\x0bchunked\r\n", HELLO + LAST)),
    "chunk-no-last": ("cut", chunked_response(HELLO)),
    "chunk-no-end": ("cut", chunked_response(HELLO + b"0\r\n")),
    "chunk-in-data": ("cut", chunked_response(b"50\r\nhello")),
    "chunk-in-size": ("cut", chunked_response(HELLO + b"5")),
    "chunk-size-bad": ("cut", chunked_response(HELLO + b"x\r\nhello\r\n" + LAST)),
    "chunk-size-plus": ("cut", chunked_response(HELLO + b"+5\r\nhello\r\n" + LAST)),
    "chunk-size-blank": ("cut", chunked_response(HELLO + b"5 \r\nhello\r\n" + LAST)),
    "chunk-size-overflow": ("cut", chunked_response(HELLO + b"10000000000000005\r\nhello\r\n" + LAST)),
    "chunk-overrun": ("cut", chunked_response(HELLO + b"4\r\nhello\r\n" + LAST)),
    "chunk-line-bare-lf": ("cut", chunked_response(HELLO + b"5\nhello\r\n" + LAST)),
    "chunk-last-bare-lf": ("cut", chunked_response(HELLO + b"0\r\n\n")),
    "chunk-trailer-bad": ("cut", chunked_response(HELLO + b"0\r\nno colon\r\n\r\n")),
    "interim-100": ("ok", response(line=b"HTTP/1.1 100 Continue") + response(CL + b"5\r\n", b"hello")),
    "interim-several": ("ok", response(line=b"HTTP/1.1 102 Processing")
                        + response(b"Link: </a>; rel=preload\r\n", line=b"HTTP/1.1 103 Early Hints")
                        + response(CL + b"5\r\n", b"hello")),
    "interim-with-body": ("502", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 103 Early Hints")
                          + response(CL + b"5\r\n", b"hello")),
    "interim-alone": ("502", response(line=b"HTTP/1.1 103 Early Hints")),
    "no-content": ("ok", response(line=b"HTTP/1.1 204 No Content")),
    "no-content-with-body": ("ok", response(b"", b"hello", b"HTTP/1.1 204 No Content")),
    "no-content-two-lengths": ("502", response(CL + b"5\r\n" + CL + b"6\r\n", b"", b"HTTP/1.1 204 No Content")),
    "not-modified-with-body": ("ok", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 304 Not Modified")),
    "head-length": ("ok", response(CL + b"5000\r\n")),
    "head-chunked": ("ok", response(TE + b"chunked\r\n")),
    "head-with-body": ("ok", response(CL + b"5\r\n", b"hello")),
    "head-two-lengths": ("502", response(CL + b"5\r\n" + CL + b"6\r\n")),
    "head-nothing": ("ok", response()),
    "status-no-reason": ("ok", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 200")),
    "status-599": ("ok", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 599 Odd")),
    "status-two-digits": ("502", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 20 OK")),
    "status-four-digits": ("502", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 2000 OK")),
    "status-letters": ("502", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 2x0 OK")),
    "status-zero": ("502", response(CL + b"5\r\n", b"hello", b"HTTP/1.1 000 OK")),
    "version-20": ("502", response(CL + b"5\r\n", b"hello", b"HTTP/2.0 200 OK")),
    "version-icy": ("502", response(CL + b"5\r\n", b"hello", b"ICY 200 OK")),
    "not-http": ("502", b"220 mail.example.test ESMTP\r\n\r\n"),
    "nothing": ("502", b""),
    "cut-off-head": ("502", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"),
    "leading-crlf": ("502", b"\r\n" + response(CL + b"5\r\n", b"hello")),
    "line-bare-lf": ("502", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    "field-bare-lf": ("502", response(b"X-Name: a\n" + CL + b"5\r\n", b"hello")),
    "field-bare-cr": ("502", response(b"X-Name: a\r" + CL + b"5\r\n", b"hello")),
    "field-folded": ("502", response(b"X-Name: a\r\n b\r\n" + CL + b"5\r\n", b"hello")),
    "field-nul": ("502", response(b"X-Name: a\0b\r\n" + CL + b"5\r\n", b"hello")),
    "field-no-colon": ("502", response(b"X-Name\r\n" + CL + b"5\r\n", b"hello")),
    "field-obs-text": ("ok", response(b"X-Name: M\xfcller\r\n" + CL + b"5\r\n", b"hello")),
    "field-too-many": ("502", response(b"A: b\r\n" * 200 + CL + b"5\r\n", b"hello")),
    "length-nominated": ("ok", response(b"Connection: Content-Length\r\n" + CL + b"5\r\n", b"hello" + FORGED)),
}


def write(kind, suffix, files):
    folder = HERE / kind
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    lines = []
    for name, (expected, content) in files.items():
        (folder / f"{name}.{suffix}").write_bytes(content)
        lines.append(f"{name}.{suffix} {expected}\n")
    (HERE / f"{kind}.tbl").write_text("".join(lines))


write("requests", "req", REQUESTS)
write("responses", "resp", RESPONSES)
