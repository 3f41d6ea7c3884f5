"""What a file of evidence amounts to: the lines that could be read, and every defect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique

from holdfast.reports.evidence.identity import Artefacts
from holdfast.reports.evidence.model import (
    Attempt,
    Exchange,
    Footer,
    Header,
    Log,
    Restart,
    SurfaceLine,
    Vectors,
    VerdictLine,
)


@unique
class DefectKind(Enum):
    """How a file falls short of a complete, undamaged run."""

    NOT_ZSTD = "not_zstd"
    NOT_JSON = "not_json"
    NOT_CANONICAL = "not_canonical"
    SCHEMA = "schema"
    UNKNOWN_VERDICT = "unknown_verdict"
    CHAIN = "chain"
    ORDER = "order"
    COUNT = "count"
    DUPLICATE = "duplicate"
    CUT_OFF = "cut_off"


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that is wrong with a file. `line` counts from 1; None speaks of the file as a whole."""

    kind: DefectKind
    line: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.line is None else f"line {self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Run:
    """What stands in a file. With any `defects` it is not evidence of a complete run; the rest is what could be read.

    `digest` is of the file's bytes.
    """

    header: Header | None
    exchanges: tuple[Exchange, ...]
    logs: tuple[Log, ...]
    restarts: tuple[Restart, ...]
    verdicts: tuple[VerdictLine, ...]
    footer: Footer | None
    defects: tuple[Defect, ...]
    digest: str
    vectors: tuple[Vectors, ...] = ()
    surfaces: tuple[SurfaceLine, ...] = ()
    artefacts: Artefacts | None = None
    attempts: tuple[Attempt, ...] = ()

    def sides(self) -> Mapping[str, Mapping[str, tuple[Exchange, ...]]]:
        """The exchanges by case id and by side, each in the order of the file."""
        grouped: defaultdict[str, defaultdict[str, list[Exchange]]] = defaultdict(lambda: defaultdict(list))
        for exchange in self.exchanges:
            grouped[exchange.case][exchange.side].append(exchange)
        return {case: {side: tuple(found) for side, found in by_side.items()} for case, by_side in grouped.items()}
