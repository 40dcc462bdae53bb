"""A wire between a store and its server that is cut at a chosen message.

The protocol is that of PostgreSQL: each message of a client, after the first, is a letter, a length
and a body. What is counted are the messages of one unit of work: from where it binds its BEGIN.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

How = Literal["unsent", "sent", "late", "lost late"]
"""What becomes of the message at the cut, for the server: it never comes; it comes, and its answer
is lost; it comes after `until`; the server learns after `until` that it never comes."""


class Cut(NamedTuple):
    """Where and how: the n-th message of a unit, or the one that executes its COMMIT."""

    at: int | Literal["commit"]
    how: How


class Proxy:
    """Listens on a port of its own; `arm` cuts one connection, once."""

    def __init__(self, url: str, until: Callable[[], object] = lambda: None) -> None:
        parts = urlsplit(url)
        self._until = until
        self._place = (str(parts.hostname), int(parts.port or 5432))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        place = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}")
        self.url = f"{place.geturl()}?sslmode=disable&gssencmode=disable"
        self._cut: Cut | None = None
        self.done = threading.Event()
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._listener, *self._ends):
            _hang_up(end)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()

    def arm(self, cut: Cut) -> None:
        """Cut the next connection whose unit comes to that message."""
        self.done.clear()
        self._cut = cut

    @property
    def made(self) -> bool:
        """Whether the cut was made, or is under way."""
        return self._cut is None

    def disarm(self) -> bool:
        """Whether the cut was made; if not, it will not be."""
        made, self._cut = self.made, None
        return made

    def _start(self, work: Callable[..., None], *args: socket.socket) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._place)
            except OSError:
                client.close()  # as the server would refuse it
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._ends += (client, server)
            self._start(self._forth, client, server)
            self._start(self._back, server, client)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while data := server.recv(65536):
                try:
                    client.sendall(data)
                except OSError:
                    pass  # cut: the server may go on to talk
        except OSError:
            pass
        _hang_up(client)

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        count, writing, bound = 0, False, b""
        try:
            for message in _messages(client):
                kind = message[:1]
                if kind == b"B":
                    bound = message[5:].split(b"\0")[1]
                    if bound in (b"write", b"read"):
                        count, writing = 0, bound == b"write"
                count += 1
                here = "commit" if bound == b"commit" and kind == b"E" else count
                cut = self._cut
                if writing and cut is not None and cut.at in (here, count):
                    self._cut = None
                    self._make(cut.how, message, client, server)
                    return
                server.sendall(message)
        except OSError:
            pass
        _hang_up(server)

    def _make(self, how: How, message: bytes, client: socket.socket, server: socket.socket) -> None:
        if how != "sent":
            _hang_up(client)
        if how in ("late", "lost late"):
            self._until()
        if how in ("sent", "late"):
            sync = b"S\0\0\0\4"
            if how == "sent":  # nothing more goes back
                client.shutdown(socket.SHUT_WR)
            server.sendall(message + (b"" if message[:1] == b"S" else sync))
            server.shutdown(socket.SHUT_WR)  # the server does what it was told, and goes
        else:
            _hang_up(server)
        self.done.set()


def _messages(client: socket.socket) -> Iterator[bytes]:
    """What a client says, message by message; the first one has no letter."""
    with client.makefile("rb") as stream:
        letter = 0
        while len(head := stream.read(letter + 4)) == letter + 4:
            (length,) = struct.unpack("!I", head[letter:])
            yield head + stream.read(length - 4)
            letter = 1


def _hang_up(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
