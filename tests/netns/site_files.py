"""An origin that serves a folder, as a small web server does: ranges, conditions, keep-alive."""
import email.utils
import mimetypes
import urllib.parse

from origin import Http, Page


class Files(Http):
    """Every path is a file below `root`, or the index.html of a folder; fresh for an hour."""

    def __init__(self, namespace, address, root):
        self.root = root
        super().__init__(namespace, address)

    def lifetime(self, path):
        """The Cache-Control of a file; None: without."""
        return "max-age=3600"

    def answer(self, peer, request):
        FilePage(self, peer, request).do_file()
        return True


class FilePage(Page):
    def __init__(self, origin, peer, request):
        path = urllib.parse.urlsplit(request.target).path
        self.path = origin.root / urllib.parse.unquote(path).lstrip("/")
        if self.path.is_dir():
            self.path /= "index.html"
        super().__init__(origin, peer, request, {}, [])
        self.data = self.path.read_bytes() if self.path.is_file() else b""
        self.size = len(self.data)

    def do_file(self):
        if not self.path.is_file():
            return self.do_missing()
        return self.do_static()

    def content(self, first, count):
        return self.data[first:first + count]

    def cacheable(self, **more):
        status = self.path.stat()
        if lifetime := self.origin.lifetime(self.path):
            more["Cache_Control"] = lifetime
        return self.fields(ETag=f'"{status.st_mtime_ns:x}-{status.st_size:x}"',
            Last_Modified=email.utils.formatdate(int(status.st_mtime), usegmt=True),
            Content_Type=mimetypes.guess_type(self.path.name)[0] or "application/octet-stream", **more)
