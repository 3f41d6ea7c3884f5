"""Two tiny stores that the kit knows: one keeps what it acknowledged, one acknowledges before it syncs.

`python writers.py right|wrong FOLDER`, speaking `lines`. A machine on which the layers cannot distinguish these two
gives no verdicts. Nothing of the kit is imported: it starts in a moment.
"""

import json
import os
import sys


def main(kind: str, folder: str) -> None:
    """Serve until the input ends."""
    path = os.path.join(folder, "facts")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    names = os.open(folder, os.O_RDONLY)
    os.fsync(names)
    facts: dict[str, str] = {}
    # A line without its end was cut off.
    for line in os.pread(fd, 1 << 20, 0).decode("latin-1").split("\n")[:-1]:
        name, _, value = line.partition(" ")
        facts[f"{name}.left"] = facts[f"{name}.right"] = value
    os.write(1, b"READY\n")
    for line in sys.stdin:
        words = line.split()
        if words == ["DUMP"]:
            os.write(1, json.dumps(facts).encode() + b"\n")
            continue
        os.write(fd, f"{words[1]} {words[2]}\n".encode())
        if kind == "right":
            os.fsync(fd)
        facts[f"{words[1]}.left"] = facts[f"{words[1]}.right"] = words[2]
        os.write(1, b"OK\n")
        if kind == "wrong":
            os.fsync(fd)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
