"""Histories beside the model of rs4a-replay: a sound registrar of another style agrees with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import run_histories
from holdfast.conformance.suites.rs4a_replay.generate import history
from holdfast.conformance.suites.rs4a_replay.runner import playing
from holdfast.conformance.verdict import Verdict
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.rs4a_replay import service
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Insert, Row
from holdfast.reference_impl.rs4a_replay.terms import Reason
from holdfast.servers.serving import Launched
from holdfast.specs import load_contract
from tests.harness.sessions import Sessions
from tests.harness.suite_play import bench_on, judged

HORIZON_S = 7200


def histories(bench: Bench) -> None:
    """A few histories with a horizon, which has all that there is without one."""
    run_histories(
        bench,
        count=8,
        draw=lambda dice: history(dice, horizon_s=HORIZON_S, parts=3),
        begin=lambda: playing(bench, horizon_s=HORIZON_S),
    )


class OtherAnswers(Registrar):
    """A registrar that uses what the contract leaves open, and keeps time in milliseconds."""

    def prior_decision(self, attempt: Attempt) -> Any:
        prior = super().prior_decision(attempt)
        row, submission = attempt.sight.registration, attempt.verdict.submission
        if prior is None or row is None or submission is None or row["attempt_id"] == submission.attempt_id:
            return prior
        return Refusal(Reason.REPLAY_ATTEMPT_NO_BYPASS, {"decision": prior.value["decision"]})

    def guard_failed_key(self, attempt: Attempt) -> Refusal | None:
        return None if attempt.sight.compensation is not None else super().guard_failed_key(attempt)

    def effect_rows(self, attempt: Attempt) -> Sequence[Insert]:
        in_milliseconds = attempt.now.replace(microsecond=attempt.now.microsecond // 1000 * 1000)
        return super().effect_rows(replace(attempt, now=in_milliseconds))


class LaterTombstones(Custody):
    """A key has no tombstone yet in the last instant of its horizon."""

    def due_tombstones(self, *, now: datetime) -> Sequence[Row]:
        earlier = super().due_tombstones(now=now - timedelta(microseconds=1))
        return [{**row, "recorded_at": format_instant(now)} for row in earlier]


def test_a_sound_registrar_of_another_style_agrees_with_the_model(
    sqlite: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "Registrar", OtherAnswers)
    monkeypatch.setattr(service, "Custody", LaterTombstones)
    sessions = lambda _: Sessions(Rs4aReplay(), sqlite.ready.config)  # noqa: E731
    bench = bench_on(load_contract("rs4a-replay"), "rs4a-replay/suite/played", sessions, workers=2)
    judgement = judged(bench, histories)
    assert judgement.verdict is Verdict.CONFORMS, judgement
