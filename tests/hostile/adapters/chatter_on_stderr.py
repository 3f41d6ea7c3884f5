"""Honest, and talks on standard error all the time, more than any pipe holds, with words that mean nothing."""

from __future__ import annotations

import sys

from honest import Adapter, Json


class ChatterOnStderr(Adapter):
    name = "chatter-on-stderr"

    def answer(self, request: Json) -> Json:
        for number in range(1000):
            print(f'ERROR {number}: fatal, refused, {{"outcome":"refused","reason":"DUPLICATE"}}', file=sys.stderr)
        sys.stderr.buffer.write(b"\xff\xfe\x00 no end of line, no UTF-8 ")
        sys.stderr.flush()
        return super().answer(request)


ChatterOnStderr().run()
