"""The basis on which a criterion of a surface in SQLite files is judged, and what came of the probes of `probes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, unique

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Criterion, CriterionResult, EvidenceClass, Part, Probe
from holdfast.conformance.fitness.reasons import Reasons
from holdfast.conformance.fitness.sqlite.bench import refused
from holdfast.conformance.fitness.sqlite.catalogue import Column, Database, Relation, place_of
from holdfast.conformance.fitness.sqlite.probes import FIRST, TRIED

# The evidence that each criterion needs; nothing is proven without it.
_TRIED = (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)
NEEDS: dict[Criterion, tuple[EvidenceClass, ...]] = {
    **dict.fromkeys(Criterion, _TRIED),
    Criterion.ATOMIC: (*_TRIED, EvidenceClass.CONCURRENCY),
    Criterion.APPEND_ONLY: (*_TRIED, EvidenceClass.PRIVILEGES),
    Criterion.AUDIT: (*_TRIED, EvidenceClass.PRIVILEGES, EvidenceClass.CONCURRENCY),
}


@unique
class Outcome(Enum):
    """What came of an attempt. Only REFUSED is a refusal."""

    REFUSED = "refused with an error, and nothing changed"
    ADMITTED = "admitted"
    SILENT = "no error, and nothing changed"
    ERASED = "the stored row is gone or changed"
    FAILED = "an error that is no refusal"
    NOT_SHOWN = "not tried"


def of_attempt(probe: Probe | None, *, counted: Outcome = Outcome.SILENT) -> Outcome:
    """A row that was tried: the last two answers are the attempt's and the inspection's.

    `counted` is what it means that the statement says that it found rows, and nothing differs.
    """
    if probe is None or probe.answer is None or len(probe.answers) < 2 or not probe.answers[-1].rows:
        return Outcome.NOT_SHOWN
    attempt, inspect = probe.answers[-2], probe.answers[-1].rows[0]
    if inspect[FIRST] != 1:
        return Outcome.ERASED
    if inspect.get(TRIED):
        return Outcome.ADMITTED
    if attempt.sqlstate is None:
        return counted if attempt.affected else Outcome.SILENT
    return Outcome.REFUSED if refused(attempt) else Outcome.FAILED


def counts(probe: Probe | None, place: int = -1) -> dict[str, int] | None:
    """What an inspection found, None where there was none."""
    if probe is None or probe.answer is None or len(probe.answers) < abs(place) or not probe.answers[place].rows:
        return None
    return {name: int(count) for name, count in probe.answers[place].rows[0].items()}


def came_to(probe: Probe | None) -> str:
    """A text for the answer to the attempt."""
    if probe is None:
        return "it was not tried"
    errors = (f"{each.sqlstate}: {each.message}" for each in reversed(probe.answers) if each.sqlstate is not None)
    return probe.failed or next(errors, "no error")


@dataclass(slots=True)
class Judging(Reasons):
    """One criterion of a surface in SQLite files."""

    files: Mapping[str, Database]
    # Probes that showed nothing, by what stood in the way.
    inconclusive: dict[tuple[Part, str], list[str]] = field(default_factory=dict)

    def relation(self, which: Part) -> Relation | None:
        """The relation of a part, None if the surface names none or the file has none of that name."""
        name = self.evidence.surface.parts.get(which)
        return None if name is None else self.files[place_of(name)].relation(name.name)

    def named(self, which: Part) -> str:
        """The name of a part in texts."""
        name = self.evidence.surface.parts.get(which)
        return which.value if name is None else name.name

    def probe(self, name: str) -> Probe | None:
        """A probe that the criterion rests on."""
        found = self.evidence.probe(name)
        if name not in self.probes and found is not None:
            self.probes.append(name)
        return found

    def outcome(self, name: str, *, counted: Outcome = Outcome.SILENT) -> Outcome:
        """What came of a probe that the criterion rests on."""
        return of_attempt(self.probe(name), counted=counted)

    def refused(self, which: Part, code: Code, text: str, *names: str) -> None:
        """Each of these had to be refused with an error; what was admitted refutes with `code`."""
        found = {name: self.outcome(name) for name in names}
        for outcome, chosen, more in (
            (Outcome.ADMITTED, code, ""),
            (Outcome.ERASED, Code.CHANGE_ADMITTED, ": the stored row was replaced"),
            (Outcome.SILENT, Code.SILENTLY_IGNORED, ": refused without an error, which reads as done"),
        ):
            if out := [name for name in names if found[name] is outcome]:
                self.refute(chosen, f"{self.named(which)}: {text}{more} ({', '.join(out)})", which, probes=out)
        self.shown(which, *names)

    def admitted(self, code: Code, text: str, name: str) -> None:
        """A row of the effect that must go in."""
        if self.outcome(name) in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
            text = f"{text}: {came_to(self.evidence.probe(name))}"
            self.refute(code, text, Part.EFFECT, probes=(name,))
        self.shown(Part.EFFECT, name)

    def shown(self, which: Part, *names: str) -> None:
        """A probe that could not be tried proves nothing."""
        for name in names:
            if self.outcome(name) in (Outcome.FAILED, Outcome.NOT_SHOWN):
                self.not_shown(which, name)

    def not_shown(self, which: Part, name: str) -> None:
        """A probe has shown nothing."""
        self.inconclusive.setdefault((which, came_to(self.evidence.probe(name))), []).append(name)

    def refusal(self, *names: str) -> str:
        """What refused all of these attempts, in words; empty where one was not refused, or not tried."""
        probes = [self.probe(name) for name in names]
        if any(of_attempt(probe, counted=Outcome.ADMITTED) is not Outcome.REFUSED for probe in probes):
            return ""
        return "; ".join(dict.fromkeys(map(came_to, probes)))

    def flaws(self, relation: Relation, which: Part, column: Column, *found: tuple[object, Code, str]) -> None:
        """What is wrong with a column: whether, with which code, and in words behind its name."""
        for there, code, text in found:
            if there:
                self.refute(code, f"{relation.name}.{column.name} {text}", which, rows=(column.row,))

    def not_null(self, relation: Relation, which: Part, column: Column, code: Code, probe: str, more: str = "") -> None:
        """A column is declared NOT NULL; `probe` tries without."""
        if not relation.refuses_null(column):
            text = f"{relation.name}.{column.name} is not declared NOT NULL{more}"
            self.refute_unless(self.refusal(probe), code, text, which, (column.row,))

    def columns(
        self, relation: Relation, which: Part, words: Iterable[str], *, besides: tuple[str, ...] = ()
    ) -> list[tuple[str, Column]]:
        """The words whose columns are there; the others refute, in one reason, with what lacks of `besides`."""
        gone, more = (
            [self.policy.column(word) for word in each if self.policy.column(word) not in relation.columns]
            for each in (words, besides)
        )
        if gone:
            text = f"{relation.name} has no column {', '.join((*gone, *more))}"
            self.refute(Code.MISSING_COLUMNS, text, which, rows=(relation.row,))
        found = ((word, relation.columns.get(self.policy.column(word))) for word in words)
        return [(word, column) for word, column in found if column is not None]

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

    def judged(self, inspect: Callable[[Judging], None]) -> CriterionResult:
        """The criterion with all its reasons."""
        # Without any evidence there is nothing to read.
        if EvidenceClass.CLONE not in self.evidence.lost and self.evidence.probe("integrity") is None:
            self.unproven(Code.EVIDENCE_MISSING, "the copy was not probed")
        inspect(self)
        for (which, cause), names in self.inconclusive.items():
            self.unproven(Code.PROBE_FAILED, f"{self.named(which)}: {', '.join(names)}: {cause}", which, probes=names)
        self._miss(NEEDS[self.criterion])
        reasons, standing = self.reasons, self._standing()
        # A failed probe says nothing new where the evidence of its kind is lost altogether.
        if any(reason.code == Code.EVIDENCE_MISSING.value for reason in reasons):
            reasons = [reason for reason in reasons if reason.code != Code.PROBE_FAILED.value]
        return CriterionResult(self.criterion, standing, tuple(reasons), tuple(self.rows), tuple(self.probes))
