"""Stores of the reference in folders of their own, and operations to put into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.reference_impl.m5_log.log import Put
from holdfast.reference_impl.m5_log.service import Parts
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.m5_log.verify import Problem
from holdfast.vectors.m5_log import derive
from holdfast.vectors.spelling import decoded

Draft = Mapping[str, Any]
DATABASE = "m5/db"


def draft(
    ms: int = 1000, *, by: str = "alice", kind: str = "set", parents: Sequence[str] = (), **payload: Any
) -> Draft:
    """An operation as the vectors write it; a register without further arguments."""
    return {
        "key": by,
        "ms": ms,
        "kind": kind,
        "parents": list(parents),
        "payload": payload or {"key": "k", "value": ms},
    }


def raw_of(each: Draft) -> bytes:
    return decoded(derive.op(each))


def id_of(each: Draft) -> str:
    return derive.op_id(derive.op(each))


@dataclass(slots=True)
class Box:
    """One store, with short words for what tests do most."""

    root: Path
    config: Mapping[str, str] = field(default_factory=dict)
    parts: Parts = field(init=False)

    def __post_init__(self) -> None:
        self.parts = Parts(self.root, self.config)

    def make(self) -> Box:
        self.parts.store.opening.make()
        return self

    def again(self) -> Box:
        """The same store after a restart."""
        self.parts.store.release()
        return Box(self.root, self.config)

    def put(self, each: Draft) -> Put:
        return self.parts.log.put(raw_of(each))

    def put_all(self, drafts: Sequence[Draft]) -> None:
        for each in drafts:
            self.put(each)

    def rows(self, family: Family) -> dict[bytes, bytes]:
        with self.parts.store.raw() as database:
            return dict(database.rows(family))

    def problems(self) -> list[Problem]:
        return self.parts.verify.run().problems
