"""A store whose database is a process of its own, which it starts: `served.py VARIANT FOLDER`.

The database speaks lines itself, on its standard input and output, and ends when its input does.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path

from tests.faults.stores.serve import serve

# Seconds that the database has for an answer.
_PATIENCE_S = 1.0


class Served:
    """The connection to the database."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._folder = folder
        self._connect()
        self._facts = self.dump()

    def _connect(self) -> None:
        self._database = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.stores.log", "right", self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._answer("READY")

    def _ask(self, line: str) -> None:
        assert self._database.stdin is not None
        self._database.stdin.write(line.encode() + b"\n")

    def _answer(self, wanted: str = "") -> str:
        assert self._database.stdout is not None
        patience = None if self._variant == "waits" or wanted == "READY" else _PATIENCE_S
        if not select.select([self._database.stdout], [], [], patience)[0]:
            raise TimeoutError("the database does not answer")
        line = self._database.stdout.readline().decode().strip()
        if not line or wanted not in ("", line):
            raise ConnectionError(f"the database answered {line!r}")
        return line

    def put(self, facts: dict[str, str]) -> None:
        name = min(facts).rpartition(".")[0]
        try:
            self._ask(f"PUT {name} {facts[min(facts)]}")
            self._answer("OK")
        except TimeoutError:
            if self._variant != "trusts_silence":
                raise
            # A new one will be faster.
            self._database.kill()
            self._database.wait()
            self._connect()
        except ConnectionError:
            if self._variant != "trusts_the_dead":
                raise
        self._facts |= facts

    def dump(self) -> dict[str, str]:
        if self._variant == "trusts_the_dead" and self._database.poll() is not None:
            return self._facts
        self._ask("DUMP")
        facts: dict[str, str] = json.loads(self._answer())
        return facts

    def close(self) -> None:
        assert self._database.stdin is not None
        self._database.stdin.close()
        self._database.wait()


if __name__ == "__main__":
    serve(Served)
