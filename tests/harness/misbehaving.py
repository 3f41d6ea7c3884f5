"""An adapter that is right until one request, ARGV[1] (`open`, `close` or the name of a method), and fails there.

ARGV[2] says how: crash, hang, garbage, eof, invalid (an answer that does not fit the method), fault, unsupported (as
hello declares), undeclared (as hello does not), or indeterminate. Standard library only; it keeps nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

WHERE, HOW = sys.argv[1:3]
ANSWERS: dict[str, dict[str, Any]] = {
    "invalid": {"outcome": "ok", "value": {"entry": "no list"}},
    "fault": {"outcome": "fault", "detail": "disk on fire"},
    "unsupported": {"outcome": "unsupported", "capability": "state"},
    "undeclared": {"outcome": "unsupported", "capability": "something-else"},
    "indeterminate": {"outcome": "indeterminate"},
}


def fail() -> dict[str, Any]:
    """The answer at the request where it fails, if one comes."""
    if HOW == "crash":
        os._exit(3)
    if HOW == "eof":
        os._exit(0)
    if HOW == "hang":
        time.sleep(600)
    if HOW == "garbage":
        print("no JSON", flush=True)
        time.sleep(600)
    return ANSWERS[HOW]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer without its id."""
    if request["op"] == "hello":
        not_claimed = {"state": "not built"} if HOW == "unsupported" else {}
        return {
            "ok": {
                "protocol": 1,
                "challenge": request["challenge"],
                "implementation": {"name": "misbehaving", "version": "1", "language": "python"},
                "claims": [{"contract": "ledger", "version": "0.1.0", "not_claimed": not_claimed}],
                "limits": {"workers": 1},
            }
        }
    if WHERE in (request["op"], request.get("method")):
        return fail()
    if request["op"] == "call":
        return {"outcome": "ok", "value": {"entry": []}}
    return {"outcome": "ok"}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], **answer(asked)}), flush=True)
    if asked["op"] == "bye":
        break
