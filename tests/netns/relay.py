#!/usr/bin/python3
"""A long line as a program: relay.py ADDRESS PORT... TO_ADDRESS TO_PORT DELAY_MS BYTES_PER_SECOND

Whatever comes in at one end leaves at the other after DELAY_MS; both directions of all connections together carry no more
than BYTES_PER_SECOND each way, and a connection no more than WINDOW bytes that are under way.
"""
import collections
import contextlib
import heapq
import itertools
import selectors
import socket
import sys
import time

WINDOW = 16 << 20
PIECE = 256 << 10
TURNS = itertools.count()


class Line:
    """One direction of all connections: when what comes now has been carried."""

    def __init__(self, delay, rate):
        self.delay, self.rate, self.free_at = delay, rate, 0.0

    def due(self, count):
        self.free_at = max(self.free_at, time.monotonic()) + count / self.rate
        return self.free_at + self.delay


class Pipe:
    """From one socket to another."""

    def __init__(self, source, target, line):
        self.source, self.target, self.line = source, target, line
        self.queue, self.held, self.ended = collections.deque(), 0, False

    def take(self):
        try:
            data = self.source.recv(PIECE)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self.ended = not data
        self.held += len(data)
        due = self.line.due(len(data))
        self.queue.append((due, memoryview(data)))
        return due

    def give(self, now):
        """Sends what is due; False when the target takes no more just now."""
        while self.queue and self.queue[0][0] <= now:
            due, data = self.queue[0]
            if not data:
                with contextlib.suppress(OSError):
                    self.target.shutdown(socket.SHUT_WR)
                self.queue.popleft()
                continue
            try:
                count = self.target.send(data)
            except BlockingIOError:
                return False
            except OSError:  # the reader has gone: so does the writer, as far as this is from it
                self.queue.clear()
                self.ended = True
                with contextlib.suppress(OSError):
                    self.source.shutdown(socket.SHUT_RDWR)
                return True
            self.held -= count
            self.queue.popleft()
            if count < len(data):
                self.queue.appendleft((due, data[count:]))
        return True


class Relay:
    def __init__(self, address, ports, to, delay, rate):
        self.selector, self.to, self.due = selectors.DefaultSelector(), to, []
        self.there, self.back = Line(delay, rate), Line(delay, rate)
        self.pipes = {}  # by socket: (the pipe it writes into, the one that writes to it)
        for port in ports:
            listener = socket.create_server((address, port), backlog=128)
            self.selector.register(listener, selectors.EVENT_READ)

    def run(self):
        while True:
            wait = max(0, self.due[0][0] - time.monotonic()) if self.due else 5
            for key, events in self.selector.select(wait):
                if key.fileobj in self.pipes:
                    self.serve(key.fileobj, events)
                else:
                    self.accept(key.fileobj)
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                pipe = heapq.heappop(self.due)[2]
                pipe.give(now)
                self.watch(pipe.source)
                self.watch(pipe.target)

    def accept(self, listener):
        near, _ = listener.accept()
        far = socket.create_connection(self.to)
        for sock in (near, far):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
        there, back = Pipe(near, far, self.there), Pipe(far, near, self.back)
        self.pipes[near], self.pipes[far] = (there, back), (back, there)
        self.watch(near)
        self.watch(far)

    def serve(self, sock, events):
        out, into = self.pipes[sock]
        if events & selectors.EVENT_WRITE:
            into.give(time.monotonic())
        if events & selectors.EVENT_READ and not out.ended and out.held < WINDOW:
            due = out.take()
            if due is not None:
                heapq.heappush(self.due, (due, next(TURNS), out))
        self.watch(into.source)
        self.watch(sock)

    def watch(self, sock):
        if sock not in self.pipes:
            return
        out, into = self.pipes[sock]
        if out.ended and into.ended and not out.queue and not into.queue:
            return self.drop(out.source, out.target)
        wanted = 0
        if not out.ended and out.held < WINDOW:
            wanted |= selectors.EVENT_READ
        if into.queue and into.queue[0][0] <= time.monotonic():
            wanted |= selectors.EVENT_WRITE
        known = self.selector.get_map().get(sock)
        if known and not wanted:
            self.selector.unregister(sock)
        elif known and known.events != wanted:
            self.selector.modify(sock, wanted)
        elif wanted and not known:
            self.selector.register(sock, wanted)

    def drop(self, *socks):
        for sock in socks:
            if self.selector.get_map().get(sock):
                self.selector.unregister(sock)
            self.pipes.pop(sock, None)
            sock.close()


if __name__ == "__main__":
    own, *listening, target, target_port, delay_ms, bytes_per_second = sys.argv[1:]
    Relay(own, map(int, listening), (target, int(target_port)), int(delay_ms) / 1000, int(bytes_per_second)).run()
