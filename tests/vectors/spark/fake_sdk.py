"""An SDK runner for tests. Its first argument says how it is wrong.

`naive`  json.dumps with sorted keys
`crash`  like naive, and dies of every document with three closing brackets in a row
`dead`   exits before the first answer
"""

import json
import os
import struct
import sys

MODE = sys.argv[1]


def canonical(document: bytes) -> bytes:
    if MODE == "crash" and b"]]]" in document:
        os._exit(3)
    value = json.loads(document)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def main() -> None:
    if MODE == "dead":
        raise SystemExit("no licence found")
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while len(head := source.read(4)) == 4:
        document = source.read(struct.unpack(">I", head)[0])
        try:
            status, body = b"C", canonical(document)
        except (ValueError, RecursionError) as error:
            status, body = b"R", type(error).__name__.encode()
        sink.write(struct.pack(">I", len(body)) + status + body)
        sink.flush()


main()
