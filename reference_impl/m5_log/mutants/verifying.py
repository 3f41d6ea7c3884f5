"""Bugs in verify-store, and in the commands of an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.m5_log.command_line import CommandLine
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import ID_BYTES, Operation, unpacked
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.m5_log.verify import Problem, Report, Verify
from holdfast.reference_impl.planting import part


class CheckpointsUnread(Verify):
    def checkpoints(self, database: Database) -> Iterator[Problem]:
        return iter(())


class WaitingUnread(Verify):
    waiting: frozenset[bytes] = frozenset()

    def scan(self, database: Database, report: Report) -> None:
        # A row that is damaged says of nothing that it waits.
        rows = {op_id: row for op_id, row in database.rows(Family.EDGES) if len(row) % ID_BYTES == 0}
        edges = {op_id: unpacked(row) for op_id, row in rows.items()}
        self.waiting = frozenset(op_id for op_id, parents in edges.items() if not edges.keys() >= set(parents))
        super().scan(database, report)

    def operation(self, op_id: bytes, raw: bytes) -> Operation:
        if op_id in self.waiting:
            return replace(self._codec.decode(raw), op_id=op_id)
        return super().operation(op_id, raw)

    def replayed(self, opened: Opened) -> Iterator[Problem]:
        # A replay reads what waits as well.
        return iter(()) if self.waiting else super().replayed(opened)


class OrderFirst(Verify):
    """Passes a store of which no order can be built: then there is nothing to compare."""

    def run(self) -> Report:
        report = super().run()
        with self._store.raw() as database:
            edges = dict(database.rows(Family.EDGES))
        if edges and not any(not row for row in edges.values()):
            report.problems = []
        return report


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


class InTheLocale(CommandLine):
    def run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
        done = super().run(arguments, environment)
        zone = environment.get("TZ", "")
        return {**done, "output": done["output"] + zone} if arguments[0] == "dump-state-json" else done


BUGS = {
    "verify-without-checkpoints": part(verify=CheckpointsUnread),
    "verify-without-what-waits": part(verify=WaitingUnread),
    "verify-passes-a-circle": part(verify=OrderFirst),
    "command-always-exits-with-0": part(command_line=AlwaysDone),
    "status-is-the-number-of-problems": part(command_line=ProblemsAsStatus),
    "dump-with-time-zone": part(command_line=InTheLocale),
}
