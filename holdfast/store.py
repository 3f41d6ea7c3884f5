"""A store in Python for `holdfast.crash`: what its class has, and the lines of docs/crash.md around it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """A class that is called with the folder of its files, each time that the store starts."""

    def put(self, facts: Mapping[str, str], /) -> None:
        """Write these facts, all or none; they are durable when this returns. Raises Refused if none was written."""

    def dump(self) -> Mapping[str, str]:
        """All facts by their names."""

    def close(self) -> None:
        """End in order."""


class Refused(Exception):  # noqa: N818  what a store does, and no error
    """The store wrote nothing of this put. After any other exception the outcome is unknown, and the process ends."""


def serve(opened: Callable[[Path], Store], workdir: str) -> None:
    """Speak lines until the input ends."""
    # What the store prints is no answer.
    answers, sys.stdout = os.dup(1), sys.stderr
    os.dup2(2, 1)

    def say(line: str) -> None:
        os.write(answers, line.encode() + b"\n")

    store = opened(Path(workdir))
    say("READY")
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "DUMP":
            say(json.dumps(dict(store.dump())))
            continue
        name, value = rest
        try:
            store.put({f"{name}.left": value, f"{name}.right": value})
        except Refused as refused:
            say(f"REFUSED {_plain(refused)}")
        except Exception as error:
            say(f"ERROR {_plain(error)}")
            raise
        else:
            say("OK")
    store.close()


def _plain(error: Exception) -> str:
    return ascii(f"{type(error).__name__}: {error}")
