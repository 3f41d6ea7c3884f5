"""What probes find on a clone, and that they distinguish an untried probe from a refused one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
import pytest

from holdfast.conformance.fitness.model import EvidenceClass, Part, Probe, RelationName, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.clone import Clone
from holdfast.conformance.fitness.postgres.connecting import Session
from holdfast.conformance.fitness.postgres.probes import probe_clone, probe_live
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.postgres.snapshot import take
from tests.fitness.lives import LiveServer, clone_of, snapshot_of
from tests.fitness.schemas import CORPUS, DATABASE
from tests.fitness.test_clone import SURFACE
from tests.pace import busy

_LEDGER = Surface("ledger", {Part.EFFECT: RelationName("routing", "iu_route_attempt")}, None)


@contextmanager
def cloned(
    live: LiveServer, clones: Scratch, ddl: str, surface: Surface = SURFACE, base: str = "fit"
) -> Iterator[Clone]:
    """A clone of a base surface with something changed."""
    with live.database(DATABASE) as connection:
        connection.execute(((CORPUS / f"{base}.sql").read_text(encoding="utf-8") + ddl).encode())
        dsn = live.dsn_of(DATABASE)
        snapshot = snapshot_of(dsn, surface)
        with clone_of(dsn, surface, snapshot, clones) as made:
            yield made


def probed(made: Clone, surface: Surface = SURFACE, policy: Policy | None = None) -> Mapping[str, Probe]:
    """All probes by name."""
    snapshot = snapshot_of(made.dsn, surface)
    probes = probe_clone(made, surface, snapshot, policy or Policy())
    assert len({probe.name for probe in probes}) == len(probes)
    return {probe.name: probe for probe in probes}


@pytest.fixture(scope="module")
def fit(live_server: LiveServer, clones: Scratch) -> Mapping[str, Probe]:
    """The probes of the fit surface."""
    with cloned(live_server, clones, "") as made:
        return probed(made)


def _state(probes: Mapping[str, Probe], name: str) -> str | None:
    answer = probes[name].answer
    assert answer is not None, probes[name].failed
    return answer.sqlstate


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("23505", "same-key same-key-new-attempt same-replay-key nonce-again race race-nonce"),
        ("23502", "key-null replay-key-null nonce-null without-run_id without-decision"),
        ("23514", "key-upper key-space replay-key-upper empty-run_id other-operation"),
        ("42501", "writer-update writer-delete-nonce writer-truncate writer-upsert-audit stranger-insert"),
        ("23001", "owner-update owner-delete owner-truncate owner-upsert owner-update-nonce owner-truncate-audit"),
    ],
)
def test_fit_surface_refuses_each_for_its_own_reason(state: str, names: str, fit: Mapping[str, Probe]) -> None:
    assert {name: _state(fit, name) for name in names.split()} == dict.fromkeys(names.split(), state)


def test_what_was_sent_stands_there_with_its_answer(fit: Mapping[str, Probe]) -> None:
    probe = fit["same-key"]
    assert len(probe.statements) == len(probe.answers) == 2
    assert [statement.role for statement in probe.statements] == ["corpus_writer"] * 2
    names = probe.statements[-1].sql.removeprefix('INSERT INTO "reg"."effect" (').partition(")")[0].split(", ")
    place = names.index('"logical_request_key"')
    assert probe.answers[-1].constraint == "effect_key"
    assert probe.statements[-1].parameters[place] == fit["first"].statements[1].parameters[place]


def test_sessions_of_a_race_were_seen_to_meet(fit: Mapping[str, Probe]) -> None:
    for name, wanted in (("race", ("23505", None)), ("race-after-rollback", (None, 1)), ("race-arbiter", (None, 0))):
        assert {"waits": True} in [row for answer in fit[name].answers for row in answer.rows]
        last = fit[name].answers[-1]
        assert (last.sqlstate, last.affected) == wanted
        assert [each.sql for each in fit[name].statements].count("COMMIT") == (name != "race-after-rollback")


def test_crash_empties_what_is_unlogged(live_server: LiveServer, clones: Scratch) -> None:
    with cloned(live_server, clones, "ALTER TABLE reg.effect SET UNLOGGED;") as made:
        assert probed(made)["killed"].answers[-1].rows == ({"effect": 0, "nonce": 0, "committed": 0},)


_DEMANDING = """
CREATE TYPE reg.mood AS ENUM ('calm', 'brisk');
CREATE DOMAIN reg.code AS varchar(6) CHECK (VALUE ~ '^[0-9a-f]{6}$');
CREATE TABLE reg.region (id int PRIMARY KEY, name text NOT NULL UNIQUE CHECK (length(name) > 3));
CREATE TABLE reg.place (region int REFERENCES reg.region, code reg.code, PRIMARY KEY (region, code));
ALTER TABLE reg.effect
  ADD mood reg.mood NOT NULL, ADD region int NOT NULL, ADD code reg.code NOT NULL,
  ADD since timestamptz NOT NULL, ADD share numeric NOT NULL CHECK (share > 0), ADD level int CHECK (level IN (3, 5)),
  ADD code_2 varchar(20) NOT NULL CHECK (length(code_2) = 12),
  ADD kind text NOT NULL CHECK (kind IN ('small', 'large')),
  ADD body jsonb NOT NULL CHECK (jsonb_typeof(body) = 'object'), ADD FOREIGN KEY (region, code) REFERENCES reg.place;
