"""The layers against the stores: each planted bug is caught by the layer that has to, and no right store is accused."""

from __future__ import annotations

import errno
import itertools
import random
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from holdfast.conformance.faults import fidelity, runs
from holdfast.conformance.faults import sweep as subject_of_tests
from holdfast.conformance.faults.dependencies import Dependencies
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.order import each_kind_first, spread
from holdfast.conformance.faults.promises import Promises, UnplacedError
from holdfast.conformance.faults.recording import (
    Ending,
    Event,
    Operation,
    Recording,
    Sync,
    Truncate,
    Write,
    read,
)
from holdfast.conformance.faults.report import Layer, SweepReport, Tally, Trial, summed
from holdfast.conformance.faults.runs import LEAST_TRIED, Run
from holdfast.conformance.faults.subject import Op, Outcome, Workload, perform
from holdfast.conformance.faults.sweep import Sweep, self_test
from holdfast.conformance.faults.tracer import Injection
from tests.conftest import thinned
from tests.faults.stores.catalogue import BUGS, ENVIRONMENT, RIGHT, STORES, Store

pytestmark = pytest.mark.usefixtures("tracer")

# A busy machine gives a layer less; what it has to find, it finds in far less.
SECONDS = 60.0
# A slice for every run of the tests: a bug for each layer, and two right stores. The rest is for `tox -e sweep`.
_SLICE = {
    "log-no_fsync", "log-syncs_new", "plain-no_folder_fsync", "log-no_checksum", "log-stale_lock", "log-rewrites",
    "log-empties", "log-swallow", "log-short", "log-retries_fsync", "log-undoes_late",
}  # fmt: skip
# A right store, and the seed of its writes.
_RIGHT_SLICE = {("log-undoes", 3), ("log-right", 1), ("plain-right", 2)}
# Of each layer and seed; the seeds together try what one of them has no time for.
_POWER_S, _LEAST = 1.5, 2
# Characters of a value: nothing, a part of a sector, more than one, more than a page.
_SIZES = (0, 100, 700, 5000)
# It takes values for numbers, of which Python reads 4,300 digits.
_MOST = {"snapshot": 1500}

STORE = {store.name: store for store in STORES}

Make = Callable[..., Sweep]


