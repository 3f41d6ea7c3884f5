"""What the baseline adapters score on a plan: one accepts everything, one refuses everything.

A count of passed cases says little beside nothing; it stands beside these. The scores are measured, not computed: the
two are adapters like any other, and `holdfast selfcheck --baselines` writes what they got to
`specs/<contract>/baselines.json`, bound to the digests of the contract and its cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from holdfast.specs import Contract
from holdfast.specs.leaves import resolved
from holdfast.specs.registry import contracts
from holdfast.specs.schema import found

# What the schemas of contracts call for: keys, nonces, instants, versions, names. Others give `examples`.
_SAMPLES = (
    "sample",
    "0" * 64,
    "A" * 43,
    "2026-01-01T00:00:00Z",
    "rs4a/0.2",
    "dot://sample/x",
    "0",
    "SAMPLE",
    "00000000-0000-4000-8000-000000000000",
)


@unique
class Policy(Enum):
    """The two baseline adapters."""

    ACCEPT_ALL = "accept-all"
    REFUSE_ALL = "refuse-all"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The measured verdicts of both policies, by case id."""

    verdicts: Mapping[Policy, Mapping[str, str]]

    def conforms(self, policy: Policy, case: str) -> bool:
        """Whether that policy got `conforms` on the case."""
        return self.verdicts[policy].get(case) == "conforms"


def load_baseline(contract: Contract) -> Baseline | None:
    """The committed baseline of `contract`; None if there is none or it was measured on other cases."""
    at = contracts().get(contract.name)
    path = None if at is None else at.folder / "baselines.json"
    if path is None or not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["digest"] != contract.digest or data["cases_digest"] != contract.cases_digest:
        return None
    return Baseline({policy: data["verdicts"][policy.value] for policy in Policy})


def baseline_json(contract: Contract, verdicts: Mapping[Policy, Mapping[str, str]]) -> str:
    """The file's text."""
    data = {
        "contract": contract.name,
        "digest": contract.digest,
        "cases_digest": contract.cases_digest,
        "verdicts": {policy.value: dict(verdicts[policy]) for policy in Policy},
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def sample(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """The least value that fits `schema`, as far as the schemas of contracts go. Raises LookupError beyond that."""
    schema = resolved(schema, root.get("$defs", {}))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "examples" in schema:
        return schema["examples"][0]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: sample(schema["properties"][name], root) for name in schema.get("required", ())}
    if kind == "array":
        return [sample(schema["items"], root) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return _text(schema)
    return {"integer": schema.get("minimum", 0), "number": 0, "boolean": True, "null": None}[kind]


def _text(schema: Mapping[str, Any]) -> str:
    for text in _SAMPLES:
        if found(schema.get("pattern", ""), text) and len(text) >= schema.get("minLength", 0):
            return text
    raise LookupError(f"no sample text fits {schema.get('pattern')!r}")
