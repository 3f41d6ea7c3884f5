"""The judgement of a surface: a pure function of evidence and policy, so that a reader of a proof judges it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.conformance.fitness.criteria import atomic, audit, binding, guards, keys, lasting, notes
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.model import (
    Criterion,
    CriterionResult,
    Dialect,
    Evidence,
    EvidenceClass,
    FitnessJudgement,
    status_of,
)
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue
from holdfast.conformance.fitness.sqlite.catalogue import translated

_TRIED = (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)
_GRANTED = (EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES, EvidenceClass.CLONE)
# Each criterion with who judges it, and the classes of evidence without which it is not proven.
JUDGES: Mapping[Criterion, tuple[Callable[[Judging], None], tuple[EvidenceClass, ...]]] = {
    Criterion.SINGLE_USE: (keys.single_use, _TRIED),
    Criterion.NONCE: (keys.nonce, _TRIED),
    Criterion.BINDING: (binding.binding, _TRIED),
    Criterion.DOMAIN: (binding.domain, _TRIED),
    Criterion.ATOMIC: (atomic.atomic, (*_TRIED, EvidenceClass.CONCURRENCY)),
    Criterion.APPEND_ONLY: (guards.append_only, _GRANTED),
    Criterion.AUDIT: (audit.audit, (*_GRANTED, EvidenceClass.CONCURRENCY)),
    Criterion.PRIOR_DECISION: (lasting.prior_decision, _GRANTED),
    Criterion.RETENTION: (lasting.retention, _TRIED),
}


def judge(evidence: Evidence, policy: Policy) -> FitnessJudgement:
    """Every criterion, in order, and what a reader must know besides. FIT only if all are proven."""
    in_files = evidence.snapshot.dialect is Dialect.SQLITE
    if in_files:
        evidence = translated(evidence)
    catalogue = Catalogue(evidence.snapshot)
    found: list[CriterionResult] = []
    for criterion, (inspect, needs) in JUDGES.items():
        judging = Judging(criterion, evidence, policy, catalogue, needs)
        judging.check(inspect)
        found.append(judging.finding())
    findings = tuple(found)
    said = notes.notes_in_files(evidence) if in_files else notes.notes(evidence, catalogue)
    return FitnessJudgement(status_of(findings), findings, tuple(said))
