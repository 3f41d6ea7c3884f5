"""A store that makes each write out of many small ones: COUNT for each, synced at the end of each or never.

`python many.py COUNT sync|nosync FOLDER`, speaking `lines`.
"""

import json
import os
import sys


def main(count: int, mode: str, folder: str) -> None:
    """Serve until the input ends."""
    path = os.path.join(folder, "facts")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    os.fsync(os.open(folder, os.O_RDONLY))
    facts: dict[str, str] = {}
    with open(path, encoding="latin-1") as stream:
        # A line without its end was cut off.
        for line in stream.read().split("\n")[:-1]:
            if line.startswith("="):
                name, _, value = line[1:].partition(" ")
                facts[f"{name}.left"] = facts[f"{name}.right"] = value
    os.write(1, b"READY\n")
    for asked in sys.stdin:
        words = asked.split()
        if words == ["DUMP"]:
            os.write(1, json.dumps(facts).encode() + b"\n")
            continue
        for number in range(count):
            os.write(fd, b"#%08d\n" % number)
        os.write(fd, f"={words[1]} {words[2]}\n".encode())
        if mode == "sync":
            os.fsync(fd)
        facts[f"{words[1]}.left"] = facts[f"{words[1]}.right"] = words[2]
        os.write(1, b"OK\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
