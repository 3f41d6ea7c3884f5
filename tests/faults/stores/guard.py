"""A guard of thirty lines on SQLite: `python guard.py SYNCHRONOUS FOLDER`, speaking lines."""

import json
import os
import sqlite3
import sys

db = sqlite3.connect(os.path.join(sys.argv[2], "guard.db"), isolation_level=None)
db.execute("PRAGMA journal_mode=WAL").fetchone()
db.execute(f"PRAGMA synchronous={sys.argv[1]}")
if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name != 'fact'").fetchone():
    sys.exit("guard.db belongs to something else")
db.execute("CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT)")
print("READY", flush=True)
for line in sys.stdin:
    words = line.split()
    if words == ["DUMP"]:
        print(json.dumps(dict(db.execute("SELECT name, value FROM fact"))), flush=True)
        continue
    db.execute("BEGIN IMMEDIATE")
    for side in ("left", "right"):
        db.execute("INSERT OR REPLACE INTO fact VALUES (?, ?)", (f"{words[1]}.{side}", words[2]))
    db.execute("COMMIT")
    print("OK", flush=True)
db.close()
