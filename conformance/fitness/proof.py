"""The file that says what was seen of a surface: written once, read strictly, believed only after judging again.

The seal detects damage, not forgery. Against who seals anew, the digest is computed again and the evidence is judged
again by the function that judged it; a registrar compares the digest with its live surface. Who makes up whole
evidence, answers of probes included, makes up a proof, as with a run.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.conformance.fitness import form
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import (
    Candidate,
    Criterion,
    Evidence,
    Finding,
    Judgement,
    Part,
    Reason,
    Standing,
    Status,
    Surface,
    digest,
)
from holdfast.conformance.fitness.policy import CONTRACT, Policy, PolicyError, policy_from_proof
from holdfast.conformance.fitness.server import Server, server_of
from holdfast.reports.evidence import KitIdentity
from holdfast.specs import Contract, load_terms, schema, strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.files import read_regular
from holdfast.specs.typed import instant_text

SCHEMA = 1
# Clocks of machines in one installation differ by seconds; by more, a proof claims to be from the future.
_CLOCK_TOLERANCE = timedelta(minutes=5)
# No catalogue of one surface comes near it; more is no proof but an attempt to keep the reader busy.
_LONGEST = 64 * 1024 * 1024
_PASSWORD_IN_URL = re.compile(r"[a-z0-9+.-]://[^\s/:@\"'<>]*:(?!\*\*\*@)[^\s/\"'<>@]+@", re.IGNORECASE)


class ProofError(Exception):
    """A proof cannot be read or written: the text says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Examination:
    """What came of looking. `surface` and `evidence` are None if there is no surface; `target` names no secrets."""

    target: str
    policy: Policy
    surface: Surface | None
    evidence: Evidence | None
    judgement: Judgement
    candidates: tuple[Candidate, ...] = ()

    @property
    def server(self) -> Server | None:
        """Which server it was looked at on; None if there is no surface, or nobody could read it."""
        return None if self.evidence is None else server_of(self.evidence.snapshot)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a caller of the gate expects a proof to be of.

    `surface` is the effect relation, schema.table; `server` the name of its server and database, None if the caller
    did not say; `challenge` is what was to be given to `holdfast fitness --challenge`, None if nobody asks for one.
    """

    surface: str
    server: str | None
    challenge: str | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof as it was read. `departures` are said by the file; `verify` compares them with the policy."""

    path: str
    kit: KitIdentity
    contract: Mapping[str, str]
    made: datetime
    examination: Examination
    departures: tuple[str, ...]
    digest: str | None
    challenge: str | None
    raw: Mapping[str, Any]


def proof_json(
    examination: Examination, *, kit: KitIdentity, made: datetime, challenge: str | None = None
) -> dict[str, Any]:
    """The proof as it is written (`specs/schemas/fitness.schema.json`). Raises ProofError if it would tell a secret."""
    terms = load_terms(CONTRACT)
    surface, evidence, policy = examination.surface, examination.evidence, examination.policy.as_json()
    structure = None if evidence is None else evidence.snapshot.structure
    server = examination.server
    document = {
        "schema": SCHEMA,
        "kit": {"name": kit.name, "version": kit.version, "digest": kit.digest},
        "contract": {"name": terms.name, "version": terms.version, "digest": terms.digest},
        "made": instant_text(made),
        "target": examination.target,
        "server": None if server is None else server.as_json(),
        "challenge": challenge,
        "surface": None if surface is None else form.surface_json(surface),
        "policy": policy,
        "departures": list(examination.policy.departures()),
        "evidence": None if evidence is None else form.evidence_json(evidence),
        "judgement": form.judgement_json(examination.judgement),
        "candidates": [form.candidate_json(each) for each in examination.candidates],
        "digest": None if structure is None else digest(structure, policy),
    }
    if where := _password_in(document):
        raise ProofError(
            f"expected evidence without secrets, found a password in a URL at {where}; a proof is read by many, so "
            "none is written: take the password out of the database object that holds it, and look again"
        )
    return {**document, "seal": strictjson.digest(document)}


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
    problem = schema.explain(schema.published_validator("fitness"), raw)
    if problem is not None:
        raise ProofError(
            f"{path}: does not fit fitness.schema.json: {problem}; write it with `holdfast fitness --json`"
        )
    if _seal(raw) != raw["seal"]:
        raise ProofError(f"{path}: the seal is broken, so something was changed after it was written; look again")
    return _proof(raw, path=str(path))


