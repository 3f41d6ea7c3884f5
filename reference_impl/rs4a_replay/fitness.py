"""Decides whether a live surface may be used: only with a proof of its fitness, and only while the proof still holds.

A proof is a file that `holdfast fitness` wrote. This module reads it with `specs` alone, and compares it with the live
database through the queries that made it (source section 6; RS4A-RP-10, RS4A-FIT-ALL).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql

from holdfast.reference_impl.postgres import Connection
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT, PARTS, Reason
from holdfast.reference_impl.session import OpenRefusedError
from holdfast.specs import Contract, SpecError, schema, strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.fitness import Query, QueryKind, in_order, load_queries, parameters
from holdfast.specs.strictjson import MAX_SAFE_INTEGER

CRITERIA = tuple("abcdefghi")
# Clocks of machines in one installation differ by seconds. A proof that is later by more is from the future.
_CLOCK_TOLERANCE = timedelta(minutes=5)
_LONGEST = 64 * 1024 * 1024
_ADVICE = "look at the surface with `holdfast fitness DSN --json F` and pass config fitness=F"
# A circumstance of the proof that is checked again, and its values that criterion (e) does not accept.
_COMMIT_QUERY, _COMMIT, _SLEEP = "commit", "synchronous_commit", "session_replication_role"
_IDENTITY_QUERY, _SAME_SERVER = "identity", ("system_identifier", "database", "database_oid")
_FORGETS = ("off", "false", "no", "0")


@dataclass(frozen=True, slots=True)
class Claim:
    """The arguments of a session: its proof, the role that writes, and the surface's name."""

    path: str | None
    writer: str
    surface: str | None


def admit(claim: Claim, contract: Contract, connection: Connection) -> None:
    """Raise OpenRefusedError unless the proof is of this very surface, says that it is fit, and is still true."""
    proof = read(claim)
    guard_contract(proof, contract)
    guard_fit(proof)
    guard_surface(proof, claim)
    guard_columns(proof)
    guard_terms(proof, contract)
    guard_age(proof)
    guard_clock(proof)
    here = server_now(claim, connection)
    guard_server(proof, here)
    guard_primary(here)
    guard_history(proof, here)
    guard_digest(proof, digest_now(proof, claim, connection))
    guard_commit(setting_now(_COMMIT, claim, connection))
    guard_triggers(setting_now(_SLEEP, claim, connection))


def read(claim: Claim) -> Mapping[str, Any]:
    """Read the proof strictly: bytes, JSON, schema and seal."""
    if not claim.path:
        raise _unproven(
            "expected the proof that this surface is fit to hold consumed keys, got nothing; a "
            f"registrar does not start on a live surface without a proof: {_ADVICE}"
        )
    try:
        path = Path(claim.path)
        # Opening a pipe waits for a writer.
        if not path.is_file():
            raise _unproven(f"{claim.path!r} cannot be read: it is no file; {_ADVICE}")
        with path.open("rb") as stream:
            proof: Mapping[str, Any] = strictjson.loads(stream.read(_LONGEST))
    except StrictJsonError as error:
        raise _unproven(f"{claim.path} is no proof: {error}; {_ADVICE}") from error
    except (OSError, ValueError) as error:
        raise _unproven(f"{claim.path!r} cannot be read: {error}; {_ADVICE}") from error
    problem = schema.explain(schema.published_validator("fitness"), proof)
    if problem is not None:
        raise _unproven(f"{claim.path} does not fit fitness.schema.json: {problem}; {_ADVICE}")
    if strictjson.digest({name: part for name, part in proof.items() if name != "seal"}) != proof["seal"]:
        raise _unproven(f"{claim.path} was changed after it was written; {_ADVICE}")
    return proof


def guard_contract(proof: Mapping[str, Any], contract: Contract) -> None:
    """The proof must be of the same text of the contract."""
    pin = proof["contract"]
    if (pin["name"], pin["digest"]) != (contract.name, contract.digest):
        raise _unproven(
            f"the proof is of {pin['name']} {pin['version']} with another text than this "
            f"registrar's {contract.version}; {_ADVICE}"
        )


def guard_fit(proof: Mapping[str, Any]) -> None:
    """The proof must say FIT, with all nine criteria proven. One unknown criterion makes a surface unfit."""
    judgement = proof["judgement"]
    standings = [(each["criterion"], each["standing"]) for each in judgement["findings"]]
    if judgement["status"] == "FIT" and standings == [(letter, "proven") for letter in CRITERIA]:
        return
    status = Reason.REPLAY_SURFACE_NOT_FIT.value if judgement["status"] == "FIT" else judgement["status"]
    missing = ", ".join(f"({letter}) {standing}" for letter, standing in standings if standing != "proven")
    raise OpenRefusedError(
        status, f"the proof does not show a surface that is fit: {missing or 'criteria are missing'}"
    )


