"""The file of a proof: its type, from which `specs/schemas/fitness.schema.json` is made; written once, read strictly.

`verify` says why it does not show that the expected surface is fit; it is pure. The seal detects damage, not forgery.
Against a forger who seals anew, the digest is computed again and the evidence is judged again by the function that
judged it; a registrar compares the digest with its live surface. A forger who makes up whole evidence, answers of
probes included, makes up a proof, as with a run.

`python -m holdfast.conformance.fitness.proof > specs/schemas/fitness.schema.json`
writes the schema again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import rfc8785
from msgspec import Meta

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import (
    Candidate,
    Evidence,
    FitnessJudgement,
    Observed,
    Part,
    Row,
    Standing,
    Status,
    Surface,
)
from holdfast.conformance.fitness.policy import CONTRACT, Policy, PolicyError, policy_from_proof
from holdfast.conformance.fitness.server import Server
from holdfast.reports.evidence import KitIdentity
from holdfast.specs import Contract, load_terms, schema, strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.files import read_regular
from holdfast.specs.typed import (
    Digest,
    Form,
    Instant,
    InvalidError,
    Text,
    about,
    definitions,
    instant_text,
    json_of,
    matching,
)
from holdfast.specs.typed import read as read_form

# Version of the format.
SCHEMA: Literal[1] = 1


class ContractText(Form, frozen=True):
    """The contract as it read when the surface was looked at."""

    name: Text
    version: Text
    digest: Digest


class ProofDocument(Form, frozen=True):
    """It holds all that was judged, so that a reader judges it again with the same function.

    `digest` is the SHA-256 of the RFC 8785 form of {policy, structure}: what the proof is bound to. `seal` is the
    SHA-256 of the RFC 8785 form of everything but itself: it detects damage, not forgery.
    """

    schema: Literal[1]
    kit: KitIdentity
    contract: ContractText
    made: Annotated[
        Instant,
        about(
            "RFC 3339, UTC: the moment before anything was looked at, so that a proof is never younger than its "
            "evidence."
        ),
    ]
    target: Annotated[Text, about("Which database was asked, without user and secrets.")]
    server: Annotated[
        Server | None,
        about(
            "Which server and database it is; null if there is no surface, or if it could not be read. The gate "
            "expects one with --server."
        ),
    ]
    challenge: Annotated[
        Annotated[str, Meta(min_length=1, max_length=256)] | None,
        about("What was given with --challenge, so that an older proof cannot stand in for this one."),
    ]
    surface: Annotated[Surface | None, about("Null if there is none.")]
    policy: Policy
    departures: Annotated[tuple[Text, ...], about("Each way in which the policy departs from the contract.")]
    evidence: Annotated[Observed | None, about("Null if there is no surface.")]
    judgement: FitnessJudgement
    candidates: Annotated[
        tuple[Candidate, ...],
        about("What a search inspected, and why each is no candidate; none if it is. Empty if all parts were named."),
    ]
    digest: Annotated[str, matching("^[0-9a-f]{64}$")] | None
    seal: Digest


def bound_to(structure: Mapping[str, tuple[Row, ...]], policy: Policy) -> str:
    """What a proof is bound to: SHA-256, lower-case hex, of the RFC 8785 form of a structure and a policy."""
    plain = {name: [dict(row) for row in rows] for name, rows in structure.items()}
    return hashlib.sha256(rfc8785.dumps({"policy": json_of(policy), "structure": plain})).hexdigest()


def seal_of(document: Mapping[str, Any]) -> str:
    """The seal that a document must have."""
    return strictjson.digest({name: value for name, value in document.items() if name != "seal"})


def fitness_schema() -> dict[str, Any]:
    """The published JSON Schema of a proof."""
    parts = definitions([ProofDocument])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://holdfast.dev/schemas/fitness.schema.json",
        "title": "holdfast fitness --json: the proof of a surface, or why there is none",
        **parts.pop(ProofDocument.__name__),
        "$defs": parts,
    }


# No catalogue of one surface comes near it; more is no proof but an attempt to keep the reader busy.
_LONGEST = 64 * 1024 * 1024
_PASSWORD_IN_URL = re.compile(r"[a-z0-9+.-]://[^\s/:@\"'<>]*:(?!\*\*\*@)[^\s/\"'<>@]+@", re.IGNORECASE)


class ProofError(Exception):
    """A proof cannot be read or written: the text says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof as it was read. `raw` is the document as JSON values."""

    path: str
    document: ProofDocument
    assessment: Assessment
    raw: Mapping[str, Any]


def proof_json(
    assessment: Assessment, *, kit: KitIdentity, made: datetime, challenge: str | None = None
) -> dict[str, Any]:
    """The proof as it is written (`specs/schemas/fitness.schema.json`). Raises ProofError if it holds a secret."""
    terms = load_terms(CONTRACT)
    evidence, policy = assessment.evidence, assessment.policy.written()
    document = json_of(
        ProofDocument(
            schema=SCHEMA,
            kit=kit,
            contract=ContractText(terms.name, terms.version, terms.digest),
            made=made,
            target=assessment.target,
            server=assessment.server,
            challenge=challenge,
            surface=assessment.surface,
            policy=policy,
            departures=assessment.policy.departures(),
            evidence=None if evidence is None else Observed(evidence.snapshot, evidence.probes, evidence.lost),
            judgement=assessment.judgement,
            candidates=assessment.candidates,
            digest=None if evidence is None else bound_to(evidence.snapshot.structure, policy),
            seal="",
        )
    )
    if where := password_in(document):
        raise ProofError(
            f"expected evidence without secrets, found a password in a URL at {where}; a proof is read by many, so "
            "none is written: take the password out of the database object that holds it, and look again"
        )
    return {**document, "seal": seal_of(document)}


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write a proof so that `path` holds all of it or what it held before. Raises ProofError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(document, stream, ensure_ascii=False, indent=1)
                stream.write("\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ProofError(f"{path}: the proof cannot be written: {error.strerror}; name another file") from error


def read(path: Path) -> Proof:
    """Read a proof strictly: bytes, JSON, schema and seal. Raises ProofError. Nothing is believed yet: see `verify`."""
    try:
        data = read_regular(path, limit=_LONGEST)
    except OSError as error:
        raise ProofError(f"{path}: expected a fitness proof, got: {error.strerror}; check the name") from error
    try:
        raw = strictjson.loads(data)
    except StrictJsonError as error:
        raise ProofError(f"{path}: expected a fitness proof as JSON, got: {error}") from error
    # It also asks for the members that have a default in the types.
    problem = schema.explain(schema.published_validator("fitness"), raw)
    if problem is not None:
        raise ProofError(
            f"{path}: does not fit fitness.schema.json: {problem}; write it with `holdfast fitness --json`"
        )
    if seal_of(raw) != raw["seal"]:
        raise ProofError(f"{path}: the seal is broken, so something was changed after it was written; look again")
    try:
        document = read_form(raw, ProofDocument, instants=("made",))
    except InvalidError as error:
        raise ProofError(f"{path}: {error}") from error
    return Proof(str(path), document, _assessment(document, path), raw)


def _assessment(document: ProofDocument, path: Path) -> Assessment:
    try:
        policy = policy_from_proof(document.policy, where=f"{path}: policy")
    except PolicyError as error:
        raise ProofError(str(error)) from error
    surface, held = document.surface, document.evidence
    if (surface is None) != (held is None) or (surface is None) != (document.digest is None):
        raise ProofError(f"{path}: expected surface, evidence and digest all there or all null")
    evidence = None if surface is None or held is None else Evidence(surface, held.snapshot, held.probes, held.lost)
    return Assessment(document.target, policy, surface, evidence, document.judgement, document.candidates)


def password_in(value: Any, *, where: str = "") -> str:
    """The place of the first password in a URL; empty if there is none."""
    if isinstance(value, str):
        return (where or "the whole value") if _PASSWORD_IN_URL.search(value) else ""
    if isinstance(value, Mapping):
        parts = [(f"{where}/{name}", part) for name, part in value.items()]
        parts += [(f"{where}/(a name)", name) for name in value]
    elif isinstance(value, list | tuple):
        parts = [(f"{where}/{number}", part) for number, part in enumerate(value)]
    else:
        return ""
    return next((found for place, part in parts if (found := password_in(part, where=place))), "")


if __name__ == "__main__":
    print(json.dumps(fitness_schema(), indent=2, ensure_ascii=False))


# Clocks of machines in one installation differ by seconds; by more, a proof claims to be from the future.
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a caller of the gate expects a proof to be of.

    `surface` is the effect relation, schema.table; `server` the name of its server and database, None if the caller
    did not say; `challenge` is what was to be given to `holdfast fitness --challenge`, None if none is asked for.
    """

    surface: str
    server: str | None
    challenge: str | None = None