@pytest.fixture
def sweep_of(subject_of: Callable[[Store], Lines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A function from a store to its sweep, which ends a layer at the first finding."""
    monkeypatch.setattr(subject_of_tests, "MOST_FINDINGS", 1)
    made: list[Sweep] = []

    def make(store: Store, workload: Workload | None = None, *, least: int = LEAST_TRIED, seed: int = 0) -> Sweep:
        command = subject_of(store)._command

        def lines(factor: float) -> Lines:
            return Lines(command, environment=ENVIRONMENT, limits=Limits().scaled(factor))

        asked = workload or puts(6)
        made.append(Sweep(lambda: lines(4), asked, seed=seed, least=least, traced=lambda: lines(20), parent=tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _bugs() -> Iterator[pytest.ParameterSet]:
    for store in BUGS:
        if store.caught_by is not None and store.caught_by.is_recorded:
            yield pytest.param(store, id=store.name, marks=() if store.name in _SLICE else pytest.mark.sweep)


@pytest.mark.parametrize("store", list(_bugs()))
def test_a_bug_is_caught_by_the_layer_that_has_to(store: Store, sweep_of: Make) -> None:
    assert store.caught_by is not None
    report = sweep_of(store).trial(store.caught_by).report(SECONDS)
    assert report.unproven == ()
    broken = [finding for finding in report.findings if finding.verdict.kind is not CrashClass.INIT]
    assert broken, f"{store.wrong}: {report.tally}"
    assert not report.clean
    assert all(finding.story for finding in broken)


def test_of_two_sessions_the_one_that_broke_the_promise_is_named(sweep_of: Make) -> None:
    report = sweep_of(STORE["log-syncs_new"]).trial(Layer.POWER).report(SECONDS)
    assert [finding.story.startswith("In a second session") for finding in report.findings] == [True]
    first = sweep_of(STORE["log-no_fsync"]).trial(Layer.POWER).report(SECONDS)
    assert [finding.story.startswith("In a second session") for finding in first.findings] == [False]


@pytest.mark.parametrize("long", [False, True])
def test_many_writes_owe_each_acknowledgement_and_a_second_session_unless_they_are_one_long_session(
    tmp_path: Path, long: bool
) -> None:
    writer = (sys.executable, "-I", "-S", str(Path(subject_of_tests.__file__).with_name("writers.py")), "right")
    many = replace(puts(12), long=long)
    with Sweep(lambda: Lines(writer), many, parent=tmp_path) as sweep:
        report = sweep.trial(Layer.POWER).report(0)
    assert report.clean
    assert (report.tried >= len(many.ops)) is not long
    assert (report.later > 0) is not long


@pytest.mark.parametrize("session", [Sweep.baseline, lambda sweep: sweep.later().baseline()])
def test_a_layer_at_its_floor_has_struck_each_operation_at_a_write_and_at_a_sync(
    session: Callable[[Sweep], Run], sweep_of: Make
) -> None:
    run = session(sweep_of(STORE["log-right"]))
    numbers = range(1, len(run.recording.operations) + 1)
    ordered, count = each_kind_first(run.recording, run.windows, spread(numbers, 1), len(numbers))
    struck = set(ordered[:count])
    for window in run.windows.values():
        kinds = {type(one.action) for one in run.recording.operations if one.number in struck & {*window}}
        assert {Write, Sync} <= kinds
    assert sorted(ordered) == [*numbers]


def drawn(store: Store, seed: int) -> Workload:
    """Some writes: how many, of what size, and how many of them cover others."""
    if not seed:
        return puts(6)
    draw = random.Random(seed)
    count, names, size = draw.randint(3, 8), draw.randint(1, 6), draw.choice(_SIZES)
    return puts(count, seed=seed, names=names, size=min(size, _MOST.get(store.family, size)))


def _right() -> Iterator[pytest.ParameterSet]:
    for store, seed in itertools.product(RIGHT, range(21)):
        marks = () if (store.name, seed) in _RIGHT_SLICE else pytest.mark.sweep
        yield pytest.param(store, seed, id=f"{store.name}-{seed}", marks=marks)


@pytest.mark.parametrize(("store", "seed"), list(_right()))
def test_a_right_store_is_accused_from_no_seed(
    store: Store, seed: int, sweep_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every content, every order, and every point of the power loss."""
    sweep = sweep_of(store, drawn(store, seed), least=_LEAST if seed else LEAST_TRIED, seed=seed)
    # Behind a finding, too.
    monkeypatch.undo()
    layers = (Layer.KILL, Layer.ERRORS, Layer.SHORT, Layer.SYNC_ERRORS, Layer.RECOVERY, Layer.TORN_KILL)
    reports = [sweep.trial(Layer.POWER).report(_POWER_S), *(sweep.trial(layer).report(0) for layer in layers)]
    for report in reports:
        # A loss before the first acknowledgement breaks no promise.
        accused = [str(one) for one in report.findings if one.verdict.kind is not CrashClass.INIT]
        assert accused == [], f"{report.layer}, {report.tally}"
        assert report.unproven == ()
        assert report.tried > 0


@pytest.mark.parametrize("store", thinned(STORES), ids=lambda store: store.name)
def test_a_store_takes_the_workload_and_keeps_it_as_long_as_nothing_fails(
    store: Store, subject_of: Callable[[Store], Lines], tmp_path: Path
) -> None:
    """The broken ones too: no bug shows without the layer that it needs."""
    workload, subject = puts(7, seed=4), subject_of(store)
    subject.start(tmp_path)
    try:
        history = perform(subject, workload)
        assert [one.answer.outcome for one in history.asked] == [Outcome.OK] * 7
        assert subject.dump() == workload.after(history.must)
    finally:
        subject.stop()
    # Two more starts, a new write between them.
    verdict = judge(subject, tmp_path, workload, history.must, history.may)
    assert verdict.kind is CrashClass.CLEAN, str(verdict)


def test_the_catalogue_plants_bugs_for_every_layer() -> None:
    assert len({store.name for store in STORES}) == len(STORES)
    assert len(BUGS) >= 25
    assert all(store.wrong for store in BUGS)
    assert {store.family for store in RIGHT} == {store.family for store in STORES}
    assert {store.caught_by for store in BUGS} == {layer for layer in Layer if layer.option} - {Layer.TORN_KILL}


def test_the_known_writers_are_told_apart() -> None:
    assert self_test() == ""


def test_without_telling_them_apart_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "report", lambda *_: SweepReport(Layer.POWER, 1, 1, "1 of 1"))
    assert "the self-test's wrong writer" in self_test()
    monkeypatch.setattr(Trial, "report", lambda *_: SweepReport(Layer.POWER, 0, 0, "0 of 0"))
    assert "the self-test's right writer" in self_test()


@pytest.mark.parametrize("layer", [Layer.POWER, Layer.KILL, Layer.RECOVERY, Layer.SYNC_ERRORS])
def test_a_store_that_cannot_be_recorded_proves_nothing(layer: Layer, tmp_path: Path) -> None:
    with Sweep(lambda: Lines((sys.executable, "-c", "")), puts(2), parent=tmp_path) as sweep:
        report = sweep.trial(layer).report(1)
    assert not report.clean
    assert report.tried == 0
    assert "expected it to start while it is recorded" in report.unproven[0]
    assert list(tmp_path.iterdir()) == []


def test_files_that_the_recording_does_not_explain_prove_nothing(
    sweep_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fidelity, "differences", lambda *_: ("facts.log",))
    report = sweep_of(RIGHT[0]).trial(Layer.POWER).report(1)
    assert not report.clean
    assert report.unproven == ("the recording does not explain these files: facts.log",)


def test_a_store_that_does_not_take_the_workload_proves_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; print('READY', flush=True)\n"
        "for line in sys.stdin: print('{}' if line == 'DUMP\\n' else 'REFUSED no', flush=True)"
    )
    with Sweep(lambda: Lines((sys.executable, "-c", program)), puts(2), parent=tmp_path) as sweep:
        report = sweep.trial(Layer.POWER).report(1)
    assert not report.clean
    assert "expected every operation of the workload to be accepted" in report.unproven[0]


