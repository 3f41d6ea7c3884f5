"""An adapter that keeps a ledger in one file of its workdir, rightly, or with one bug planted by its argument.

Standard library only, so that a restart takes a moment. `right` appends a line with a check sum, syncs it, appends the
line feed that ends it, syncs that and answers then: a power loss may leave a long line's tail without its beginning.
A last line without its end is what a crash leaves and is cut off; anything else that does not fit is damage. With the
word `office` behind the bug it has an operator's command as well, which records one key in another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BUG = sys.argv[1]
HEAD = b"ledger 1\n"


class OutOfReachError(Exception):
    """The ledger cannot be read or written."""


class UncertainError(Exception):
    """A write failed, and so did undoing it."""


def line_of(key: str, value: str) -> bytes:
    body = f"{key} {value} {value}"
    return f"{body} {zlib.crc32(body.encode()):08x}\n".encode()


class Ledger:
    """One open session."""

    def __init__(self, workdir: Path, state: str) -> None:
        home = Path(sys.argv[2]) if BUG == "elsewhere" else workdir
        self.path = home / "ledger"
        if state == "fresh":
            self.path.write_bytes(HEAD)
            self._sync_folder()
        elif BUG == "made-anew" and not self.path.exists():
            self.path.write_bytes(HEAD)
        if BUG == "stale-lock":
            os.close(os.open(home / "lock", os.O_CREAT | os.O_EXCL))
        self.lock = home / "lock"
        if BUG == "hangs" and self.path.stat().st_size > len(HEAD) + 100:
            time.sleep(60)
        self.recover()
        self.known = {row["key"]: row["value"] for row in self.rows()}

    def _sync_folder(self) -> None:
        handle = os.open(self.path.parent, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)

    def recover(self) -> None:
        """Cut a torn last line off."""
        data = self._read()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())

    def _read(self) -> bytes:
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise OutOfReachError(str(error)) from error
        if not data.startswith(HEAD):
            raise OutOfReachError("no ledger")
        return data

    def rows(self) -> Iterator[dict[str, str]]:
        for line in self._read()[len(HEAD) :].splitlines():
            body, _, check = line.rpartition(b" ")
            if BUG != "unchecked" and f"{zlib.crc32(body):08x}".encode() != check:
                raise OutOfReachError("damaged")
            parts = [part.decode("latin-1") for part in body.split(b" ")]
            if len(parts) == 3:
                parts[2] = parts[2].upper() if BUG == "shows-another" else parts[2]
                yield dict(zip(("key", "value", "copy"), parts, strict=True))

    def record(self, key: str, value: str) -> dict[str, Any]:
        self.known = {row["key"]: row["value"] for row in self.rows()}
        if key in self.known:
            same = self.known[key] == value
            return {"effect": "prior"} if same else {"reason": "TAKEN"}
        try:
            self._append(key, value)
        except OSError as error:
            raise OutOfReachError(str(error)) from error
        self.known[key] = value
        return {"effect": "new"}

    def _append(self, key: str, value: str) -> None:
        size = self.path.stat().st_size
        with self.path.open("r+b", buffering=0) as file:
            file.seek(0, os.SEEK_END)
            line = line_of(key, value)
            try:
                for part in (line[:-1], line[-1:]):
                    if file.write(part) != len(part):
                        raise OSError("a short write")
                    if BUG != "unsynced":
                        os.fsync(file.fileno())
            except OSError as error:
                if BUG == "failure-is-success":
                    return
                try:
                    # What is there of it must not be taken for a line, nor for the beginning of the next.
                    file.truncate(size)
                    os.fsync(file.fileno())
                except OSError:
                    raise UncertainError from error
                raise

    def find(self, key: str) -> str:
        return "yes" if any(row["key"] == key for row in self.rows()) else "no"


class Keeper:
    """The protocol's loop."""

    def __init__(self) -> None:
        self.ledger: Ledger | None = None
        self.clock = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "hello":
            return {
                "ok": {
                    "protocol": 1,
                    "challenge": request["challenge"],
                    "implementation": {"name": "keeper", "version": "1", "language": "python"},
                    "claims": [
                        {
                            "contract": "office" if "office" in sys.argv else "ledger",
                            "version": "0.1.0",
                            "not_claimed": {"command_line": "it has no operators"} if BUG == "alone" else {},
                        }
                    ],
                    "limits": {"workers": 1},
                }
            }
        self.clock = request.get("clock", self.clock)
        if (
            "faults" if self.clock.startswith("2026-01-01") else "faults-later"
        ) == BUG and "record" in request.values():
            return {"outcome": "fault", "detail": "no idea"}
        try:
            return self._session(request)
        except OutOfReachError as error:
            if request["op"] == "call" and request["method"] != "state":
                return {"outcome": "refused", "reason": "OUT_OF_REACH", "detail": str(error)}
            return {"outcome": "fault", "detail": str(error)}
        except UncertainError:
            return {"outcome": "indeterminate"}
        except OSError as error:
            return {"outcome": "fault", "detail": str(error)}

    def _session(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "open":
            self.ledger = Ledger(Path(request["workdir"]), request["state"])
        elif request["op"] == "call":
            assert self.ledger is not None
            return self._call(self.ledger, request["method"], request["args"])
        elif request["op"] == "close":
            if self.ledger is not None and BUG == "stale-lock":
                self.ledger.lock.unlink()
            self.ledger = None
        return {"outcome": "ok"}

    def _call(self, ledger: Ledger, method: str, args: dict[str, str]) -> dict[str, Any]:
        if method == "state":
            return {"outcome": "ok", "value": {"entry": list(ledger.rows())}}
        if method == "find":
            return {"outcome": "accepted", "effect": "prior", "value": {"found": ledger.find(args["key"])}}
        if method == "command_line":
            if BUG == "alone":
                return {"outcome": "unsupported", "capability": method}
            # A bug of the command alone has this beginning.
            words = [BUG.removeprefix("command-"), "command", str(ledger.path.parent), *args["arguments"]]
            done = subprocess.run([sys.executable, __file__, *words], stdin=subprocess.DEVNULL, check=False)
            return {"outcome": "ok", "value": {"status": done.returncode}}
        said = ledger.record(args["key"], args["value"])
        if "reason" in said:
            return {"outcome": "refused", **said}
        return {"outcome": "accepted", "value": {}, **said}


def commanded(workdir: str, key: str, value: str) -> int:
    """Record one key as an operator does it: 0 when it is recorded."""
    try:
        said = Ledger(Path(workdir), "existing").record(key, value)
    except (OutOfReachError, UncertainError, OSError):
        return 1
    return int("reason" in said or BUG == "fails")


def main() -> None:
    if sys.argv[2:3] == ["command"]:
        sys.exit(commanded(*sys.argv[3:]))
    keeper = Keeper()
    for line in sys.stdin:
        request = json.loads(line)
        late = BUG == "answers-first" and request.get("method") == "record"
        answer = {"outcome": "accepted", "effect": "new", "value": {}} if late else keeper.answer(request)
        print(json.dumps({"id": request["id"], **answer}), flush=True)
        if late:
            keeper.answer(request)
        if request["op"] == "bye":
            return


main()
