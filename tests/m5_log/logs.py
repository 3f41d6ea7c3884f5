"""Stores of the reference in folders of their own, and operations to put into them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.reference_impl.m5_log.database import Access, Database
from holdfast.reference_impl.m5_log.log import Put
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.service import Parts
from holdfast.reference_impl.m5_log.state import json_of
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.m5_log.verify import Problem
from holdfast.vectors.m5_log import derive
from holdfast.vectors.spelling import decoded
from tests.pace import busy

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

    @contextlib.contextmanager
    def opened(self) -> Iterator[Opened]:
        with self.parts.store.reading() as opened:
            yield opened

    def order(self) -> list[str]:
        with self.opened() as opened:
            return [op_id.hex() for op_id in opened.dag.order()]

    def full(self) -> str:
        with self.opened() as opened:
            return json_of(self.parts.replay.full(opened))

    def rows(self, family: Family) -> dict[bytes, bytes]:
        with self.parts.store.raw() as database:
            return dict(database.rows(family))

    def problems(self) -> list[Problem]:
        return self.parts.verify.run().problems

    def alter(self, family: Family, key: bytes, value: bytes | None) -> None:
        """Change a row as somebody does who has the folder."""
        self.parts.store.release()
        database = Database(self.root / DATABASE, Access.WRITE)
        database.write([(family, key, value)])
        database.close()

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the operators' command line on this store, which gives up its lock for it."""
        self.parts.store.release()
        return subprocess.run(
            [sys.executable, "-P", "-m", "holdfast.reference_impl", "m5", *arguments, "--root", str(self.root)],
            env={"PATH": "/usr/bin:/bin", **environment},
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=busy(60),
        )
