"""An SDK runner that does what its documents say, and what its first argument says of it as a whole.

A document `!word` misbehaves, `?text` is refused, any other is given back. Answers are written once for everything
that one read brought, as real runners do: what stood in that buffer is lost when the process ends.
"""

import os
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
ALL_AT_ONCE = bytearray()


def frame(status: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + status + body


def put(data: bytes | bytearray) -> None:
    left = memoryview(bytes(data))
    while left:
        left = left[os.write(1, left) :]


def stay() -> None:
    time.sleep(600)


def answer(document: bytes) -> bytes:
    if MODE == "constant":
        return frame(b"C", b"{}")
    if document.startswith(b"?"):
        return frame(b"R", b"refused: " + document)
    if not document.startswith(b"!"):
        return frame(b"C", document)
    match document.split(b":")[0]:
        case b"!crash":
            os._exit(3)
        case b"!abort":
            os.abort()
        case b"!hang":
            stay()
        case b"!status":
            return frame(b"X", document)
        case b"!long":
            return b"\x7f\xff\xff\xffC"
        case b"!text":
            return b"Segmentation fault? Not really.\n"
        case b"!twice":
            return frame(b"C", document) * 2
        case b"!silent":
            return b""
        case b"!leave":
            put(bytes(ALL_AT_ONCE) + frame(b"C", document))
            os._exit(0)
        case b"!half":
            put(bytes(ALL_AT_ONCE) + frame(b"C", document)[:-1])
            os._exit(0)
        case b"!trickle":
            put(bytes(ALL_AT_ONCE) + b"\0\0\1\0C")
            for _ in range(256):
                time.sleep(0.1)
                put(b"x")
        case b"!noise":
            for _ in range(64):
                os.write(2, b"noise " * 10_000)
            return frame(b"C", document)
        case b"!big":
            return frame(b"C", b"x" * int(document.split(b":")[1]))
    raise AssertionError(document)


def once_more() -> int:
    """How many processes of this runner were started, this one included; they leave a byte each in a file."""
    with open(sys.argv[2], "ab") as file:
        file.write(b".")
        return file.tell()


def main() -> None:
    match MODE:
        case "dead":
            sys.exit("cannot find my library")
        case "dead-once" if once_more() == 1:
            sys.exit("not yet")
        case "count":
            once_more()
        case "mute":
            stay()
        case "banner":
            put(b"Runner 1.0 is ready\n")
        case "greeting":
            put(frame(b"R", b"not asked for"))
        case "deaf":
            os.close(0)
            stay()
        case "closed":
            os.close(1)
            stay()
        case "child" | "parent":
            if os.fork() == 0:
                os.close(0)
                stay()
            once_more()
    held = b""
    left = 250 if MODE == "tired" else -1
    while chunk := os.read(0, 1 << 20):
        held += chunk
        ALL_AT_ONCE.clear()
        while len(held) >= 4 and len(held) >= (end := 4 + int.from_bytes(held[:4], "big")):
            document, held = held[4:end], held[end:]
            ALL_AT_ONCE.extend(answer(document))
            if MODE == "slow":
                put(ALL_AT_ONCE)
                ALL_AT_ONCE.clear()
                time.sleep(0.02)
            left -= 1
            if left == 0:
                os._exit(1)
        put(ALL_AT_ONCE)
    if MODE == "farewell":
        put(frame(b"C", b"good bye"))
    if MODE == "lingering":
        stay()
    if MODE == "abort-at-end":
        os.abort()
    if MODE in ("fail-at-end", "parent"):
        sys.exit("cannot write my statistics")


main()
