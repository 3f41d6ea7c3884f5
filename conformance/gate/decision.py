"""The gate: decides whether a run proves enough to ship. An unproven requirement holds it.

The hash chain detects damage, not forgery. Against a forger who computes a new chain, the gate derives the plan, the
digests and the judgement of the exchanges from what is installed. A forger can still invent a conforming run: whole
exchanges of a conforming adapter (docs/evidence.md has the table of what can be forged).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.conformance.fitness.model import EvidenceClass, Part
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.gate.cases import fitness_clauses, of_cases
from holdfast.conformance.gate.model import (
    Expected,
    Extent,
    Findings,
    FitnessProof,
    GateDecision,
    GateReason,
    ReasonCode,
    Requirement,
    held,
    some_of,
)
from holdfast.conformance.gate.run import (
    foreign_results,
    of_baseline,
    of_contract,
    of_file,
    of_libraries,
    of_name,
    of_parts,
    of_pin,
    of_run,
    of_vectors,
)
from holdfast.conformance.run.documents import CONTRACT as OF_DOCUMENTS
from holdfast.conformance.run.documents import is_of_documents
from holdfast.conformance.run.kit import installed_kit
from holdfast.conformance.run.plan import with_plan
from holdfast.conformance.verdict import PRECEDENCE, gravest
from holdfast.reports.evidence import Artefacts, Header, KitIdentity, Run, SeedOrigin, SurfaceLine, seed_of_nonce
from holdfast.specs import Contract, SpecError, load_contract
from holdfast.specs.typed import instant_text
from holdfast.vectors.taxonomy import Profile

if TYPE_CHECKING:
    from holdfast.conformance.fitness.proof import Proof

# What the gate asks of a run's identity: which files ran, of which commit, for whom, when, and from which seed. The
# caller identifies a run by what he knows of it: without `--nonce`, `--commit` and `--adapter-digest` it may be any run
# of that contract. docs/evidence.md says what a forger of the file can still do.

# As `holdfast verify` generates one.
_FRESH = re.compile(r"[0-9a-f]{32}\Z")


def of_identity(run: Run, header: Header, expected: Expected) -> Iterator[GateReason]:
    """Why the run is not the required one, or does not identify itself."""
    yield from _files(run.artefacts, expected)
    if expected.commit is not None and header.adapter.commit != expected.commit:
        text = f"commit {expected.commit} was asked for, the run says {header.adapter.commit or 'nothing of a commit'}"
        yield held(ReasonCode.OTHER_COMMIT, f"{text}; run that commit with --commit {expected.commit}")
    if expected.not_before is not None and header.started < expected.not_before:
        text = f"the run started at {instant_text(header.started)}, not before {instant_text(expected.not_before)}"
        yield held(ReasonCode.TOO_EARLY, f"{text} was asked for; run again")
    fresh = "run with --seed random or --nonce" if run.vectors else "run without --seed"
    yield from _seed(header, expected, fresh=fresh)


def _files(artefacts: Artefacts | None, expected: Expected) -> Iterator[GateReason]:
    if artefacts is None:
        text = "the run does not say which files ran (a line of type artefacts); run again"
        yield held(ReasonCode.DAMAGED, f"the evidence is not complete: {text}")
        return
    if artefacts.changed:
        text = f"files of the adapter changed while the run went on ({some_of(artefacts.changed)})"
        advice = "run again while nothing is built; a file that the adapter writes does not belong on its command line"
        yield held(ReasonCode.ADAPTER_CHANGED, f"{text}: it is unknown which of them was tested; {advice}")
    if expected.adapter_digest is not None and artefacts.digest != expected.adapter_digest:
        came = artefacts.digest or "none, for no file of it was hashed"
        text = f"the adapter with the digest {expected.adapter_digest} was asked for, the run has {came}"
        yield held(ReasonCode.OTHER_ADAPTER, f"{text}; verify that build, in the same way (docs/evidence.md)")


def _seed(header: Header, expected: Expected, *, fresh: str) -> Iterator[GateReason]:
    origin, said = header.seed_origin, header.nonce
    derived = said is not None and header.seed == seed_of_nonce(said)
    if origin is SeedOrigin.CHOSEN and not expected.allow_seed:
        text = "the seed of the run was chosen (--seed), so the adapter could know beforehand what it would be asked"
        yield held(ReasonCode.SEED_CHOSEN, f"{text}; {fresh}, or allow it with --allow-seed")
    if origin is SeedOrigin.FRESH and (said is not None or _FRESH.match(header.seed) is None):
        text = "its seed is said to be fresh, and is not one that holdfast draws"
        yield held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    if origin is SeedOrigin.NONCE and not derived:
        text = "its seed is said to be of its nonce, and is not"
        yield held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    if expected.nonce is None:
        return
    if said != expected.nonce:
        came = "has none" if said is None else "has another one"
        text = f"the nonce {expected.nonce} was asked for, the run {came}"
        yield held(ReasonCode.OTHER_NONCE, f"{text}; run with --nonce {expected.nonce}")
    elif not derived and not expected.allow_seed:
        text = "the seed of the run does not follow from its nonce; run with --nonce and without --seed"
        yield held(ReasonCode.OTHER_NONCE, text)


# What the gate asks of a fitness proof: a named live surface was found fit, and is still judged fit. The run must be
# of the same schema.
#
# The function that judged the evidence of the proof judges it again. A policy that asks for less than the contract
# holds the gate: other operations, a lower horizon. Its other changes neither open nor hold the gate. They stand in the
# notes, because the reader of a YES must know them.


def of_fitness(
    required: Sequence[Requirement],
    fitness: FitnessProof | None,
    *,
    kit: KitIdentity,
    now: datetime,
    surfaces: Sequence[SurfaceLine] = (),
) -> Findings:
    """Judge the given proof; a missing proof is a reason to hold. `now` is aware.

    `surfaces` are the stores that the run used, as its evidence says.
    """
    if fitness is None:
        return Findings(tuple(_missing(required)), ())
    # Judging a surface imports the drivers of its databases, and most gates have no proof to judge.
    from holdfast.conformance.fitness import proof as proofs
    from holdfast.conformance.fitness.tie import not_tied

    where = f"the fitness proof {fitness.path} of surface {fitness.surface}"
    expected = proofs.Expected(fitness.surface, fitness.server, fitness.challenge)
    try:
        proof = proofs.read(Path(fitness.path))
        contract = _contract(required)
    except (proofs.ProofError, SpecError) as error:
        return Findings((held(ReasonCode.FITNESS_UNVERIFIED, f"{where} cannot be used: {error}"),), ())
    problems = proofs.verify(proof, contract=contract, kit=kit, now=now, expected=expected)
    lines = [line for line in surfaces if line.contract == contract.name]
    asked = any(each.contract.name == CONTRACT and fitness_clauses(each) for each in required)
    loose = list(not_tied(proof.assessment, lines)) if asked else []
    # A proof says nothing about the clauses of another contract.
    others = [each for each in required if each.contract.name != contract.name]
    departing = proof.assessment.policy.less_than_contract()
    advice = "look at the surface again with a policy that asks for no less"
    reasons = (
        *(held(ReasonCode.FITNESS_UNVERIFIED, f"{where}: {problem}") for problem in problems),
        *(held(ReasonCode.FITNESS_DEPARTS, f"{where}: {each}; {advice}") for each in departing),
        *(held(ReasonCode.FITNESS_UNTIED, f"the run and the fitness proof are not tied: {each}") for each in loose),
        *_missing(others),
    )
    notes = [*_notes(proof, lines), *([] if problems or departing or loose else _resting(required))]
    return Findings(reasons, tuple(notes))


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
            yield held(ReasonCode.FITNESS_MISSING, text)


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


__all__ = [
    "DEFAULT_MAX_AGE",
    "Expected",
    "Extent",
    "FitnessProof",
    "GateDecision",
    "GateReason",
    "ReasonCode",
    "Requirement",
    "decide",
    "installed_kit",
    "parse_requirement",
]

# A week: a run older than that may describe dependencies and machines that are no longer in use.
DEFAULT_MAX_AGE = timedelta(days=7)
_CORE_SUFFIX = "/core"
_NOTHING_MORE = Expected()


def parse_requirement(text: str) -> Requirement:
    """Read one `--require`: a contract, `/` and roles joined by `+` if some are enough, and `/core`; or documents.

    Raises SpecError when there is no such contract or role.
    """
    name = text.partition("/")[0]
    contract = with_plan(name)
    if name == OF_DOCUMENTS and text.split("/")[1:2] == [Extent.VECTORS.value]:
        profile = text.partition("/vectors")[2].removeprefix("/") or Profile.CORE.value
        if profile not in {*Profile}:
            known = ", ".join(Profile)
            raise SpecError(f"--require {text}: expected {name}/vectors, or {name}/vectors/PROFILE of {known}")
        return Requirement(contract, Extent.VECTORS, profile=profile)
    # A role of that name is meant where the contract has one.
    extent = Extent.CORE if text.endswith(_CORE_SUFFIX) and Extent.CORE.value not in contract.roles else Extent.FULL
    named = (text.removesuffix(_CORE_SUFFIX) if extent is Extent.CORE else text).partition("/")[2]
    roles = frozenset(named.split("+")) if named else None
    if roles is not None and not roles <= contract.roles.keys():
        known = f", or CONTRACT/ROLE of the roles {', '.join(contract.roles)}" if contract.roles else ""
        raise SpecError(f"--require {text}: expected CONTRACT or CONTRACT/core{known}")
    return Requirement(contract, extent, roles)


def claimed_in(header: Header) -> list[Requirement]:
    """What the adapter of a run claims: each contract, with the roles that it claims where it lacks some.

    Raises SpecError for a contract that is not installed.
    """
    not_claimed = {claim.contract: claim.not_claimed for claim in header.adapter.claims}
    found = []
    for name in (pin.contract for pin in header.contracts):
        contract = with_plan(name)
        claimed = contract.roles.keys() - contract.lacks(not_claimed.get(name, {})).keys()
        roles = None if claimed in ({*contract.roles}, set()) else frozenset(claimed)
        found.append(Requirement(contract, Extent.FULL, roles))
    return found


def decide(
    run: Run,
    required: Sequence[Requirement],
    *,
    now: datetime,
    max_age: timedelta = DEFAULT_MAX_AGE,
    kit: KitIdentity | None = None,
    fitness: FitnessProof | None = None,
    baseline: Run | None = None,
    expected: Expected = _NOTHING_MORE,
    path: Path | None = None,
) -> GateDecision:
    """Decide whether `run` proves what is `required`. Pure but for the digest of the installed kit, if none is given.

    `now` is aware. `path` is where the run was read, if its name counts. All reasons are given, the gravest first.
    """
    header, installed = run.header, kit or installed_kit()
    judging = kit or installed_kit(*(pin.contract for pin in header.contracts)) if header is not None else installed
    reasons: list[GateReason] = [*of_file(run), *(() if path is None else of_name(path))]
    notes: list[str] = []
    left_out: list[str] = []
    if not required:
        text = "no contract is required, so nothing would be proven; name one with --require"
        reasons.append(held(ReasonCode.NOTHING_REQUIRED, text))
    if header is None and not run.defects:
        reasons.append(held(ReasonCode.DAMAGED, "the evidence has no header"))
    documents = [each for each in required if each.extent is Extent.VECTORS]
    required = [each for each in required if each.extent is not Extent.VECTORS]
    if header is not None and is_of_documents(run):
        reasons += of_vectors(run, required) if required or not documents else ()
        if documents:
            # It needs the extra `vectors`.
            from holdfast.conformance.gate.documents import of_documents

            asked = _of_header(run, header, expected, kit=judging, now=now, max_age=max_age)
            reasons += [*asked.reasons, *of_pin(header, documents[0].contract)]
            notes += asked.notes
        for requirement in documents:
            found = of_documents(run, header, requirement, expected)
            reasons += found.reasons
            notes += found.notes
        reasons += () if baseline is None else of_baseline(run, header, baseline)
        return _decided(reasons, notes, (), tuple(_not_asked(expected, None, run, max_age)))
    for requirement in documents:
        text = f"{requirement.name} is required, the run is none of documents; run `holdfast vectors verify`"
        reasons.append(held(ReasonCode.NOT_IN_RUN, text))
    if header is not None:
        asked = _of_header(run, header, expected, kit=judging, now=now, max_age=max_age)
        reasons += [*asked.reasons, *of_parts(run, header)]
        notes += asked.notes
    sides = run.sides()
    for requirement in required:
        if header is not None:
            reasons += of_contract(header, requirement)
        found = of_cases(run, header, requirement, sides, expected)
        reasons += found.reasons
        notes += found.notes
        left_out += found.left_out
    proven = of_fitness(required, fitness, kit=installed, now=now, surfaces=run.surfaces)
    reasons += proven.reasons
    notes += proven.notes
    if run.attempts:
        notes.append(f"run again, alone, after a limit of holdfast: {some_of([line.case for line in run.attempts])}")
    if baseline is not None and header is not None:
        reasons += of_baseline(run, header, baseline)
    return _decided(reasons, notes, left_out, tuple(_not_asked(expected, fitness, baseline, max_age)))


def _of_header(
    run: Run, header: Header, expected: Expected, *, kit: KitIdentity, now: datetime, max_age: timedelta
) -> Findings:
    """What the header of any run has to be: of this kit, whole, not too old, of the one who asks; and of its cases."""
    libraries = of_libraries(header, kit, expected)
    reasons = (
        *of_run(run, header, kit=kit, now=now, max_age=max_age),
        *libraries.reasons,
        *of_identity(run, header, expected),
        *foreign_results(run, header),
    )
    return Findings(reasons, libraries.notes)


def _decided(
    reasons: Sequence[GateReason],
    notes: Sequence[str] = (),
    left_out: Sequence[str] = (),
    not_asked: tuple[str, ...] = (),
) -> GateDecision:
    return GateDecision(
        can_proceed="NO" if reasons else "YES",
        reasons=tuple(sorted(reasons, key=lambda reason: PRECEDENCE.index(reason.exit))),
        exit=gravest(reason.exit for reason in reasons),
        notes=tuple(notes),
        left_out=tuple(left_out),
        not_asked=not_asked,
    )


def _not_asked(
    expected: Expected, fitness: FitnessProof | None, baseline: Run | None, max_age: timedelta
) -> Iterator[str]:
    """The options of `holdfast gate` that were not given, each with what was not checked therefore."""
    given = {
        "--commit: of which revision the run is": expected.commit,
        "--nonce: that it was made for this request": expected.nonce,
        "--adapter-digest: which files of the adapter ran": expected.adapter_digest,
        "--not-before: when it started": expected.not_before,
        "--baseline: whether a claim of an earlier run was dropped": baseline,
        "--challenge: that the proof was made for this request": True if fitness is None else fitness.challenge,
    }
    yield from (text for text, value in given.items() if value is None)
    if max_age == DEFAULT_MAX_AGE:
        yield f"--max-age: a run may be {max_age.days} days old"
