"""Keeps everything in memory: right until it is killed."""

from __future__ import annotations

import sqlite3

from honest import Adapter, Json


class Forgets(Adapter):
    name = "forgets"

    def open(self, request: Json) -> None:
        super().open({**request, "state": "existing"})
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.executescript(
            "CREATE TABLE entry (key TEXT PRIMARY KEY, nonce TEXT NOT NULL UNIQUE) STRICT;"
            "CREATE TABLE audit (audit_id INTEGER PRIMARY KEY, code TEXT NOT NULL) STRICT;"
        )


Forgets().run()
