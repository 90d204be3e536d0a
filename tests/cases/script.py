"""The origin: gives to each request the answer of the case and step that it belongs to."""
import asyncio
import re

from case import Request, marker
from message import Cut, MAXIMUM_HEAD, read_body, read_head, values

REASONS = {200: "OK", 206: "Partial Content", 304: "Not Modified", 404: "Not Found", 416: "Range Not Satisfiable"}


class Play:
    """A case under way at one server. `index` is the step whose answer is given now."""

    def __init__(self, case, render):
        self.case, self.render = case, render
        self.index, self.requests = 0, []  # of (step index, Request)

    def answer_to(self, request):
        answer = self.case.steps[self.index].answer
        names = {name.lower() for name, _ in request.fields}
        if answer.on_condition and names & {"if-none-match", "if-modified-since"}:
            if not answer.honest or own_tag(answer.on_condition) in ", ".join(values(request.fields, "if-none-match")):
                return answer.on_condition
        if answer.on_range and "range" in names:
            return answer.on_range
        return answer


class Origin:
    def __init__(self):
        self.plays = {}  # by token, the first path segment
        self.servers, self.tasks = [], set()

    async def start(self, sock):
        self.servers.append(await asyncio.start_server(self.serve, sock=sock, limit=MAXIMUM_HEAD))

    async def serve(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        try:
            while await self.exchange(reader, writer):
                pass
        except (Cut, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(asyncio.current_task())
            writer.close()

    async def exchange(self, reader, writer):
        """One request and its answer. False when the connection is over."""
        head = await read_head(reader)
        if head is None:
            return False
        method, target, _ = head[0].split(" ", 2)
        if values(head[1], "expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        content, _ = await read_body(reader, head[1], until_close=False)
        request = Request(method, target, head[1], content)
        play = self.plays.get(re.split("[/?]", target.removeprefix("http://"))[1] if "/" in target else "")
        if play is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n")
            return True
        index = play.index
        play.requests.append((index, request))
        return await self.say(writer, play, index, request, play.answer_to(request))

    async def say(self, writer, play, index, request, answer):
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if answer.drop:
            return False
        if answer.raw is not None:
            writer.write(play.render(answer.raw).encode("latin-1"))
            await writer.drain()
            return False
        for status, fields in answer.interim:
            writer.write(compose(status, fields, play.render))
            await writer.drain()
            await asyncio.sleep(0.05)
        has_body = request.method != "HEAD" and answer.status not in (204, 304)
        content = marker(play.case, index) if answer.body is None else answer.body
        fields = list(answer.fields)
        if answer.date and not any(line.lower().startswith("date:") for line in fields):
            fields.append("Date: {now}")
        if answer.framing == "chunked" and has_body:
            fields.append("Transfer-Encoding: chunked")
        elif answer.framing == "length" and answer.status not in (204, 304):
            fields.append(f"Content-Length: {len(content) if answer.length is None else answer.length}")
        elif answer.framing == "close":
            fields.append("Connection: close")
        writer.write(compose(answer.status, fields, play.render))
        if has_body:
            self.send_body(writer, answer, content)
        await writer.drain()
        return answer.cut is None and answer.framing != "close"

    @staticmethod
    def send_body(writer, answer, content):
        sent = content if answer.cut is None else content[:answer.cut]
        if answer.framing != "chunked":
            writer.write(sent)
            return
        writer.write(b"%x\r\n%s\r\n" % (len(sent), sent) if sent else b"")
        if answer.cut is None:
            writer.write(b"0\r\n\r\n")

    async def close(self):
        for server in self.servers:
            server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def own_tag(answer):
    return next(line.partition(": ")[2] for line in answer.fields if line.startswith("ETag: "))


def compose(status, fields, render):
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Answer')}", *map(render, fields), "", ""]
    return "\r\n".join(lines).encode("latin-1")