def _seal(raw: Mapping[str, Any]) -> str:
    return strictjson.digest({name: value for name, value in raw.items() if name != "seal"})


def _proof(raw: Mapping[str, Any], *, path: str) -> Proof:
    try:
        policy = policy_from_proof(raw["policy"], where=f"{path}: policy")
    except PolicyError as error:
        raise ProofError(str(error)) from error
    surface = None if raw["surface"] is None else form.surface_of(raw["surface"])
    if (surface is None) != (raw["evidence"] is None) or (surface is None) != (raw["digest"] is None):
        raise ProofError(f"{path}: expected surface, evidence and digest all there or all null")
    evidence = None if surface is None else form.evidence_of(raw["evidence"], surface)
    candidates = tuple(map(form.candidate_of, raw["candidates"]))
    examination = Examination(raw["target"], policy, surface, evidence, form.judgement_of(raw["judgement"]), candidates)
    kit = KitIdentity(raw["kit"]["name"], raw["kit"]["version"], raw["kit"]["digest"])
    try:
        made = datetime.fromisoformat(raw["made"]).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ProofError(f"{path}: made: expected an instant of the calendar, got {raw['made']!r}: {error}") from error
    return Proof(
        path, kit, raw["contract"], made, examination, tuple(raw["departures"]), raw["digest"], raw["challenge"], raw
    )


def verify(proof: Proof, *, contract: Contract, kit: KitIdentity, now: datetime, expected: Expected) -> tuple[str, ...]:
    """Why the proof does not show that the expected surface is fit; empty if it does. `now` is aware. Pure."""
    return tuple(_problems(proof, contract=contract, kit=kit, now=now, expected=expected))


