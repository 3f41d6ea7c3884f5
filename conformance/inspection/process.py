"""The process that opens databases of an implementation, because a database may hang or crash what opens it.

`python -P -m holdfast.conformance.inspection.process` reads requests and writes answers, one JSON object a line, until
its input ends. A request has `op`, which names a function of `_OPERATIONS`, and its arguments; an answer is what it
returns.
"""

from __future__ import annotations

import contextlib
import json
import math
import resource
import signal
import sys
from typing import Any

from holdfast.conformance.inspection import database, rocksdb

_MEMORY = 1024 * 1024 * 1024
_FILE = 256 * 1024 * 1024
# A signal ends what the time limit inside SQLite cannot end, this number of seconds later.
_GRACE_S = 2


def _inspect_rocksdb(path: str, seconds: float) -> dict[str, Any]:
    """RocksDB knows no limit of time: the signal alone ends it."""
    signal.alarm(math.ceil(seconds))
    return rocksdb.inspect(path)


def _alter_rocksdb(path: str, family: str, change: dict[str, Any], seconds: float) -> dict[str, Any]:
    signal.alarm(math.ceil(seconds))
    return rocksdb.alter(path, family, change)


_OPERATIONS = {
    "inspect": database.inspect,
    "inspect rocksdb": _inspect_rocksdb,
    "alter rocksdb": _alter_rocksdb,
    "add": database.add,
    "alter": database.alter,
    "switch": database.switch,
    "loosen": database.loosen,
    "ignored": database.ignored,
}


def main() -> None:
    """Answer requests until the input ends."""
    for what, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, _FILE), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    for line in sys.stdin:
        request = json.loads(line)
        operation = _OPERATIONS[request.pop("op")]
        seconds = request["seconds"] if "seconds" in request else request.pop("limit")
        signal.alarm(math.ceil(seconds) + _GRACE_S)
        answer: Any = operation(**request)  # type: ignore[operator]
        signal.alarm(0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
