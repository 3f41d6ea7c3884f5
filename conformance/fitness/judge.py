"""The judgement of a surface: a pure function of evidence and policy, so that a reader of a proof judges it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.conformance.fitness import sqlite
from holdfast.conformance.fitness.criteria import around, atomic, audit, binding, guards, keys, lasting, notes
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.model import (
    Criterion,
    Dialect,
    Evidence,
    EvidenceClass,
    Finding,
    Judgement,
    status_of,
)
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue

_TRIED = (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)
# Each criterion with who judges it, and the classes of evidence without which it is not proven.
_JUDGES: Mapping[Criterion, tuple[Callable[[Judging], None], tuple[EvidenceClass, ...]]] = {
    Criterion.SINGLE_USE: (keys.single_use, _TRIED),
    Criterion.NONCE: (keys.nonce, _TRIED),
    Criterion.BINDING: (binding.binding, _TRIED),
    Criterion.DOMAIN: (binding.domain, _TRIED),
    Criterion.ATOMIC: (atomic.atomic, atomic.NEEDS),
    Criterion.APPEND_ONLY: (around.append_only, guards.NEEDS),
    Criterion.AUDIT: (audit.audit, audit.NEEDS),
    Criterion.PRIOR_DECISION: (lasting.prior_decision, lasting.NEEDS_DECISION),
    Criterion.RETENTION: (lasting.retention, lasting.NEEDS_RETENTION),
}


def judge(evidence: Evidence, policy: Policy) -> Judgement:
    """Every criterion, in order, and what a reader must know besides. FIT only if all are proven."""
    if evidence.snapshot.dialect is Dialect.SQLITE:
        findings = sqlite.findings(evidence, policy)
        return Judgement(status_of(findings), findings, sqlite.notes(evidence))
    catalogue = Catalogue(evidence.snapshot)
    findings = tuple(_finding(criterion, evidence, policy, catalogue) for criterion in Criterion)
    return Judgement(status_of(findings), findings, notes.notes(evidence, catalogue))


def _finding(criterion: Criterion, evidence: Evidence, policy: Policy, catalogue: Catalogue) -> Finding:
    inspect, needs = _JUDGES[criterion]
    judging = Judging(criterion, evidence, policy, catalogue, needs)
    judging.check(inspect)
    return judging.finding()
