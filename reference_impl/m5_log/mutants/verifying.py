"""Bugs in verify-store, and in the commands of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.reference_impl.m5_log.command_line import CommandLine
from holdfast.reference_impl.planting import part


class AlwaysDone(CommandLine):
    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
        return {**super().run(arguments, environment), "status": 0}


class ProblemsAsStatus(CommandLine):
    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
        done = super().run(arguments, environment)
        if arguments[0] != "verify-store" or not done["output"]:
            return done
        *_, count, _ = done["output"].split()
        return {**done, "status": int(count) & 0xFF}


BUGS = {
    "command-always-exits-with-0": part(command_line=AlwaysDone),
    "status-is-the-number-of-problems": part(command_line=ProblemsAsStatus),
}
