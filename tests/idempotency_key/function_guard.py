"""A guard around a function, and the adapter that it needs: `python function_guard.py [BUG]`. It is no HTTP service.

Bugs: `payload` compares no payload; `failed` frees the key of a function that raised.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUG = sys.argv[1] if len(sys.argv) > 1 else ""
PROFILE = {
    "key_syntax": "opaque",
    "max_key_length": 200,
    "fingerprint": ["body"],
    "scope": [],
    "problem_details": False,
}
LACKING = "a function has no {}"
NOT_CLAIMED = {
    **dict.fromkeys(("begin", "finish", "cut", "burst", "hold", "release"), LACKING.format("requests under way")),
    **dict.fromkeys(("instance", "line", "serve_store", "pause", "pass_time"), LACKING.format("processes or lines")),
    "kill": "its store is one process's",
    "concurrency": "one call after the other",
}


class Guard:
    """Runs a function once for each key."""

    def __init__(self, path: Path) -> None:
        self._store = sqlite3.connect(path, isolation_level=None)
        self._store.execute("CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, payload TEXT, result TEXT)")

    def once(self, key: str, payload: bytes, function: Callable[[], str]) -> tuple[str, bool]:
        """The result, and whether it is new. Raises ValueError, LookupError, what the function raises."""
        if not 0 < len(key) <= 200 or not key.isprintable():
            raise ValueError("key")
        digest = hashlib.sha256(payload).hexdigest()
        try:
            self._store.execute("INSERT INTO calls VALUES (?, ?, NULL)", (key, digest))
        except sqlite3.IntegrityError:
            found = self._store.execute("SELECT payload, result FROM calls WHERE key = ?", (key,)).fetchone()
            if found[0] != digest and BUG != "payload":
                raise LookupError("another payload") from None
            if found[1] is None:
                raise RuntimeError("it failed, and is not known to have done nothing") from None
            return found[1], False
        try:
            result = function()
        except Exception:
            if BUG == "failed":
                self._store.execute("DELETE FROM calls WHERE key = ?", (key,))
            raise
        self._store.execute("UPDATE calls SET result = ? WHERE key = ?", (result, key))
        return result, True

    def close(self) -> None:
        self._store.close()


class Adapter:
    """What holdfast asks: calls of the guarded function, and how many effects there were."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._guard = Guard(Path(request["workdir"]) / "calls.db")
        self._effects: Counter[str] = Counter()
        self._endings: dict[str, dict[str, Any]] = {}

    def close(self) -> None:
        self._guard.close()

    def submit(self, args: dict[str, Any]) -> dict[str, Any]:
        body = base64.urlsafe_b64decode(args["body"] + "=" * (-len(args["body"]) % 4))
        body = body.replace(b"%FILL%", b"x" * args.get("fill", 0))
        tag = args["tag"]
        ending = self._endings.get(tag, {})

        def charge() -> str:
            self._effects[tag] += ending.get("effect", True)
            if ending.get("throw"):
                raise RuntimeError("the function raises")
            return f"receipt {tag}"

        try:
            if len(args["keys"]) != 1:
                raise ValueError("keys")
            result, new = self._guard.once(args["keys"][0].strip(), body, charge)
        except ValueError:
            return self._refused("MALFORMED", 400)
        except LookupError:
            return self._refused("MISMATCH", 422)
        except RuntimeError:
            return self._refused("UNKNOWN", 500)
        return {"outcome": "accepted", "effect": "new" if new else "prior", "value": self._response(201, result)}

    def _refused(self, reason: str, status: int) -> dict[str, Any]:
        return {"outcome": "refused", "reason": reason, "data": self._response(status, reason)}

    def _response(self, status: int, text: str) -> dict[str, Any]:
        body = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        return {"status": status, "headers": [], "body": body, "size": len(text), "marked": False, "lost": ""}

    def profile(self, _args: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", "value": {"profile": PROFILE}}

    def ending(self, args: dict[str, Any]) -> dict[str, Any]:
        self._endings[args["tag"]] = args["ending"]
        return {"outcome": "ok"}

    def seen(self, args: dict[str, Any]) -> dict[str, Any]:
        count = self._effects[args["tag"]]
        return {"outcome": "ok", "value": {"effects": count, "attempts": count, "held": 0}}

    def effects(self, _args: dict[str, Any]) -> dict[str, Any]:
        return {"outcome": "ok", "value": {"tags": dict(self._effects)}}


def answer(request: dict[str, Any], session: list[Adapter]) -> dict[str, Any]:
    """The members of the answer to one line."""
    match request["op"]:
        case "hello":
            claims = [{"contract": "idempotency-key", "version": "0.1.0", "not_claimed": NOT_CLAIMED}]
            named = {"name": "function-guard", "version": "1", "language": "Python"}
            return {
                "ok": {
                    "protocol": 1,
                    "challenge": request["challenge"],
                    "implementation": named,
                    "claims": claims,
                    "limits": {"workers": 1},
                }
            }
        case "open":
            session[:] = [Adapter(request)]
        case "close" | "bye":
            for each in session:
                each.close()
            session.clear()
        case "call":
            method, args = request["method"], request.get("args", {})
            if method in NOT_CLAIMED:
                return {"outcome": "unsupported", "capability": method}
            found: dict[str, Any] = getattr(session[0], method)(args)
            return found
    return {"outcome": "ok"}


def main() -> None:
    session: list[Adapter] = []
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request, session)}), flush=True)


if __name__ == "__main__":
    main()
