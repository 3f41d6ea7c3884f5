"""The file that holds a proof, as a type; `specs/schemas/fitness.schema.json` is made from it.

`python -m holdfast.conformance.fitness.document > specs/schemas/fitness.schema.json` writes the schema again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import rfc8785
from msgspec import Meta

from holdfast.conformance.fitness.model import Candidate, FitnessJudgement, Observed, Row, Surface
from holdfast.conformance.fitness.policy import WrittenPolicy
from holdfast.conformance.fitness.server import Server
from holdfast.reports.evidence import KitIdentity
from holdfast.specs import strictjson
from holdfast.specs.typed import Digest, Form, Instant, Text, about, definitions, json_of, matching

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
    policy: WrittenPolicy
    departures: Annotated[tuple[Text, ...], about("Each way in which the policy departs from the contract.")]
    evidence: Annotated[Observed | None, about("Null if there is no surface.")]
    judgement: FitnessJudgement
    candidates: Annotated[
        tuple[Candidate, ...],
        about("What a search inspected, and why each is no candidate; none if it is. Empty if all parts were named."),
    ]
    digest: Annotated[str, matching("^[0-9a-f]{64}$")] | None
    seal: Digest


def bound_to(structure: Mapping[str, tuple[Row, ...]], policy: WrittenPolicy) -> str:
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


if __name__ == "__main__":
    print(json.dumps(fitness_schema(), indent=2, ensure_ascii=False))
