"""A canonicaliser behind frames that is right, with bugs of size and position to switch on. It has no code of the kit.

    python runner.py [BUG]

It keeps its own stack and reads tokens with one expression, which is unusual and right. Without a bug it answers every
document as it must; `depth-limit` is right, too: it refuses what nests deeper than 64 levels. Other bugs:

`naive`  json.dumps with sorted keys
`crash`  like naive, and dies of every document with three closing brackets in a row
`dead`   exits before the first answer
`kill-worker`  kills the process that feeds it
`tired`  dies after every tenth document, whichever that is
`abort-at-end`  aborts when its input ends
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "es6"))

from oracle import text as shown  # type: ignore[import-not-found]

BUG = sys.argv[1] if len(sys.argv) > 1 else ""
TOKEN = re.compile(
    r'[ \t\r\n]*(?:("[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")'
    r"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9.eE+-])|(true|false|null)\b|([\[\]{},:]))"
)
LOOSE_STRING = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*")', re.DOTALL)
LOOSE_NUMBER = re.compile(r"[ \t\r\n]*(0[0-9]+)")
SPACE = re.compile(r"[ \t\r\n]*")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WRITTEN = {chr(code): f"\\u{code:04x}" for code in range(32)} | {
    "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\",
}  # fmt: skip
TO_WRITE = re.compile(r'[\x00-\x1f"\\]')


class RefusedError(Exception):
    """The document is refused."""


def refuse(why: str) -> NoReturn:
    raise RefusedError(why)


def decoded(document: bytes) -> str:
    if BUG == "chunk-decode":
        cut = [document[at : at + 65536] for at in range(0, len(document), 65536)]
        return "".join(part.decode("utf-8", "replace" if len(cut) > 1 else "strict") for part in cut)
    return document.decode("utf-8")


def unescaped(text: str) -> str:
    if "\\" in text:
        text = ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else SHORT.get(found[2], found[2]), text)
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        refuse("a lone surrogate")


def number(text: str) -> float:
    mantissa, mark, exponent = text.partition("e" if "e" in text else "E")
    if BUG == "literal-400" and "." in mantissa:
        mantissa = mantissa[: max(400, mantissa.index(".") + 2)]
    if BUG == "zero-exponent" and mark and int(exponent) > 308 and float(mantissa) == 0:
        refuse("too large")
    if not mark and "." not in mantissa:
        value = int(mantissa) if len(mantissa) < 4000 else 0
        if BUG == "wrap-64" and 2**63 <= abs(value) < 2**64:
            return float((value + 2**63) % 2**64 - 2**63)
        if BUG == "edge-63" and value == 2**63:
            return -float(2**63)
    found = float(mantissa + ("e" + exponent if mark else ""))
    if found in (float("inf"), float("-inf")):
        refuse("too large")
    return found


def quoted(text: str) -> str:
    if BUG == "string-65535":
        text = text[:65535]
    return f'"{TO_WRITE.sub(lambda found: WRITTEN[found[0]], text)}"'


def ordered(members: list[tuple[str, str]], depth: int) -> list[tuple[str, str]]:
    if BUG == "deep-order" and depth > 256:
        return members
    if BUG == "sort-last-1000" and len(members) > 1000:
        return [*sorted(members[:-1], key=lambda member: member[0].encode("utf-16-be")), members[-1]]
    return sorted(members, key=lambda member: member[0].encode("utf-16-be"))


def twice(names: list[str], depth: int) -> bool:
    if BUG == "deep-duplicate" and depth > 500:
        return False
    if BUG == "last-duplicate":
        names = names[:-1]
    return len(set(names)) < len(names)


def token(text: str, at: int, count: int) -> tuple[re.Match[str] | None, str, str]:
    """The next token, its kind and its text."""
    found = TOKEN.match(text, at)
    if found is None and BUG == "control-4096":
        found = LOOSE_STRING.match(text, at)
        if (
            found is not None
            and len(found[1]) > 4096
            and not re.search(r"\\[^\"\\/bfnrtu]|\\u(?![0-9a-fA-F]{4})", found[1])
        ):
            return found, "string", found[1]
        return None, "", ""
    if found is None and BUG == "last-leading-zero" and count > 1000:
        found = LOOSE_NUMBER.match(text, at)
        return (found, "number", found[1].lstrip("0") or "0") if found is not None else (None, "", "")
    if found is None:
        return None, "", ""
    kind = ("string", "number", "literal", "mark")[found.lastindex - 1] if found.lastindex else ""
    return found, kind, found[found.lastindex or 0]


def canonical(document: bytes) -> bytes:
    if document.startswith(b"\xef\xbb\xbf"):
        refuse("a byte order mark")
    text = decoded(document)
    # A container: its bracket, what it holds, and the name that waits for its value. `expect` is what may come next.
    stack: list[tuple[str, list[Any]]] = []
    waiting: list[str] = []
    expect, at, result = "value", 0, ""
    while True:
        found, kind, word = token(text, at, len(stack[-1][1]) if stack else 0)
        if found is None:
            refuse("no token")
        at = found.end()
        value: str | None = None
        if kind == "mark":
            if word in "[{" and expect in ("value", "first"):
                stack.append((word, []))
                if BUG == "stack-1000" and len(stack) > 1000:
                    os._exit(139)
                if BUG == "depth-limit" and len(stack) > 64:
                    refuse("too deep")
                expect = "first" if word == "[" else "first-name"
                continue
            if (
                word in "]}"
                and stack
                and expect in ("first", "first-name", "after")
                and stack[-1][0] + word in ("[]", "{}")
            ):
                bracket, held = stack.pop()
                if bracket == "{":
                    if twice([name for name, _ in held], len(stack) + 1):
                        refuse("a name twice")
                    members = dict(held) if BUG == "deep-duplicate" else held
                    pairs = ordered(list(members.items()) if isinstance(members, dict) else members, len(stack) + 1)
                    value = "{" + ",".join(f"{quoted(name)}:{one}" for name, one in pairs) + "}"
                else:
                    value = "[" + ",".join(held) + "]"
            elif word == "," and stack and expect == "after":
                expect = "value" if stack[-1][0] == "[" else "name"
                continue
            elif word == ":" and expect == "colon":
                expect = "value"
                continue
            else:
                refuse("out of place")
        elif kind == "string" and expect in ("name", "first-name"):
            waiting.append(unescaped(word[1:-1]))
            expect = "colon"
            continue
        elif expect not in ("value", "first"):
            refuse("out of place")
        elif kind == "string":
            value = quoted(unescaped(word[1:-1]))
        elif kind == "number":
            value = shown(number(word))
        else:
            value = word
        if not stack:
            result = value
            break
        if stack[-1][0] == "[":
            stack[-1][1].append(value)
        else:
            stack[-1][1].append((waiting.pop(), value))
        expect = "after"
    if SPACE.match(text, at).end() != len(text):  # type: ignore[union-attr]
        refuse("more than one value")
    return result.encode()


def naive(document: bytes) -> bytes:
    if BUG == "crash" and b"]]]" in document:
        os._exit(3)
    value = json.loads(document)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def main() -> None:
    if BUG == "dead":
        raise SystemExit("no licence found")
    if BUG == "kill-worker":
        os.kill(os.getppid(), signal.SIGKILL)
    documents, answers = sys.stdin.buffer, sys.stdout.buffer
    answer, left = naive if BUG in ("naive", "crash") else canonical, 10 if BUG == "tired" else -1
    while length := documents.read(4):
        if left == 0:
            os._exit(5)
        left -= 1
        document = documents.read(int.from_bytes(length, "big"))
        try:
            status, body = b"C", answer(document)
        except (RefusedError, RecursionError, ValueError) as error:
            status, body = b"R", str(error).encode("utf-8", "replace")
        answers.write(len(body).to_bytes(4, "big") + status + body)
        answers.flush()
    if BUG == "abort-at-end":
        os.abort()


main()
