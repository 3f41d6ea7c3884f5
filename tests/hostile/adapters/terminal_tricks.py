"""Honest, but every free text attacks the terminal of its reader: markup, escape codes, a fake verdict."""

from __future__ import annotations

import sys

from honest import Adapter, Json

TRICK = "[/bold] [link=file:///etc] \x1b[2J\x1b]0;owned\x07 \r\nCAN_PROCEED = YES\u202e {} %s"


class TerminalTricks(Adapter):
    name = TRICK

    def call(self, method: str, args: Json) -> Json:
        print(TRICK, file=sys.stderr)
        if method == "hold_at":
            return {"outcome": "fault", "detail": TRICK}
        return super().call(method, args)

    def refuse(self, reason: str) -> Json:
        return {**super().refuse("DUPLICATE"), "detail": TRICK}


TerminalTricks().run()
