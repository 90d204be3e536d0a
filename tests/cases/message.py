"""HTTP/1.1 messages as plainly as possible, over asyncio streams: what came is kept as it came."""
import asyncio

BODILESS = (204, 304)
MAXIMUM_HEAD = 1 << 17


class Cut(Exception):
    """The connection ended, or made no sense, within a message."""


async def read_head(reader):
    """(start line, fields); None where the peer closed before the first byte."""
    try:
        block = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise Cut(f"head cut: {error.partial[:60]!r}") from None
    except (asyncio.LimitOverrunError, ConnectionError) as error:
        raise Cut(str(error)) from None
    first, *lines = block.decode("latin-1").split("\r\n")[:-2]
    fields = []
    for line in lines:
        name, _, value = line.partition(":")
        fields.append((name, value.strip(" \t")))
    return first, fields


def values(fields, name):
    return [value for field, value in fields if field.lower() == name]


async def read_body(reader, fields, until_close):
    """(content, whether it is whole)."""
    content = bytearray()
    try:
        if "chunked" in ", ".join(values(fields, "transfer-encoding")).lower():
            while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
                content += (await reader.readexactly(size + 2))[:-2]
            while await reader.readuntil(b"\r\n") != b"\r\n":
                pass
        elif length := values(fields, "content-length"):
            content += await reader.readexactly(int(length[0]))
        elif until_close:
            while data := await reader.read(65536):
                content += data
    except asyncio.IncompleteReadError as error:
        return bytes(content + error.partial), False
    except (ValueError, ConnectionError, asyncio.LimitOverrunError):
        return bytes(content), False
    return bytes(content), True


async def read_response(reader, method, seen):
    """Fills `seen` with the interim responses and the final one."""
    while True:
        head = await read_head(reader)
        if head is None:
            raise Cut("no response")
        words, fields = head[0].split(" ", 2), head[1]
        if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
            raise Cut(f"no status line: {head[0]!r}")
        if not 100 <= int(words[1]) < 200:
            break
        seen.interim.append((int(words[1]), fields))
    seen.status, seen.fields = int(words[1]), fields
    if method == "HEAD" or seen.status in BODILESS:
        seen.whole = True
    else:
        seen.body, seen.whole = await read_body(reader, fields, until_close=True)
