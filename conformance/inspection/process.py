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
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.conformance.inspection import database, rocksdb

_MEMORY = 1024 * 1024 * 1024
_FILE = 256 * 1024 * 1024
# A signal ends what the time limit inside SQLite cannot end, this number of seconds later.
_GRACE_S = 2


def _by_signal(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that knows no limit of time: the signal alone ends it."""

    def limited(seconds: float, **arguments: Any) -> Any:
        signal.alarm(math.ceil(seconds))
        return operation(**arguments)

    return limited


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "inspect": database.inspect,
    "inspect rocksdb": _by_signal(rocksdb.inspect),
    "alter rocksdb": _by_signal(rocksdb.alter),
    "add": database.add,
    "alter": database.alter,
    "switch": database.switch,
    "loosen": database.loosen,
    "ignored": _by_signal(database.ignored),
}


def main() -> None:
    """Answer requests until the input ends."""
    for what, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, _FILE), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    for line in sys.stdin:
        request = json.loads(line)
        operation = _OPERATIONS[request.pop("op")]
        signal.alarm(math.ceil(request["seconds"]) + _GRACE_S)
        answer = operation(**request)
        signal.alarm(0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
