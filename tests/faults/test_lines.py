"""A store that hangs, crashes, talks nonsense or is late: named for what it does, ended for certain, never clean."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.subject import Outcome, SubjectError, SubjectHangError, perform
from tests.hostile.verify import processes_of
from tests.pace import busy
from tests.process.leftovers import until

WORKLOAD = puts(3)
LIMITS = Limits(start=1.0, answer=0.3, stop=0.3)

READY = "import sys, time, json, os\nprint('READY', flush=True)\n"
ANSWER = READY + "for line in sys.stdin:\n    "
# At the start: what the program does, and what is said of it.
STARTS = {
    "crash": ("raise SystemExit('no store here')", "it exited with status 1: no store here"),
    "signal": ("import os; os.kill(os.getpid(), 9)", "it was ended by signal 9"),
    "exit_0": ("pass", "it exited with status 0"),
    "hang": ("import time; time.sleep(60)", "no answer within 1 s"),
    "garbage": ("print('\\x00hello', flush=True)\nimport time; time.sleep(60)", "expected READY, got '\\x00hello'"),
    "half_a_line": ("import os; os.write(1, b'REA')", "it exited with status 0"),
    "two_lines": (
        "import os, time; os.write(1, b'READY\\nOK\\n'); time.sleep(60)",
        "more than was asked for: b'OK\\n'",
    ),
    "flood": ("while True: print('x' * 65536, end='')", "a line of more than 4194304 bytes"),
}
# After the start: how the first operation is answered, by outcome and by words.
ANSWERS = {
    "crash": ("sys.exit(3)", Outcome.SILENT, "it exited with status 3"),
    "hang": ("time.sleep(60)", Outcome.SILENT, "no answer within 0.3 s"),
    "late": ("time.sleep(0.5); print('OK', flush=True)", Outcome.SILENT, "no answer within 0.3 s"),
    "garbage": ("print('OKAY', flush=True)", Outcome.SILENT, "expected OK, REFUSED or ERROR, got 'OKAY'"),
    "bytes": ("os.write(1, b'\\xff\\xfe\\n')", Outcome.SILENT, "expected OK, REFUSED or ERROR"),
    "closed": ("os.close(1); time.sleep(60)", Outcome.SILENT, "it closed its output and goes on running"),
    "error": ("print('ERROR disk full', flush=True)", Outcome.ERROR, "disk full"),
    "refusal": ("print('REFUSED no such name', flush=True)", Outcome.REFUSED, "no such name"),
}
DUMPS = {
    "garbage": "print('{', flush=True)",
    "list": "print('[]', flush=True)",
    "numbers": "print('{\"a\": 1}', flush=True)",
    "nothing": "time.sleep(60)",
}


def program(text: str, limits: Limits = LIMITS) -> Lines:
    return Lines((sys.executable, "-S", "-c", text), limits=limits)


@pytest.mark.parametrize("name", STARTS)
def test_a_bad_start_is_told_in_words(name: str, tmp_path: Path) -> None:
    text, words = STARTS[name]
    with pytest.raises(SubjectError) as raised:
        program(text).start(tmp_path)
    assert words in str(raised.value)
    # To fail is right for a store that lacks something, to hang never.
    assert isinstance(raised.value, SubjectHangError) is (name == "hang")
    verdict = judge(program(text), tmp_path, WORKLOAD, {1}, {1})
    assert verdict.kind is CrashClass.UNRECOVERABLE
    assert words in str(verdict)


def test_a_program_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(SubjectError, match=r"/nowhere/store cannot be started: No such file"):
        Lines(("/nowhere/store",)).start(tmp_path)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_what_it_says_or_none(name: str, tmp_path: Path) -> None:
    text, outcome, words = ANSWERS[name]
    subject = program(ANSWER + text)
    subject.start(tmp_path)
    before = time.monotonic_ns()
    answer = subject.submit(WORKLOAD.ops[0])
    assert (answer.outcome, answer.hung) == (outcome, name in ("hang", "late"))
    assert words in answer.text
    assert answer.acked_at is None
    assert before <= answer.sent_at <= time.monotonic_ns()
    if outcome is Outcome.SILENT:
        # What comes late must not be taken for the answer to the next question.
        time.sleep(0.4 if name == "late" else 0.0)
        assert subject.submit(WORKLOAD.ops[1]).outcome is Outcome.SILENT
        with pytest.raises(SubjectError):
            subject.dump()
    # Only those that continue to read find the end of their input.
    ends_badly = name in ("crash", "hang", "closed")
    with pytest.raises(SubjectError) if ends_badly else contextlib.nullcontext():
        subject.stop()
    # It is ended: nothing is left to do.
    subject.stop()


def test_a_hang_at_its_facts_and_at_its_end_is_told_from_a_failure(tmp_path: Path) -> None:
    subject = program(ANSWER + DUMPS["nothing"])
    subject.start(tmp_path)
    with pytest.raises(SubjectHangError, match=r"no answer within 0.3 s"):
        subject.dump()
    with pytest.raises(SubjectHangError, match=r"did not end within 0.3 s"):
        subject.stop()


@pytest.mark.parametrize(
    ("ends", "limits", "said"),
    [
        ("time.sleep(0.1); sys.exit(3)", Limits(), "at its end: status 3"),
        ("time.sleep(60)", LIMITS, "did not end within"),
    ],
)
def test_a_store_that_closes_its_output_has_its_time_to_end(
    ends: str, limits: Limits, said: str, tmp_path: Path
) -> None:
    subject = program(READY + f"sys.stdin.read(); os.close(1); {ends}", limits)
    subject.start(tmp_path)
    with pytest.raises(SubjectError, match=said):
        subject.stop()


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_without_facts_is_no_clean_start(name: str, tmp_path: Path) -> None:
    verdict = judge(program(ANSWER + DUMPS[name]), tmp_path, WORKLOAD, {1}, {1})
    assert verdict.kind is CrashClass.UNRECOVERABLE
    assert verdict.expected == "its facts after the restart"


def test_a_store_that_takes_no_new_write_is_not_recovered(tmp_path: Path) -> None:
    dump = "print('{}' if line == 'DUMP\\n' else 'ERROR read-only', flush=True)"
    verdict = judge(program(ANSWER + dump), tmp_path, WORKLOAD, set(), set())
    assert verdict.kind is CrashClass.INIT
    assert "a new write (PUT probe " in verdict.expected
    assert verdict.came == "error: read-only"


def test_a_workload_ends_with_the_first_silence(tmp_path: Path) -> None:
    subject = program(ANSWER + "print('OK', flush=True) if ' k1 ' in line else sys.exit(1)")
    subject.start(tmp_path)
    history = perform(subject, WORKLOAD)
    with pytest.raises(SubjectError, match=r"status 1"):
        subject.stop()
    assert [one.answer.outcome for one in history.asked] == [Outcome.OK, Outcome.SILENT]
    assert (history.must, history.may) == (frozenset({1}), frozenset({1, 2}))


def test_a_stop_ends_everything_that_the_store_started(tmp_path: Path) -> None:
    text = READY + (
        "import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', sys.argv[1]])\n"
        "sys.stdin.read()\ntime.sleep(60)"
    )
    subject = program(text)
    subject.start(tmp_path)
    assert until(lambda: len(processes_of(tmp_path)) == 2, within=busy(5))
    with pytest.raises(SubjectError, match=r"did not end within 0.3 s"):
        subject.stop()
    # They were killed. A new parent may not have read its status yet.
    assert until(lambda: processes_of(tmp_path) == [], within=busy(5))


def test_a_store_that_reads_nothing_does_not_stop_the_kit(tmp_path: Path) -> None:
    subject = program(READY + "time.sleep(60)")
    subject.start(tmp_path)
    answer = subject.submit(puts(1, size=1_000_000).ops[0])
    assert (answer.outcome, answer.text) == (Outcome.SILENT, "no request was read within 0.3 s")
    with pytest.raises(SubjectError):
        subject.stop()


def test_a_subject_runs_under_another_command(tmp_path: Path) -> None:
    said = tmp_path / "said"
    subject = program(READY + "sys.stdin.read()")
    subject.start(tmp_path, ("env", f"--chdir={tmp_path}", "sh", "-c", f'echo under > {said}; exec "$@"', "sh"))
    subject.stop()
    assert said.read_text() == "under\n"


def test_what_a_hanging_subject_runs_under_may_finish(tmp_path: Path) -> None:
    """As a tracer, which has its recording to end."""
    said = tmp_path / "said"
    subject = program(READY + "time.sleep(60)")
    trap = f'trap "echo finished > {said}; exit 1" TERM; "$@" & wait'
    subject.start(tmp_path, ("sh", "-c", trap, "sh"))
    with pytest.raises(SubjectError, match="did not end within"):
        subject.stop()
    assert said.read_text() == "finished\n"


def test_a_subject_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for name in ("crash", "hang"):
        with pytest.raises(SubjectError):
            program(STARTS[name][0]).start(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_same_seed_gives_the_same_workload() -> None:
    assert puts(7, seed=3) == puts(7, seed=3) != puts(7, seed=4)
    assert {len(op.text) for op in puts(3, size=6000).ops} == {len("PUT k1 ") + 6000}
