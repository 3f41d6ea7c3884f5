"""Looking at a surface: what is asked for, what of it is there, the evidence, and the judgement of it.

The database is only read, on a session that the server itself keeps from writing, unless somebody asks for the
probe on the live tables. Everything else is tried on a clone elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psycopg

from conformance.adapter.janitor import Janitor
from conformance.fitness import sqlite
from conformance.fitness.codes import Code
from conformance.fitness.errors import FitnessError, LostError
from conformance.fitness.judge import judge
from conformance.fitness.model import Candidate, Evidence, EvidenceClass, Part, Probe, RelationName, Snapshot, Surface
from conformance.fitness.policy import Policy
from conformance.fitness.postgres import candidates as search
from conformance.fitness.postgres.clone import clone
from conformance.fitness.postgres.live import probe_live
from conformance.fitness.postgres.probes import probe_clone
from conformance.fitness.postgres.scratch import Scratch, scratch
from conformance.fitness.postgres.snapshot import take
from conformance.fitness.proof import Examination, unproven_everywhere
from conformance.fitness.server import identified
from conformance.fitness.target import Target, target_of

Connection: TypeAlias = psycopg.Connection[Any]

# Major versions whose catalogues the queries know.
OLDEST, NEWEST = 13, 18
# For a server that is down or behind a firewall that drops everything.
_CONNECT_S = 10
# Looking waits for nobody for longer: a lock on a catalogue means that somebody changes it.
_STATEMENT_MS, _LOCK_MS = 60_000, 5_000
_OPTION = {Part.EFFECT: "--effect", Part.NONCE: "--nonce", Part.AUDIT: "--audit"}
# So many names help who mistyped one; all of them would bury the error.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Names:
    """What the user names, as text; None is for what is to be found."""

    effect: str | None = None
    nonce: str | None = None
    audit: str | None = None
    writer: str | None = None

    def given(self) -> dict[Part, str]:
        """The parts that are named."""
        named = {Part.EFFECT: self.effect, Part.NONCE: self.nonce, Part.AUDIT: self.audit}
        return {part: name for part, name in named.items() if name is not None}


def examine(
    dsn: str,
    names: Names,
    policy: Policy,
    *,
    server: Scratch | None = None,
    live: str | None = None,
) -> Examination:
    """Look at a surface and judge it. `server` is a scratch server to use; without one, one is made and taken down.

    `live` is the DSN of the writer for the rolled-back probe on the live tables; without it there is none.

    Raises FitnessError when the question cannot be asked.
    """
    path = sqlite.path_of(dsn)
    if path is not None:
        return _on_sqlite(path, names, policy, live)
    writer = None if live is None else target_of(live)
    return _on_postgres(target_of(dsn), names, policy, server, writer)


# PostgreSQL


def _on_postgres(
    target: Target, names: Names, policy: Policy, server: Scratch | None, live: Target | None
) -> Examination:
    with reading(target) as connection:
        named = {part: _existing(connection, target, part, text) for part, text in names.given().items()}
        if names.writer is not None:
            _must_be_role(connection, target, names.writer)
        seen = () if {Part.EFFECT, Part.NONCE} <= named.keys() else _searched(connection, named, policy)
        parts = {**search.choose(seen, named=named), **named}
        if Part.EFFECT not in parts:
            return _absent(target.described, policy, seen)
        writer = names.writer or search.writer(connection, parts[Part.EFFECT])
        surface = Surface(policy.name or str(parts[Part.EFFECT]), _in_order(parts), writer)
        snapshot = take(connection, surface, policy)
        if live is not None:
            _must_be_writer(live, surface, connection.execute(_PLACE).fetchone())
    evidence = _evidence(target, surface, snapshot, policy, server, live)
    with reading(target) as connection:
        after = take(connection, surface, policy)
    if after.structure != snapshot.structure:
        why = "the catalogue changed while it was looked at; look again when nobody changes it"
        lost = {**evidence.lost, EvidenceClass.CATALOGUE: why, EvidenceClass.PRIVILEGES: why}
        evidence = Evidence(surface, snapshot, evidence.probes, lost)
    evidence = identified(evidence, after)
    return Examination(target.described, policy, surface, evidence, judge(evidence, policy), seen)


def _searched(connection: Connection, named: Mapping[Part, RelationName], policy: Policy) -> tuple[Candidate, ...]:
    return tuple(each for each in search.search(connection, policy) if each.part not in named)


def _in_order(parts: Mapping[Part, RelationName]) -> dict[Part, RelationName]:
    return {part: parts[part] for part in Part if part in parts}


def _absent(target: str, policy: Policy, seen: tuple[Candidate, ...]) -> Examination:
    looked = len({each.relation for each in seen})
    text = (
        f"no relation here is one that could hold consumed keys ({looked} were looked at); nothing was made: "
        "provision a surface, or name the relation with --effect"
    )
    return Examination(target, policy, None, None, unproven_everywhere(Code.MISSING_RELATION.value, text), seen)


@contextmanager
def reading(target: Target) -> Iterator[Connection]:
    """A session that cannot write; whatever the database says against it becomes a FitnessError without secrets."""
    try:
        with psycopg.connect(target.dsn, connect_timeout=_CONNECT_S, autocommit=True) as connection:
            # Before anything is asked: whoever owns the database says where its names are looked up, and a view or an
            # operator of his would run with the rights of whoever looks.
            connection.execute("SET search_path = pg_catalog, pg_temp")
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = {_STATEMENT_MS}")
            connection.execute(f"SET lock_timeout = {_LOCK_MS}")
            _must_be_known(connection, target)
            yield connection
    except psycopg.errors.InsufficientPrivilege as error:
        raise FitnessError(
            f"{target.described}: the role of the DSN may not read the catalogue: {target.first_line(error)}; "
            "connect as a role that may, such as the owner of the database"
        ) from None
    except psycopg.Error as error:
        raise FitnessError(
            f"{target.described} cannot be asked: {target.first_line(error)}; check that the server runs and lets this "
            "role in"
        ) from None


def _must_be_known(connection: Connection, target: Target) -> None:
    major = connection.info.server_version // 10_000
    if not OLDEST <= major <= NEWEST:
        raise FitnessError(
            f"{target.described}: expected PostgreSQL {OLDEST} to {NEWEST}, got {major}: its catalogue may say things "
            "that this version of holdfast does not know"
        )


def relation_named(part: Part, text: str) -> RelationName:
    """Read schema.table, each perhaps in double quotes. Raises FitnessError."""
    words = _words(text)
    if len(words) != 2 or not all(words):
        raise FitnessError(
            f"{_OPTION[part]}: expected schema.table, got {text!r}; the schema is needed, because a bare name means "
            'another table to another role (quote what has a dot or capitals: \'"My Schema"."t"\')'
        )
    return RelationName(*words)


def _words(text: str) -> list[str]:
    """The parts of a dotted name as SQL reads them: in lower case unless they are quoted; empty if it reads none."""
    words, rest = list[str](), text
    while rest:
        if rest[0] == '"':
            end = 1
            while end < len(rest) and (rest[end] != '"' or rest[end : end + 2] == '""'):
                end += 2 if rest[end] == '"' else 1
            if end >= len(rest):
                return []
            words.append(rest[1:end].replace('""', '"'))
            rest = rest[end + 1 :]
        else:
            word, dot, tail = rest.partition(".")
            if '"' in word:
                return []
            words.append(word.lower())
            rest = dot + tail
        if rest and (rest[0] != "." or rest == "."):
            return []
        rest = rest[1:]
    return words


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
    raise FitnessError(
        f"{_OPTION[part]} {wanted}: there is no such relation in {target.described}; {_near(wanted, there)}"
    )


def _near(wanted: RelationName, there: Sequence[RelationName]) -> str:
    if not there:
        return "it has no relations at all: is it the right database?"
    elsewhere = [str(each) for each in there if each.name == wanted.name]
    near = difflib.get_close_matches(str(wanted), map(str, there), n=_SHOWN)
    found = list(dict.fromkeys([*elsewhere, *near])) or [str(each) for each in there]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"it has {', '.join(found[:_SHOWN])}{more}"


def _must_be_role(connection: Connection, target: Target, writer: str) -> None:
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (writer,)).fetchone():
        return
    rows = connection.execute("SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1").fetchall()
    names = [str(name) for (name,) in rows]
    shown = ", ".join((difflib.get_close_matches(writer, names, n=_SHOWN) or names)[:_SHOWN])
    raise FitnessError(f"--writer {writer}: there is no such role in {target.described}; it has {shown}")


def _evidence(
    target: Target, surface: Surface, snapshot: Snapshot, policy: Policy, server: Scratch | None, live: Target | None
) -> Evidence:
    lost: dict[EvidenceClass, str] = {}
    probes: tuple[Probe, ...] = ()
    try:
        with (
            nullcontext(server) if server is not None else scratch() as there,
            clone(target.dsn, surface, snapshot, policy, there) as copy,
        ):
            probes = probe_clone(copy, surface, snapshot, policy)
    except (LostError, psycopg.Error) as error:
        why = target.first_line(error)
        lost |= {EvidenceClass.CLONE: why, EvidenceClass.CONCURRENCY: why}
    if live is not None:
        probes += _probed_live(live, surface, snapshot, policy)
    return Evidence(surface, snapshot, probes, lost)


# Which database of which server it is, whatever it is called.
_PLACE = "SELECT c.system_identifier::text, current_database()::text FROM pg_control_system() c"


def _must_be_writer(live: Target, surface: Surface, place: tuple[Any, ...] | None) -> None:
    """Whatever code the owner of the tables runs at an INSERT has the rights of who logs in, whatever role is set."""
    with reading(live) as connection:
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


def _probed_live(target: Target, surface: Surface, snapshot: Snapshot, policy: Policy) -> tuple[Probe, ...]:
    try:
        with psycopg.connect(target.dsn, connect_timeout=_CONNECT_S) as connection:
            try:
                return probe_live(connection, surface, snapshot, policy)
            finally:
                connection.rollback()
    except psycopg.Error as error:
        raise FitnessError(
            f"{target.described}: the probe on the live tables ended early: {target.first_line(error)}; nothing of it "
            "was kept; ask again without --probe-live"
        ) from None


# SQLite


def _on_sqlite(path: Path, names: Names, policy: Policy, live: str | None) -> Examination:
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
    wanted = {Part.EFFECT, Part.NONCE} <= named.keys()
    seen = () if wanted else tuple(each for each in sqlite.search(path, policy) if each.part not in named)
    parts = {**sqlite.choose(seen, named=named), **named}
    if Part.EFFECT not in parts:
        return _absent(target, policy, seen)
    surface = Surface(policy.name or str(parts[Part.EFFECT]), _in_order(parts), None)
    # The copies hold the rows of the live file: they must not outlive this process, however it ends.
    with Janitor() as janitor:
        evidence = sqlite.examine(path, surface, policy, within=janitor.make_folder())
    return Examination(target, policy, surface, evidence, judge(evidence, policy), seen)


def _in_file(path: Path, part: Part, text: str, policy: Policy) -> RelationName:
    wanted = sqlite.relation_name(text, path)
    file = path if wanted.schema == sqlite.MAIN else Path(wanted.schema)
    # SQLite tells names of tables apart without regard to case; what is written down is how the file has it.
    there = {each.relation.name.lower(): each.relation.name for each in sqlite.search(file, policy)}
    if wanted.name.lower() in there:
        return RelationName(wanted.schema, there[wanted.name.lower()])
    near = difflib.get_close_matches(wanted.name.lower(), there, n=_SHOWN) or sorted(there)
    shown = ", ".join(there[name] for name in near[:_SHOWN]) or "no relations at all: is it the right file?"
    raise FitnessError(f"{_OPTION[part]} {wanted.name}: there is no such relation in {file}; it has {shown}")
