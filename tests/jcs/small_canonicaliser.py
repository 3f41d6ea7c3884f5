"""An adapter for jcs around Python's own json: `utf-16` orders members as RFC 8785 does, `code-points` does not.

It claims neither of the stricter profiles nor `verify`, like most libraries.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vectors" / "es6"))

from oracle import text as shown  # type: ignore[import-not-found]

LACKS = dict.fromkeys(("i-json-strict", "safe-int", "verify"), "a library for RFC 8785 alone")
HELLO = {
    "protocol": 1,
    "implementation": {"name": "small", "version": "1.0.0", "language": "python"},
    "claims": [{"contract": "jcs", "version": "0.1.0", "not_claimed": LACKS}],
    "limits": {"workers": 2},
}
ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
ESCAPED = {**{chr(code): f"\\u{code:04x}" for code in range(0x20)}, **ESCAPES}
ORDERS = {"utf-16": lambda name: name.encode("utf-16-be"), "code-points": lambda name: name}
ORDER = ORDERS[sys.argv[1]]


class RefusedError(Exception):
    """The reason, as the contract names it."""


def refuse(reason: str) -> NoReturn:
    raise RefusedError(reason)


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else refuse("DUPLICATE_NAME")


def number(double: float) -> str:
    if not math.isfinite(double):
        refuse("NUMBER_OUT_OF_RANGE")
    return str(shown(double))


def text(value: str) -> str:
    return '"' + "".join(ESCAPED.get(each, each) for each in value) + '"'


def written(value: Any) -> str:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list):
        return f"[{','.join(map(written, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{text(name)}:{written(value[name])}" for name in sorted(value, key=ORDER)) + "}"
    return json.dumps(value)


def canonical(document: bytes) -> bytes:
    if document.startswith(b"\xef\xbb\xbf"):
        refuse("BYTE_ORDER_MARK")
    try:
        decoded = document.decode("utf-8")
    except UnicodeDecodeError:
        refuse("INVALID_UTF8")
    try:
        value = json.loads(
            decoded, parse_int=float, object_pairs_hook=members, parse_constant=lambda _: refuse("SYNTAX")
        )
        return written(value).encode("utf-8")
    except UnicodeEncodeError:
        refuse("LONE_SURROGATE")
    except ValueError:
        refuse("SYNTAX")
    except RecursionError:
        refuse("DEPTH_EXCEEDED")


def decoded(value: str) -> bytes:
    if not re.fullmatch("[A-Za-z0-9_-]*", value):
        refuse("REQUEST_MALFORMED")
    found = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)) if len(value) % 4 != 1 else b""
    return found if base64.urlsafe_b64encode(found).decode().rstrip("=") == value else refuse("REQUEST_MALFORMED")


def asked(args: dict[str, Any]) -> dict[str, Any]:
    try:
        if args.keys() != {"document", "profile"} or not all(isinstance(each, str) for each in args.values()):
            refuse("REQUEST_MALFORMED")
        if args["profile"] in LACKS:
            return {"outcome": "unsupported", "capability": args["profile"]}
        document = decoded(args["document"]) if args["profile"] == "core" else refuse("REQUEST_MALFORMED")
        made = base64.urlsafe_b64encode(canonical(document)).decode().rstrip("=")
        return {"outcome": "accepted", "effect": "new", "value": {"canonical": made}}
    except RefusedError as error:
        return {"outcome": "refused", "reason": str(error)}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["op"] == "hello":
        return {"ok": {**HELLO, "challenge": request["challenge"]}}
    if request["op"] != "call":
        return {"outcome": "ok"}
    if request["method"] == "canonicalise":
        return asked(request["args"])
    return {"outcome": "unsupported", "capability": request["method"]}


if __name__ == "__main__":
    sys.setrecursionlimit(8000)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
        if request["op"] == "bye":
            break
