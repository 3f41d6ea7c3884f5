"""Assesses a surface: finds what the user asks for, gathers the evidence, and judges it.

The database is only read, on a session that the server itself keeps from writing. The exception is the probe on the
live tables, if the user asks for it. Everything else is tried on a clone elsewhere. A search holds every relation of a
database to what an effect and a nonce record cannot lack.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import psycopg

from holdfast.conformance.fitness.assessment import Assessment, not_present
from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.keys import sound_unique
from holdfast.conformance.fitness.deadline import TIMEOUT_S, Deadline
from holdfast.conformance.fitness.errors import FitnessError, LostError
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import (
    Candidate,
    Criterion,
    Evidence,
    EvidenceClass,
    Part,
    Probe,
    Reason,
    RelationName,
    Snapshot,
    Standing,
    Surface,
)
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.postgres import poolers, roles
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, name_of
from holdfast.conformance.fitness.postgres.clone import clone
from holdfast.conformance.fitness.postgres.connecting import Connection, cause
from holdfast.conformance.fitness.postgres.probes import live_connection, probe_clone, probe_live
from holdfast.conformance.fitness.postgres.roles import Household
from holdfast.conformance.fitness.postgres.scratch import Scratch, scratch
from holdfast.conformance.fitness.postgres.snapshot import errors_described, read, reading, take
from holdfast.conformance.fitness.server import unidentified
from holdfast.conformance.fitness.sqlite import live as files
from holdfast.conformance.fitness.sqlite.catalogue import translated
from holdfast.conformance.fitness.sqlite.live import MAIN, path_of, relation_name
from holdfast.conformance.fitness.sqlite.probes import gather_evidence
from holdfast.conformance.fitness.target import Target, target_of
from holdfast.servers.janitor import Janitor

_RELATIONS = """
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname !~ '^pg_(toast|temp)' AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e'
      )
    ORDER BY 1, 2
"""
_WRITERS = """
    SELECT DISTINCT g.rolname::text
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
    LATERAL (
      SELECT x.grantee FROM pg_catalog.aclexplode(c.relacl) x WHERE x.privilege_type = 'INSERT'
      UNION
      SELECT x.grantee FROM pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) x
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND x.privilege_type = 'INSERT'
    ) granted
    LEFT JOIN pg_catalog.pg_roles g ON g.oid = granted.grantee
    WHERE n.nspname = %s AND c.relname = %s AND granted.grantee <> c.relowner
      AND g.rolsuper IS DISTINCT FROM true
