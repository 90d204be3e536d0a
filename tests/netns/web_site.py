"""A small web site as people build them, and what its own headers allow a shared cache to do with each part of it.

FRESH    answers by itself, for as long as the tests last
RENEWED  answers at once, and is asked about behind the client's back (stale-while-revalidate)
STALE    has to be asked about first; stands in where no answer comes [9111 §4.2.4] [5861 §4]
ASKED    the same, but never stands in: no-cache, must-revalidate and their like [9111 §5.2.2]
NEVER    is not stored at all
"""
import collections
import ctypes
import email.utils
import gzip
import io
import pathlib
import time
import urllib.parse
import wave

from origin import Http, Page, pattern
from programs import bmp

FRESH, RENEWED, STALE, ASKED, NEVER = "fresh", "renewed", "stale", "asked", "never"
Part = collections.namedtuple("Part", "use type body fields status", defaults=["200 OK"])
FONT = pathlib.Path("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf")  # chromium's packages need it
LONG_AGO = email.utils.formatdate(time.time() - 100 * 86400, usegmt=True)

INDEX = """<!doctype html><meta charset=utf-8><title>site</title>
<link rel=icon href=/icon.bmp><link rel=stylesheet href=/style.css><script src=/script.js></script>
<p id=out>text</p><img src=/expires.bmp><img src=/heuristic.bmp><img src=/shared.bmp><img src=/stale-if-error.bmp>
<img src=/stale-while-revalidate.bmp><video id=clip src=/clip.wav preload=auto muted></video>
<script>
const names = %s;
function sum(bytes) {
  let a = 1, b = 0;
  for (const byte of bytes) { a = (a + byte) %% 65521; b = (b + a) %% 65521; }
  return b * 65536 + a;
}
async function load(name) {
  try {
    const response = await fetch(name);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return [name, [response.status, bytes.length, sum(bytes)]];
  } catch (error) {
    return [name, [String(error)]];
  }
}
function happens(target, name) {
  return new Promise(done => target.addEventListener(name, done, {once: true}));
}
async function play(clip) {
  if (clip.readyState < 1) await Promise.race([happens(clip, "loadedmetadata"), happens(clip, "error")]);
  if (clip.error) return clip.error.message;
  for (const place of [clip.duration - 1, 1]) {
    const there = happens(clip, "seeked");
    clip.currentTime = place;
    await there;
  }
  return clip.duration;
}
window.onload = async () => {
  const fonts = await document.fonts.load("16px Site");
  const report = {marker, colour: getComputedStyle(out).color, fonts: fonts.length, clip: await play(clip),
    pictures: [...document.images].map(image => image.naturalWidth + "x" + image.naturalHeight),
    parts: Object.fromEntries(await Promise.all(names.map(load)))};
  console.log("REPORT " + JSON.stringify(report));
};
</script>"""
STYLE = b'@font-face { font-family: Site; src: url(/font.ttf) } #out { color: rgb(1, 2, 3); font-family: Site }'


