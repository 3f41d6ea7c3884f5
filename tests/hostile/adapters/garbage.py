"""Answers every request with a line that is no JSON and no UTF-8."""

import sys

for _ in sys.stdin.buffer:
    sys.stdout.buffer.write(b"\xff\xfe\x00{not json\n")
    sys.stdout.buffer.flush()