def test_a_store_that_keeps_its_data_elsewhere_is_not_proven(
    subject_of: Callable[[Store], Lines], tmp_path: Path
) -> None:
    """Every state of the work directory shows all of it, after every fault."""
    command = subject_of(STORE["log-right"])._command
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    program = f"import os, sys; os.execvp({command[0]!r}, [*{command!r}, {str(elsewhere)!r}])"
    elsewhere_too = (sys.executable, "-c", program)
    with Sweep(lambda: Lines(elsewhere_too, environment=ENVIRONMENT), puts(2), parent=tmp_path) as sweep:
        reports = [sweep.trial(layer).report(0) for layer in (Layer.POWER, Layer.KILL)]
        reports += [Dependencies(sweep).trial(layer).report(0) for layer in (Layer.MISSING, Layer.DOWN)]
    for report in reports:
        assert not report.clean
        assert report.tried == 0
        assert "expected it to" in report.unproven[0] or "what it keeps does not lie in" in report.unproven[0]


def test_what_it_keeps_elsewhere_is_named(tmp_path: Path) -> None:
    program = f"""
import json, os, sys
kept = {str(tmp_path / "facts.json")!r}
facts = json.load(open(kept)) if os.path.exists(kept) else {{}}
print('READY', flush=True)
for line in sys.stdin:
    words = line.split()
    if words == ['DUMP']:
        print(json.dumps(facts), flush=True)
    else:
        facts |= {{words[1] + '.left': words[2], words[1] + '.right': words[2]}}
        json.dump(facts, open(kept, 'w'))
        print('OK', flush=True)
"""
    with Sweep(lambda: Lines((sys.executable, "-c", program)), puts(2), parent=tmp_path) as sweep:
        report = sweep.trial(Layer.POWER).report(0)
    assert not report.clean
    assert "what it keeps does not lie in its work directory" in report.unproven[0]
    assert "('k1.left', 'v1-" in report.unproven[0]


