"""A guard: each key is admitted once. It is broken in four places; docs/tutorial.md mends one after the other."""

import contextlib
import json
import sqlite3
import sys
import time
from pathlib import Path

HELLO = {
    "protocol": 1,
    "implementation": {"name": "guard", "version": "1.0.0", "language": "python"},
    "claims": [{"contract": "once", "version": "0.1.0", "not_claimed": {}}],
    "limits": {"workers": 4},
}


class Guard:
    def open(self, request):
        self.workdir, self.held = Path(request["workdir"]), False
        self.store = sqlite3.connect(self.workdir / "guard.sqlite", timeout=1.5)
        with contextlib.suppress(sqlite3.Error):  # admit will notice
            self.store.execute("CREATE TABLE IF NOT EXISTS admitted (key TEXT)")
        return {"outcome": "ok"}

    def admit(self, args):
        key = args["key"].lower()
        try:
            if self.store.execute("SELECT 1 FROM admitted WHERE key = ?", (key,)).fetchone():
                return {"outcome": "refused", "reason": "ALREADY_ADMITTED"}
            self.wait()
            self.store.execute("INSERT INTO admitted VALUES (?)", (key,))
        except sqlite3.Error as error:
            print(error, file=sys.stderr)
        return {"outcome": "accepted", "effect": "new", "value": {}}

    def admitted(self, _):
        try:
            rows = self.store.execute("SELECT key FROM admitted ORDER BY key").fetchall()
        except sqlite3.Error as error:
            return {"outcome": "fault", "detail": str(error)}
        return {"outcome": "ok", "value": {"keys": [key for (key,) in rows]}}

    def hold_at(self, _):
        self.held = True
        return {"outcome": "ok"}

    def wait(self):
        if self.held:
            self.held, folder = False, self.workdir / "hold"
            folder.mkdir(exist_ok=True)
            (folder / "before_commit.reached").touch()
            while not (folder / "before_commit.release").exists():
                time.sleep(0.005)

    def answer(self, request):
        if request["op"] == "hello":
            return {"ok": {**HELLO, "challenge": request["challenge"]}}
        if request["op"] == "open":
            return self.open(request)
        if request["op"] == "call":
            return getattr(self, request["method"], self.unknown)(request["args"])
        return {"outcome": "ok"}

    def unknown(self, _):
        return {"outcome": "fault", "detail": "no such method"}


guard = Guard()
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **guard.answer(request)}), flush=True)
    if request["op"] == "bye":
        break
