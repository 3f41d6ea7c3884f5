"""The judgement of a surface in SQLite files, from evidence alone. See the package for what counts."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Criterion, Evidence, EvidenceClass, Finding
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.sqlite.criteria import atomic, binding, guards, keys, lasting
from holdfast.conformance.fitness.sqlite.judging import Judging

_JUDGES: dict[Criterion, Callable[[Judging], None]] = {
    Criterion.SINGLE_USE: keys.single_use,
    Criterion.NONCE: keys.nonce_consumed,
    Criterion.BINDING: binding.binding,
    Criterion.DOMAIN: binding.domain,
    Criterion.ATOMIC: atomic.atomic,
    Criterion.APPEND_ONLY: guards.append_only,
    Criterion.AUDIT: guards.audit,
    Criterion.PRIOR_DECISION: lasting.prior_decision,
    Criterion.RETENTION: lasting.retention,
}


def findings(evidence: Evidence, policy: Policy) -> tuple[Finding, ...]:
    """Each criterion, in their order."""
    return tuple(_judged(Judging(criterion, evidence, policy)) for criterion in Criterion)


def _judged(judging: Judging) -> Finding:
    # Without any evidence there is nothing to read.
    if EvidenceClass.CLONE not in judging.evidence.lost and judging.evidence.probe("integrity") is None:
        judging.unproven(Code.EVIDENCE_MISSING, "the copy was not probed")
    _JUDGES[judging.criterion](judging)
    return _without_echoes(judging.finding())


def _without_echoes(finding: Finding) -> Finding:
    """A failed probe says nothing new where the evidence of its kind is lost altogether."""
    if not any(reason.code == Code.EVIDENCE_MISSING.value for reason in finding.reasons):
        return finding
    kept = tuple(reason for reason in finding.reasons if reason.code != Code.PROBE_FAILED.value)
    return Finding(finding.criterion, finding.standing, kept, finding.rows, finding.probes)
