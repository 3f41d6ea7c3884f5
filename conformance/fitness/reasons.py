"""The common part of judging every kind of database: reasons, the basis of a criterion, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Criterion, Evidence, EvidenceClass, Part, Reason, Row, Standing
from holdfast.conformance.fitness.policy import Policy

# Classes of evidence that consist of probes.
_TRIED = (EvidenceClass.CLONE, EvidenceClass.CONCURRENCY)


@dataclass(slots=True)
class Reasons:
    """One criterion while it is judged. Reasons refute it, or leave it unproven; without any it is proven."""

    criterion: Criterion
    evidence: Evidence
    policy: Policy
    reasons: list[Reason] = field(default_factory=list, kw_only=True)
    rows: list[Row] = field(default_factory=list, kw_only=True)
    probes: list[str] = field(default_factory=list, kw_only=True)

    def refute(
        self, code: Code, text: str, part: Part | None = None, *, rows: Iterable[Row] = (), probes: Iterable[str] = ()
    ) -> None:
        """The forbidden result was shown."""
        self._reason(Standing.REFUTED, code, text, part, rows, probes)

    def refute_unless(
        self, by: str | None, code: Code, text: str, part: Part, rows: Iterable[Row] = (), *, doubt: Code | None = None
    ) -> None:
        """What a catalogue shows: refuted; unproven, as `doubt`, where all that was tried was refused `by` this."""
        if by:
            text = f"{text}; what was tried was refused ({by}), and that everything else is refused too is not shown"
            self.unproven(doubt or code, text, part, rows=rows)
        else:
            self.refute(code, text, part, rows=rows)

    def unproven(
        self, code: Code, text: str, part: Part | None = None, *, rows: Iterable[Row] = (), probes: Iterable[str] = ()
    ) -> None:
        """The required result was not shown."""
        self._reason(Standing.UNPROVEN, code, text, part, rows, probes)

    def _reason(
        self,
        standing: Standing,
        code: Code,
        text: str,
        part: Part | None,
        rows: Iterable[Row],
        probes: Iterable[str],
    ) -> None:
        reason = Reason(self.criterion, standing, code.value, text, part, tuple(rows), tuple(probes))
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.rest_on(*reason.rows)

    def rest_on(self, *rows: Row) -> None:
        """Note rows that the criterion rests on."""
        self.rows.extend(row for row in rows if row not in self.rows)

    def _miss(self, needs: Iterable[EvidenceClass]) -> None:
        """Mark as inconclusive each class that is needed and is not there, or of which nothing was tried."""
        for each in needs:
            why = self.evidence.lost.get(each)
            if why is None and each in _TRIED and not self._anything_of(each):
                why = f"nothing of it was tried{self._because(each)}"
            if why is not None:
                self.unproven(Code.EVIDENCE_MISSING, f"no evidence of the class {each.value}: {why}")

    def _anything_of(self, each: EvidenceClass) -> bool:
        return any(probe.evidence is each and probe.answer is not None for probe in self.evidence.probes)

    def _because(self, each: EvidenceClass) -> str:
        """The error that stood in the way of the probes, if one names it; those of the class itself come first."""
        failed = sorted(
            (probe for probe in self.evidence.probes if probe.failed), key=lambda probe: probe.evidence is not each
        )
        return f": {failed[0].failed}" if failed else ""

    def _standing(self) -> Standing:
        found = {reason.standing for reason in self.reasons}
        return next((each for each in (Standing.REFUTED, Standing.UNPROVEN) if each in found), Standing.PROVEN)

    def _ordered(self) -> Iterator[Reason]:
        """Reasons that refute come first."""
        yield from sorted(self.reasons, key=lambda reason: reason.standing is not Standing.REFUTED)
