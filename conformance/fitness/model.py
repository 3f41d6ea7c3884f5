"""The parts of a fitness proof as types: surface, evidence, judgement. Nothing here touches a database.

Evidence is gathered first and judged afterwards, by pure functions, so that a reader of a proof can judge it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from holdfast.specs.typed import Form, Text, about, matching, named_by

# A row of a catalogue: JSON values by the name of the column. Never an OID: they differ between equal databases.
Row: TypeAlias = Mapping[str, Any]


@unique
class Criterion(Enum):
    """What section 6 of the source asks of a surface; all of it, or the surface is not fit."""

    SINGLE_USE = "a"
    NONCE = "b"
    BINDING = "c"
    DOMAIN = "d"
    ATOMIC = "e"
    APPEND_ONLY = "f"
    AUDIT = "g"
    PRIOR_DECISION = "h"
    RETENTION = "i"


_CRITERIA = len(Criterion)


@unique
class Standing(Enum):
    """How a criterion stands. Only PROVEN counts for fitness; UNPROVEN is everything that was not shown."""

    PROVEN = "proven"
    REFUTED = "refuted"
    UNPROVEN = "unproven"


@unique
class Status(Enum):
    """The judgement of a surface, in the source's words."""

    FIT = "FIT"
    NOT_FIT = "REPLAY_SURFACE_NOT_FIT"
    NOT_PRESENT = "REPLAY_SURFACE_REQUIRED_NOT_PRESENT"


@unique
class Dialect(Enum):
    """Which kind of database a surface lies in."""

    POSTGRESQL = "postgresql"
    SQLITE = "sqlite"


@unique
class Part(Enum):
    """What a relation is to a surface."""

    EFFECT = "effect"
    NONCE = "nonce"
    AUDIT = "audit"


# How the names of the probes of a part end.
SUFFIX = {Part.EFFECT: "", Part.NONCE: "-nonce", Part.AUDIT: "-audit"}


@unique
class EvidenceClass(Enum):
    """How something was seen. A criterion is proven only if all classes that it needs agree."""

    CATALOGUE = "catalogue"
    PRIVILEGES = "privileges"
    CLONE = "clone"
    CONCURRENCY = "concurrency"
    LIVE = "live"


class RelationName(Form, frozen=True, order=True):
    """A relation. `schema` is the schema of PostgreSQL; for SQLite "main", or the path of another file."""

    schema: Text
    name: Text

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Surface(Form, frozen=True):
    """The relations that are judged together, the role that writes them, and the name that a gate asks for."""

    name: Annotated[
        Text, about("An alias of the policy, or schema.table of the effect. The gate asks for the effect itself.")
    ]
    parts: Annotated[Mapping[Part, RelationName], Meta(min_length=1), named_by(Part)]
    writer: str | None


class Snapshot(Form, frozen=True):
    """What a catalogue said in one moment.

    `structure` is what makes the surface what it is, by the name of the query; it is digested and must not hold what
    differs between two equal databases. `circumstances` is what a reader must know besides: the version of the server,
    whether it is a replica, prepared transactions, superusers, extensions.
    """

    dialect: Dialect
    structure: Annotated[
        Mapping[str, tuple[Row, ...]], about("Rows of the catalogue by the name of the query; digested.")
    ]
    circumstances: Annotated[Mapping[str, Any], about("What a reader must know besides.")]


class Statement(Form, frozen=True):
    """One statement that was sent, and by whom; `parameters` by position."""

    session: str
    role: str
    sql: Text
    parameters: tuple[Any, ...] = ()


class ProbeAnswer(Form, frozen=True):
    """What came back: `sqlstate` of an error (its class name for SQLite) or None; rows that were affected or returned.

    `constraint` is the name of what was violated, where the server tells.
    """

    sqlstate: str | None = None
    message: str = ""
    affected: int | None = None
    rows: tuple[Row, ...] = ()
    constraint: Annotated[str | None, about("The constraint that refused, where the database named one.")] = None


class Probe(Form, frozen=True):
    """One thing that was tried. `name` says what, and the judges know it; the last answer is the one that counts.

    `failed` says why it could not be tried at all: then there are fewer answers than statements, and nothing is shown.
    """

    name: Text
    evidence: EvidenceClass
    statements: tuple[Statement, ...]
    answers: tuple[ProbeAnswer, ...]
    failed: Annotated[str, about("Why it could not be tried; empty if it was.")] = ""

    @property
    def answer(self) -> ProbeAnswer | None:
        """What counts; None where nothing was shown."""
        return None if self.failed or len(self.answers) < len(self.statements) or not self.answers else self.answers[-1]


class Observed(Form, frozen=True):
    """Evidence as a proof holds it; its surface stands beside it."""

    snapshot: Snapshot
    probes: tuple[Probe, ...]
    lost: Annotated[
        Mapping[EvidenceClass, Text], about("Classes of evidence that are not there, and why."), named_by(EvidenceClass)
    ]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is judged. `lost` says in words why a class of evidence is not there at all."""

    surface: Surface
    snapshot: Snapshot
    probes: tuple[Probe, ...] = ()
    lost: Mapping[EvidenceClass, str] = field(default_factory=dict)

    def probe(self, name: str) -> Probe | None:
        """The probe of that name."""
        return next((probe for probe in self.probes if probe.name == name), None)


class Reason(Form, frozen=True):
    """Why a criterion is not proven. `code` is a word of `codes.Code`; `rows` and `probes` are what shows it."""

    criterion: Criterion
    standing: Standing
    code: Annotated[str, matching("^[A-Z][A-Z0-9_]*$")]
    text: Text
    part: Part | None = None
    rows: tuple[Row, ...] = ()
    probes: tuple[str, ...] = ()


class CriterionResult(Form, frozen=True):
    """One criterion. `rows` and `probes` are what it rests on, for every result; PROVEN has no reasons."""

    criterion: Criterion
    standing: Standing
    reasons: tuple[Reason, ...]
    rows: tuple[Row, ...]
    probes: tuple[str, ...]


class Candidate(Form, frozen=True):
    """A relation that a search looked at, for a part, and why it is not one. No reasons: it is one."""

    relation: RelationName
    part: Part
    reasons: tuple[Reason, ...]


class FitnessJudgement(Form, frozen=True):
    """What the evidence amounts to. `notes` prove nothing, and the reader must know them."""

    status: Status
    findings: Annotated[
        tuple[CriterionResult, ...],
        Meta(min_length=_CRITERIA, max_length=_CRITERIA, description="One for each criterion, (a) to (i)."),
    ]
    notes: tuple[str, ...]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Of all criteria, in their order."""
        return tuple(reason for finding in self.findings for reason in finding.reasons)


def status_of(findings: tuple[CriterionResult, ...]) -> Status:
    """FIT only if every criterion is there once and proven. Something that is not proven is not fit."""
    proven = [finding.criterion for finding in findings if finding.standing is Standing.PROVEN]
    return Status.FIT if sorted(c.value for c in proven) == [c.value for c in Criterion] else Status.NOT_FIT
