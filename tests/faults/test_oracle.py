"""The oracle against states made by hand: each class at least once, and nothing clean that is not."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.conformance.faults.deprived import judge_deprived
from holdfast.conformance.faults.lines import Lines, puts
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome, compare, judge
from holdfast.conformance.faults.recording import Ending, Event, Operation, Recording, Write
from holdfast.conformance.faults.report import RunError
from holdfast.conformance.faults.runs import acknowledgements
from holdfast.conformance.faults.subject import (
    Asked,
    Facts,
    History,
    Instead,
    Op,
    Outcome,
    SubjectAnswer,
    SubjectError,
    SubjectExposedError,
    SubjectReopenedError,
    Workload,
)
from tests.faults.fakes import NOWHERE, Fake, fails, says
from tests.faults.stores.catalogue import STORES, Store
from tests.faults.stores.log import MAGIC, record

# Five names: operations 6 and 7 cover 1 and 2.
WORKLOAD = puts(7, seed=4)
STORE = {store.name: store for store in STORES}


def records(*numbers: int) -> bytes:
    """The bytes of a log with these operations."""
    return MAGIC + b"".join(record(dict(WORKLOAD.ops[number - 1].facts)) for number in numbers)


def bare(*numbers: int) -> bytes:
    """The same of the log without checksums."""
    facts = [fact for number in numbers for fact in WORKLOAD.ops[number - 1].facts.items()]
    return MAGIC + "".join(f"{name} {value}\n" for name, value in facts).encode()


def flipped(*numbers: int) -> bytes:
    """A plain file with these operations, one character of its last value changed; its checksum is the old one."""
    body = json.dumps(WORKLOAD.after(numbers)).encode()
    return b"%08x\n" % zlib.crc32(body) + body[:-3] + bytes([body[-3] ^ 1]) + body[-2:]


# A store, a file with its bytes, what must and may be there, and the class.
STATES: dict[str, tuple[str, str, bytes, set[int], set[int], CrashClass]] = {
    "all there": ("log-right", "facts.log", records(1, 2, 3), {1, 2, 3}, {1, 2, 3}, CrashClass.CLEAN),
    "in flight, and whole": ("log-right", "facts.log", records(1, 2, 3), {1, 2}, {1, 2, 3}, CrashClass.CLEAN),
    "in flight, and by half": ("log-right", "facts.log", records(1, 2, 3)[:-9], {1, 2}, {1, 2, 3}, CrashClass.CLEAN),
    "in flight, and zeros": ("log-right", "facts.log", records(1, 2) + bytes(80), {1, 2}, {1, 2, 3}, CrashClass.CLEAN),
    "nothing yet": ("log-right", "facts.log", b"", set(), set(), CrashClass.CLEAN),
    "no file yet": ("log-right", "other", b"", set(), {1}, CrashClass.CLEAN),
    "the last is gone": ("log-right", "facts.log", records(1, 2), {1, 2, 3}, {1, 2, 3}, CrashClass.LOST),
    "all are gone": ("log-right", "other", b"", {1, 2, 3}, {1, 2, 3, 4}, CrashClass.LOST),
    "one between is gone": ("log-right", "facts.log", records(1, 3), {1, 2, 3}, {1, 2, 3}, CrashClass.LOST),
    "the covering one is gone": ("log-right", "facts.log", records(*range(1, 7)), {*range(1, 8)}, {7}, CrashClass.LOST),
    "half of one": ("log-no_checksum", "facts.log", bare(1, 2, 3)[:-18], {1, 2}, {1, 2, 3}, CrashClass.TORN),
    "one not asked": (
        "log-right",
        "facts.log",
        records(1) + record({"k9.left": "w"}),
        {1},
        {1, 2},
        CrashClass.INVENTED,
    ),
    "one not sent": ("log-right", "facts.log", records(1, 3), {1}, {1, 2}, CrashClass.INVENTED),
    "half a record refused": ("log-refuses_tail", "facts.log", records(1)[:-3], {1}, {1}, CrashClass.UNRECOVERABLE),
    "the same at first": ("log-refuses_tail", "facts.log", records(1)[:-3], set(), {1}, CrashClass.INIT),
    "an empty file": ("plain-right", "facts.json", b"", {1}, {1}, CrashClass.UNRECOVERABLE),
    "a damaged file refused": ("plain-right", "facts.json", flipped(1, 2), {1, 2}, {1, 2}, CrashClass.UNRECOVERABLE),
    "a damaged file believed": ("plain-no_checksum", "facts.json", flipped(1, 2), {1, 2}, {1, 2}, CrashClass.INVENTED),
    "a lock of the dead": ("log-stale_lock", "lock", b"", {1}, {1}, CrashClass.UNRECOVERABLE),
    "behind half a record": ("log-keeps_tail", "facts.log", records(1, 2)[:-3], {1}, {1}, CrashClass.UNSTABLE),
}


@pytest.mark.parametrize("name", STATES)
def test_a_state_made_by_hand_is_judged(name: str, subject_of: Callable[[Store], Lines], tmp_path: Path) -> None:
    store, file, data, must, may, kind = STATES[name]
    (tmp_path / file).write_bytes(data)
    verdict = judge(subject_of(STORE[store]), tmp_path, WORKLOAD, must, must | may)
    assert verdict.kind is kind, str(verdict)
    assert (kind is CrashClass.CLEAN) == (verdict == CrashOutcome(CrashClass.CLEAN))
    assert kind is CrashClass.CLEAN or (verdict.expected and verdict.came)


def test_every_class_is_among_the_states() -> None:
    assert {state[-1] for state in STATES.values()} == set(CrashClass)


def test_a_loss_names_each_operation_that_is_gone_and_its_facts() -> None:
    text = compare(WORKLOAD, WORKLOAD.after({1}), {1, 2, 3}, {1, 2, 3, 4}).came
    for op in WORKLOAD.ops[1:3]:
        assert f"operation {op.number} ({op.text})" in text
        assert all(name in text for name in op.facts)
    assert WORKLOAD.ops[0].text not in text


WHOLE = WORKLOAD.ops[0].facts["k1.right"]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"k1.left": WORKLOAD.ops[0].facts["k1.left"]}, "k1.right is absent"),
        ({**WORKLOAD.ops[0].facts, "k1.right": WHOLE[:2]}, f"after byte 2 of {len(WHOLE)}"),
        ({**WORKLOAD.ops[0].facts, "k1.right": WHOLE[:3] + "#" + WHOLE[4:]}, f"from byte 3 of {len(WHOLE)} on"),
    ],
)
def test_what_is_wrong_with_a_fact_is_told_and_whose_it_is(facts: dict[str, str], words: str) -> None:
    text = compare(WORKLOAD, facts, set(), {1}).came
    assert words in text
    assert f"operation 1 ({WORKLOAD.ops[0].text})" in text


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        (("k1.left", "v1-"), CrashClass.TORN),
        (("k1.left", ""), CrashClass.TORN),
        (("k1.left", "v1-\0\0\0"), CrashClass.TORN),
        (("k1.left", "\0\0\0"), CrashClass.TORN),
        (("k1.left", "v2"), CrashClass.INVENTED),
        (("k1.lef", ""), CrashClass.TORN),
        (("k8.left", "v1"), CrashClass.INVENTED),
        (("k2.left", WORKLOAD.ops[6].facts["k2.left"]), CrashClass.INVENTED),
        (("probe.left", WORKLOAD.probe.facts["probe.left"]), CrashClass.INVENTED),
    ],
)
def test_a_value_cut_off_is_torn_and_another_is_invented(fact: tuple[str, str], kind: CrashClass) -> None:
    found = WORKLOAD.after({1, 2}) | dict([fact])
    assert compare(WORKLOAD, found, {1, 2}, {1, 2, 3}).kind is kind


@given(st.data())
def test_the_facts_are_clean_exactly_if_some_allowed_operations_give_them(data: st.DataObject) -> None:
    """Against the definition, with every set of operations tried."""
    numbers = range(1, 8)
    may = data.draw(st.sets(st.sampled_from(numbers)))
    must = data.draw(st.sets(st.sampled_from(sorted(may)))) if may else set()
    found = WORKLOAD.after(data.draw(st.sets(st.sampled_from(numbers))))
    for name in data.draw(st.lists(st.sampled_from(sorted(found)), max_size=1)) if found else ():
        del found[name]
    optional = sorted(may - must)
    allowed = [
        WORKLOAD.after(must | set(some))
        for size in range(len(optional) + 1)
        for some in itertools.combinations(optional, size)
    ]
    assert (compare(WORKLOAD, found, must, may).kind is CrashClass.CLEAN) == (found in allowed)


def counts_retries(subject: Fake, op: Op) -> SubjectAnswer:
    """It has an effect twice."""
    more = {"total": "2"} if op.facts.items() <= subject.facts.items() else {}
    answer = subject.does(op, new=None)
    subject.facts |= more
    return answer


def refuses_retries(subject: Fake, op: Op) -> SubjectAnswer:
    """It remembers what it was asked, not what it did."""
    return subject.does(op) if op.number == WORKLOAD.probe.number else says(Outcome.REFUSED, "a replay")()


def starts_once(subject: Fake) -> None:
    """It does not start again."""
    if subject.starts > 1:
        raise SubjectError("it exited with status 1")


def wavers(subject: Fake, facts: Facts) -> Facts:
    """It shows less after another start."""
    return {name: value for name, value in facts.items() if subject.starts == 1 or name != "k1.right"}


@pytest.mark.parametrize(
    ("instead", "there", "kind", "words"),
    [
        ({}, {1, 2}, CrashClass.CLEAN, "clean"),
        ({}, {1}, CrashClass.CLEAN, "clean"),
        ({"submit": counts_retries}, {1, 2}, CrashClass.INVENTED, "total is '2', which no operation set"),
        ({"submit": refuses_retries}, {1, 2}, CrashClass.CLEAN, "clean"),
        ({"submit": refuses_retries}, {1}, CrashClass.TORN, "a refusal (a replay), and nothing of it there"),
        ({"submit": says(Outcome.OK)}, {1, 2}, CrashClass.LOST, "expected after a new write (PUT probe"),
        ({"submit": says(Outcome.OK)}, {1}, CrashClass.LOST, "expected after the retry of operation 2"),
        ({"start": starts_once}, {1, 2}, CrashClass.UNSTABLE, "it exited with status 1"),
        ({"dump": wavers}, {1, 2}, CrashClass.UNSTABLE, "k1.right is absent"),
        (
            {"stop": fails(SubjectError("it did not end within 5 s after its input"))},
            {1, 2},
            CrashClass.UNRECOVERABLE,
            "did not end within 5 s",
        ),
    ],
)
def test_what_follows_the_restart_is_judged(
    instead: dict[str, Callable[..., Any]], there: set[int], kind: CrashClass, words: str, tmp_path: Path
) -> None:
    """The first operation was acknowledged, the second was in flight."""
    (tmp_path / "facts").write_text(json.dumps(WORKLOAD.after(there)))
    subject = Fake(None, **instead)
    verdict = judge(subject, tmp_path, WORKLOAD, {1}, {1, 2})
    assert verdict.kind is kind, str(verdict)
    assert words in str(verdict)
    assert subject.stops > 0


def test_what_a_later_operation_covers_is_not_sent_again(tmp_path: Path) -> None:
    """The first failed, the sixth wrote the same name: done late, the first would rightly cover it."""
    (tmp_path / "facts").write_text(json.dumps(WORKLOAD.after(range(2, 8))))
    assert judge(Fake(), tmp_path, WORKLOAD, {*range(2, 8)}, {*range(1, 8)}).kind is CrashClass.CLEAN


def recording(*actions: tuple[int, Event | Write]) -> Recording:
    """A recording of these actions, each with its time."""
    operations = (Operation(number, at, 1, "write", action) for number, (at, action) in enumerate(actions, start=1))
    return Recording(("store",), (), tuple(operations), Ending(0))


def asked(number: int, outcome: Outcome, sent_at: int, acked_at: int | None = None) -> Asked:
    return Asked(WORKLOAD.ops[number - 1], SubjectAnswer(outcome, sent_at, acked_at))


WROTE, SAID = Write(1, 0, b"x"), Event("pipe", 3)


def test_an_acknowledgement_is_the_last_that_left_before_the_success() -> None:
    """Other output in between, and output after the answer to the client, change nothing."""
    made = recording(
        (10, SAID),  # ready
        (25, WROTE),
        (26, SAID),  # a word too early
        (28, WROTE),
        (29, SAID),
        (35, SAID),  # a log line
        (45, WROTE),
        (47, SAID),
        (90, WROTE),
    )
    history = History((asked(1, Outcome.OK, 20, 30), asked(2, Outcome.OK, 40, 47), asked(3, Outcome.SILENT, 95)))
    promises = acknowledgements(made, history)
    assert promises.acknowledged == {1: 5, 2: 8}
    # Nothing was recorded after the third was sent: it can be nowhere.
    assert promises.sent == {1: 2, 2: 7}
    windows = [(sorted(promises.must(point)), sorted(promises.may(point))) for point in range(10)]
    # A state that several points may leave keeps what the last asks for, and shows no more than the first allows.
    assert (promises.must(1, 5, 8), promises.may(2, 5, 8)) == (frozenset({1, 2}), frozenset({1}))
    assert windows == [
        *[([], [])] * 2,
        *[([], [1])] * 3,
        *[([1], [1])] * 2,
        ([1], [1, 2]),
        *[([1, 2], [1, 2])] * 2,
    ]


def test_a_refusal_promises_that_nothing_was_done_and_an_error_promises_nothing() -> None:
    made = recording((10, SAID), (25, WROTE), (26, SAID), (45, WROTE), (46, SAID))
    history = History((asked(1, Outcome.REFUSED, 20), asked(2, Outcome.ERROR, 40)))
    promises = acknowledgements(made, history)
    assert promises.acknowledged == {}
    assert promises.may(5) == frozenset({2}) == history.may
    assert promises.must(5) == frozenset() == history.must


def test_a_success_that_nothing_recorded_told_of_proves_nothing() -> None:
    made = recording((10, SAID), (25, WROTE), (35, SAID))
    with pytest.raises(RunError, match=r"operation 1 \(PUT k1 .*was acknowledged"):
        acknowledgements(made, History((asked(1, Outcome.OK, 20, 30),)))


def test_a_workload_that_could_hide_something_is_none() -> None:
    op, probe = Op(1, "a", {"a": "1", "b": "1"}), Op(2, "p", {"p": "1", "q": "1"})
    Workload((op,), probe)
    with pytest.raises(ValueError, match="2 facts or more, got 1"):
        Workload((Op(1, "a", {"a": "1"}),), probe)
    with pytest.raises(ValueError, match="set by operation 1 already"):
        Workload((op,), Op(2, "p", op.facts))
    with pytest.raises(ValueError, match="set by operation 0 already"):
        Workload((op,), probe, before={"a": "1"})
    with pytest.raises(ValueError, match="expected a number after 1 for the next operation, got 1"):
        Workload((op,), Op(1, "p", probe.facts))


def test_what_may_be_done_in_part_is_judged_once_it_is_acknowledged_or_refused() -> None:
    ops = tuple(Op(n, f"take {n}", {f"row d{n}/a": "1", f"row d{n}/b": "2"}, apart=(f"row d{n}/",)) for n in (1, 2))
    probe = Op(3, "take 3", {"row d3/a": "1", "row d3/b": "2"})
    workload = Workload(ops, probe, before={"row d2/old": "0"}, once=True)
    half = {"row d1/a": "1", "row d2/old": "0"}
    assert compare(workload, half, frozenset(), frozenset({1})).kind is CrashClass.CLEAN
    assert compare(workload, half, frozenset({1}), frozenset({1})).kind is CrashClass.TORN
    assert compare(workload, half, frozenset(), frozenset()).kind is CrashClass.INVENTED
    # What was there before may be gone meanwhile, and only meanwhile.
    gone = {**ops[0].facts}
    assert compare(workload, gone, frozenset({1}), frozenset({1, 2})).kind is CrashClass.CLEAN
    assert compare(workload, gone, frozenset({1}), frozenset({1})).kind is not CrashClass.CLEAN


def test_what_is_recorded_behind_an_effect_is_due_once_it_is_acknowledged() -> None:
    op = Op(1, "reject 1", {"row 1 a": "1", "row 1 b": "2", "mark 1": "3"}, follows=("mark ",))
    workload = Workload((op,), Op(2, "reject 2", {"row 2 a": "1", "row 2 b": "2"}), once=True)
    effect = {"row 1 a": "1", "row 1 b": "2"}
    assert compare(workload, effect, frozenset(), frozenset({1})).kind is CrashClass.CLEAN
    assert compare(workload, effect, frozenset({1}), frozenset({1})).kind is CrashClass.TORN
    # Half of the effect is no effect, with or without what follows it.
    assert compare(workload, {"row 1 a": "1"}, frozenset(), frozenset({1})).kind is CrashClass.TORN
    assert compare(workload, {"mark 1": "3"}, frozenset(), frozenset({1})).kind is CrashClass.TORN


@pytest.mark.parametrize("error", [SubjectExposedError, SubjectReopenedError])
def test_what_is_left_in_clear_or_accepted_once_more_is_no_refusal_to_start(
    error: type[SubjectExposedError | SubjectReopenedError],
) -> None:
    lost = Fake(start=fails(error("here")))
    assert judge(lost, NOWHERE, WORKLOAD, {1}, {1}).kind is CrashClass.INVENTED
    assert judge_deprived(lost, NOWHERE, WORKLOAD, {1}, {1}, WORKLOAD.ops[-1:]).verdict.kind is CrashClass.INVENTED

    def at_the_second_start(subject: Fake) -> None:
        if subject.starts > 1:
            raise error("what the first start has left")

    later = judge(Fake(WORKLOAD.after({1}), start=at_the_second_start), NOWHERE, WORKLOAD, {1}, {1})
    assert (later.kind, later.expected) == (CrashClass.INVENTED, error.expected)


@pytest.mark.parametrize("right", [True, False])
def test_what_comes_in_place_of_an_interrupted_write_must_be_whole(right: bool) -> None:
    def rewriting(subject: Fake, op: Op) -> SubjectAnswer:
        """What comes in place of an interrupted write ends with what that left, unless it is right."""
        if op.part == "whole":
            return says(Outcome.OK)() if right else says(Outcome.REFUSED, "MALFORMED")()
        if op.part == "instead":
            subject.facts |= {"object 1 kind": "another", "object 1 size": "small"}
        return subject.does(op, new=None)

    instead = Instead(Op(1, "put 1", {}, part="instead"), Op(1, "get 1", {}, part="whole"), ("object 1 ",))
    op = Op(1, "put 1", {"object 1 kind": "long", "object 1 size": "large"}, instead=instead)
    workload = Workload((op,), Op(2, "put 2", {"object 2 kind": "long", "object 2 size": "large"}), once=True)
    verdict = judge(Fake(submit=rewriting), NOWHERE, workload, frozenset(), {1}, instead=True)
    assert verdict.kind is (CrashClass.CLEAN if right else CrashClass.TORN)
    assert judge(Fake(submit=rewriting), NOWHERE, workload, frozenset(), {1}).kind is CrashClass.CLEAN
