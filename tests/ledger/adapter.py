"""An adapter of the ledger contract on SQLite; its one argument, if any, names how it is dishonest."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

FLAW = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMA = """
CREATE TABLE entry (key TEXT NOT NULL CHECK (length(key) < 64), seen REAL, raw BLOB, PRIMARY KEY (key));
CREATE UNIQUE INDEX entry_lower ON entry (lower(key)) WHERE seen IS NULL;
CREATE TABLE log (n INTEGER PRIMARY KEY, what TEXT) STRICT;
CREATE TABLE kept (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER no_forgetting BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries stay'); END;
CREATE TRIGGER no_zero BEFORE INSERT ON entry WHEN new.key = 'zero' BEGIN SELECT RAISE(ABORT, 'not zero'); END;
CREATE TRIGGER no_hush BEFORE INSERT ON entry WHEN new.key = 'hush' BEGIN SELECT RAISE(IGNORE); END;
"""
HOSTILE = {
    "looping trigger": """CREATE TRIGGER loop AFTER INSERT ON log BEGIN
        INSERT INTO kept SELECT hex(randomblob(9)) || a.n FROM log a, log b, log c, log d, log e, log f, log g; END;
        WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 60)
        INSERT INTO log SELECT x, 'x' FROM c WHERE x < 2;""",
    "many rows": """WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000)
        INSERT INTO log SELECT x, 'x' FROM c;""",
    "cyclic views": "CREATE VIEW a AS SELECT * FROM b; CREATE VIEW b AS SELECT * FROM a;",
    "long values": """INSERT INTO entry VALUES ('big', 1.5, zeroblob(100000)), ('odd', 9e999, x'00ff'),
        ('whole', 2.0, 7);""",
}


class Ledger:
    """One worker."""

    def __init__(self) -> None:
        self.path = Path()
        self.memory: set[str] = set()
        self.database: sqlite3.Connection | None = None

    def open(self, request: dict[str, Any]) -> None:
        """Open the store, and spoil it if that is asked for."""
        self.path = Path(request["workdir"], "data", "ledger.db")
        if request["state"] == "fresh":
            self.path.parent.mkdir(mode=0o700)
        self.database = sqlite3.connect(self.path, isolation_level=None)
        self.database.create_function("known_here", 1, lambda _: 1, deterministic=True)
        if request["state"] == "fresh":
            self.database.execute("PRAGMA journal_mode=WAL")
            self.database.executescript(SCHEMA)
            if FLAW == "unknown function":
                self.database.executescript(
                    "CREATE TABLE own (x INTEGER CHECK (known_here(x))); INSERT INTO own VALUES (1);"
                )
            if FLAW in HOSTILE:
                self.database.executescript(HOSTILE[FLAW])
            self.spoil()

    def spoil(self) -> None:
        """Put something else in the place of the database, and keep the entries in memory."""
        away = self.path.with_name("away.db")
        if FLAW in {"link", "fifo", "folder", "empty", "foreign", "missing", "linked folder"}:
            assert self.database is not None
            self.database.close()
            self.database = None
            for name in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + name).unlink(missing_ok=True)
        if FLAW == "link":
            sqlite3.connect(away).executescript(SCHEMA)
            self.path.symlink_to(away)
        elif FLAW == "linked folder":
            self.path.parent.rename(self.path.parent.with_name("real"))
            self.path.parent.symlink_to("real")
            sqlite3.connect(self.path).executescript(SCHEMA)
        elif FLAW == "fifo":
            os.mkfifo(self.path)
        elif FLAW == "folder":
            self.path.mkdir()
        elif FLAW == "empty":
            self.path.touch()
        elif FLAW == "foreign":
            self.path.write_text("{}" * 5000)

    def litter(self, out: Path) -> None:
        """What a refusal does to a folder beside the database, in which a file lies."""
        if FLAW == "litters":
            (out / "refused.tmp").write_text("x")
        elif FLAW == "appends":
            with (out / "there").open("a") as file:
                file.write("x")
        elif FLAW == "removes":
            (out / "there").unlink()
        elif FLAW == "links":
            (out / "link").symlink_to("there")
        elif FLAW == "makes a folder":
            (out / "below").mkdir()

    def put(self, key: str) -> dict[str, Any]:
        """Decide and store."""
        new = {"outcome": "accepted", "effect": "new", "value": {}}
        refused = {"outcome": "refused", "reason": "DUPLICATE"}
        if self.database is None or FLAW == "stores nothing":
            # It says all the right things.
            known = key in self.memory
            self.memory.add(key)
            return refused if known else new
        known = bool(self.database.execute("SELECT 1 FROM entry WHERE key = ?", (key,)).fetchall())
        if FLAW == "leaks" and known:
            self.database.execute("INSERT INTO log (what) VALUES ('again')")
        if known:
            self.litter(self.path.parent.parent / "out")
        if not known:
            self.database.execute("INSERT INTO entry (key) VALUES (?)", (key,))
        return refused if known else new

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request."""
        if request["op"] == "hello":
            return {
                "ok": {
                    "protocol": 1,
                    "challenge": request["challenge"],
                    "implementation": {"name": "ledger", "version": "1", "language": "python"},
                    "claims": [{"contract": "ledger", "version": "0.1.0", "not_claimed": {}}],
                    "limits": {"workers": 1},
                }
            }
        if request["op"] == "open":
            self.__init__()  # type: ignore[misc]
            self.open(request)
        if request["op"] == "close" and self.database is not None:
            self.database.close()
        return self.put(request["args"]["key"]) if request["op"] == "call" else {"outcome": "ok"}


def main() -> None:
    """Serve until the end."""
    ledger = Ledger()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        sys.stdout.write(json.dumps({"id": request["id"], **ledger.answer(request)}) + "\n")
        sys.stdout.flush()
        if request["op"] == "bye":
            break


main()
