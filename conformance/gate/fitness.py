"""What the gate asks of a fitness proof: a named live surface was found fit, and is still judged fit. The run must be
of the same schema.

The function that judged the evidence of the proof judges it again. A policy that asks for less than the contract holds
the gate: other operations, a lower horizon. Its other changes neither open nor hold the gate. They stand in the notes,
because the reader of a YES must know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.conformance.fitness.model import EvidenceClass, Part
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.gate.cases import fitness_clauses
from holdfast.conformance.gate.model import FitnessProof, GateReason, ReasonCode, Requirement, some_of
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import KitIdentity, SurfaceLine
from holdfast.specs import Contract, SpecError, load_contract
from holdfast.specs.typed import instant_text

if TYPE_CHECKING:
    from holdfast.conformance.fitness.proof import Proof


@dataclass(frozen=True, slots=True)
class FoundFitness:
    """What holds the gate, and what its reader must know."""

    reasons: tuple[GateReason, ...]
    notes: tuple[str, ...]


def of_fitness(
    required: Sequence[Requirement],
    fitness: FitnessProof | None,
    *,
    kit: KitIdentity,
    now: datetime,
    surfaces: Sequence[SurfaceLine] = (),
) -> FoundFitness:
    """Judge the given proof; a missing proof is a reason to hold. `now` is aware.

    `surfaces` are the stores that the run used, as its evidence says.
    """
    if fitness is None:
        return FoundFitness(tuple(_missing(required)), ())
    # Judging a surface imports the drivers of its databases, and most gates have no proof to judge.
    from holdfast.conformance.fitness.proof import ProofError, read
    from holdfast.conformance.fitness.tie import not_tied
    from holdfast.conformance.fitness.verify import Expected, verify

    where = f"the fitness proof {fitness.path} of surface {fitness.surface}"
    expected = Expected(fitness.surface, fitness.server, fitness.challenge)
    try:
        proof = read(Path(fitness.path))
        contract = _contract(required)
    except (ProofError, SpecError) as error:
        return FoundFitness((_unverified(f"{where} cannot be used: {error}"),), ())
    problems = verify(proof, contract=contract, kit=kit, now=now, expected=expected)
    lines = [line for line in surfaces if line.contract == contract.name]
    loose = [_not_tied(each) for each in not_tied(proof.assessment, lines)] if _speaks_for(required) else []
    # A proof says nothing about the clauses of another contract.
    others = [each for each in required if each.contract.name != contract.name]
    departing = [_departs(f"{where}: {each}") for each in proof.assessment.policy.less_than_contract()]
    reasons = (*(_unverified(f"{where}: {problem}") for problem in problems), *departing, *loose, *_missing(others))
    notes = [*_notes(proof, lines), *([] if problems or departing or loose else _resting(required))]
    return FoundFitness(reasons, tuple(notes))


def _contract(required: Sequence[Requirement]) -> Contract:
    # The digest that is required here: a caller may give it another one.
    named = (each.contract for each in required if each.contract.name == CONTRACT)
    return next(named, None) or load_contract(CONTRACT)


def _missing(required: Sequence[Requirement]) -> Iterator[GateReason]:
    for requirement in required:
        clauses = fitness_clauses(requirement)
        if clauses:
            text = (
                f"{requirement.name}: no fitness proof was given; {len(clauses)} clauses ({some_of(clauses)}) "
                "can be proven only of a named live surface: --fitness F --surface SCHEMA.TABLE --server ID/DATABASE"
            )
            yield GateReason(ReasonCode.FITNESS_MISSING, text, Exit.INCOMPLETE)


def _unverified(text: str) -> GateReason:
    return GateReason(ReasonCode.FITNESS_UNVERIFIED, text, Exit.INCOMPLETE)


def _not_tied(text: str) -> GateReason:
    return GateReason(ReasonCode.FITNESS_UNTIED, f"the run and the fitness proof are not tied: {text}", Exit.INCOMPLETE)


def _speaks_for(required: Sequence[Requirement]) -> bool:
    return any(each.contract.name == CONTRACT and fitness_clauses(each) for each in required)


def _departs(text: str) -> GateReason:
    advice = "look at the surface again with a policy that asks for no less"
    return GateReason(ReasonCode.FITNESS_DEPARTS, f"{text}; {advice}", Exit.INCOMPLETE)


def _resting(required: Sequence[Requirement]) -> Iterator[str]:
    for requirement in required:
        if requirement.contract.name == CONTRACT and (clauses := fitness_clauses(requirement)):
            yield f"{requirement.name}: {len(clauses)} clauses ({some_of(clauses)}) rest on the fitness proof"


def _notes(proof: Proof, lines: Sequence[SurfaceLine]) -> Iterator[str]:
    assessed, held = proof.assessment, proof.document
    if assessed.server is not None:
        challenge = "no challenge" if held.challenge is None else f"challenge {held.challenge!r}"
        yield f"the proof is of the server {assessed.server.name}, with {challenge}"
    for line in lines:
        if not line.problem:
            yield f"the run was made on {line.server}, by the word of the {line.source}, schema {line.schema_digest}"
    if assessed.surface is not None:
        name, parts = assessed.surface.name, assessed.surface.parts
        described = ", ".join(f"{part.value} {parts[part]}" for part in Part if part in parts)
        writer = assessed.surface.writer or "unknown"
        yield (
            f"surface {name}: {assessed.judgement.status.value} on {instant_text(held.made)} in {assessed.target} "
            f"({described}, writer {writer}, digest {held.digest})"
        )
    for departure in assessed.policy.departures():
        yield f"surface {'' if assessed.surface is None else assessed.surface.name}: {departure}"
    if assessed.evidence is not None:
        for each in EvidenceClass:
            if each in assessed.evidence.lost:
                yield f"evidence of the class {each.value} is not there: {assessed.evidence.lost[each]}"
    for note in assessed.judgement.notes:
        yield f"fitness: {note}"
