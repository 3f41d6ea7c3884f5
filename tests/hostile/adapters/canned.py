"""Says what an honest adapter said in another run.

ARGV[1] is the transcript: one answer a line. With ARGV[2], the file of a counter, it is cleverer: it answers hello and
bye by itself, puts the right id in, and goes on in the transcript where the process before it stopped.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from honest import Adapter, Json

ANSWERS = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]


class CleverCanned(Adapter):
    name = "canned"

    def answer(self, request: Json) -> Json:
        if request["op"] == "hello":
            return super().answer(request)
        if request["op"] == "bye":
            return {"outcome": "ok"}
        counter = Path(sys.argv[2])
        number = int(counter.read_text(encoding="utf-8")) if counter.exists() else 0
        counter.write_text(str(number + 1), encoding="utf-8")
        canned = dict(ANSWERS[number % len(ANSWERS)])
        canned.pop("id", None)
        return canned


if len(sys.argv) > 2:
    CleverCanned().run()
else:
    for number, _ in enumerate(sys.stdin.buffer):
        print(json.dumps(ANSWERS[number % len(ANSWERS)]), flush=True)
