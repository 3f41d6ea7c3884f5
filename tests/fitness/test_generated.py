"""Generated surfaces: what is changed without changing what it means stays fit. The corpus has the breaks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.model import Status
from holdfast.conformance.fitness.postgres.scratch import Scratch
from tests.fitness.lives import LiveServer
from tests.fitness.schemas import CORPUS, DATABASE, schemas

# Each example makes a database and a clone of it, so there are few by default.
_FEW, _MANY = 2, 150
_BASE = (CORPUS / "fit.sql").read_text(encoding="utf-8")
_START, _END = "CREATE TABLE reg.effect (\n", "  CONSTRAINT effect_decision"
_FIT = next(schema for schema in schemas() if schema.status is Status.FIT)
_GUARDS = {
    "effect_rows": "effect", "effect_whole": "effect", "consumed_rows": "consumed", "consumed_whole": "consumed",
    "refusals_rows": "refusals", "refusals_whole": "refusals",
}  # fmt: skip
_TABLES = ("effect", "consumed", "refusals")


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to the fit surface: to its text, or afterwards."""

    said: str
    then: str = ""
    rewrite: Callable[[str], str] = str

    def __repr__(self) -> str:
        return self.said


def _then(sql: str) -> Change:
    return Change(sql, sql)


def _reordered(order: list[int]) -> Change:
    def rewrite(ddl: str) -> str:
        start = ddl.index(_START) + len(_START)
        end = ddl.index(_END)
        lines = ddl[start:end].splitlines(keepends=True)
        return ddl[:start] + "".join(lines[place] for place in order) + ddl[end:]

    return Change(f"columns of the effect in the order {order}", rewrite=rewrite)


_COLUMN_COUNT = len(_BASE[_BASE.index(_START) + len(_START) : _BASE.index(_END)].splitlines())
_EFFECT_COLUMNS = re.findall(r"^  (\w+) ", _BASE[_BASE.index(_START) : _BASE.index(_END)], re.MULTILINE)
_names = st.from_regex(r"[a-z][a-z_]{2,12}[0-9]", fullmatch=True)


def _text(old: str, new: str) -> Change:
    assert old in _BASE, old
    return Change(f"{old} becomes {new}", rewrite=lambda ddl: ddl.replace(old, new))


_harmless = st.one_of(
    st.permutations(range(_COLUMN_COUNT)).map(_reordered),
    st.builds(
        lambda name, new: _then(f"ALTER INDEX reg.{name} RENAME TO x_{name}_{new};"),
        st.sampled_from(["effect_key", "effect_replay", "consumed_nonce"]),
        _names,
    ),
    st.builds(
        lambda guard, new: _then(f"ALTER TRIGGER {guard} ON reg.{_GUARDS[guard]} RENAME TO y_{guard}_{new};"),
        st.sampled_from(sorted(_GUARDS)),
        _names,
    ),
    st.builds(lambda new: _then(f"ALTER FUNCTION reg.refuse_change() RENAME TO z_{new};"), _names),
    st.builds(
        lambda table, text: _then(f"COMMENT ON TABLE reg.{table} IS '{text}';"),
        st.sampled_from(_TABLES),
        st.sampled_from(["iu_route_attempt", "UNIQUE (attempt_id)", "not append-only", "inbound, outbound"]),
    ),
    st.builds(
        lambda columns: _then(f"CREATE INDEX ON reg.effect ({', '.join(columns)});"),
        st.lists(st.sampled_from(_EFFECT_COLUMNS), min_size=1, max_size=3, unique=True),
    ),
    st.builds(
        lambda table, new: _then(f"ALTER TABLE reg.{table} ADD u_{new} integer;"), st.sampled_from(_TABLES), _names
    ),
    st.builds(lambda new: _then(f"CREATE TABLE reg.t_{new} (a integer, b text);"), _names),
    st.sampled_from(
        [
            _text("UNIQUE (logical_request_key)", "UNIQUE (logical_request_key) INCLUDE (decision_id, committed_at)"),
            _text("UNIQUE (authorization_nonce)", "UNIQUE (authorization_nonce) INCLUDE (consumed_for)"),
            _text("CHECK (operation = 'register_dot')", "CHECK (operation IN ('register_dot'))"),
            _text("CHECK (run_id <> '')", "CHECK (length(run_id) > 0)"),
            _text("PRIMARY KEY (decision_id)", "UNIQUE (decision_id)"),
            _then("GRANT USAGE ON SCHEMA reg TO corpus_other; GRANT SELECT ON reg.effect TO corpus_other;"),
            _then("ALTER TABLE reg.effect SET (fillfactor = 70);"),
            _then("ALTER TABLE reg.effect ALTER run_id SET STATISTICS 10;"),
            _then("ALTER ROLE corpus_writer SET work_mem = '8MB';"),
            _then("ALTER ROLE corpus_writer SET synchronous_commit = on;"),
            _then("ANALYZE reg.effect;"),
        ]
    ),
)


def _inspect(changes: list[Change], live: LiveServer, clones: Scratch) -> Assessment:
    """The fit surface with these changes, examined."""
    ddl = _BASE
    for change in changes:
        ddl = change.rewrite(ddl)
    schema = replace(_FIT, ddl="\n".join([ddl, *(change.then for change in changes)]))
    with live.database(DATABASE) as connection:
        schema.make(connection)
        return schema.inspect(live, connection, clones)


def _told(found: Assessment) -> str:
    return "\n".join(f"{r.criterion.value} {r.standing.value} {r.code} {r.text}" for r in found.judgement.reasons)


def _distinct(changes: list[Change]) -> list[Change]:
    """Without those that would be done twice to one thing."""
    kept: dict[str, Change] = {}
    for change in changes:
        kept.setdefault(re.sub(r"\b[uxyzt]_\w+|IS '.*'", "", change.said), change)
    return list(kept.values())


def _stays_fit(changes: list[Change], live: LiveServer, clones: Scratch) -> None:
    found = _inspect(_distinct(changes), live, clones)

    assert found.judgement.status is Status.FIT, _told(found)


_changes = st.lists(_harmless, max_size=4)
# A failing example is one change, or few: a search for a smaller one would take longer than all the rest.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_quick = settings(
    max_examples=_FEW, deadline=None, derandomize=True, phases=_PHASES, suppress_health_check=list(HealthCheck)
)
_long = settings(max_examples=_MANY, deadline=None, phases=_PHASES, suppress_health_check=list(HealthCheck))


@_quick
@given(changes=st.lists(_harmless, min_size=2, max_size=4))
def test_what_means_the_same_stays_fit(live_server: LiveServer, clones: Scratch, changes: list[Change]) -> None:
    _stays_fit(changes, live_server, clones)


@pytest.mark.sweep
@_long
@given(changes=_changes)
def test_what_means_the_same_stays_fit_however_often(
    live_server: LiveServer, clones: Scratch, changes: list[Change]
) -> None:
    _stays_fit(changes, live_server, clones)
