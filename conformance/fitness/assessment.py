"""The result of inspecting a surface: the evidence that was gathered, and its judgement."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.conformance.fitness.model import (
    Candidate,
    Criterion,
    CriterionResult,
    Evidence,
    FitnessJudgement,
    Reason,
    Standing,
    Status,
    Surface,
)
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.server import Server, server_of


@dataclass(frozen=True, slots=True)
class Assessment:
    """`surface` and `evidence` are None if there is no surface; `target` names no secrets."""

    target: str
    policy: Policy
    surface: Surface | None
    evidence: Evidence | None
    judgement: FitnessJudgement
    candidates: tuple[Candidate, ...] = ()

    @property
    def server(self) -> Server | None:
        """The server of the surface; None if there is no surface, or its identity could not be read."""
        return None if self.evidence is None else server_of(self.evidence.snapshot)


def not_present(code: str, text: str) -> FitnessJudgement:
    """The judgement where there is no surface: nothing is proven, and one reason says why."""
    findings = tuple(
        CriterionResult(each, Standing.UNPROVEN, (Reason(each, Standing.UNPROVEN, code, text),), (), ())
        for each in Criterion
    )
    return FitnessJudgement(Status.NOT_PRESENT, findings, ())
