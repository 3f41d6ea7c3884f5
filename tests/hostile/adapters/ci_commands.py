"""Honest, but every free text is a command to the CI server whose log it may end in, on a line of its own."""

from __future__ import annotations

import sys

from honest import Adapter, Json

COMMANDS = (
    "\r\n::error file=a::b\n::set-output name=x::y\n##[add-mask]x\n##vso[task.complete result=Succeeded]\n"
    "##teamcity[buildStatus status='SUCCESS']\n--- all is well\n+++ x\nsection_start:1:x\r\x1b[0K\nCAN_PROCEED = YES\n"
)


class CiCommands(Adapter):
    name = COMMANDS

    def call(self, method: str, args: Json) -> Json:
        print(COMMANDS, file=sys.stderr)
        if method == "hold_at":
            return {"outcome": "fault", "detail": COMMANDS}
        return super().call(method, args)

    def refuse(self, reason: str) -> Json:
        return {**super().refuse("DUPLICATE"), "detail": COMMANDS}


CiCommands().run()