def guard_surface(proof: Mapping[str, Any], claim: Claim) -> None:
    """The proof must cover the relations that this registrar writes, and the role that it uses."""
    surface = proof["surface"] or {}
    wanted = {part: {"schema": SCHEMA, "name": name} for part, name in PARTS.items()}
    if surface.get("parts") != wanted or proof["evidence"]["snapshot"]["dialect"] != "postgresql":
        parts = surface.get("parts", {}).items()
        told = ", ".join(f"{part} {each['schema']}.{each['name']}" for part, each in parts) or "none"
        raise _unfit(
            f"the proof is of another surface ({told}); this registrar writes "
            f"{', '.join(f'{SCHEMA}.{name}' for name in PARTS.values())}",
        )
    if surface["writer"] != claim.writer:
        raise _unfit(f"the proof is of the writer {surface['writer']!r}, and this registrar is {claim.writer!r}")
    if claim.surface is not None and surface["name"] != claim.surface:
        raise _unproven(f"expected a proof of {claim.surface!r}, got one of {surface['name']!r}; {_ADVICE}")


def guard_columns(proof: Mapping[str, Any]) -> None:
    """This registrar writes the contract's columns. The proof must name the same columns."""
    roles = {"decision": "decision_id", "attempt": "attempt_id", "retain_until": "retain_until"}
    mapped = [word for word, column in proof["policy"]["columns"].items() if column != roles.get(word, word)]
    if mapped:
        raise _unfit(f"the proof takes other columns for {', '.join(mapped)}; {_ADVICE}")


def guard_terms(proof: Mapping[str, Any], contract: Contract) -> None:
    """The policy of a proof must allow what the contract does: its operations, for its horizon."""
    policy = proof["policy"]
    known = contract.relations[PARTS["effect"]].columns["operation"].only
    if others := [each for each in policy["operations"] if each not in known]:
        raise _unfit(
            f"the proof admits the operations {', '.join(others)}; the contract knows "
            f"{', '.join(map(str, known))}: take them out of the policy; {_ADVICE}",
        )
    horizon, wanted = policy["horizon_seconds"], contract.parameters["horizon_seconds"].value
    if horizon is not None and (wanted is None or horizon < float(wanted)):
        told = "for ever" if wanted is None else f"for {wanted} seconds"
        raise _unfit(
            f"the proof shows records that are kept for {horizon} seconds; the contract wants them kept {told}: "
            f"take horizon_seconds out of the policy; {_ADVICE}",
        )


def guard_age(proof: Mapping[str, Any]) -> None:
    """A proof is valid for the time in its policy, because roles and settings change.

    The wall clock counts: a session's frozen clock could make an old proof valid.
    """
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(proof["made"])
    except (ValueError, OverflowError) as error:
        raise _unproven(f"the proof was made at {proof['made']!r}, which is no instant: {error}; {_ADVICE}") from error
    limit = timedelta(seconds=proof["policy"]["max_age_seconds"])
    if not -_CLOCK_TOLERANCE <= age <= limit:
        raise _unproven(f"the proof was made at {proof['made']} and its policy lets it stand for {limit}; {_ADVICE}")


def guard_clock(proof: Mapping[str, Any]) -> None:
    """Two machines wrote the date of a proof and the clock of its server. Both must agree."""
    clock = (proof["server"] or {}).get("facts", {}).get("clock")
    try:
        apart = abs(datetime.fromisoformat(str(clock)) - datetime.fromisoformat(proof["made"]))
    except (TypeError, ValueError, OverflowError) as error:
        raise _unproven(f"the proof does not say what its server's clock said: {error}; {_ADVICE}") from error
    if apart > _CLOCK_TOLERANCE:
        raise _unproven(
            f"the proof was made at {proof['made']}, and its server's clock said {clock} then: one of the two was "
            f"edited, or the clocks differ; {_ADVICE}"
        )


def server_now(claim: Claim, connection: Connection) -> Mapping[str, Any]:
    """The identity and the position of this server and database, through the query of the proof."""
    try:
        rows = read_circumstance(connection, _IDENTITY_QUERY, writer=claim.writer)
    except (psycopg.Error, SpecError) as error:
        raise _unproven(f"which server this is cannot be read: {type(error).__name__}") from error
    if len(rows) != 1:
        raise _unproven(f"which server this is cannot be read: {len(rows)} answers, expected one")
    return rows[0]