"""


def search(connection: psycopg.Connection[Any], policy: Policy) -> tuple[Candidate, ...]:
    """See `candidates`. Raises psycopg.Error."""
    with connection.transaction():
        found = [(str(schema), str(name)) for schema, name in connection.execute(_RELATIONS).fetchall()]
    catalogue = Catalogue(read(connection, found, None))
    return candidates(catalogue, [RelationName(schema, name) for schema, name in found], policy)


def writer_of(connection: psycopg.Connection[Any], effect: RelationName) -> str | None:
    """The only role to which INSERT on a relation was granted, but for its owner and superusers; None if there is none.

    PUBLIC is no role: where every role may insert, no role is the writer. Raises psycopg.Error.
    """
    with connection.transaction():
        rows = connection.execute(_WRITERS, (effect.schema, effect.name)).fetchall()
    return str(rows[0][0]) if len(rows) == 1 and rows[0][0] is not None else None


def candidates(catalogue: Catalogue, relations: Sequence[RelationName], policy: Policy) -> tuple[Candidate, ...]:
    """Every relation as an effect and as a nonce record, with why it is not one; by name.

    A candidate has the columns, and the key of its part is unique by itself; if no relation has, those that come next
    are candidates, for the judges to refuse.
    """
    keys, bound = [policy.column(word) for word in KEYS], [policy.column(word) for word in BINDINGS]
    effects = {
        each: (
            *_missing(Criterion.SINGLE_USE, Part.EFFECT, each, _lacks(catalogue, each, keys)),
            *_missing(Criterion.BINDING, Part.EFFECT, each, _lacks(catalogue, each, bound)),
            *_not_unique(Criterion.SINGLE_USE, Part.EFFECT, catalogue, each, keys[0]),
        )
        for each in relations
    }
    if all(effects.values()):
        # None is an effect: those that lack least, of all that hold the key and bind anything to it.
        lacking = {
            each: (len(_lacks(catalogue, each, [*keys, *bound])), len(reasons))
            for each, reasons in effects.items()
            if not _lacks(catalogue, each, keys[:1]) and len(_lacks(catalogue, each, bound)) < len(bound)
        }
        least = min(lacking.values(), default=None)
        effects |= {each: () for each, lacks in lacking.items() if lacks == least}
    nonces = {each: _no_nonce(catalogue, each, policy, effect=not effects[each]) for each in relations}
    # Of several those that say which request consumed the nonce: what was issued is a record of the nonce as well.
    good = [each for each, reasons in nonces.items() if not reasons]
    if any(catalogue.column(each, keys[0]) is not None for each in good):
        for each in good:
            nonces[each] = _missing(Criterion.NONCE, Part.NONCE, each, _lacks(catalogue, each, keys[:1]))
    return tuple(
        Candidate(each, part, reasons)
        for part, known in ((Part.EFFECT, effects), (Part.NONCE, nonces))
        for each, reasons in known.items()
    )


def choose(found: Sequence[Candidate], *, named: Mapping[Part, RelationName]) -> Mapping[Part, RelationName]:
    """The only candidate of each part that is not named. Raises FitnessError if there are several for one."""
    chosen: dict[Part, RelationName] = {}
    for part in Part:
        fit = [each.relation for each in found if each.part is part and not each.reasons]
        fit = [relation for relation in fit if relation not in named.values()]
        if part in named or not fit:
            continue
        if len(fit) > 1:
            raise FitnessError(
                f"several relations could be the {part.value}: {', '.join(map(str, fit))}; name one with --{part.value}"
            )
        chosen[part] = fit[0]
    return chosen


def _lacks(catalogue: Catalogue, relation: RelationName, names: Sequence[str]) -> list[str]:
    return [name for name in names if catalogue.column(relation, name) is None]


def _missing(criterion: Criterion, part: Part, relation: RelationName, names: Sequence[str]) -> tuple[Reason, ...]:
    text = f"{relation} lacks {', '.join(names)}"
    return (Reason(criterion, Standing.REFUTED, Code.MISSING_COLUMNS.value, text, part),) if names else ()


def _no_nonce(catalogue: Catalogue, relation: RelationName, policy: Policy, *, effect: bool) -> tuple[Reason, ...]:
    column = policy.column(NONCE)
    reasons = _missing(Criterion.NONCE, Part.NONCE, relation, _lacks(catalogue, relation, [column]))
    if effect:
        text = f"{relation} is an effect: a consume record is a relation of its own"
        apart = Reason(Criterion.NONCE, Standing.REFUTED, Code.NONCE_NOT_SEPARATE.value, text, Part.NONCE)
        return (*reasons, apart)
    return reasons or _not_unique(Criterion.NONCE, Part.NONCE, catalogue, relation, column)


def _not_unique(
    criterion: Criterion, part: Part, catalogue: Catalogue, relation: RelationName, column: str
) -> tuple[Reason, ...]:
    if sound_unique(catalogue, relation, column) is not None:
        return ()
    rows = catalogue.unique(relation)
    shown = [
        f"{index['name']} UNIQUE ({', '.join(str(each or 'an expression') for each in index['columns'])})"
        for index in rows
    ]
    tail = f"; unique there: {', '.join(shown)}" if shown else ""
    text = f"nothing makes {column} of {relation} unique by itself{tail}"
    return (Reason(criterion, Standing.REFUTED, Code.KEY_NOT_UNIQUE.value, text, part, rows),)


# The time that is kept for a second reading of the catalogue, even if the clone takes long: a tenth, and at most this.
_KEPT_S = 15.0
# How many names help a user who mistyped one; all of them would hide the error.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Names:
    """What the user names, as text; None means that it has to be found."""

    effect: str | None = None
    nonce: str | None = None
    audit: str | None = None
    writer: str | None = None

    def given(self) -> dict[Part, str]:
        """The parts that the user names."""
        named = {Part.EFFECT: self.effect, Part.NONCE: self.nonce, Part.AUDIT: self.audit}
        return {part: name for part, name in named.items() if name is not None}


def assess(
    dsn: str,
    names: Names,
    policy: Policy,
    *,
    server: Scratch | None = None,
    live: str | None = None,
    timeout: float = TIMEOUT_S,
) -> Assessment:
    """Inspect a surface and judge it. `server` is a scratch server to use; without one, one is made and taken down.

    `live` is the DSN of the writer for the rolled-back probe on the live tables; without it there is none. After
    `timeout` seconds no database is awaited any longer; what is not proven by then stays unproven.
    Raises FitnessError when the question cannot be asked.
    """
    path = path_of(dsn)
    if path is not None:
        return _on_sqlite(path, names, policy, live)
    deadline = Deadline.after(timeout)
    clones = deadline.earlier(min(_KEPT_S, timeout / 10))
    writer = None if live is None else _directly(target_of(live), deadline)
    target = _directly(target_of(dsn), deadline)

    def ready() -> AbstractContextManager[Scratch]:
        return scratch(clones) if server is None else nullcontext(replace(server, deadline=clones))

    return _on_postgres(target, names, policy, deadline, ready, writer)


def _surface(
    target: str, policy: Policy, parts: Mapping[Part, RelationName], writer: str | None, seen: tuple[Candidate, ...]
) -> Surface | Assessment:
    """The surface of these parts; without an effect the assessment that there is none."""
    if Part.EFFECT in parts:
        ordered = {part: parts[part] for part in Part if part in parts}
        return Surface(policy.name or str(parts[Part.EFFECT]), ordered, writer)
    assessed = len({each.relation for each in seen})
    text = (
        f"no relation here is one that could hold consumed keys ({assessed} were looked at); nothing was made: "
        "provision a surface, or name the relation with --effect"
    )
    return Assessment(target, policy, None, None, not_present(Code.MISSING_RELATION.value, text), seen)


def _nearest(word: str, known: Sequence[str], first: Sequence[str] = ()) -> str:
    """The names of which one may have been meant: the `first`, and those that are like a word, or else all."""
    near = difflib.get_close_matches(word, known, n=_SHOWN)
    found = list(dict.fromkeys([*first, *near])) or known
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{', '.join(found[:_SHOWN])}{more}"


# PostgreSQL


# A scratch server, ready for use when its turn comes.
Server: TypeAlias = Callable[[], AbstractContextManager[Scratch]]


def _directly(target: Target, deadline: Deadline) -> Target:
    """The target at the address that answered. Raises FitnessError if none does, or a pooler."""
    with errors_described(target, poolers.PURPOSE):
        return poolers.must_be_direct(target, deadline)


def _on_postgres(
    target: Target, names: Names, policy: Policy, deadline: Deadline, server: Server, live: Target | None
) -> Assessment:
    with reading(target, deadline, "the first reading of the catalogue") as connection:
        named = {part: _existing(connection, target, part, text) for part, text in names.given().items()}
        if names.writer is not None:
            _must_be_role(connection, target, names.writer)
        observed = () if {Part.EFFECT, Part.NONCE} <= named.keys() else search(connection, policy)
        observed = tuple(each for each in observed if each.part not in named)
        parts = {**choose(observed, named=named), **named}
        effect = parts.get(Part.EFFECT)
        writer = names.writer or (None if effect is None else writer_of(connection, effect))
        surface = _surface(target.described, policy, parts, writer, observed)
        if isinstance(surface, Assessment):
            return surface
        snapshot = take(connection, surface)
        household = _household(connection)
        place = None if live is None else connection.execute(_PLACE).fetchone()
    if live is not None:
        _must_be_writer(live, surface, place, deadline)
    lost: dict[EvidenceClass, str] = {}
    probes: tuple[Probe, ...] = ()
    try:
        if isinstance(household, LostError):
            raise household
        with server() as there, clone(target, household, surface, snapshot, there) as copy:
            probes = probe_clone(copy, surface, snapshot, policy)
    except (LostError, psycopg.Error) as error:
        lost = dict.fromkeys((EvidenceClass.CLONE, EvidenceClass.CONCURRENCY), target.first_line(error))
    if live is not None:
        probes += _probed_live(live, surface, snapshot, policy, deadline)
    if why := _changed(target, surface, snapshot, deadline):
        lost |= dict.fromkeys((EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES), why)
    evidence = Evidence(surface, snapshot, probes, lost)
    return Assessment(target.described, policy, surface, evidence, judge(evidence, policy), observed)


# schema.table, each perhaps in double quotes.
_NAME = r'"(?:[^"]|"")+"|[^".]+'
_DOTTED = re.compile(rf"({_NAME})\.({_NAME})")


def relation_named(part: Part, text: str) -> RelationName:
    """Read schema.table, each perhaps in double quotes. Raises FitnessError."""
    words = _DOTTED.fullmatch(text)
    if words is None:
        raise FitnessError(
            f"--{part.value}: expected schema.table, got {text!r}; the schema is needed, because a bare name means "
            'another table to another role (quote what has a dot or capitals: \'"My Schema"."t"\')'
        )
    # As SQL reads them: in lower case unless they are quoted.
    schema, name = (word[1:-1].replace('""', '"') if word.startswith('"') else word.lower() for word in words.groups())
    return RelationName(schema, name)


def _existing(connection: Connection, target: Target, part: Part, text: str) -> RelationName:
    wanted = relation_named(part, text)
    rows = connection.execute(
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') "
        "AND n.nspname !~ '^pg_toast' ORDER BY 1, 2"
    ).fetchall()
    there = [RelationName(str(schema), str(name)) for schema, name in rows]
    if wanted in there:
        return wanted
    elsewhere = [str(each) for each in there if each.name == wanted.name]
    has = _nearest(str(wanted), [*map(str, there)], elsewhere) or "no relations at all: is it the right database?"
    raise FitnessError(f"--{part.value} {wanted}: there is no such relation in {target.described}; it has {has}")


def _must_be_role(connection: Connection, target: Target, writer: str) -> None:
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (writer,)).fetchone():
        return
    rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1").fetchall()
    shown = _nearest(writer, [str(name) for (name,) in rows])
    raise FitnessError(f"--writer {writer}: there is no such role in {target.described}; it has {shown}")


def _changed(target: Target, surface: Surface, snapshot: Snapshot, deadline: Deadline) -> str:
    """Why the first reading of the catalogue may differ from the state during the tests, on one server with a name.

    Empty if it does not.
    """
    try:
        with reading(target, deadline, "the second reading of the catalogue") as connection:
            after = take(connection, surface)
    except FitnessError as error:
        return f"it is unknown whether the catalogue was changed while it was inspected: {error}"
    if after.structure != snapshot.structure:
        return "the catalogue changed while it was inspected; inspect it again when it does not change"
    return unidentified(snapshot, after)


def _household(connection: Connection) -> Household | LostError:
    """What surrounds the database on its server, or why it cannot be read."""
    try:
        # An error within it leaves the transaction as it was.
        with connection.transaction():
            return roles.read(connection)
    except psycopg.Error as error:
        if connection.closed:
            raise
        return LostError(f"the roles of the live server cannot be read: {type(error).__name__}: {error}")


# Which database of which server it is, under any name.
_PLACE = "SELECT c.system_identifier::text, current_database()::text FROM pg_control_system() c"


def _must_be_writer(live: Target, surface: Surface, place: tuple[Any, ...] | None, deadline: Deadline) -> None:
    """Code that the owner of the tables runs at an INSERT has the rights of the login, under every role that is set."""
    with reading(live, deadline, "asking --live-dsn who logs in") as connection:
        row = connection.execute("SELECT session_user::text").fetchone()
        there = connection.execute(_PLACE).fetchone()
    who = None if row is None else str(row[0])
    if there is None or there != place:
        raise FitnessError("--live-dsn: expected a login to the database that is looked at, got one to another")
    if surface.writer is not None and who != surface.writer:
        raise FitnessError(
            f"--probe-live: expected a DSN that logs in as the writer {surface.writer}, got one of {who}: code that "
            f"runs at an INSERT could take the rights of {who}; give --live-dsn DSN"
        )


def _probed_live(
    target: Target, surface: Surface, snapshot: Snapshot, policy: Policy, deadline: Deadline
) -> tuple[Probe, ...]:
    try:
        with closing(live_connection(target, deadline)) as connection:
            return probe_live(connection, surface, snapshot, policy)
    except psycopg.Error as error:
        raise FitnessError(
            f"{target.described}: the probe on the live tables ended early: {target.first_line(error)}"
            f"{target.scrubbed(cause(error))}; nothing of it was kept; ask again without --probe-live"
        ) from None


# SQLite


def _on_sqlite(path: Path, names: Names, policy: Policy, live: str | None) -> Assessment:
    if names.writer is not None:
        raise FitnessError(
            "--writer: SQLite knows no roles; say in a policy who owns the file: sqlite_writer_uid (docs/fitness.md)"
        )
    if live is not None:
        raise FitnessError(
            "--probe-live: a SQLite file is probed on a copy only: a probe on the live one would hold its write lock"
        )
    target = f"the SQLite file {path}"
    named = {part: _in_file(path, part, text, policy) for part, text in names.given().items()}
    observed = () if {Part.EFFECT, Part.NONCE} <= named.keys() else search_file(path, policy)
    observed = tuple(each for each in observed if each.part not in named)
    surface = _surface(target, policy, {**choose(observed, named=named), **named}, None, observed)
    if isinstance(surface, Assessment):
        return surface
    # The copies hold the rows of the live file: they must not outlive this process, however it ends.
    with Janitor() as janitor:
        evidence = gather_evidence(path, surface, policy, within=janitor.make_folder())
    return Assessment(target, policy, surface, evidence, judge(evidence, policy), observed)


def search_file(path: Path, policy: Policy) -> tuple[Candidate, ...]:
    """Every relation of a file. An audit lies in another one, which cannot be found from here."""
    nowhere = Surface("", {}, None)
    found = translated(Evidence(nowhere, files.take(path, nowhere))).snapshot
    catalogue = Catalogue(found)
    return candidates(catalogue, [name_of(row) for row in catalogue.rows("relations")], policy)


def _in_file(path: Path, part: Part, text: str, policy: Policy) -> RelationName:
    wanted = relation_name(text, path)
    file = path if wanted.schema == MAIN else Path(wanted.schema)
    # SQLite ignores case in names of tables; the evidence has the name as the file has it.
    there = {each.relation.name.lower(): each.relation.name for each in search_file(file, policy)}
    if wanted.name.lower() in there:
        return RelationName(wanted.schema, there[wanted.name.lower()])
    shown = _nearest(wanted.name, sorted(there.values())) or "no relations at all: is it the right file?"
    raise FitnessError(f"--{part.value} {wanted.name}: there is no such relation in {file}; it has {shown}")
