"""How a bug is planted in mesh-delivery: one part of the blueprint replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reference_impl.mesh_delivery.blueprint import Blueprint
from reference_impl.mesh_delivery.fingerprint import Fingerprinter
from reference_impl.mesh_delivery.terms import CONTRACT
from reference_impl.mutants.catalogue import Mutant
from specs import load_terms


def mutant(
    name: str, title: str, part: type[Fingerprinter], must_fail: Mapping[str, str], *, also: str = "", why: str = ""
) -> Mutant:
    """One planted bug; clause ids without the contract's prefix.

    `also` names clauses, blanks between them, that it breaks for the reason `why`; `every` is all of them but
    those about refusals alone (F13) and about a fingerprint compared with itself (F11).
    """

    def apply(blueprint: Blueprint) -> Blueprint:
        return replace(blueprint, fingerprinter=part)

    every = [clause.rpartition("-")[2] for clause in load_terms(CONTRACT).clauses]
    others = [clause for clause in every if clause not in ("F11", "F13")] if also == "every" else also.split()
    return Mutant(
        name=name,
        contract=CONTRACT,
        title=title,
        must_fail={f"MESH-4.4-{clause}": verdict for clause, verdict in must_fail.items()},
        may_fail={f"MESH-4.4-{clause}": why for clause in others if clause not in must_fail},
        apply=apply,
        store="none",
    )
