"""The schema by which a run and a fitness proof are tied: the rows of a catalogue that must be the same in both.

A run is made in a laboratory and a proof on the live server; CI never runs on the live server. What they have in common
is what they are of: the relations and what guards them, column for column. Owners, other roles, settings and all that
else belongs to a server are judged by the proof and have no part in this (`tied` in the contract's queries).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.model import Dialect, Part, Row, Snapshot, Surface
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.fitness.postgres.catalogue import UNREADABLE
from holdfast.conformance.fitness.sqlite.live import AUDIT, MAIN, queries
from holdfast.reports.evidence import Relation, SurfaceLine
from holdfast.specs import strictjson
from holdfast.specs.fitness import QueryKind, Tie, in_order, load_queries

# What stands for the writer in rows that are compared: its name belongs to the server.
_WRITER = "the writer"
_ADVICE = "let the launcher or the adapter's answer to `open` say it: docs/adapter-protocol.md, Where the store is"


class TieError(Exception):
    """What would have to be compared could not be read; the text says what."""


def schema_of(snapshot: Snapshot, writer: str | None) -> dict[str, str]:
    """The digest of what each query says of the relations themselves, by its name. Raises TieError."""
    if snapshot.dialect is Dialect.SQLITE:
        names = {f"{file}.{query}" for file in (MAIN, AUDIT) for query in queries()}
        return {name: _digest(rows) for name, rows in sorted(snapshot.structure.items()) if name in names}
    found = dict[str, str]()
    for query in load_queries(CONTRACT).of(QueryKind.STRUCTURE):
        if query.tied is None:
            continue
        if query.name not in snapshot.structure:
            why = snapshot.circumstances.get(UNREADABLE, {}).get(query.name, "no reason is given")
            raise TieError(f"what the catalogue says of {query.name} could not be read: {why}")
        found[query.name] = _digest(_comparable(snapshot.structure[query.name], query.tied, writer))
    return found


def _digest(rows: Iterable[Row]) -> str:
    return strictjson.digest([dict(row) for row in in_order(rows)])


def _comparable(rows: Iterable[Row], tie: Tie, writer: str | None) -> Iterable[Row]:
    for row in rows:
        kept = {name: value for name, value in row.items() if name not in tie.apart}
        if tie.role is not None:
            if row[tie.role] not in (None, writer):
                continue
            kept[tie.role] = None if row[tie.role] is None else _WRITER
        yield kept


def schema_digest(schema: Mapping[str, str]) -> str:
    """One digest over those of all queries."""
    return strictjson.digest(dict(schema))


def parts_of(surface: Surface, dialect: Dialect) -> dict[str, Relation]:
    """The relations of a surface as both sides name them. The path of an audit's own SQLite file is left out."""

    def place(name: str) -> str:
        return name if dialect is Dialect.POSTGRESQL or name == MAIN else AUDIT

    parts = {part: surface.parts[part] for part in Part if part in surface.parts}
    return {part.value: Relation(place(each.schema), each.name) for part, each in parts.items()}


def not_tied(assessed: Assessment, lines: Sequence[SurfaceLine]) -> Iterator[str]:
    """Why a run that used the stores of `lines` does not speak of the surface that was inspected."""
    if assessed.surface is None or assessed.evidence is None:
        yield "the proof is of no surface"
        return
    if len(lines) != 1:
        yield (
            f"the run says {len(lines)} times which store it used, expected once; run again with this version of "
            "holdfast, without narrowing"
        )
        return
    (line,) = lines
    if line.problem:
        yield f"{line.problem} ({_ADVICE})"
        return
    if not line.used:
        yield f"nothing that the adapter accepted was seen in the store that the {line.source} named"
        return
    yield from _differences(assessed.surface, assessed.evidence.snapshot, line)


def _differences(surface: Surface, snapshot: Snapshot, line: SurfaceLine) -> Iterator[str]:
    if line.dialect != snapshot.dialect.value:
        yield f"the run was made on {line.dialect}, the proof is of {snapshot.dialect.value}"
        return
    parts = parts_of(surface, snapshot.dialect)
    if dict(line.parts) != parts:
        yield f"the run used the relations {_named(line.parts)}, the proof is of {_named(parts)}"
        return
    try:
        proven = schema_of(snapshot, surface.writer)
    except TieError as error:
        yield f"the proof's schema cannot be compared: {error}"
        return
    if schema_digest(line.schema) != line.schema_digest:
        yield "the digest of the run's schema is not that of what it says of it"
    differing = sorted(name for name in {*proven, *line.schema} if proven.get(name) != line.schema.get(name))
    if differing:
        yield (
            f"the run was made on another schema than the proof's: they differ in {', '.join(differing)}; make the "
            "store of the run with the very DDL of the live surface"
        )


def _named(parts: Mapping[str, Relation]) -> str:
    return ", ".join(f"{part} {each}" for part, each in parts.items()) or "none"
