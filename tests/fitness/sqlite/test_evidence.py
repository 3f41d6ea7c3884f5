"""Evidence of SQLite files as a proof holds it, and the texts that it is read from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import (
    Evidence,
    FitnessJudgement,
    Observed,
    ProbeAnswer,
    Standing,
    Status,
    Surface,
)
from holdfast.conformance.fitness.sqlite.catalogue import check_text
from holdfast.conformance.fitness.sqlite.sqltext import (
    checks,
    conflict_clauses,
    takes_from,
    trigger,
    unique_constraints,
)
from holdfast.specs.typed import json_of, read
from tests.fitness.sqlite.files import judged, policy_of
from tests.fitness.sqlite.misses import KEYS, LEDGERS
from tests.fitness.sqlite.schemas import FIT_ONES, Schema


@pytest.mark.parametrize("schema", [FIT_ONES[0], KEYS[0], LEDGERS[0]], ids=lambda schema: schema.name)
def test_evidence_goes_into_a_proof_and_comes_back_equal_and_is_judged_equal(schema: Schema, tmp_path: Path) -> None:
    evidence, judgement = judged(schema, tmp_path)
    held = Observed(evidence.snapshot, evidence.probes, evidence.lost)
    surface, again = read(json_of(evidence.surface), Surface), read(json_of(held), Observed)
    back = Evidence(surface, again.snapshot, again.probes, again.lost)
    assert judge(back, policy_of(schema)) == judgement
    assert read(json_of(judgement), FitnessJudgement) == judgement


def test_trials_of_another_release_refute_nothing_and_prove_nothing(tmp_path: Path) -> None:
    evidence, _ = judged(FIT_ONES[0], tmp_path)
    there = ProbeAnswer(rows=({"tried": 0, "first": 1},), affected=1)
    older = tuple(
        structs.replace(
            probe,
            statements=(*probe.statements, probe.statements[-1]),
            answers=(*(structs.replace(a, sqlstate=a.sqlstate and "SQLITE_CONSTRAINT") for a in probe.answers), there),
        )
        for probe in evidence.probes
    )
    found = judge(replace(evidence, probes=older), policy_of(FIT_ONES[0])).findings
    assert {finding.standing for finding in found} == {Standing.UNPROVEN}


_BROKEN = "CREATE TABLE gone (a TEXT); CREATE VIEW {} AS SELECT a FROM gone; DROP TABLE gone;"


def test_a_broken_view_is_named_and_everything_else_is_judged(tmp_path: Path) -> None:
    fit = FIT_ONES[0]
    _, judgement = judged(replace(fit, sql=fit.sql + _BROKEN.format("old")), tmp_path)
    assert judgement.status is Status.FIT
    assert any("the view old is broken (no such table: main.gone)" in note for note in judgement.notes)


def test_an_effect_that_is_a_broken_view_is_refused_and_no_error(tmp_path: Path) -> None:
    fit = FIT_ONES[0]
    _, judgement = judged(replace(fit, sql=fit.sql + _BROKEN.format("old"), effect="old"), tmp_path)
    assert {"NOT_A_TABLE", "MISSING_COLUMNS"} <= {reason.code for reason in judgement.reasons}
    assert any("the view old is broken" in note for note in judgement.notes)


@pytest.mark.parametrize(
    ("sql", "clauses"),
    [
        ("CREATE TABLE t (a TEXT UNIQUE ON CONFLICT replace)", ("REPLACE",)),
        (
            "CREATE TABLE t (a TEXT NOT NULL ON /* x */ CONFLICT\nIGNORE, UNIQUE (a) ON CONFLICT ABORT)",
            ("IGNORE", "ABORT"),
        ),
        ("CREATE TABLE t (a TEXT DEFAULT 'ON CONFLICT REPLACE', \"ON CONFLICT IGNORE\" TEXT) -- ON CONFLICT FAIL", ()),
        ("CREATE TABLE t (a TEXT REFERENCES p ON DELETE CASCADE)", ()),
    ],
)
def test_conflict_clauses_are_read_where_they_are_meant(sql: str, clauses: tuple[str, ...]) -> None:
    assert conflict_clauses(sql) == clauses


def test_checks_are_found_with_their_names() -> None:
    found = checks(
        "CREATE TABLE t (\"a\" TEXT CHECK (\"a\" <> 'it''s'), CONSTRAINT b CHECK (x IN (1, 2.5) AND length(a) > 3))"
    )
    assert [(name, check_text(body, ["a", "x"])) for name, body in found] == [
        ("", "CHECK (a <> 'it''s')"),
        ("b", "CHECK (x in ( 1 , 2.5 ) AND length ( a ) > 3)"),
    ]


@pytest.mark.parametrize(
    ("sql", "timing", "event", "unconditional", "takes"),
    [
        ("CREATE TRIGGER g BEFORE DELETE ON t BEGIN SELECT RAISE(ABORT, 'DELETE FROM t'); END",
         "before", "delete", True, False),
        ("CREATE TRIGGER g DELETE ON t BEGIN SELECT 1; END", "before", "delete", True, False),
        ("CREATE TRIGGER 'delete' AFTER UPDATE OF a, b ON t BEGIN SELECT 1; END", "before", "update", False, False),
        ("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW WHEN NEW.a BEGIN delete from [t]; END",
         "before", "insert", False, True),
        ("CREATE TRIGGER g INSTEAD OF INSERT ON v BEGIN UPDATE OR IGNORE \"T\" SET a = 1; END",
         "instead", "insert", True, True),
        ("CREATE TRIGGER g AFTER INSERT ON v BEGIN INSERT OR REPLACE INTO t VALUES (1); END",
         "before", "insert", True, True),
        ("CREATE TRIGGER g AFTER INSERT ON v BEGIN INSERT INTO t VALUES (1); SELECT a FROM t; END",
         "before", "insert", True, False),
    ],
)  # fmt: skip
def test_the_head_of_a_trigger_and_what_it_takes(
    sql: str, timing: str, event: str, unconditional: bool, takes: bool
) -> None:
    head, body = trigger(sql)
    assert (head["timing"], head["events"]) == (timing, [event])
    assert (not (head["columns"] or head["conditional"]), takes_from(body, "t")) == (unconditional, takes)


def test_named_constraints_keep_their_names() -> None:
    sql = (
        'CREATE TABLE t (a TEXT, b TEXT, CONSTRAINT one UNIQUE (a, "b"), CONSTRAINT "two" PRIMARY KEY (a), UNIQUE (b))'
    )
    assert tuple(unique_constraints(sql)) == (("one", ("a", "b")), ("two", ("a",)))
