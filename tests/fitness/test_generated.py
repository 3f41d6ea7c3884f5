"""Generated surfaces: what is changed without changing what it means stays fit, and one break of any kind is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.model import Standing, Status
from holdfast.conformance.fitness.policy import BINDINGS, KEYS
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
# The audit is a criterion of its own.
_OF = {"effect": "f", "consumed": "f", "refusals": "g"}
_SAID = {
    "canonical_target": "effect_target_said",
    "run_id": "effect_run_said",
    "owner_or_approval_binding": "effect_approval_said",
}
_UNIQUE = {
    "logical_request_key": ("effect", "effect_key", "a"),
    "replay_key": ("effect", "effect_replay", "a"),
    "authorization_nonce": ("consumed", "consumed_nonce", "b"),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to the fit surface: to its text, or afterwards. It breaks one of the letters in `criterion`."""

    said: str
    then: str = ""
    rewrite: Callable[[str], str] = str
    criterion: str = ""

    def __repr__(self) -> str:
        return self.said


def _then(sql: str, criterion: str = "") -> Change:
    return Change(sql, sql, criterion=criterion)


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


def _text(old: str, new: str, criterion: str = "") -> Change:
    assert old in _BASE, old
    return Change(f"{old} becomes {new}", rewrite=lambda ddl: ddl.replace(old, new), criterion=criterion)


# What means the same.

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


# What breaks it.


def _reindexed(word: str, how: str) -> Change:
    """The key's constraint, and another index in its place."""
    table, constraint, criterion = _UNIQUE[word]
    sql = f"ALTER TABLE reg.{table} DROP CONSTRAINT {constraint}; "
    return _then(sql + how.format(table=f"reg.{table}", key=word), criterion)


_INDEXES = (
    "",
    "CREATE INDEX ON {table} ({key});",
    "CREATE UNIQUE INDEX ON {table} ({key}) WHERE {key} <> '';",
    "CREATE UNIQUE INDEX ON {table} ({key}) WHERE {key} > 'a';",
    "CREATE UNIQUE INDEX ON {table} (lower({key}));",
    "CREATE UNIQUE INDEX ON {table} (left({key}, 8));",
    "CREATE UNIQUE INDEX ON {table} (md5({key}));",
    "ALTER TABLE {table} ADD UNIQUE ({key}) DEFERRABLE;",
    "ALTER TABLE {table} ADD UNIQUE ({key}) DEFERRABLE INITIALLY DEFERRED;",
    "ALTER TABLE {table} ADD EXCLUDE ({key} WITH =);",
)
_COMPOSITES = (
    "CREATE UNIQUE INDEX ON {{table}} ({{key}}, {other});",
    "CREATE UNIQUE INDEX ON {{table}} ({other}, {{key}});",
    "ALTER TABLE {{table}} ADD UNIQUE ({{key}}, {other});",
)
_OTHERS = {
    "logical_request_key": _EFFECT_COLUMNS,
    "replay_key": _EFFECT_COLUMNS,
    "authorization_nonce": ["consumed_for"],
}


@st.composite
def _composite(draw: st.DrawFn) -> Change:
    word = draw(st.sampled_from(sorted(_UNIQUE)))
    # With the other key it would be no more and no less unique than that one alone; still no key of its own.
    other = draw(st.sampled_from([column for column in _OTHERS[word] if column != word]))
    return _reindexed(word, draw(st.sampled_from(_COMPOSITES)).format(other=other))


