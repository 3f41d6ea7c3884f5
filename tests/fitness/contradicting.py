"""Reasons that say the opposite of what the judge's own trials showed. There must be none, whatever the surface."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Evidence, FitnessJudgement, Part, Reason, Standing
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE

# What each of these says was done; a probe that it names must not have been refused.
_DONE = {
    Code.CHANGE_ADMITTED,
    Code.STRANGER_ADMITTED,
    Code.DUPLICATE_ADMITTED,
    Code.REPLAY_ATTEMPT_NO_BYPASS,
    Code.KEY_NOT_CANONICAL,
    Code.BINDING_MAY_BE_EMPTY,
    Code.BINDING_NULLABLE,
    Code.KEY_NULLABLE,
    Code.DECISION_NULLABLE,
    Code.NONCE_REUSED,
    Code.DOMAIN_UNRESTRICTED,
}
_UNGUARDED = {Code.GUARD_MISSING, Code.NO_TRIGGERS}
_NULLABLE = {Code.BINDING_NULLABLE, Code.KEY_NULLABLE, Code.DECISION_NULLABLE, Code.DOMAIN_UNRESTRICTED}
# The column of the contract, and the probe of a row without it, and with empty text in it.
_WITHOUT: Mapping[str, tuple[str, ...]] = {
    **{word: (f"without-{word}",) for word in BINDINGS},
    KEYS[0]: ("key-null",),
    KEYS[1]: ("replay-key-null",),
    NONCE: ("nonce-null",),
    # Of PostgreSQL, and of SQLite.
    "decision_id": ("without-decision", "decision-null"),
}
_EMPTY: Mapping[str, tuple[str, ...]] = {
    **{word: (f"empty-{word}",) for word in BINDINGS},
    KEYS[0]: ("key-upper", "key-space"),
    KEYS[1]: ("replay-key-upper", "replay-key-space"),
}
_VERBS = ("update", "delete", "truncate")


def contradictions(evidence: Evidence, judgement: FitnessJudgement, refused: Callable[[str], bool]) -> list[str]:
    """The texts of such reasons; `refused` says of a probe whether it was tried and refused."""
    return [
        f"{reason.code}: {reason.text}"
        for reason in judgement.reasons
        if any(_said_against(reason, evidence, refused, trials) for trials in _trials(reason, evidence))
    ]


def _said_against(reason: Reason, evidence: Evidence, refused: Callable[[str], bool], trials: tuple[str, ...]) -> bool:
    there = [name for name in trials if evidence.probe(name) is not None]
    return bool(there) and all(map(refused, there))


def _trials(reason: Reason, evidence: Evidence) -> Iterator[tuple[str, ...]]:
    """Probes of which not all can have been refused, if the reason is true."""
    code, is_refuted = Code(reason.code), reason.standing is Standing.REFUTED
    if is_refuted and code in _DONE:
        yield from ((name,) for name in reason.probes)
    if is_refuted and code in _NULLABLE and not reason.probes and "NULL" in reason.text:
        yield from (trials for column, trials in _WITHOUT.items() if re.search(rf"\b{column}\b", reason.text))
    # That no check speaks of a column, where one refused what was tried.
    if re.match(r"(?i)no check (holds|refuses)|nothing restricts", reason.text):
        yield from (trials for column, trials in _EMPTY.items() if re.search(rf"\b{column}\b", reason.text))
    part = reason.part
    if is_refuted and code in _UNGUARDED and part is not None:
        relation = evidence.surface.parts[part]
        # Of a partition alone nothing was tried.
        if re.search(rf"{re.escape(relation.name)}(?![\w.])", reason.text) is None:
            return
        suffix = "" if part is Part.EFFECT else f"-{part.value}"
        verbs = [verb for verb in _VERBS if verb.upper() in reason.text] or _VERBS
        yield tuple(f"{who}-{verb}{suffix}" for verb in verbs for who in ("writer", "owner"))
