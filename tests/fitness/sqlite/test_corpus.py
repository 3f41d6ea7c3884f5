"""Every schema of the corpus: its status, exactly the criteria that are refuted and unproven, and their codes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.conformance.fitness.criteria.judging import is_refusal
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import CriterionResult, Evidence, Standing, Status
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, policy_from_proof
from holdfast.conformance.fitness.sqlite.catalogue import translated
from tests.conftest import thinned
from tests.fitness.contradicting import contradictions
from tests.fitness.documented import sqlite_ddl
from tests.fitness.sqlite.files import judged, policy_of
from tests.fitness.sqlite.misses import LEDGERS, SCHEMAS
from tests.fitness.sqlite.schemas import FIT_ONES, Schema


def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    names = [schema.name for schema in SCHEMAS]
    assert len(set(names)) == len(names) >= 70


@pytest.mark.parametrize("schema", thinned(SCHEMAS), ids=lambda schema: schema.name)
def test_each_schema_is_judged_as_it_deserves(schema: Schema, tmp_path: Path) -> None:
    evidence, judgement = judged(schema, tmp_path)
    held = policy_of(schema).written()
    assert judge(evidence, policy_from_proof(held, where="the proof")) == judgement
    findings = judgement.findings
    text = "\n".join(f"{r.criterion.value} {r.standing.value} {r.code} {r.text}" for f in findings for r in f.reasons)
    assert _letters(findings, Standing.REFUTED) == sorted(schema.refuted), text
    assert _letters(findings, Standing.UNPROVEN) == sorted(schema.unproven), text
    assert judgement.status is (Status.NOT_FIT if schema.refuted or schema.unproven else Status.FIT)
    assert schema.says in text
    _has_codes(findings, {**schema.refuted, **schema.unproven}, text)
    shared = translated(evidence)
    assert contradictions(evidence, judgement, lambda name: _refused(shared, name)) == [], text


def _refused(evidence: Evidence, name: str) -> bool:
    probe = evidence.probe(name)
    return probe is not None and probe.answer is not None and is_refusal(probe.answer)


def _letters(findings: tuple[CriterionResult, ...], standing: Standing) -> list[str]:
    return [finding.criterion.value for finding in findings if finding.standing is standing]


def _has_codes(findings: tuple[CriterionResult, ...], expected: Mapping[str, str], text: str) -> None:
    for finding in findings:
        codes = {reason.code for reason in finding.reasons}
        wanted = set(expected.get(finding.criterion.value, "").split())
        assert wanted <= codes, f"{finding.criterion.value} lacks {sorted(wanted - codes)}:\n{text}"


@pytest.mark.parametrize("schema", FIT_ONES[:1] + LEDGERS[:1], ids=lambda schema: schema.name)
def test_what_a_criterion_rests_on_is_shown(schema: Schema, tmp_path: Path) -> None:
    evidence, judgement = judged(schema, tmp_path)
    names = {probe.name for probe in evidence.probes}
    for finding in judgement.findings:
        assert finding.rows or finding.reasons
        assert set(finding.probes) <= names
        for reason in finding.reasons:
            assert reason.text
            assert set(reason.probes) <= names


def test_the_surface_that_is_documented_is_fit(tmp_path: Path) -> None:
    surface, audit = sqlite_ddl()
    named = Schema(
        "documented",
        sql=surface,
        effect="consumed_request",
        nonce="consumed_nonce",
        audit="FILE:refusal_audit",
        audit_sql=audit,
    )
    _, judgement = judged(named, tmp_path)
    assert judgement.status is Status.FIT, judgement.reasons


def test_the_ledger_is_refused_for_everything_that_the_source_says(tmp_path: Path) -> None:
    _, judgement = judged(LEDGERS[0], tmp_path)
    reasons = {(reason.criterion.value, reason.code): reason for reason in judgement.reasons}
    bypass = reasons["a", "REPLAY_ATTEMPT_NO_BYPASS"]
    assert "iu_route_attempt_idem_uniq" in bypass.text
    assert "composite-sqlite_autoindex_iu_route_attempt_1-attempt_no" in bypass.probes
    assert "route_kind" in str(reasons["d", "WRONG_DOMAIN"].rows)
    assert [word for word in (*BINDINGS, KEYS[0], NONCE) if word not in reasons["c", "MISSING_COLUMNS"].text] == []
    assert NONCE in reasons["b", "MISSING_COLUMNS"].text
    assert ("f", "NO_TRIGGERS") in reasons
    assert ("f", "WRITER_UNPROVEN") in reasons
