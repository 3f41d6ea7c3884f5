"""The common part of judging every kind of database: reasons, the basis of a criterion, and its result."""

from __future__ import annotations

from collections.abc import Iterable
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
        self._reason(Standing.REFUTED, code, text, part, tuple(rows), tuple(probes))

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
        self._reason(Standing.UNPROVEN, code, text, part, tuple(rows), tuple(probes))

    def _reason(
        self, how: Standing, code: Code, text: str, part: Part | None, rows: tuple[Row, ...], probes: tuple[str, ...]
    ) -> None:
        reason = Reason(self.criterion, how, code.value, text, part, rows, probes)
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.rest_on(*rows)

    def rest_on(self, *rows: Row) -> None:
        """Note rows that the criterion rests on."""
        self.rows.extend(row for row in rows if row not in self.rows)

    def _miss(self, needs: Iterable[EvidenceClass]) -> None:
        """Mark as inconclusive each class that is needed and is not there, or of which nothing was tried."""
        for each in needs:
            why = self.evidence.lost.get(each)
            own = [probe for probe in self.evidence.probes if probe.evidence is each]
            if why is None and each in _TRIED and all(probe.answer is None for probe in own):
                # The error that stood in the way, if a probe names it; those of the class itself come first.
                failed = [probe.failed for probe in (*own, *self.evidence.probes) if probe.failed]
                why = f"nothing of it was tried{f': {failed[0]}' if failed else ''}"
            if why is not None:
                self.unproven(Code.EVIDENCE_MISSING, f"no evidence of the class {each.value}: {why}")

    def _standing(self) -> Standing:
        found = {reason.standing for reason in self.reasons}
        return next((each for each in (Standing.REFUTED, Standing.UNPROVEN) if each in found), Standing.PROVEN)