def clip():
    """What a browser plays in parts."""
    data = io.BytesIO()
    with wave.open(data, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(1)
        out.setframerate(8000)
        out.writeframes(pattern(2_000_000))
    return data.getvalue()


def brotli(data):
    library = ctypes.CDLL("libbrotlienc.so.1")
    size = ctypes.c_size_t(len(data) + 1000)
    out = ctypes.create_string_buffer(size.value)
    assert library.BrotliEncoderCompress(5, 22, 0, ctypes.c_size_t(len(data)), data, ctypes.byref(size), out) == 1
    return out.raw[:size.value]


def page(use, cache_control, **fields):
    fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return Part(use, "text/html", f"<!doctype html><p>{cache_control}".encode() + pattern(3000).hex().encode(),
        {**({"Cache-Control": cache_control} if cache_control else {}), **fields})


def picture(use, width, **fields):
    return Part(use, "image/bmp", bmp(width, 40), {name.replace("_", "-"): value for name, value in fields.items()})


def make_parts():
    later = email.utils.formatdate(time.time() + 86400, usegmt=True)
    script = b"const marker = 'script-ran';" + b"/* padding */" * 5000
    parts = {
        "/style.css": Part(FRESH, "text/css", STYLE, {"Cache-Control": "max-age=600"}),
        "/script.js": Part(FRESH, "text/javascript", script,
            {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}),
        "/icon.bmp": picture(FRESH, 16, Cache_Control="max-age=600"),
        "/expires.bmp": picture(FRESH, 20, Expires=later),
        "/heuristic.bmp": picture(FRESH, 21, Last_Modified=LONG_AGO),
        "/shared.bmp": picture(FRESH, 22, Cache_Control="max-age=0, s-maxage=600"),
        "/stale-if-error.bmp": picture(STALE, 23, Cache_Control="max-age=0, stale-if-error=600"),
        "/stale-while-revalidate.bmp": picture(RENEWED, 24, Cache_Control="max-age=0, stale-while-revalidate=600"),
        "/font.ttf": Part(FRESH, "font/ttf", FONT.read_bytes(), {"Cache-Control": "public, max-age=600"}),
        "/clip.wav": Part(FRESH, "audio/wav", clip(), {"Cache-Control": "max-age=600", "Accept-Ranges": "bytes"}),
        "/counted.html": page(FRESH, "max-age=600", Set_Cookie="seen=1; Path=/"),
        "/moved.css": Part(FRESH, "text/plain", b"elsewhere",
            {"Cache-Control": "max-age=600", "Location": "/style.css"}, "301 Moved Permanently"),
        "/missing.js": Part(FRESH, "text/plain", b"no such", {"Cache-Control": "max-age=600"}, "404 Not Found"),
        "/old.html": page(STALE, "max-age=0"),
        "/validator.json": Part(STALE, "application/json", b'{"version": 1}', {}),
        "/api.json": Part(ASKED, "application/json", b'{"number": 7}', {"Cache-Control": "no-cache"}),
        "/must.html": page(ASKED, "max-age=0, must-revalidate"),
        "/proxy-must.html": page(ASKED, "max-age=0, proxy-revalidate"),
        "/s-maxage.html": page(ASKED, "s-maxage=0"),
        "/no-store.html": page(NEVER, "no-store"),
        "/account.html": page(NEVER, "private, max-age=600"),
        "/login.html": page(NEVER, "", Set_Cookie="session=42; HttpOnly", Last_Modified=LONG_AGO),
    }
    index = INDEX % sorted(parts)
    return {"/index.html": Part(FRESH, "text/html", index.encode(), {"Cache-Control": "max-age=600"}), **parts}


class WebSite(Http):
    """Serves the parts: validators, ranges, and for what varies the coding that the client names."""

    def __init__(self, namespace, address):
        self.parts = make_parts()
        super().__init__(namespace, address)

    @property
    def url(self):
        return f"http://{self.address}"

    def named(self, *uses):
        return [path for path, part in self.parts.items() if part.use in uses]

    def full(self, path):
        """Requests that no validator came with."""
        return [one for one in self.seen(path) if not one.get("If-None-Match") and not one.get("If-Modified-Since")]

    def answer(self, peer, request):
        path = urllib.parse.urlsplit(request.target).path
        SitePage(self, peer, request, self.parts.get(path)).do()
        return True


class SitePage(Page):
    def __init__(self, origin, peer, request, part):
        super().__init__(origin, peer, request, {}, [])
        self.part = part
        self.coding, self.data = coded(part, request.get("Accept-Encoding", "")) if part else ("", b"")
        self.size = len(self.data)

    def do(self):
        if not self.part:
            return self.do_missing()
        if self.part.status == "200 OK":
            return self.do_static()
        return self.respond(self.part.status, {**self.cacheable(), "Content-Length": self.size}, self.data)

    def content(self, first, count):
        return self.data[first:first + count]

    def cacheable(self, **_):
        more = {"Content-Encoding": self.coding} if self.coding else {}
        return {**self.fields(), "Content-Type": self.part.type, "ETag": f'"{self.size}-{self.coding}"', **more,
            **self.part.fields}


def coded(part, accepted):
    if "Vary" in part.fields:
        names = [member.split(";")[0].strip() for member in accepted.split(",")]
        for name, code in (("br", brotli), ("gzip", lambda data: gzip.compress(data, mtime=0))):
            if name in names:
                return name, code(part.body)
    return "", part.body