"""


def test_rows_are_made_for_types_checks_and_parents_that_can_be_read(live_server: LiveServer, clones: Scratch) -> None:
    with cloned(live_server, clones, _DEMANDING) as made:
        found = probed(made)
    assert found["first"].failed == ""
    assert [answer.sqlstate for answer in found["first"].answers] == [None] * len(found["first"].answers)
    assert {statement.role for statement in found["first"].statements} == {"corpus_writer", clones.superuser}
    assert _state(found, "second") is None
    assert _state(found, "same-key") == "23505"


def test_value_that_cannot_be_guessed_is_asked_for_and_taken_from_the_policy(
    live_server: LiveServer, clones: Scratch
) -> None:
    wanted = hashlib.md5(b"swordfish").hexdigest()
    riddle = f"ALTER TABLE reg.effect ADD riddle text NOT NULL CHECK (md5(riddle) = '{wanted}');"
    with cloned(live_server, clones, riddle) as made:
        found = probed(made)
        assert list(found) == ["first"]
        assert "riddle" in found["first"].failed
        assert "`values`" in found["first"].failed
        assert found["first"].answer is None
        described = probed(made, policy=Policy(values={"riddle": "swordfish"}))
    assert _state(described, "same-key") == "23505"


def test_lost_connection_and_lock_are_answers_that_refuse_nothing(live_server: LiveServer, clones: Scratch) -> None:
    with cloned(live_server, clones, "") as made:
        session, other = (Session(name, "corpus_owner", made.dsn_as("corpus_owner")) for name in ("one", "two"))
        other.begin()
        other.send("LOCK TABLE reg.effect IN ACCESS EXCLUSIVE MODE")
        session.send("SET lock_timeout = '50ms'")
        started = time.monotonic()
        assert session.send("DELETE FROM reg.effect")[1].sqlstate == "55P03"
        assert time.monotonic() - started < busy(4)
        other.close()
        with psycopg.connect(made.dsn, autocommit=True) as killer:
            killer.execute("SELECT pg_terminate_backend(%s)", (session.backend,))
        states = [session.send("SELECT 1")[1].sqlstate for _ in range(2)]
        session.close()
    assert states[0] in {"57P01", "08006"}
    assert states[1] == "08006"


def test_live_probe_finds_the_same_and_leaves_nothing(live_server: LiveServer) -> None:
    with live_server.database(DATABASE) as connection:
        connection.execute((CORPUS / "fit.sql").read_bytes())
        with psycopg.connect(live_server.dsn_of(DATABASE)) as asked:
            snapshot = take(asked, SURFACE)
            found = {probe.name: probe for probe in probe_live(asked, SURFACE, snapshot, Policy())}
        rows = connection.execute(
            "SELECT (SELECT count(*) FROM reg.effect), (SELECT count(*) FROM reg.consumed)"
        ).fetchone()
    assert rows == (0, 0)
    assert {probe.evidence for probe in found.values()} == {EvidenceClass.LIVE}
    states = {"live-first": None, "live-second": None, "live-same-key": "23505", "live-nonce-again": "23505"}
    assert {name: _state(found, name) for name in states} == states
    assert _state(found, "live-writer-update") == "42501"
    assert found["live-rollback"].answers[-1].rows == ({"effect": 0, "nonce": 0},)
    assert not any("TRUNCATE" in statement.sql for probe in found.values() for statement in probe.statements)


def test_live_probe_without_a_writer_shows_nothing(live_server: LiveServer) -> None:
    with live_server.database(DATABASE) as connection:
        connection.execute((CORPUS / "ledger.sql").read_bytes())
        with psycopg.connect(live_server.dsn_of(DATABASE)) as asked:
            (found,) = probe_live(asked, _LEDGER, take(asked, _LEDGER), Policy())
    assert found.failed == "no writer is named"
    assert found.answer is None


@pytest.mark.parametrize(
    "values",
    [
        {"authorization_nonce": "the-same"},
        {"effect.replay_key": "0" * 64},
        {"logical_request_key": "a" * 62 + "{hex:2}"},
        {"decision_id": "00000000-0000-4000-8000-000000000000"},
    ],
)
def test_sample_that_does_not_differ_is_asked_for_again(
    live_server: LiveServer, clones: Scratch, values: Mapping[str, str]
) -> None:
    with cloned(live_server, clones, "") as made:
        found = probed(made, policy=Policy(values=values))
    assert list(found) == ["first"]
    assert "does not differ from row to row; use {hex}, {hex:N}, {uuid} or {number}" in found["first"].failed
    assert next(iter(values)).rpartition(".")[2] in found["first"].failed


def test_audit_of_one_sample_is_no_audit_that_loses_records(live_server: LiveServer, clones: Scratch) -> None:
    with cloned(live_server, clones, "") as made:
        found = probed(made, policy=Policy(values={"refusal_id": "00000000-0000-4000-8000-000000000000"}))
    for name in ("audit-first", "audit-again"):
        assert "refusals.refusal_id does not differ" in found[name].failed
