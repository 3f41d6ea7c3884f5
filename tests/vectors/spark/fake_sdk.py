"""An SDK runner for tests. Its first argument says how it is wrong.

`naive`  json.dumps with sorted keys
`crash`  like naive, and dies of every document with three closing brackets in a row
`dead`   exits before the first answer
`kill-worker`  kills the process that feeds it
`tired`  like the reference, and dies after every tenth document, whichever that is
`abort-at-end`  like the reference, and aborts when its input ends
`echo`  gives every document back
"""

import json
import os
import signal
import struct
import subprocess
import sys

MODE = sys.argv[1]


def canonical(document: bytes) -> bytes:
    if MODE == "crash" and b"]]]" in document:
        os._exit(3)
    if MODE == "echo":
        return document
    value = json.loads(document)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def passing_on(most: int) -> None:
    """Pass frames on to the reference, `most` of them, and die."""
    words = [sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", "--profile", "core"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as right:
        assert right.stdin
        assert right.stdout
        for _ in range(most):
            head = sys.stdin.buffer.read(4)
            if len(head) < 4:
                break
            right.stdin.write(head + sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
            right.stdin.flush()
            answer = right.stdout.read(5)
            sys.stdout.buffer.write(answer + right.stdout.read(struct.unpack(">IB", answer)[0]))
            sys.stdout.buffer.flush()
        right.kill()
    if MODE == "abort-at-end":
        os.abort()
    if len(head) == 4:
        os._exit(5)


def main() -> None:
    if MODE == "dead":
        raise SystemExit("no licence found")
    if MODE == "kill-worker":
        os.kill(os.getppid(), signal.SIGKILL)
    if MODE in ("tired", "abort-at-end"):
        return passing_on(10 if MODE == "tired" else sys.maxsize)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while len(head := source.read(4)) == 4:
        document = source.read(struct.unpack(">I", head)[0])
        try:
            status, body = b"C", canonical(document)
        except (ValueError, RecursionError) as error:
            status, body = b"R", type(error).__name__.encode()
        sink.write(struct.pack(">I", len(body)) + status + body)
        sink.flush()
    return None


main()
