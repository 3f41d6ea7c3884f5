"""Four clients at once: each operation is judged by itself, and a bug shows that one client alone never meets."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.conformance.faults import sweep as subject_of_tests
from holdfast.conformance.faults.concurrent import CLIENTS, Crowd, perform
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import Kind, judge
from holdfast.conformance.faults.recording import Event
from holdfast.conformance.faults.subject import Outcome, SubjectError, Workload
from holdfast.conformance.faults.sweep import Report, Sweep
from tests.faults.stores.catalogue import ENVIRONMENT, Layer, Store

pytestmark = pytest.mark.usefixtures("tracer")

SQLITE = Store("sqlite", "wal_full")
SQLITE_OFF = Store("sqlite", "wal_off", Layer.POWER, "nothing is synced")
SQLITE_TWO = Store("sqlite", "two_commits", Layer.KILL, "each fact is a transaction")
SHARED = Store("shared", "right")
BORROWS = Store("shared", "borrows_sync", Layer.POWER, "trusts another's sync, which may be older than its write")
# Each operation sets facts of its own, so that none covers another in any order.
OPS = 16
WORKLOAD = puts(OPS, names=OPS)
SECONDS = 60.0

Make = Callable[[Store], Sweep]


def crowd(store: Store, factor: float = 4.0) -> Crowd:
    return Crowd(store.command(), limits=Limits().scaled(factor), environment=ENVIRONMENT)


def alone(store: Store) -> Lines:
    return Lines(store.command(), limits=Limits().scaled(4), environment=ENVIRONMENT)


@pytest.fixture
def sweep_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A function from a store to its sweep by four clients, which ends a layer at the first finding."""
    monkeypatch.setattr(subject_of_tests, "MOST_FINDINGS", 1)
    made: list[Sweep] = []

    def make(store: Store) -> Sweep:
        made.append(
            Sweep(
                lambda: alone(store),
                WORKLOAD,
                traced=lambda: crowd(store, 20),
                least=4,
                parent=tmp_path,
                send=perform,
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


def _kinds(report: Report) -> set[Kind]:
    assert report.unproven == ()
    assert report.tried
    return {finding.verdict.kind for finding in report.findings} - {Kind.INIT}


def test_several_clients_are_asked_at_once_and_all_is_there_afterwards(tmp_path: Path) -> None:
    subject = crowd(SQLITE)
    subject.start(tmp_path)
    try:
        history = perform(subject, WORKLOAD)
    finally:
        subject.stop()
    assert history.must == {op.number for op in WORKLOAD.ops}
    sent = [one.answer.sent_at for one in history.asked]
    assert sent == sorted(sent)
    # A client sent a request before another client had its answer.
    assert any(later.answer.sent_at < (one.answer.acked_at or 0) for one, later in itertools.pairwise(history.asked))
    verdict = judge(alone(SQLITE), tmp_path, WORKLOAD, history.must, history.may)
    assert verdict.kind is Kind.CLEAN, str(verdict)


def test_what_they_do_is_one_recording(sweep_of: Make) -> None:
    run = sweep_of(SHARED).baseline()
    tasks = {one.task for one in run.recording.operations if isinstance(one.action, Event)}
    assert len(tasks) >= CLIENTS
    assert run.promises.acknowledged.keys() == {op.number for op in WORKLOAD.ops}


@pytest.mark.parametrize("store", [SQLITE, SHARED], ids=lambda store: store.name)
def test_a_right_store_is_not_accused(store: Store, sweep_of: Make) -> None:
    sweep = sweep_of(store)
    for report in (sweep.power_loss(0), sweep.kills(0)):
        assert _kinds(report) == set(), [str(one) for one in report.findings]


@pytest.mark.sweep
@pytest.mark.parametrize("store", [SQLITE, SHARED], ids=lambda store: store.name)
def test_a_right_store_is_not_accused_by_any_layer(store: Store, sweep_of: Make) -> None:
    sweep = sweep_of(store)
    reports = [sweep.power_loss(SECONDS), sweep.kills(10), sweep.kills(5, torn=True), sweep.recovery(10)]
    reports += [sweep.errors(5), sweep.short_writes(5), sweep.sync_errors(5)]
    for report in reports:
        assert _kinds(report) == set(), [str(one) for one in report.findings]


def test_a_sync_that_another_client_made_too_early_is_found(sweep_of: Make) -> None:
    assert _kinds(sweep_of(BORROWS).power_loss(SECONDS)) == {Kind.LOST}


def test_one_client_alone_never_meets_it(tmp_path: Path) -> None:
    with Sweep(lambda: alone(BORROWS), puts(6), parent=tmp_path) as sweep:
        assert _kinds(sweep.power_loss(0)) == set()


@pytest.mark.sweep
def test_other_bugs_are_found_as_well(sweep_of: Make) -> None:
    assert _kinds(sweep_of(SQLITE_OFF).power_loss(SECONDS)) == {Kind.LOST}
    assert _kinds(sweep_of(SQLITE_TWO).kills(SECONDS)) == {Kind.TORN}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("raise SystemExit(3)", "it closed its output"),
        ("print('HELLO', flush=True)\nimport time; time.sleep(60)", "expected READY, got 'HELLO'"),
        ("import time; time.sleep(60)", "no answer within 1 s"),
    ],
)
def test_a_bad_start_is_told_in_words_and_leaves_nothing(program: str, words: str, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    subject = Crowd((sys.executable, "-S", "-c", program), count=2, limits=Limits(1.0, 1.0, 1.0))
    with pytest.raises(SubjectError, match=words):
        subject.start(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
    subject.stop()


def test_a_client_without_an_answer_sends_no_more_and_the_others_go_on(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\nprint('READY', flush=True)\n"
        "for line in sys.stdin: print('OK', flush=True) if ' k1 ' in line or ' k3 ' in line else time.sleep(60)"
    )
    subject = Crowd((sys.executable, "-S", "-c", program), count=2, limits=Limits(5.0, 0.5, 0.3))
    subject.start(tmp_path)
    history = perform(subject, puts(6, names=6))
    with pytest.raises(SubjectError, match="did not end"):
        subject.stop()
    assert [(one.op.number, one.answer.outcome) for one in sorted(history.asked, key=lambda one: one.op.number)] == [
        (1, Outcome.OK),
        (2, Outcome.SILENT),
        (3, Outcome.OK),
        (5, Outcome.SILENT),
    ]
    time.sleep(0.05)
    assert subject.clients == ()


def test_only_a_crowd_is_asked_at_once() -> None:
    with pytest.raises(TypeError, match="expected a Crowd, got Lines"):
        perform(alone(SHARED), Workload((), puts(0).probe))
