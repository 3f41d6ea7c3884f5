"""An honest adapter of the toy contract: SQLite in the workdir, one immediate transaction a put, synced at commit.

It is also the base of the adapters that are honest but for one thing: they override one method.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}", re.ASCII)
# How long a failpoint waits for its release (docs/adapter-protocol.md).
HOLD_S = 20.0

Json = dict[str, Any]


class Adapter:
    """One worker: reads requests, answers each in order."""

    name = "honest-shelf"

    def __init__(self) -> None:
        self.database: sqlite3.Connection | None = None
        self.workdir = Path()
        self.armed: str | None = None

    # The protocol

    def run(self) -> None:
        """Serve until `bye` or end of file."""
        for line in sys.stdin.buffer:
            request = json.loads(line)
            self.send({"id": request["id"], **self.answer(request)})
            if request["op"] == "bye":
                break

    def send(self, message: Json) -> None:
        """Write one answer as a line."""
        self.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write bytes at once."""
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def answer(self, request: Json) -> Json:
        """The answer to one request, without its id."""
        if request["op"] == "hello":
            return {"ok": self.hello(request)}
        if request["op"] == "open":
            self.open(request)
        elif request["op"] == "close" and self.database is not None:
            self.database.close()
            self.database = None
        elif request["op"] == "call":
            return self.call(request["method"], request["args"])
        return {"outcome": "ok"}

    def hello(self, request: Json) -> Json:
        """What it says of itself."""
        return {
            "protocol": 1,
            "challenge": request["challenge"],
            "implementation": {"name": self.name, "version": "1.0.0", "language": "python"},
            "claims": [{"contract": "toy", "version": "0.1.0", "not_claimed": {}}],
            "limits": {"workers": 4},
        }

    def open(self, request: Json) -> None:
        """Open the shelf in the workdir; a fresh one is made."""
        self.workdir = Path(request["workdir"])
        self.armed = None
        self.database = sqlite3.connect(self.workdir / "shelf.sqlite", isolation_level=None, timeout=20.0)
        self.database.execute("PRAGMA synchronous = FULL")
        if request["state"] == "fresh":
            self.database.executescript(
                "CREATE TABLE entry (key TEXT PRIMARY KEY, nonce TEXT NOT NULL UNIQUE) STRICT;"
                "CREATE TABLE audit (audit_id INTEGER PRIMARY KEY, code TEXT NOT NULL) STRICT;"
            )

    def call(self, method: str, args: Json) -> Json:
        """One method of the contract."""
        if method == "put":
            return self.put(args)
        if method == "state":
            return {"outcome": "ok", "value": {"entry": self.entries()}}
        if method == "audit":
            return {"outcome": "ok", "value": {"records": self.records()}}
        if method == "hold_at":
            self.armed = args["point"]
            return {"outcome": "ok"}
        return {"outcome": "fault", "detail": f"no method {method}"}

    # The shelf

    def sql(self, statement: str, values: tuple[str, ...] = ()) -> list[Any]:
        """Run one statement."""
        assert self.database is not None, "no session is open"
        return self.database.execute(statement, values).fetchall()

    def put(self, args: Json) -> Json:
        """Put a key with its nonce, or refuse with the first reason that applies."""
        self.sql("BEGIN IMMEDIATE")
        reason = self.decide(args)
        if reason is not None:
            return self.refuse(reason)
        self.insert(args)
        self.stop_point("before_commit")
        self.sql("COMMIT")
        self.stop_point("after_commit")
        return {"outcome": "accepted", "effect": "new", "value": {"entry": self.told(args)}}

    def decide(self, args: Json) -> str | None:
        """The reason to refuse, if there is one."""
        if not well_formed(args):
            return "REQUEST_MALFORMED"
        if self.sql("SELECT 1 FROM entry WHERE key = ?", (args["key"],)):
            return "DUPLICATE"
        if self.sql("SELECT 1 FROM entry WHERE nonce = ?", (args["nonce"],)):
            return "NONCE_CONSUMED"
        return None

    def refuse(self, reason: str) -> Json:
        """Refuse, and leave one audit record; the transaction is open."""
        self.sql("INSERT INTO audit (code) VALUES (?)", (reason,))
        self.sql("COMMIT")
        return {"outcome": "refused", "reason": reason}

    def insert(self, args: Json) -> None:
        """Write the entry; the transaction is open."""
        self.sql("INSERT INTO entry (key, nonce) VALUES (?, ?)", (args["key"], args["nonce"]))

    def told(self, args: Json) -> Json:
        """The entry in the form of the answer."""
        return {"key": args["key"], "nonce": args["nonce"]}

    def entries(self) -> list[Json]:
        """Every entry, ordered by key."""
        return [{"key": key, "nonce": nonce} for key, nonce in self.sql("SELECT key, nonce FROM entry ORDER BY key")]

    def records(self) -> list[Json]:
        """The refusals, oldest first."""
        rows = self.sql("SELECT audit_id, code FROM audit ORDER BY audit_id")
        return [{"audit_id": str(number), "code": code} for number, code in rows]

    def stop_point(self, point: str) -> None:
        """Hold here if armed, until released."""
        if self.armed != point:
            return
        self.armed = None
        folder = self.workdir / "hold"
        folder.mkdir(exist_ok=True)
        (folder / f"{point}.reached").touch()
        deadline = time.monotonic() + HOLD_S
        while not (folder / f"{point}.release").exists() and time.monotonic() < deadline:
            time.sleep(0.01)


def well_formed(args: object) -> bool:
    """Whether the arguments of put fit their schema."""
    if not isinstance(args, Mapping) or set(args) != {"key", "nonce"}:
        return False
    return all(isinstance(value, str) and NAME.fullmatch(value) for value in args.values())


if __name__ == "__main__":
    Adapter().run()
