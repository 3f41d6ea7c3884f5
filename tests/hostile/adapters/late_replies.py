"""Answers each put correctly, ARGV[1] seconds late."""

from __future__ import annotations

import sys
import time

from honest import Adapter, Json


class LateReplies(Adapter):
    name = "late-replies"

    def put(self, args: Json) -> Json:
        answer = super().put(args)
        time.sleep(float(sys.argv[1]))
        return answer


LateReplies().run()
