"""What the reference says of its planted bugs. Asked of its process, because the harness never imports it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from holdfast.conformance.cli.target import REFERENCE
from holdfast.conformance.verdict import Verdict
from holdfast.specs import SpecError, schema, strictjson


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug: the clauses it must break with their verdicts, and those it may break with the reason.

    `faults` are cases in which a fault has to strike it, with their verdicts: most bugs need none, and each takes time.
    """

    name: str
    contract: str
    title: str
    must_fail: Mapping[str, Verdict]
    may_fail: Mapping[str, str]
    store: str
    faults: Mapping[str, Verdict] = field(default_factory=dict)


@cache
def planted() -> tuple[Mutant, ...]:
    """Every mutant of the reference. Raises SpecError if the listing does not fit its schema."""
    done = subprocess.run([*REFERENCE, "mutants", "--json"], capture_output=True, check=False)
    if done.returncode != 0:
        raise SpecError(f"the reference does not list its mutants: {done.stderr.decode(errors='replace')[-400:]}")
    data = strictjson.loads(done.stdout)
    problem = schema.explain(schema.published_validator("mutants"), data)
    if problem is not None:
        raise SpecError(f"the reference's list of mutants does not fit mutants.schema.json {problem}")
    return tuple(
        Mutant(
            name=item["name"],
            contract=item["contract"],
            title=item["title"],
            must_fail={clause: Verdict(verdict) for clause, verdict in item["must_fail"].items()},
            may_fail=item["may_fail"],
            store=item["store"],
            faults={case: Verdict(verdict) for case, verdict in item["faults"].items()},
        )
        for item in data["mutants"]
    )
