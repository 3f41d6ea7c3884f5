"""The effect side: where the handlers of a service make their effect, and are told how to end.

A request to the sink is one attempt. Its tag stands anywhere in its body. The sink counts what it takes for each tag,
holds the first attempt if it was told so, and answers with what the handler has to answer.
"""

from __future__ import annotations

import base64
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from holdfast.servers.pace import scaled

TAG = re.compile(rb"hf-[0-9a-f]{16}")
# The header by which the handler is told to throw.
THROW = "holdfast-throw"
# How long a handler is held at most. A test that forgets to release one ends before.
_HELD_S = 120.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ends. `effect`: whether it counts; `cut`: its connection is closed without an answer."""

    status: int = 201
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    throw: bool = False
    cut: bool = False
    effect: bool = True


@dataclass(slots=True)
class Tag:
    """What the sink knows of one tag."""

    ending: Ending = field(default_factory=Ending)
    attempts: int = 0
    effects: int = 0
    # What each handler was told to answer.
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    # How many of the next attempts are held, and whether an effect is taken before that.
    to_hold: int = 0
    after: bool = False
    held: int = 0


class Sink:
    """A server on loopback. A context manager."""

    def __init__(self) -> None:
        self._tags: dict[str, Tag] = {}
        self._changed = threading.Condition()
        self._released: dict[str, threading.Event] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where handlers make their effect."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/effect"

    def close(self) -> None:
        """Let go what is held, and stop."""
        for event in list(self._released.values()):
            event.set()
        self._server.shutdown()
        self._server.server_close()

    def of(self, tag: str) -> Tag:
        """What is known of a tag."""
        with self._changed:
            return self._tags.setdefault(tag, Tag())

    def hold(self, tag: str, count: int, *, after: bool) -> None:
        """Hold the next attempts of a tag, before or `after` the effect is taken."""
        with self._changed:
            known = self._tags.setdefault(tag, Tag())
            known.to_hold, known.after = count, after
            self._released[tag] = threading.Event()

    def release(self, tag: str) -> None:
        """Let the held attempts of a tag go on, and hold no more of them."""
        with self._changed:
            self._tags.setdefault(tag, Tag()).to_hold = 0
        event = self._released.get(tag)
        if event is not None:
            event.set()

    def totals(self) -> dict[str, int]:
        """The effects of every tag."""
        with self._changed:
            return {name: known.effects for name, known in sorted(self._tags.items()) if known.effects}

    def take(self, body: bytes) -> Ending:
        """One attempt: count it, hold it if that is due, and say how it ends."""
        found = TAG.search(body)
        if found is None:
            return Ending(400, body=b'{"error":"no tag"}', effect=False)
        tag = found.group().decode()
        with self._changed:
            known = self._tags.setdefault(tag, Tag())
            known.attempts += 1
            ending = known.ending
            held = known.to_hold > 0
            if held:
                known.to_hold -= 1
            if ending.effect and (known.after or not held):
                known.effects += 1
            if held:
                known.held += 1
            self._changed.notify_all()
        if held:
            self._released[tag].wait(scaled(_HELD_S))
            with self._changed:
                known.held -= 1
                if ending.effect and not known.after:
                    known.effects += 1
                # What was said while it was held is what holds.
                ending = known.ending
        text = b'{"effect":"%s"}' % secrets.token_hex(8).encode() if ending.body is None else ending.body
        with self._changed:
            known.answers.append((ending.status, text))
            self._changed.notify_all()
        return Ending(ending.status, ending.headers, text, ending.throw, ending.cut, ending.effect)


def _handler_of(sink: Sink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            ending = sink.take(body)
            if ending.cut:
                self.close_connection = True
                return
            text = ending.body or b""
            bare = ending.status in (204, 304)
            self.send_response(ending.status)
            if "Content-Type" not in ending.headers and not bare:
                self.send_header("Content-Type", "application/json")
            for name, values in ending.headers.items():
                for value in values.split("\n"):
                    self.send_header(name, value)
            if ending.throw:
                self.send_header(THROW, "1")
            if not bare:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if not bare:
                self.wfile.write(text)

        do_PUT = do_POST  # noqa: N815 - as above

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                whole = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    whole += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return whole
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def handle(self) -> None:
            # An instance that is killed leaves a connection behind.
            try:
                super().handle()
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            return

    return Handler


def encoded(body: bytes) -> str:
    """Bytes as they stand in evidence."""
    return base64.urlsafe_b64encode(body).decode().rstrip("=")