_WORDS = [*KEYS, *BINDINGS]
_broken = st.one_of(
    st.builds(_reindexed, st.sampled_from(sorted(_UNIQUE)), st.sampled_from(_INDEXES)),
    _composite(),
    st.sampled_from(_WORDS).map(
        lambda word: _then(f"ALTER TABLE reg.effect ALTER {word} DROP NOT NULL;", "a" if word in KEYS else "c")
    ),
    st.just(_then("ALTER TABLE reg.consumed ALTER authorization_nonce DROP NOT NULL;", "b")),
    st.sampled_from(_WORDS).map(
        lambda word: _then(f"ALTER TABLE reg.effect DROP {word} CASCADE;", "a" if word in KEYS else "c")
    ),
    st.builds(
        lambda word, value: _then(f"ALTER TABLE reg.effect ALTER {word} SET DEFAULT '{value}';", "c"),
        st.sampled_from(BINDINGS),
        st.sampled_from(["", "unknown", "register_dot", "0" * 64]),
    ),
    st.sampled_from(sorted(_SAID)).map(
        lambda word: _then(f"ALTER TABLE reg.effect DROP CONSTRAINT {_SAID[word]};", "c")
    ),
    st.sampled_from(["effect_key_form", "effect_replay_form"]).map(
        lambda name: _then(f"ALTER TABLE reg.effect DROP CONSTRAINT {name};", "a")
    ),
    st.sampled_from(
        [
            "",
            "ADD CHECK (operation <> '')",
            "ADD CHECK (operation IN ('register_dot', 'unregister_dot'))",
            "ADD CHECK (operation IN ('inbound', 'outbound'))",
            "ADD CHECK (operation ILIKE 'register_dot')",
            "ADD CHECK (operation = 'register_dot') NOT VALID",
        ]
    ).map(
        lambda more: _then(f"ALTER TABLE reg.effect DROP CONSTRAINT effect_domain{', ' + more if more else ''};", "d")
    ),
    st.builds(
        lambda privilege, table, who: _then(f"GRANT {privilege} ON reg.{table} TO {who};", _OF[table]),
        st.sampled_from(["UPDATE", "DELETE", "TRUNCATE", "ALL"]),
        st.sampled_from(["effect", "consumed"]),
        st.sampled_from(["corpus_writer", "corpus_other", "PUBLIC"]),
    ),
    st.builds(
        lambda table, who: _then(f"GRANT INSERT ON reg.{table} TO {who};", "f"),
        st.sampled_from(["effect", "consumed"]),
        st.sampled_from(["corpus_other", "PUBLIC"]),
    ),
    st.builds(
        lambda guard, how: _then(how.format(guard=guard, table=f"reg.{_GUARDS[guard]}"), _OF[_GUARDS[guard]]),
        st.sampled_from(sorted(_GUARDS)),
        st.sampled_from(
            [
                "DROP TRIGGER {guard} ON {table};",
                "ALTER TABLE {table} DISABLE TRIGGER {guard};",
                "ALTER TABLE {table} ENABLE REPLICA TRIGGER {guard};",
            ]
        ),
    ),
    st.sampled_from(
        ["RAISE NOTICE '% is append-only', TG_TABLE_NAME; RETURN coalesce(NEW, OLD);", "RETURN coalesce(NEW, OLD);"]
    ).map(
        lambda body: Change(
            f"guards that say {body}",
            criterion="f",
            rewrite=lambda ddl: re.sub(
                r"BEGIN RAISE EXCEPTION .*? END \$\$", lambda _: f"BEGIN {body} END $$", ddl, flags=re.DOTALL
            ),
        )
    ),
    st.sampled_from(["SUPERUSER", "CREATEROLE", "BYPASSRLS", "REPLICATION"]).map(
        lambda attribute: _then(f"ALTER ROLE corpus_writer {attribute};", "f")
    ),
    st.sampled_from(["corpus_owner", "pg_write_all_data"]).map(
        lambda role: _then(f"GRANT {role} TO corpus_writer;", "f")
    ),
    st.sampled_from(["effect", "consumed"]).map(
        lambda table: _then(f"ALTER TABLE reg.{table} OWNER TO corpus_writer;", "f")
    ),
    st.sampled_from(["effect", "consumed"]).map(lambda table: _then(f"ALTER TABLE reg.{table} SET UNLOGGED;", "e")),
    st.builds(
        lambda who, value: _then(f"ALTER {who} SET synchronous_commit = {value};", "e"),
        st.sampled_from(["ROLE corpus_writer", f"DATABASE {DATABASE}", f"ROLE corpus_writer IN DATABASE {DATABASE}"]),
        st.sampled_from(["off", "'no'", "false"]),
    ),
    st.builds(
        lambda event, action: _then(
            'CREATE TABLE reg.runs (run_id text COLLATE "C" PRIMARY KEY); ALTER TABLE reg.runs OWNER TO corpus_owner; '
            "GRANT SELECT, INSERT ON reg.runs TO corpus_writer; ALTER TABLE reg.effect ADD FOREIGN KEY (run_id) "
            f"REFERENCES reg.runs ON {event} {action};",
            "i",
        ),
        st.sampled_from(["DELETE", "UPDATE"]),
        st.sampled_from(["CASCADE", "SET NULL", "SET DEFAULT"]),
    ),
    st.sampled_from(["SELECT ON reg.effect", "SELECT ON reg.effect, reg.consumed"]).map(
        lambda what: _then(f"REVOKE {what} FROM corpus_writer;", "h")
    ),
    st.just(
        _then(
            "ALTER TABLE reg.effect ENABLE ROW LEVEL SECURITY; "
            "CREATE POLICY mine ON reg.effect FOR INSERT WITH CHECK (true);",
            "h",
        )
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


def _turns(changes: list[Change], breaking: Change, live: LiveServer, clones: Scratch) -> None:
    # The break comes first: it speaks of names that a harmless change may take away.
    found = _inspect([breaking, *(change for change in _distinct(changes) if not change.then)], live, clones)

    assert found.judgement.status is Status.NOT_FIT
    standings = {finding.criterion.value: finding.standing for finding in found.judgement.findings}
    assert Standing.REFUTED in [standings[letter] for letter in breaking.criterion], f"{breaking}:\n{_told(found)}"


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


@_quick
@given(changes=_changes, breaking=_broken)
def test_one_break_turns_the_verdict(
    live_server: LiveServer, clones: Scratch, changes: list[Change], breaking: Change
) -> None:
    _turns(changes, breaking, live_server, clones)


@pytest.mark.sweep
@_long
@given(changes=_changes)
def test_what_means_the_same_stays_fit_however_often(
    live_server: LiveServer, clones: Scratch, changes: list[Change]
) -> None:
    _stays_fit(changes, live_server, clones)


@pytest.mark.sweep
@_long
@given(changes=_changes, breaking=_broken)
def test_one_break_turns_the_verdict_however_often(
    live_server: LiveServer, clones: Scratch, changes: list[Change], breaking: Change
) -> None:
    _turns(changes, breaking, live_server, clones)
