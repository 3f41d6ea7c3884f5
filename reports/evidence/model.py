"""The lines of `run.jsonl` in memory, and what a file of them amounts to.

`as_json` gives a line without its `prev`, which is the writer's. Instants are aware, in UTC; `sent_us` and
`received_us` are microseconds since the run began. Verdicts and silences stay text here: what they mean is the
business of `conformance`, and which words exist is said by the schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, unique
from typing import Any

from holdfast.reports.evidence.identity import Artefacts, SeedOrigin
from holdfast.reports.evidence.surface import SurfaceLine
from holdfast.specs import strictjson

# Version of the line format.
SCHEMA = 2


def instant_text(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds. `moment` is aware."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class KitIdentity:
    """Which holdfast ran; `digest` covers its own code."""

    name: str
    version: str
    digest: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in the header."""
        return {"name": self.name, "version": self.version, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class ContractPin:
    """A contract as it read when the run began."""

    contract: str
    version: str
    digest: str
    cases_digest: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in the header."""
        return {
            "contract": self.contract,
            "version": self.version,
            "digest": self.digest,
            "cases_digest": self.cases_digest,
        }


@dataclass(frozen=True, slots=True)
class Implementation:
    """What an adapter says it puts behind the protocol."""

    name: str
    version: str
    language: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in the header."""
        return {"name": self.name, "version": self.version, "language": self.language}


@dataclass(frozen=True, slots=True)
class Claimed:
    """One contract that the adapter says it keeps, and the capabilities it says it lacks."""

    contract: str
    version: str
    not_claimed: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """As it stands in the header."""
        return {"contract": self.contract, "version": self.version, "not_claimed": dict(self.not_claimed)}


@dataclass(frozen=True, slots=True)
class AdapterIdentity:
    """The adapter: how it was started and what it said in its hello.

    `implementation` is None if it did not come as far as hello. `commit` is the revision that the caller says it was
    built from, None if the caller said nothing. What its files were stands in the line `artefacts`.
    """

    command: tuple[str, ...]
    commit: str | None
    implementation: Implementation | None
    claims: tuple[Claimed, ...]

    def as_json(self) -> dict[str, Any]:
        """As it stands in the header."""
        return {
            "command": list(self.command),
            "commit": self.commit,
            "implementation": None if self.implementation is None else self.implementation.as_json(),
            "claims": [claim.as_json() for claim in self.claims],
        }


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user asked for: contracts, and the expression of `-k`, if any."""

    contracts: tuple[str, ...]
    expression: str | None

    def as_json(self) -> dict[str, Any]:
        """As it stands in the header."""
        return {"contracts": list(self.contracts), "expression": self.expression}


@dataclass(frozen=True, slots=True)
class Header:
    """The first line. `plan` is every case id in order, whatever was selected; `deadlines` are seconds by name.

    `nonce` is what the caller of the run gave to know it again, None if nothing.
    """

    kit: KitIdentity
    contracts: tuple[ContractPin, ...]
    adapter: AdapterIdentity
    environment: Mapping[str, str]
    config: Mapping[str, str]
    seed: str
    seed_origin: SeedOrigin
    nonce: str | None
    deadlines: Mapping[str, float]
    started: datetime
    plan: tuple[str, ...]
    selection: Selection

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "header",
            "schema": SCHEMA,
            "kit": self.kit.as_json(),
            "contracts": [pin.as_json() for pin in self.contracts],
            "adapter": self.adapter.as_json(),
            "environment": dict(self.environment),
            "config": dict(self.config),
            "seed": self.seed,
            "seed_origin": self.seed_origin.value,
            "nonce": self.nonce,
            "deadlines": dict(self.deadlines),
            "started": instant_text(self.started),
            "plan": list(self.plan),
            "selection": self.selection.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, or one local action; `n` counts from 0 in its `side` (main or twin) of the case."""

    case: str
    side: str
    n: int
    action: str
    worker: int
    request: Mapping[str, Any] | None
    answer: Mapping[str, Any] | None
    event: Mapping[str, Any] | None
    sent_us: int | None
    received_us: int | None

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "exchange",
            "case": self.case,
            "side": self.side,
            "n": self.n,
            "action": self.action,
            "worker": self.worker,
            "request": self.request,
            "answer": self.answer,
            "event": self.event,
            "sent_us": self.sent_us,
            "received_us": self.received_us,
        }


