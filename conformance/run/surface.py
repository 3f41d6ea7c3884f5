"""Finds the store that a run used, for a contract with clauses that only a fitness proof of a live surface shows.

The launcher or the adapter names the store of a session. The harness checks that in a session of its own: the row of an
accepted request must appear there, and a refused request must add none. A store that cannot be named is recorded as a
problem. It fails no run, and the gate holds where a proof must be tied to the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.run.plan import stored_effect_of
from holdfast.reports.evidence import SurfaceLine
from holdfast.specs import Contract, schema
from holdfast.specs.fitness import has_queries

if TYPE_CHECKING:
    from holdfast.conformance.fitness.store import PostgresStore, SqliteStore

# The member of a launcher's line, and of the value of an adapter's answer to `open`.
MEMBER = "surface"
# These members identify a store; each of them alone is enough.
_WHERE = ("dsn", "database", "file")


class _ProblemError(Exception):
    """Why it is unknown which store the run used."""


def asks_for_one(contract: Contract) -> bool:
    """Whether a run of the contract must say which store it used."""
    return has_queries(contract.name)


def unseen(contract: Contract, problem: str) -> SurfaceLine:
    """The line of a run that does not know which store it used."""
    return SurfaceLine(contract.name, None, None, None, {}, None, {}, None, used=False, problem=problem)


def observe(bench: Bench, launched: Mapping[str, Any] | None) -> SurfaceLine:
    """Inspect the store of a session of its own. `launched` is the launcher's description of it, if there is one."""
    found = unseen(bench.contract, "")
    try:
        with bench.session() as session:
            said = session.said.get(MEMBER) if isinstance(session.said, Mapping) else None
            found, place = _placed(found, launched, said)
            stated = isinstance(said, Mapping) and "dsn" in said
            return _inspected(bench, session, found, place, stated=stated)
    except _ProblemError as problem:
        return replace(found, problem=str(problem))
    except NonConformance as finding:
        return replace(found, problem=f"the session in which the store was to be looked at: {finding.judgement.detail}")


def _placed(line: SurfaceLine, launched: Any, said: Any) -> tuple[SurfaceLine, dict[str, Any]]:
    place: dict[str, Any] = {}
    for source, given in (("launcher", launched), ("adapter", said)):
        if given is None:
            continue
        problem = schema.explain(schema.published_validator("surface"), given)
        if problem is not None:
            # Without the value itself: it may hold a password.
            raise _ProblemError(f"the {source}'s `{MEMBER}` does not fit surface.schema.json")
        if "file" in given:
            place = {name: part for name, part in place.items() if name not in _WHERE}
        place |= given
        if any(name in given for name in _WHERE):
            line = replace(line, source=source)
    if line.source is None:
        raise _ProblemError("neither the launcher nor the adapter said where the store of a session is")
    return line, place


def _inspected(
    bench: Bench, session: SuiteSession, line: SurfaceLine, place: Mapping[str, Any], *, stated: bool
) -> SurfaceLine:
    # The drivers of databases are heavy, and most runs do not need them.
    from holdfast.conformance.fitness.errors import FitnessError, LostError
    from holdfast.conformance.fitness.server import server_of
    from holdfast.conformance.fitness.store import Login, store_at
    from holdfast.conformance.fitness.tie import TieError, parts_of, schema_digest, schema_of

    try:
        store = store_at(place, session.workdir, Login.AS_STATED if stated else Login.OF_THE_USER)
        used = _used(bench, session, store)
        observed = store.inspect()
        rows = schema_of(observed.snapshot, observed.surface.writer)
    except (FitnessError, LostError, TieError) as error:
        raise _ProblemError(f"the store that the {line.source} names cannot be read: {error}") from error
    server = server_of(observed.snapshot)
    return replace(
        line,
        dialect=observed.snapshot.dialect.value,
        server=None if server is None else server.name,
        parts=parts_of(observed.surface, observed.snapshot.dialect),
        writer=observed.surface.writer,
        schema=rows,
        schema_digest=schema_digest(rows),
        used=used,
    )


def _used(bench: Bench, session: SuiteSession, store: PostgresStore | SqliteStore) -> bool:
    """Whether an accepted request appears in the store, once, and a refused one leaves it as it is."""
    effect = stored_effect_of(bench.contract.name)
    if effect is None:
        raise _ProblemError(f"the suite of {bench.contract.name} has no `stored_effect`, which makes such a request")
    method, args, key = effect(bench, session, None)
    before = store.rows(key)
    accepted = session.call(method, args)
    if accepted.effect != "new":
        raise _ProblemError("the request that was to appear in the store was not accepted")
    after = store.rows(key)
    method, again, _ = effect(bench, session, session.rand("again"))
    if session.call(method, again).outcome != "refused":
        raise _ProblemError("a second request for the same effect was not refused")
    last = store.rows(key)
    return (before.holding, after.holding) == (0, 1) and after.all > before.all and last == after
