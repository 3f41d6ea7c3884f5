"""For every behaviour of a runner each document gets one answer; only a failure on this document takes its verdict."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.vectors.jcs.frames import Answered, Exchange, StartError, Status, exchange, run
from holdfast.vectors.jcs.frames.exchange import BLOCK_DOCUMENTS, DEAD_IN_A_ROW, FAILED_STARTS, WINDOW
from tests.pace import busy

FAKE = (sys.executable, "-S", "-E", str(Path(__file__).with_name("fake_sdk.py")))
# Documents that hang cost this much time two or three times over; a start of Python on a busy machine takes less.
DEADLINE = 0.7
C, R, CRASHED, HUNG, GARBLED = Status


def statuses(*documents: bytes, mode: str = "", deadline: float = DEADLINE) -> list[Status]:
    return [answer.status for answer in run([*FAKE, mode], documents, deadline=deadline)]


def test_every_document_is_answered_in_order() -> None:
    documents = [b"%d " % number * (number % 50) for number in range(5000)]
    assert [*run(FAKE, documents, deadline=5)] == [Answered(C, document) for document in documents]


def test_a_document_larger_than_every_pipe_comes_back() -> None:
    documents = [b"a", b"x" * 5_000_000, b"b"]
    assert [answer.body for answer in run(FAKE, documents, deadline=20)] == documents


def test_an_answer_many_times_as_long_as_its_document_is_an_answer() -> None:
    assert [len(answer.body) for answer in run(FAKE, [b"!big:9000000"], deadline=20)] == [9_000_000]


DEEDS = {
    **{f"!{deed}".encode(): CRASHED for deed in ("crash", "abort", "half")},
    **{f"!{deed}".encode(): HUNG for deed in ("hang", "silent", "trickle")},
    **{f"!{deed}".encode(): GARBLED for deed in ("status", "long", "text", "twice")},
}


@pytest.mark.parametrize(("document", "status"), DEEDS.items())
def test_misbehaviour_costs_its_own_row_only(document: bytes, status: Status) -> None:
    ok = [b"%d" % number for number in range(120)]
    assert statuses(*ok, document, b"?no", *ok) == [*[C] * 120, status, R, *[C] * 120]


def test_what_happened_is_said_in_the_row() -> None:
    (crashed,) = run(FAKE, [b"!abort"], deadline=5)
    assert b"SIGABRT" in crashed.body
    (hung,) = run(FAKE, [b"!hang"], deadline=DEADLINE)
    assert b"no complete answer within 0.7 s" in hung.body
    (garbled,) = run(FAKE, [b"!text"], deadline=5)
    assert b"expected u32 big-endian length" in garbled.body
    (dead,) = run([*FAKE, "dead"], [b"a"], deadline=5)
    assert b"cannot find my library" in dead.body


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        ("dead", CRASHED),
        ("closed", CRASHED),
        ("banner", GARBLED),
        ("greeting", GARBLED),
        ("constant", GARBLED),
    ],
)
def test_a_runner_that_never_comes_up_gives_no_verdict_at_all(mode: str, status: Status) -> None:
    assert statuses(*[b"x"] * 3000, mode=mode) == [status] * 3000


@pytest.mark.parametrize("mode", ["mute", "deaf"])
def test_a_runner_that_hangs_at_the_start_is_given_up_after_a_few_starts(mode: str) -> None:
    began = time.monotonic()
    answers = [*run([*FAKE, mode], [b"x"] * 3000, deadline=5, start=0.3)]
    assert {answer.status for answer in answers} == {HUNG}
    assert time.monotonic() - began < FAILED_STARTS * 0.3 + busy(3)


def test_a_bad_start_is_no_documents_fault(tmp_path: Path) -> None:
    command = [*FAKE, "dead-once", str(tmp_path / "starts")]
    assert [answer.status for answer in run(command, [b"a", b"b"], deadline=5)] == [C, C]


def test_slow_is_not_hung_as_long_as_answers_come() -> None:
    # All in all much longer than the deadline.
    assert statuses(*[b"x"] * 100, mode="slow") == [C] * 100


def test_time_in_which_nobody_waits_for_the_runner_does_not_count() -> None:
    def hesitant() -> Iterator[bytes]:
        for number in range(3):
            time.sleep(0.3)
            yield b"%d" % number

    answers = run(FAKE, hesitant(), deadline=0.5)
    for answer in answers:
        time.sleep(0.4)
        assert answer.status is C


def test_noise_on_standard_error_is_no_answer_and_stops_nothing() -> None:
    assert statuses(*[b"!noise"] * 5, b"a", deadline=10) == [C] * 6


def test_a_word_after_the_last_answer_costs_the_last_row() -> None:
    assert statuses(b"a", b"b", mode="farewell") == [C, GARBLED]


def test_a_runner_is_given_up_after_many_dead_documents_in_a_row(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    documents = [b"a", *[b"!crash"] * 2000, b"b"]
    answers = [*run([*FAKE, "count", str(starts)], documents, deadline=5)]
    assert [answer.status for answer in answers] == [C, *[CRASHED] * 2001]
    assert b"not tried" not in answers[DEAD_IN_A_ROW].body
    assert b"not tried" in answers[DEAD_IN_A_ROW + 1].body
    assert b"not tried" in answers[-1].body
    assert starts.stat().st_size <= DEAD_IN_A_ROW + 3


def test_a_command_that_does_not_exist_is_said_at_once() -> None:
    with pytest.raises(StartError, match="does not exist; give a path"):
        next(run(["./no-such-runner"], [b"a"], deadline=1))
    with pytest.raises(StartError, match="not executable"):
        next(run([str(Path(__file__))], [b"a"], deadline=1))
    with pytest.raises(StartError, match="no command"):
        next(run([], [b"a"], deadline=1))


def test_documents_are_drawn_only_a_bounded_way_ahead() -> None:
    drawn = itertools.count()
    answers = run(FAKE, (b"%d" % next(drawn) for _ in itertools.repeat(None)), deadline=5)
    for _ in range(10_000):
        next(answers)
    assert next(drawn) <= 10_000 + (WINDOW + 2) * BLOCK_DOCUMENTS
    answers.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("ending", ["exhausted", "closed", "raised", "failed"])
def test_no_process_and_no_descriptor_is_left_behind(ending: str, tmp_path: Path) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    # Of the last one the leader has failed before its group is killed.
    mode = "parent" if ending == "failed" else "child"
    answers = run([*FAKE, mode, str(tmp_path / "starts")], _documents(ending), deadline=5)
    next(answers)
    family = _family(str(tmp_path))
    assert len(family) == 2
    if ending == "closed":
        answers.close()  # type: ignore[attr-defined]
    elif ending == "raised":
        with pytest.raises(ZeroDivisionError):
            list(answers)
    else:
        assert len(list(answers)) == 8191
    gone, alive = psutil.wait_procs(family, timeout=60)
    assert (len(gone), alive) == (2, [])
    assert len(os.listdir("/proc/self/fd")) == descriptors


def _family(told: str) -> list[psutil.Process]:
    """The runner with this argument and its children; other tests of this process have children too."""
    children = psutil.Process().children(recursive=True)
    (session,) = {os.getsid(child.pid) for child in children if any(told in word for word in child.cmdline())}
    return [child for child in children if os.getsid(child.pid) == session]


def _documents(ending: str) -> Iterator[bytes]:
    yield from [b"x"] * 8192
    if ending == "raised":
        raise ZeroDivisionError


def test_secrets_of_the_kit_do_not_reach_a_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_DSN", "secret")
    shout = [sys.executable, "-S", "-c", "import os, sys; sys.exit(str(dict(os.environ)))"]
    (quiet,) = run(shout, [b"a"], deadline=5)
    assert b"PATH" in quiet.body
    assert b"secret" not in quiet.body
    (named,) = run(shout, [b"a"], deadline=5, env={"MARK": "named"})
    assert b"named" in named.body


def test_a_dialogue_goes_on_after_a_death() -> None:
    with Exchange(FAKE, deadline=DEADLINE) as sdk:
        questions = [b"a", b"!crash", b"b", b"!hang", b"?c", b"!twice", b"d"]
        assert [sdk.ask(document).status for document in questions] == [C, CRASHED, C, HUNG, R, GARBLED, C]


QUICK = {b"ok": C, b"?no": R, b"!leave": C} | {
    deed: DEEDS[deed] for deed in (b"!crash", b"!status", b"!text", b"!twice")
}


@settings(max_examples=15)
@given(st.lists(st.sampled_from(sorted(QUICK)), max_size=12))
def test_each_row_is_judged_by_its_own_document_whatever_stands_around_it(documents: list[bytes]) -> None:
    assert statuses(*documents, deadline=10) == [QUICK[document] for document in documents]


@pytest.mark.parametrize(
    ("documents", "mode", "told"),
    [
        # It answers and ends: no document is left without its answer, however often that happens.
        ([b"a", b"!leave", b"b", b"!leave", b"!leave", b"c"], "", 3),
        ([b"x"] * 600, "tired", 1),
        ([b"a", b"!crash", b"b"], "", 0),
        ([b"a"] * 50, "", 0),
    ],
    ids=["answers and dies", "tires", "dies of a document", "lives"],
)
def test_a_death_that_no_row_shows_is_told(documents: list[bytes], mode: str, told: int) -> None:
    words: list[str] = []
    answers = run([*FAKE, mode], documents, deadline=5, unexplained=words.append)
    assert [answer.status for answer in answers] == [DEEDS.get(document, C) for document in documents]
    assert bool(words) is bool(told)
    assert len(words) >= told
    assert all("exited with status" in word for word in words)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("abort-at-end", "ended by signal SIGABRT at the end of its input"),
        ("fail-at-end", "exited with status 1 at the end of its input; on standard error: cannot write my statistics"),
        # Its child holds the pipe open, so that the end of its output is never found.
        ("parent", "exited with status 1 at the end of its input"),
    ],
)
def test_a_bad_end_after_the_last_answer_is_told_and_costs_no_row(mode: str, said: str, tmp_path: Path) -> None:
    words: list[str] = []
    command = [*FAKE, mode, str(tmp_path / "starts")]
    answers = [*run(command, [b"a"] * 300, deadline=5, unexplained=words.append)]
    assert [answer.status for answer in answers] == [C] * 300
    assert len(words) == 1
    assert said in words[0]


def test_a_runner_that_has_to_be_ended_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "QUIT_S", 0.2)
    words: list[str] = []
    assert len([*run([*FAKE, "lingering"], [b"a"], deadline=DEADLINE, unexplained=words.append)]) == 1
    assert words == ["the runner goes on running after the end of its input"]
