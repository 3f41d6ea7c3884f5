"""The reference behind an adapter that says something else of where its store is: `python says.py HOW`."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

REFERENCE = [sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter"]


def said(how: str, surface: dict[str, Any], workdir: Path) -> Any:
    """What stands in the place of what the reference says."""
    if how == "nothing":
        return None
    if how == "no-such-file":
        return {**surface, "file": "none.sqlite3"}
    if how == "no-effect":
        return {"file": surface["file"]}
    if how == "endless":
        with closing(sqlite3.connect(workdir / "endless.sqlite3")) as made:
            made.execute(
                "CREATE VIEW registration AS WITH n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n"
            )
        return {**surface, "file": "endless.sqlite3"}
    if how == "no-relation":
        return {**surface, "effect": "iu_route_attempt"}
    if how == "misfit":
        return {"file": surface["file"], "password": "s3cret-Pa55-word"}
    if how == "dsn":
        parts = {part: f"rs4a_replay.{surface[part]}" for part in ("effect", "nonce")}
        return {"dsn": "postgresql://w:s3cret-Pa55-word@127.0.0.1:1/none", **parts}
    # A store with the very same schema, into which nothing goes.
    copied = workdir / "decoy.sqlite3"
    shutil.copyfile(workdir / surface["file"], copied)
    return {**surface, "file": copied.name}


def main(how: str) -> None:
    """Pass everything on but the answer to `open`."""
    with subprocess.Popen(REFERENCE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for line in sys.stdin.buffer:
            child.stdin.write(line)
            child.stdin.flush()
            answer, request = json.loads(child.stdout.readline()), json.loads(line)
            if request["op"] == "open" and answer["outcome"] == "ok":
                surface = said(how, answer.pop("value")["surface"], Path(request["workdir"]))
                if surface is not None:
                    answer["value"] = {"surface": surface}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
