"""The basis on which a criterion is judged, and the way in which its reasons are put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Criterion, CriterionResult, EvidenceClass, Part, Probe, Row
from holdfast.conformance.fitness.reasons import Reasons
from holdfast.conformance.fitness.sqlite.catalogue import Database, Relation, database, part
from holdfast.conformance.fitness.sqlite.live import MAIN
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, of_change
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT

# The evidence that each criterion needs; nothing is proven without it.
NEEDS: dict[Criterion, tuple[EvidenceClass, ...]] = {
    **dict.fromkeys(Criterion, (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)),
    Criterion.ATOMIC: (EvidenceClass.CATALOGUE, EvidenceClass.CLONE, EvidenceClass.CONCURRENCY),
    Criterion.APPEND_ONLY: (EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES, EvidenceClass.CLONE),
    Criterion.AUDIT: (
        EvidenceClass.CATALOGUE,
        EvidenceClass.PRIVILEGES,
        EvidenceClass.CLONE,
        EvidenceClass.CONCURRENCY,
    ),
}


@dataclass(slots=True)
class Judging(Reasons):
    """One criterion of a surface in SQLite files."""

    # Probes that showed nothing, by what stood in the way.
    inconclusive: dict[tuple[Part, str], list[str]] = field(default_factory=dict)

    def relation(self, which: Part) -> Relation | None:
        """The relation of a part."""
        return part(self.evidence.snapshot, self.evidence.surface, which)

    def named(self, which: Part) -> str:
        """The name of a part in texts."""
        name = self.evidence.surface.parts.get(which)
        return which.value if name is None else name.name

    @property
    def main(self) -> Database:
        """The file itself."""
        return database(self.evidence.snapshot)

    @property
    def audit_file(self) -> Database | None:
        """The file of an audit that has its own."""
        there = any(query.startswith(f"{AUDIT}.") for query in self.evidence.snapshot.structure)
        return database(self.evidence.snapshot, AUDIT) if there else None

    def beside(self, name: str = MAIN) -> list[Row]:
        """What lay beside a file."""
        return [row for row in self.evidence.snapshot.circumstances["beside"] if row["file"] == name]

    def probe(self, name: str) -> Probe | None:
        """A probe that the criterion rests on."""
        if name not in self.probes and self.evidence.probe(name) is not None:
            self.probes.append(name)
        return self.evidence.probe(name)

    def refused(self, which: Part, found: dict[str, Outcome], code: Code, text: str) -> None:
        """Each of these had to be refused with an error; what was admitted refutes with `code`."""
        for outcomes, chosen, said in (
            ((Outcome.ADMITTED,), code, text),
            ((Outcome.ERASED,), Code.CHANGE_ADMITTED, f"{text}: the stored row was replaced"),
            ((Outcome.SILENT,), Code.SILENTLY_IGNORED, f"{text}: refused without an error, which reads as done"),
        ):
            names = [name for name, outcome in found.items() if outcome in outcomes]
            if names:
                self.refute(chosen, f"{self.named(which)}: {said} ({', '.join(names)})", which, probes=names)
        self.shown(which, found)

    def shown(self, which: Part, found: dict[str, Outcome]) -> None:
        """A probe that could not be tried proves nothing."""
        for name, outcome in found.items():
            if outcome in (Outcome.FAILED, Outcome.NOT_SHOWN):
                self.inconclusive.setdefault((which, came_to(self.evidence.probe(name))), []).append(name)

    def refusal(self, *names: str) -> str:
        """What refused all of these attempts, in words; empty where one was not refused, or not tried."""
        probes = [self.probe(name) for name in names]
        if any(of_change(probe) is not Outcome.REFUSED for probe in probes):
            return ""
        return "; ".join(dict.fromkeys(map(came_to, probes)))

    def columns(
        self, relation: Relation, which: Part, words: Iterable[str], *, besides: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """The words whose columns are there; the others refute, in one reason, with what lacks of `besides`."""
        words = tuple(words)
        gone = [word for word in words if self.policy.column(word) not in relation.columns]
        if gone:
            more = (word for word in besides if self.policy.column(word) not in relation.columns)
            names = ", ".join(self.policy.column(word) for word in (*gone, *more))
            self.refute(Code.MISSING_COLUMNS, f"{relation.name} has no column {names}", which, rows=(relation.row,))
        return tuple(word for word in words if word not in gone)

    def table(self, which: Part) -> Relation | None:
        """The relation of a part, if it is named and there. What is no table refutes, and is judged all the same."""
        relation = self.relation(which)
        if relation is None:
            if which in self.evidence.surface.parts:
                self.refute(Code.MISSING_RELATION, f"there is no relation {self.named(which)}", which)
            return None
        self.rows.append(relation.row)
        if not relation.is_table:
            self.refute(Code.NOT_A_TABLE, f"{relation.name} is a {relation.kind}", which, rows=(relation.row,))
        return relation

    def finding(self) -> CriterionResult:
        """The criterion with all its reasons."""
        for (which, cause), names in self.inconclusive.items():
            self.unproven(Code.PROBE_FAILED, f"{self.named(which)}: {', '.join(names)}: {cause}", which, probes=names)
        self._miss(NEEDS[self.criterion])
        return CriterionResult(
            self.criterion, self._standing(), tuple(self.reasons), tuple(self.rows), tuple(self.probes)
        )