def _problems(
    proof: Proof, *, contract: Contract, kit: KitIdentity, now: datetime, expected: Expected
) -> Iterator[str]:
    looked = proof.examination
    if _seal(proof.raw) != proof.raw["seal"]:
        yield "the seal is broken, so something was changed after it was written; look again"
    yield from _of_identity(proof, contract, kit)
    yield from _of_age(proof, now)
    if looked.surface is None or looked.evidence is None:
        yield f"it says {looked.judgement.status.value}: there was no surface to prove anything of"
        return
    effect = str(looked.surface.parts.get(Part.EFFECT, ""))
    if effect != expected.surface:
        # The relation itself: a policy can give any table the name of another one.
        yield f"it speaks of the relation {effect!r}, and {expected.surface!r} was asked for"
    wanted = looked.policy.name or effect
    if looked.surface.name != wanted:
        yield f"its policy and its relations call the surface {wanted!r}, not {looked.surface.name!r}"
    yield from _of_server(proof, expected.server)
    yield from _of_challenge(proof, expected.challenge)
    names = [probe.name for probe in looked.evidence.probes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"it holds probes twice, so nobody knows which one counts: {', '.join(twice)}"
    if digest(looked.evidence.snapshot.structure, looked.policy.as_json()) != proof.digest:
        yield "its digest is not that of its catalogue and policy"
    if proof.departures != looked.policy.departures():
        yield "what it says about departures from the contract is not what its policy does"
    if where := _password_in(proof.raw):
        yield f"it holds a password in a URL at {where}; throw it away and change the password"
    yield from _of_judgement(looked, looked.evidence)


def _of_identity(proof: Proof, contract: Contract, kit: KitIdentity) -> Iterator[str]:
    pin = proof.contract
    if (pin["name"], pin["digest"]) != (contract.name, contract.digest):
        yield f"it was made for {pin['name']} {pin['version']} with another text than the installed {contract.version}"
    if (proof.kit.name, proof.kit.version) != (kit.name, kit.version):
        yield (
            f"it was made by {proof.kit.name} {proof.kit.version}, installed is {kit.name} {kit.version}; "
            "look again with the installed one"
        )
    elif proof.kit.digest != kit.digest:
        yield f"it was made by other code that calls itself {kit.version} too; look again with the installed one"


def _of_server(proof: Proof, expected: str | None) -> Iterator[str]:
    """A proof of staging, of a replica or of a restored copy opens nothing for the live server."""
    server = proof.examination.server
    if (None if server is None else server.as_json()) != proof.raw["server"]:
        yield "the server that it names is not the one of its evidence"
    if server is None:
        yield "it names no server, so nobody knows what it is of; look again as a role that may read which one it is"
        return
    if server.replica:
        yield f"it was made on a replica ({server.name}), and consumed keys are held by the primary; look at that one"
    if expected is None:
        yield (
            f"nobody said which server is expected, and it is of {server.name}: without that a proof of staging would "
            "open production. Give --server with the name of the live one, as `holdfast fitness` prints it there"
        )
    elif expected != server.name:
        yield f"it was made on the server {server.name}, and {expected} was expected; look at that one"
    if server.clock_contradicts(proof.made):
        clock = server.facts["clock"]
        yield (
            f"it says that it was made at {instant_text(proof.made)}, and the clock of its server said {clock} then; "
            "one of the two was edited, or the clocks differ: set them right and look again"
        )


def _of_challenge(proof: Proof, expected: str | None) -> Iterator[str]:
    if expected is not None and proof.challenge != expected:
        got = "none" if proof.challenge is None else repr(proof.challenge)
        yield f"expected the challenge {expected!r} in it, got {got}; look again with --challenge {expected!r}"


def _of_age(proof: Proof, now: datetime) -> Iterator[str]:
    age = now - proof.made
    if age < -_CLOCK_TOLERANCE:
        yield f"it was made at {instant_text(proof.made)}, which is in the future"
    if age > proof.examination.policy.max_age:
        limit = proof.examination.policy.max_age
        yield f"it was made at {instant_text(proof.made)} and its policy lets it stand for {limit}; look again"


def _of_judgement(looked: Examination, evidence: Evidence) -> Iterator[str]:
    try:
        again = judge(evidence, looked.policy)
    # Evidence that fits the schema and not the judge was not written by this kit.
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        yield f"its evidence cannot be judged again ({type(error).__name__}), so nobody knows what it shows"
        return
    if again != looked.judgement:
        yield f"judged again its evidence amounts to {_in_words(again)}, and it says {_in_words(looked.judgement)}"
    if again.status is not Status.FIT:
        yield f"it does not show a surface that is fit: {_in_words(again)}"


def _in_words(judgement: Judgement) -> str:
    missing = [each for each in judgement.findings if each.standing is not Standing.PROVEN]
    if not missing:
        return judgement.status.value
    told = ", ".join(f"({each.criterion.value}) {each.standing.value}" for each in missing)
    return f"{judgement.status.value} with {told}"


def unproven_everywhere(code: str, text: str) -> Judgement:
    """The judgement where there is no surface: nothing is proven, and one reason says why."""
    findings = tuple(
        Finding(each, Standing.UNPROVEN, (Reason(each, Standing.UNPROVEN, code, text),), (), ()) for each in Criterion
    )
    return Judgement(Status.NOT_PRESENT, findings, ())


def _password_in(value: Any, *, where: str = "") -> str:
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
    return next((found for place, part in parts if (found := _password_in(part, where=place))), "")