def guard_server(proof: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """The proof must be of this database on this server: not of a staging system, not of a restored dump."""
    facts = (proof["server"] or {}).get("facts", {})
    if differing := [name for name in _SAME_SERVER if facts.get(name) != here[name]]:
        told = ", ".join(f"{name} {facts.get(name, 'unknown')}, here {here[name]}" for name in differing)
        raise _unfit(f"the proof is of another server or database ({told}); {_ADVICE}")


def guard_primary(here: Mapping[str, Any]) -> None:
    """Refuse a replica. It has its primary's identifier, and the primary may have consumed keys not here yet."""
    if here["replica"] is not False:
        raise _unfit("this server is a replica; a registrar works on the primary")


def guard_history(proof: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a server that was promoted or restored to a time before the proof: consumed keys may be lost."""
    facts = (proof["server"] or {}).get("facts", {})
    if facts.get("timeline") != here["timeline"]:
        raise _unfit(
            f"the proof is of timeline {facts.get('timeline')} of this server, which is on {here['timeline']} now: "
            f"a replica was promoted, or a backup restored; {_ADVICE}",
        )
    for name in ("log_position", "next_transaction"):
        seen = str(facts.get(name, ""))
        if not (seen.isascii() and seen.isdigit()):
            raise _unproven(f"the proof does not say what {name} its server was at; {_ADVICE}")
        if int(seen) > int(here[name]):
            raise _unfit(
                f"the proof has seen this server at {name} {seen}, and it is at {here[name]}: it was put "
                f"back to an earlier state, and keys may be forgotten; {_ADVICE}",
            )


def digest_now(proof: Mapping[str, Any], claim: Claim, connection: Connection) -> str:
    """The digest of the surface as it is now, under the policy of the proof."""
    try:
        structure = read_structure(connection, writer=claim.writer)
    except (psycopg.Error, SpecError) as error:
        raise _unproven(f"the catalogue cannot be read: {type(error).__name__}") from error
    value = {"policy": proof["policy"], "structure": structure}
    return strictjson.digest(value).removeprefix("sha256:")


def guard_digest(proof: Mapping[str, Any], live: str) -> None:
    """The proof must be of this surface as it is now."""
    if proof["digest"] != live:
        raise _unfit(
            f"the surface is not the one that was proven, or was changed since: its digest is {live}, "
            f"the proof's is {proof['digest']}; {_ADVICE}",
        )


def setting_now(name: str, claim: Claim, connection: Connection) -> str | None:
    """The setting that a session of the writer starts with now; None if it is unset."""
    try:
        rows = read_circumstance(connection, _COMMIT_QUERY, writer=claim.writer)
    except (psycopg.Error, SpecError) as error:
        raise _unproven(f"{name} cannot be read: {type(error).__name__}") from error
    return next((str(row["value"]) for row in rows if row["name"] == name), None)


def guard_triggers(value: str | None) -> None:
    """Refuse a server on which ordinary triggers and keys are off: rows could be changed."""
    if value != "origin":
        raise _unproven(
            f"sessions of the writer start with {_SLEEP} = {value or 'unknown'}: guards do not fire; set it to "
            "origin in postgresql.conf, let the server read it again, and start again"
        )


def guard_commit(value: str | None) -> None:
    """A setting of the server is no part of the digest, and postgresql.conf may have changed since.

    Sessions of this registrar set it themselves. But a server that loses acknowledged commits of others is not the
    proven one.
    """
    if value is None or value.lower() in _FORGETS:
        raise _unproven(
            f"sessions of the writer start with {_COMMIT} = {value or 'unknown'}: an acknowledged commit may be "
            f"lost; turn it on in postgresql.conf, let the server read it again, and start again"
        )


def _unproven(detail: str) -> OpenRefusedError:
    # A setting without proof is not fit.
    return _unfit(f"config fitness: {detail}")


def _unfit(detail: str) -> OpenRefusedError:
    return OpenRefusedError(Reason.REPLAY_SURFACE_NOT_FIT.value, detail)


def read_structure(connection: Connection, *, writer: str) -> dict[str, list[dict[str, Any]]]:
    """The catalogue's entries for this registrar's relations, in a proof's form. Raises psycopg.Error, SpecError."""
    queries = load_queries(CONTRACT)
    structure: dict[str, list[dict[str, Any]]] = {}
    with _as_of_now(connection):
        for query in queries.of(QueryKind.STRUCTURE):
            try:
                with connection.transaction():
                    structure[query.name] = _rows(connection, query, _given(writer))
            except (errors.InsufficientPrivilege, errors.UndefinedTable, errors.UndefinedColumn):
                # Left out, as in a proof whose role could not read it either.
                continue
    return structure


def read_circumstance(connection: Connection, name: str, *, writer: str) -> list[dict[str, Any]]:
    """The result of one query of circumstances now; empty if there is none. Raises psycopg.Error, SpecError."""
    with _as_of_now(connection):
        found = [query for query in load_queries(CONTRACT).of(QueryKind.CIRCUMSTANCE) if query.name == name]
        return [row for query in found for row in _rows(connection, query, _given(writer))]


@contextmanager
def _as_of_now(connection: Connection) -> Iterator[None]:
    """One snapshot of the catalogue, read in the same way as by the assessment."""
    with connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for setting in load_queries(CONTRACT).settings:
            connection.execute(sql.SQL(setting))
        yield


def _given(writer: str) -> Mapping[str, Any]:
    return parameters([(SCHEMA, name) for name in PARTS.values()], writer)


def _rows(connection: Connection, query: Query, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    for needed in query.needs:
        found = connection.execute(
            "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s",
            needed,
        )
        if found.fetchone() is None:
            return []
    cursor = connection.execute(sql.SQL(query.sql), given)
    names = [column.name for column in cursor.description or ()]
    rows = ({name: _plain(value) for name, value in zip(names, row, strict=True)} for row in cursor)
    return list(in_order(rows))


def _plain(value: Any) -> Any:
    """A value as a proof writes it: numbers that JSON cannot hold as text."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal | float) or (isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER):
        return str(value)
    return value
