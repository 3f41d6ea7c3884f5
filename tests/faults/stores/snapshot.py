"""A log that is folded into a snapshot every third put. The log holds differences, as one of counters would."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.faults.stores.log import MAGIC, opened, record, records
from tests.faults.stores.serve import Kept, checked, replace_file, serve, unchecked, write_all

_EVERY = 3


def number(text: str) -> int:
    """A text as a number that can be added to."""
    return int.from_bytes(text.encode(), "big")


def text(value: int) -> str:
    """The text of a number; of one that is no text's, the number."""
    try:
        return value.to_bytes((value.bit_length() + 7) // 8, "big").decode()
    except (UnicodeDecodeError, OverflowError):
        return str(value)


class Snapshot(Kept):
    """The state at the last snapshot, and the puts since, numbered: one that the snapshot has is not applied again."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._folder = folder
        self._state: dict[str, int] = {}
        self._last = 0
        snapshot = folder / "snapshot"
        if snapshot.exists():
            told = json.loads(unchecked(snapshot.read_bytes(), "the snapshot"))
            self._last, self._state = told["last"], told["state"]
        path = folder / "log"
        if snapshot.exists() and not path.exists() and variant != "log_anew":
            # The log was made first.
            raise FileNotFoundError("there is a snapshot, and its log is gone")
        self._fd, data = opened(path)
        end = len(MAGIC)
        for at, told in records(data):
            end = at
            if int(told["number"]) > self._last + 1:
                raise ValueError(f"the log goes on behind {self._last} with {told['number']}: the snapshot is gone")
            if int(told["number"]) > self._last or variant == "double_replay":
                self._apply(told)
        if end < len(data):
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)

    def _apply(self, told: dict[str, str]) -> None:
        self._last = int(told["number"])
        for name, difference in told.items():
            if name != "number":
                self._state[name] = self._state.get(name, 0) + int(difference)

    def put(self, facts: dict[str, str]) -> None:
        told = {name: str(number(value) - self._state.get(name, 0)) for name, value in facts.items()}
        told["number"] = str(self._last + 1)
        write_all(self._fd, record(told))
        os.fsync(self._fd)
        self._apply(told)
        if self._last % _EVERY == 0:
            self._fold()

    def _fold(self) -> None:
        """First the snapshot, for certain; then the log is not needed any more."""
        if self._variant == "truncates_first":
            self._empty()
        data = checked(json.dumps({"last": self._last, "state": self._state}).encode())
        whole, synced = self._variant != "short", self._variant != "no_fsync"
        kept = self._variant != "no_folder_fsync"
        replace_file(self._folder / "snapshot", data, whole=whole, synced=synced, kept=kept)
        if self._variant != "truncates_first":
            self._empty()

    def _empty(self) -> None:
        os.ftruncate(self._fd, len(MAGIC))
        # It states where it continues, so that no reader takes it for a new one.
        write_all(self._fd, record({"number": str(self._last)}))
        os.fsync(self._fd)

    def dump(self) -> dict[str, str]:
        return {name: text(value) for name, value in self._state.items()}


if __name__ == "__main__":
    serve(Snapshot)
