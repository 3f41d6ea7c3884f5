"""A broker: a request is put into a queue and answered, and a consumer makes the effect after that.

The window of keys is the guard's table, so it outlives each message.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from fastapi import FastAPI

from holdfast.reference_impl.idempotency_key.app import Application
from holdfast.reference_impl.idempotency_key.databases import SqliteTransaction
from holdfast.reference_impl.idempotency_key.guard import Guard
from holdfast.reference_impl.idempotency_key.terms import Answer, StoreError

_POLL_S = 0.5


class Queue:
    """Messages in a file, each taken out once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Event()

    @staticmethod
    def make(path: Path) -> None:
        """Make the file."""
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def put(self, body: bytes) -> None:
        """Put a message in. Raises StoreError."""
        with SqliteTransaction(self._path) as change:
            change.execute("INSERT INTO messages (body) VALUES (?)", (body,))
        self._changed.set()

    def take(self) -> bytes | None:
        """The oldest message, which is gone then; None if none came for a while. Raises StoreError."""
        self._changed.clear()
        with SqliteTransaction(self._path) as change:
            found = change.execute("DELETE FROM messages WHERE id = (SELECT min(id) FROM messages) RETURNING body", ())
        if not found:
            self._changed.wait(_POLL_S)
            return None
        body: bytes = found[0][0]
        return body


class Broker(Application):
    """What FastAPI serves in place of `Application`."""

    def __init__(self, guard: Guard, sink: str, queue: Queue) -> None:
        super().__init__(guard, sink)
        self.queue = queue

    def app(self) -> FastAPI:
        """The routes, and the consumer."""
        threading.Thread(target=self.consume, daemon=True).start()
        return super().app()

    def effect(self, body: bytes) -> Answer:
        """The message is in the queue when the answer is given. Raises StoreError."""
        self.queue.put(body)
        return Answer(202)

    def consume(self) -> None:
        """Take messages, and make the effect of each. One whose consumer dies is not made again."""
        while True:
            with contextlib.suppress(StoreError):
                body = self.queue.take()
                if body is not None:
                    self.consumed(body)

    def consumed(self, body: bytes) -> None:
        """Make the effect of a message that was taken."""
        with contextlib.suppress(Exception):  # whatever a handler throws
            super().effect(body)