def _plain(family: str, variant: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-m", f"tests.faults.stores.{family}", variant)


@pytest.mark.parametrize("variant", ["right", "first"])
def test_a_session_is_long_enough_for_the_first_file_that_is_made_later(variant: str, tmp_path: Path) -> None:
    """Its second segment begins at the 21st write, and `first` goes on syncing the first one."""
    command = _plain("segments", variant)
    with Sweep(
        lambda: Lines(command, environment=ENVIRONMENT), puts(2), least=1, parent=tmp_path, longer=puts(40)
    ) as sweep:
        report = sweep.trial(Layer.POWER).report(0)
    assert report.unproven == ()
    assert report.clean is (variant == "right")
    assert {finding.verdict.kind for finding in report.findings} == (set() if report.clean else {CrashClass.LOST})
    assert all("In a long session" in finding.story for finding in report.findings)


def test_that_no_later_file_was_met_is_said(subject_of: Callable[[Store], Lines], tmp_path: Path) -> None:
    for store, note in (("log-right", "in 5 writes"), ("mapped-right", "in 3 writes, and the next was answered")):
        family, variant = store.split("-")
        large = puts(5, size=70_000, after=3) if family == "mapped" else puts(5)
        with Sweep(
            lambda f=family, v=variant: Lines(_plain(f, v), environment=ENVIRONMENT),  # type: ignore[misc]
            puts(2),
            least=1,
            parent=tmp_path,
            longer=large,
        ) as sweep:
            report = sweep.trial(Layer.POWER).report(0)
        assert report.clean, report.unproven
        assert note in report.tally


def test_a_store_that_calls_no_write_has_nothing_that_is_torn(tmp_path: Path) -> None:
    with Sweep(
        lambda: Lines(_plain("mapped", "right"), environment=ENVIRONMENT), puts(2), least=1, parent=tmp_path
    ) as sweep:
        for report in (sweep.trial(Layer.TORN_KILL).report(0), sweep.trial(Layer.SHORT).report(0)):
            assert (report.clean, report.tried) == (True, 0)
            assert "does not apply" in report.beside
        assert sweep.trial(Layer.SYNC_ERRORS).report(0).tried
    with Sweep(
        lambda: Lines(_plain("mapped", "none"), environment=ENVIRONMENT), puts(2), least=1, parent=tmp_path
    ) as sweep:
        assert {finding.verdict.kind for finding in sweep.trial(Layer.POWER).report(0).findings} == {CrashClass.LOST}


_GROWN = Operation(1, 1, 1, "ftruncate", Truncate(1, 4096))


@pytest.mark.parametrize(
    ("operations", "refused", "may_apply"),
    [
        ((_GROWN,), (), False),
        ((_GROWN,), ("io_uring_setup",), True),
        ((_GROWN, Operation(2, 2, 0, "unseen", Truncate(1, 1))), (), True),
        ((Operation(1, 1, 1, "write", Event("a pipe", 3)),), (), True),
    ],
)
def test_a_layer_does_not_apply_only_where_the_recording_shows_everything(
    operations: tuple[Operation, ...], refused: tuple[str, ...], may_apply: bool
) -> None:
    tally = Tally(Layer.SHORT, seed=0, floor=1, most=1)
    tally.has_no_point(Recording((), (), operations, Ending(0), refused), "write")
    assert (bool(tally.beside), bool(tally.unproven)) == (not may_apply, may_apply)


def test_of_two_sessions_both_have_to_have_nothing_to_try() -> None:
    def none(tally: Tally) -> Iterator[None]:
        tally.beside, tally.floor = "does not apply", 0
        yield from ()

    def some(tally: Tally) -> Iterator[None]:
        tally.total = 1
        yield
        tally.tried = 1

    def unknown(tally: Tally) -> Iterator[None]:
        tally.cannot_tell("not shown")
        yield from ()

    for second, beside, clean in ((none, True, True), (some, False, True), (unknown, False, False)):
        tally = Tally(Layer.SHORT, seed=0, floor=1, most=1)
        report = Trial(tally, partial(summed, {"": none, "later": second})).report()
        assert (bool(report.beside), report.clean) == (beside, clean)


def test_every_run_begins_on_a_copy_of_the_base(subject_of: Callable[[Store], Lines], tmp_path: Path) -> None:
    base, before = tmp_path / "base", puts(2, seed=9, names=2)
    base.mkdir()
    subject = subject_of(STORE["log-right"])
    subject.start(base)
    history = perform(subject, before)
    subject.stop()
    contents = (base / "facts.log").read_bytes()
    # The second name is set anew, the first is as it was.
    ops = tuple(Op(n, f"PUT k2 w{n}", {"k2.left": f"w{n}", "k2.right": f"w{n}"}) for n in (1, 2))
    probe = Op(3, "PUT probe p", {"probe.left": "p", "probe.right": "p"})
    workload = Workload(ops, probe, before=before.after(history.must))
    with Sweep(lambda: subject_of(STORE["log-right"]), workload, base=base, least=2, parent=tmp_path) as sweep:
        reports = [sweep.trial(layer).report(0) for layer in (Layer.POWER, Layer.KILL)]
        reports += [Dependencies(sweep).trial(layer).report(0) for layer in (Layer.TRUNCATED, Layer.DOWN)]
    assert [report.findings for report in reports] == [()] * 4
    assert [report.clean for report in reports] == [True] * 4
    assert (base / "facts.log").read_bytes() == contents
    with Sweep(lambda: subject_of(STORE["log-right"]), replace(workload, before={}), base=base) as sweep:
        # What is there before has to be known.
        assert "in a folder in which no operation was done it shows" in sweep.trial(Layer.POWER).report(0).unproven[0]


def test_points_that_no_later_run_reaches_prove_nothing(sweep_of: Make) -> None:
    sweep = sweep_of(STORE["log-right"])
    beyond = partial(sweep._struck, lambda _: Injection(error=errno.EIO, at=1_000_000), "an error at")
    report = sweep.trial(Layer.ERRORS, beyond).report(0)
    assert report.tried == 0
    assert report.unproven
    assert not report.findings


def test_so_many_points_are_tried_whatever_time_they_take(subject_of: Callable[[Store], Lines], tmp_path: Path) -> None:
    for least, both in ((1, 2), (4, 6)):
        with Sweep(lambda: subject_of(STORE["log-right"]), puts(3), least=least, parent=tmp_path) as sweep:
            for layer in (Layer.KILL, Layer.SHORT)[: 2 if least == 1 else 1]:
                assert sweep.trial(layer).report(0).tried == both


def test_a_workload_of_one_operation_has_one_session(subject_of: Callable[[Store], Lines], tmp_path: Path) -> None:
    with Sweep(lambda: subject_of(STORE["log-right"]), puts(1), least=2, parent=tmp_path) as sweep:
        report = sweep.trial(Layer.KILL).report(0)
    assert (report.clean, report.tried, report.floor) == (True, 2, 2)


def test_an_acknowledgement_that_cannot_be_placed_proves_nothing(
    sweep_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = sweep_of(next(store for store in RIGHT if store.name == "log-right"))
    sweep.baseline()

    def lost(*_: object) -> Promises:
        raise UnplacedError("operation 1 was acknowledged by a way that cannot be seen")

    monkeypatch.setattr(runs, "acknowledgements", lost)
    for report in [sweep.trial(one).report(1) for one in (Layer.POWER, Layer.SYNC_ERRORS, Layer.RECOVERY)]:
        assert not report.clean
        assert "by a way that cannot be seen" in report.unproven[0]


@pytest.mark.parametrize("layer", [Layer.POWER, Layer.KILL])
def test_a_broken_state_is_kept_with_its_recording(
    layer: Layer, subject_of: Callable[[Store], Lines], tmp_path: Path
) -> None:
    store = next(store for store in BUGS if store.name == "plain-in_place")
    kept = tmp_path / "kept"
    with Sweep(lambda: subject_of(store), puts(3), parent=tmp_path, keep=kept) as sweep:
        report = sweep.trial(layer).report(5)
    found = {finding.kept for finding in report.findings} - {None}
    assert found == set(kept.rglob("*.tar"))
    for state in found:
        assert state is not None
        assert read(state.with_suffix(".jsonl")).operations
        with tarfile.open(state) as archive:
            assert archive.getnames()


def test_half_a_write_is_placed_at_the_write_and_not_at_the_operation_before_it(sweep_of: Make) -> None:
    sweep = sweep_of(STORE["log-short"])
    found = sweep.trial(Layer.SHORT).report(SECONDS).findings
    operations = sweep.baseline().recording.operations
    assert found
    assert all(isinstance(operations[one.point - 1].action, Write) for one in found)


def test_the_same_seed_tries_the_same(sweep_of: Make) -> None:
    store = next(store for store in BUGS if store.name == "log-no_checksum")
    first, second = (sweep_of(store).trial(Layer.POWER).report(SECONDS) for _ in range(2))
    assert [str(one) for one in first.findings] == [str(one) for one in second.findings]
    assert first.tried == second.tried


def test_the_first_kills_are_where_half_of_an_operation_may_be_final(sweep_of: Make) -> None:
    sweep = sweep_of(STORE["sqlite-two_commits"])
    for seed in range(6):
        sweep.seed = seed
        report = sweep.trial(Layer.KILL).report(SECONDS)
        assert {finding.verdict.kind for finding in report.findings} == {CrashClass.TORN}
        assert report.tried <= 3, report.tally


def test_what_each_file_system_leaves_at_an_acknowledgement_is_owed(sweep_of: Make) -> None:
    """The log of btrfs may keep the name of a lock file that a journal does not, and the other way round."""
    sweep = sweep_of(STORE["lmdb_store-default"])
    report = sweep.trial(Layer.POWER).report(0)
    acknowledged = {*sweep.baseline().promises.acknowledged.values()}
    assert report.clean
    assert len(acknowledged) < report.tried == report.floor <= 3 * len(acknowledged)