@dataclass(frozen=True, slots=True)
class Log:
    """Standard error of an adapter, at most 64 KiB a worker."""

    worker: int
    text: str

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {"type": "log", "worker": self.worker, "text": self.text}


@dataclass(frozen=True, slots=True)
class Restart:
    """A dead worker was replaced, for the `count`-th time in this run."""

    worker: int
    cause: str
    count: int

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {"type": "restart", "worker": self.worker, "cause": self.cause, "count": self.count}


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """What one case showed. `excused` is the issue of an expected failure; `seconds` is how long the case took.

    `side` is the side that the verdict is of and `n` the exchange there that was judged; None where it is of none.
    """

    case: str
    clauses: tuple[str, ...]
    verdict: str
    silence: str | None
    detail: str
    expected: str
    received: str
    advice: str
    excused: str | None
    seconds: float
    side: str | None = None
    n: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "verdict",
            "case": self.case,
            "clauses": list(self.clauses),
            "verdict": self.verdict,
            "silence": self.silence,
            "detail": self.detail,
            "expected": self.expected,
            "received": self.received,
            "advice": self.advice,
            "excused": self.excused,
            "seconds": self.seconds,
            "side": self.side,
            "n": self.n,
        }


@dataclass(frozen=True, slots=True)
class Vectors:
    """What an SDK made of generated documents (`holdfast vectors verify`): which rows, and the counts of all of them.

    `root` is the Merkle root over the rows, None if some are `missing`. `table` has a line for each profile and
    category; its counts and `missing` add up to `count` in each profile. `restarts` processes of the runner failed
    though each of their documents was answered when it was asked again. `sdk` says what was run, as far as it is
    known; the command and its digest stand in the header.
    """

    stream: str
    seed: int
    count: int
    block_rows: int
    root: str | None
    profile: str
    sdk: Mapping[str, str]
    missing: int
    restarts: int
    table: tuple[Mapping[str, Any], ...]
    counterexamples: tuple[Mapping[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "vectors",
            "stream": self.stream,
            "seed": self.seed,
            "count": self.count,
            "block_rows": self.block_rows,
            "root": self.root,
            "profile": self.profile,
            "sdk": dict(self.sdk),
            "missing": self.missing,
            "restarts": self.restarts,
            "table": [dict(row) for row in self.table],
            "counterexamples": [dict(one) for one in self.counterexamples],
        }

    def unbalanced(self) -> Mapping[str, int]:
        """The profiles whose rows do not add up to `count`, and what they add up to."""
        # Of the run's own profile also when the table has no line of it.
        sums = {self.profile: self.missing}
        for row in self.table:
            counted = sum(row[name] for name in FINDINGS)
            sums[row["profile"]] = sums.get(row["profile"], self.missing) + counted
        return {profile: found for profile, found in sums.items() if found != self.count}


# The columns of a table of vectors; each row of the data is counted in exactly one of them.
FINDINGS = ("accepted_must_refuse", "wrong_bytes", "no_verdict", "over_refusal", "agree")


@dataclass(frozen=True, slots=True)
class Footer:
    """The last line: the run's verdict and exit status, verdict lines by verdict, and how many lines precede it.

    In the file it has a `seal` besides, see `sealed`.
    """

    verdict: str
    exit: int
    counts: Mapping[str, int]
    finished: datetime
    lines: int

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "footer",
            "verdict": self.verdict,
            "exit": self.exit,
            "counts": dict(self.counts),
            "finished": instant_text(self.finished),
            "lines": self.lines,
        }


def sealed(line: Mapping[str, Any]) -> dict[str, Any]:
    """A footer with its `prev`, and the digest of all of it as `seal`: so no field of the last line is free either."""
    bare = {name: value for name, value in line.items() if name != "seal"}
    return {**bare, "seal": strictjson.digest(bare)}


Line = Header | Exchange | Log | Restart | VerdictLine | Vectors | SurfaceLine | Artefacts | Footer


@unique
class DefectKind(Enum):
    """How a file falls short of a complete, undamaged run."""

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

    def sides(self) -> Mapping[str, Mapping[str, tuple[Exchange, ...]]]:
        """The exchanges by case id and by side, each in the order of the file."""
        grouped: defaultdict[str, defaultdict[str, list[Exchange]]] = defaultdict(lambda: defaultdict(list))
        for exchange in self.exchanges:
            grouped[exchange.case][exchange.side].append(exchange)
        return {case: {side: tuple(found) for side, found in by_side.items()} for case, by_side in grouped.items()}