def verify(proof: Proof, *, contract: Contract, kit: KitIdentity, now: datetime, expected: Expected) -> tuple[str, ...]:
    """Why the proof does not show that the expected surface is fit; empty if it does. `now` is aware. Pure."""
    return tuple(_problems(proof, contract, kit, now, expected))


def _problems(proof: Proof, contract: Contract, kit: KitIdentity, now: datetime, expected: Expected) -> Iterator[str]:
    assessed = proof.assessment
    if seal_of(proof.raw) != proof.raw["seal"]:
        yield "the seal is broken, so something was changed after it was written; look again"
    yield from _of_identity(proof.document, contract, kit)
    age, made = now - proof.document.made, instant_text(proof.document.made)
    if age < -_CLOCK_TOLERANCE:
        yield f"it was made at {made}, which is in the future"
    if age > assessed.policy.max_age:
        yield f"it was made at {made} and its policy lets it stand for {assessed.policy.max_age}; look again"
    if assessed.surface is None or assessed.evidence is None:
        yield f"it says {assessed.judgement.status.value}: there was no surface to prove anything of"
        return
    effect = str(assessed.surface.parts.get(Part.EFFECT, ""))
    if effect != expected.surface:
        # The relation itself: a policy can give any table the name of another one.
        yield f"it speaks of the relation {effect!r}, and {expected.surface!r} was asked for"
    name = assessed.policy.name or effect
    if assessed.surface.name != name:
        yield f"its policy and its relations call the surface {name!r}, not {assessed.surface.name!r}"
    yield from _of_server(proof, expected.server)
    wanted, held = expected.challenge, proof.document.challenge
    if wanted not in (None, held):
        got = "none" if held is None else repr(held)
        yield f"expected the challenge {wanted!r} in it, got {got}; look again with --challenge {wanted!r}"
    names = [probe.name for probe in assessed.evidence.probes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"it holds probes twice, so it is unknown which one counts: {', '.join(twice)}"
    if bound_to(assessed.evidence.snapshot.structure, assessed.policy.written()) != proof.document.digest:
        yield "its digest is not that of its catalogue and policy"
    if proof.document.departures != assessed.policy.departures():
        yield "what it says about departures from the contract is not what its policy does"
    if where := password_in(proof.raw):
        yield f"it holds a password in a URL at {where}; throw it away and change the password"
    yield from _of_judgement(assessed, assessed.evidence)


def _of_identity(proof: ProofDocument, contract: Contract, kit: KitIdentity) -> Iterator[str]:
    pin = proof.contract
    if (pin.name, pin.digest) != (contract.name, contract.digest):
        yield f"it was made for {pin.name} {pin.version} with another text than the installed {contract.version}"
    if (proof.kit.name, proof.kit.version) != (kit.name, kit.version):
        yield (
            f"it was made by {proof.kit.name} {proof.kit.version}, installed is {kit.name} {kit.version}; "
            "look again with the installed one"
        )
    elif proof.kit.digest != kit.digest:
        yield f"it was made by other code that calls itself {kit.version} too; look again with the installed one"


def _of_server(proof: Proof, expected: str | None) -> Iterator[str]:
    """A proof of staging, of a replica or of a restored copy opens nothing for the live server."""
    server, made = proof.assessment.server, proof.document.made
    if server != proof.document.server:
        yield "the server that it names is not the one of its evidence"
    if server is None:
        yield "it names no server, so its surface is unknown; assess it again as a role that may read the server's id"
        return
    if server.replica:
        yield f"it was made on a replica ({server.name}), and consumed keys are held by the primary; look at that one"
    if expected is None:
        yield (
            f"no expected server was given, and it is of {server.name}: without that a proof of staging would "
            "open production. Give --server with the name of the live one, as `holdfast fitness` prints it there"
        )
    elif expected != server.name:
        yield f"it was made on the server {server.name}, and {expected} was expected; look at that one"
    if server.clock_contradicts(made):
        clock = server.facts["clock"]
        yield (
            f"it says that it was made at {instant_text(made)}, and the clock of its server said {clock} then; "
            "one of the two was edited, or the clocks differ: set them right and look again"
        )


def _of_judgement(assessed: Assessment, evidence: Evidence) -> Iterator[str]:
    try:
        again = judge(evidence, assessed.policy)
    # Evidence that fits the schema and not the judge was not written by this kit.
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        yield f"its evidence cannot be judged again ({type(error).__name__}), so it is unknown what it shows"
        return
    if again != assessed.judgement:
        yield f"judged again its evidence amounts to {_in_words(again)}, and it says {_in_words(assessed.judgement)}"
    if again.status is not Status.FIT:
        yield f"it does not show a surface that is fit: {_in_words(again)}"


def _in_words(judgement: FitnessJudgement) -> str:
    missing = [each for each in judgement.findings if each.standing is not Standing.PROVEN]
    if not missing:
        return judgement.status.value
    described = ", ".join(f"({each.criterion.value}) {each.standing.value}" for each in missing)
    return f"{judgement.status.value} with {described}"
