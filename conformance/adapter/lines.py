"""The adapter's side of protocol v1 over pipes, for the adapters that the kit itself brings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.specs import strictjson


def answer_lines(answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Answer each request of standard input in order, both without their id, until `bye` or end of file."""
    for line in sys.stdin.buffer:
        request = strictjson.loads(line)
        members = answer({name: part for name, part in request.items() if name != "id"})
        sys.stdout.buffer.write(strictjson.canonical({**members, "id": request["id"]}) + b"\n")
        sys.stdout.buffer.flush()
        if request["op"] == "bye":
            break
