"""Runs the pure validator in isolation: without new file descriptors, hence without files and network."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
from datetime import datetime
from typing import Any, NoReturn

from holdfast.reference_impl.rs4a_replay.validator import Validator

# The audit events of the interpreter (PEP 578) for opening a store, a file or a socket.
_OPENING = frozenset({"open", "sqlite3.connect", "socket.__new__", "socket.connect", "os.open"})


def judge_twice(validator: Validator, args: Any, *, now: datetime) -> dict[str, Any]:
    """Both verdicts as text, and whether the validator tried to open anything.

    Runs in a child that may not open a single descriptor, so that an attempt fails and is reported.
    """
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        _run_child(validator, args, now, outlet)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(said)
    return result


def _run_child(validator: Validator, args: Any, now: datetime, outlet: int) -> NoReturn:
    attempts: list[str] = []
    watching = True

    def watch(event: str, _details: object) -> None:
        if watching and event in _OPENING:
            attempts.append(event)

    def refuse(*_args: object, **_named: object) -> NoReturn:
        attempts.append("psycopg.connect")
        raise ConnectionError("no database is configured here")

    sys.addaudithook(watch)
    # The driver of a session on SQLite is not loaded, and loading it would open files.
    driver = sys.modules.get("psycopg")
    if driver is not None:
        driver.connect = refuse  # type: ignore[attr-defined]
    soft = os.dup(outlet) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    verdicts: list[str] = []
    for _ in range(2):
        try:
            verdicts.append(validator.judge(args, now=now).text())
        except (ImportError, OSError, sqlite3.Error) as error:
            verdicts.append(f"FAILED {type(error).__name__}")
    watching = False
    os.write(outlet, json.dumps({"verdicts": verdicts, "store_opened": bool(attempts)}).encode())
    # Not exit: the child must not close the parent's connections.
    os._exit(0)
