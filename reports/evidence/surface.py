"""The line of `run.jsonl` that says which store a run really used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SurfaceLine:
    """The store that the run really used, for a contract with clauses that only a fitness proof shows.

    `source` says whose word it was where to look, `schema` has the digests of what was read there, by the name of the
    query. `used` is whether an accepted request was seen to appear there. `problem` is empty, or why nobody can say.
    """

    contract: str
    source: str | None
    dialect: str | None
    server: str | None
    parts: Mapping[str, Mapping[str, str]]
    writer: str | None
    schema: Mapping[str, str]
    schema_digest: str | None
    used: bool
    problem: str

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "surface",
            "contract": self.contract,
            "source": self.source,
            "dialect": self.dialect,
            "server": self.server,
            "parts": {part: dict(relation) for part, relation in self.parts.items()},
            "writer": self.writer,
            "schema": dict(self.schema),
            "schema_digest": self.schema_digest,
            "used": self.used,
            "problem": self.problem,
        }
