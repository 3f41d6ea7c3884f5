"""A fake adapter that follows a mini-script: a JSON list in ARGV[1], one entry for each request after hello.

An entry is a word, or a list of a word and its operand:

    ok                    the right answer                 wrong-id           an answer with another id
    value V               the right answer with that value twice              the right answer, two times
    nothing               no answer, and it reads on       late S             the right answer after S seconds
    half                  half a line                      garbage            a line that is no JSON
    list                  JSON, and no object              no-outcome         an object without an outcome
    invalid               an unknown outcome               long               a line of more than 1 MiB
    exit N                ends with that status            half-exit          half a line, then status 0
    signal N              ends itself by that signal       close              closes standard output and stays
    stderr                chatter, then the right answer   deaf               reads no more, and stays
    blank                 an empty line                    early              the right answer and the next one too

Past its end the script says `ok`. ARGV[2], if given, is the word for hello itself. It answers `bye` and leaves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

HELLO = {
    "protocol": 1,
    "implementation": {"name": "fake", "version": "1.0.0", "language": "python"},
    "claims": [{"contract": "toy", "version": "0.1.0", "not_claimed": {}}],
    "limits": {"workers": 8},
}


def act(entry: Any, request: dict[str, Any]) -> None:
    """Do what the script says about one request."""
    word: str
    operand: Any
    word, operand = entry if isinstance(entry, list) else (entry, None)
    right: dict[str, Any] = {"id": request["id"], "outcome": "ok"}
    if request["op"] == "hello":
        right = {"id": request["id"], "ok": {**HELLO, "challenge": request["challenge"]}}
    half, number = json.dumps(right).encode()[:9], int(request["id"])
    # What is written: messages, or bytes as they are.
    said: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(("ok", "stderr", "late"), (right,)),
        **dict.fromkeys(("nothing", "exit", "signal", "close", "deaf"), ()),
        "twice": (right, right),
        "early": (right, {**right, "id": str(number + 1)}),
        "value": ({**right, "value": operand},),
        "wrong-id": ({**right, "id": str(number + 7)},),
        "half": (half,),
        "half-exit": (half,),
        "garbage": (b"\x00\xff no JSON\n",),
        "blank": (b"\n",),
        "list": ([right],),
        "no-outcome": ({"id": request["id"]},),
        "invalid": ({**right, "outcome": "perhaps"},),
        "long": ({**right, "value": "x" * (1024 * 1024)},),
    }
    if word == "stderr":
        print("chatter " * 1000, file=sys.stderr, flush=True)
    elif word == "late":
        time.sleep(operand)
    for message in said[word]:
        sys.stdout.buffer.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        sys.stdout.buffer.flush()
    if word in ("exit", "half-exit"):
        os._exit(operand or 0)
    if word in ("signal", "close", "deaf"):
        if word == "signal":
            os.kill(os.getpid(), operand)
        elif word == "close":
            os.close(1)
        time.sleep(60)


def main() -> None:
    """Follow the script."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    script = json.loads(sys.argv[1])
    greeting = sys.argv[2] if len(sys.argv) > 2 else "ok"
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "hello":
            act(json.loads(greeting) if greeting.startswith("[") else greeting, request)
        elif request["op"] == "bye":
            act("ok", request)
            return
        else:
            act(script.pop(0) if script else "ok", request)


if __name__ == "__main__":
    main()
