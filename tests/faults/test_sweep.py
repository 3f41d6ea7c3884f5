"""The layers against the stores: each planted bug is caught by the layer that has to, and no right store is accused."""

from __future__ import annotations

import errno
import itertools
import random
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.faults import fidelity, runs
from holdfast.conformance.faults import sweep as subject_of_tests
from holdfast.conformance.faults.dependencies import Dependencies
from holdfast.conformance.faults.lines import Lines, puts
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.order import each_kind_first, spread
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
from holdfast.conformance.faults.report import Layer, RunError, SweepReport, Tally, Trial, summed
from holdfast.conformance.faults.runs import LEAST_TRIED, Promises, Run
from holdfast.conformance.faults.subject import Op, Workload, perform
from holdfast.conformance.faults.sweep import Sweep, self_test
from holdfast.conformance.faults.tracer import Injection
from tests.faults.stores.catalogue import BUGS, RIGHT, STORES, Store, swept

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

    def make(store: Store | tuple[str, ...], workload: Workload | None = None, **more: Any) -> Sweep:
        command = store if isinstance(store, tuple) else subject_of(store)._command
        made.append(swept(command, workload or puts(6), **{"least": LEAST_TRIED, "parent": tmp_path, **more}))
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
    sweep_of: Make, long: bool
) -> None:
    writer = (sys.executable, "-I", "-S", str(Path(subject_of_tests.__file__).with_name("writers.py")), "right")
    many = replace(puts(12), long=long)
    report = sweep_of(writer, many).trial(Layer.POWER).report(0)
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


def test_files_that_the_recording_does_not_explain_prove_nothing(
    sweep_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fidelity, "differences", lambda *_: ("facts.log",))
    report = sweep_of(RIGHT[0]).trial(Layer.POWER).report(1)
    assert not report.clean
    assert report.unproven == ("the recording does not explain these files: facts.log",)


# Speaks lines, and does with its facts what is put in.
_PROGRAM = """
import json, os, sys
kept = %r
facts = json.load(open(kept)) if os.path.exists(kept) else {}
print('READY', flush=True)
for line in sys.stdin:
    words = line.split()
    if words == ['DUMP']:
        print(json.dumps(facts), flush=True)
    else:
        %s
"""
_KEEPS = """facts |= {words[1] + '.left': words[2], words[1] + '.right': words[2]}
        json.dump(facts, open(kept, 'w'))
        print('OK', flush=True)"""
_RECORDED = (Layer.POWER, Layer.KILL, Layer.RECOVERY, Layer.SYNC_ERRORS)


@pytest.mark.parametrize(
    ("program", "layers", "words"),
    [
        ("", _RECORDED, "expected it to start while it is recorded"),
        (
            _PROGRAM % ("", "print('REFUSED no', flush=True)"),
            (Layer.POWER,),
            "expected every operation of the workload to be accepted",
        ),
        # Every state of its work directory shows all of it, and the first fact is named.
        (_PROGRAM % ("ELSEWHERE", _KEEPS), (Layer.POWER, Layer.KILL), "in a folder in which no operation was done it"),
        (_PROGRAM % ("ELSEWHERE", _KEEPS), (Layer.POWER,), "shows [('k1.left', 'v1-"),
        (_PROGRAM % ("ELSEWHERE", _KEEPS), (Layer.MISSING, Layer.DOWN), "what it keeps does not lie in its work dir"),
    ],
)
def test_a_store_that_is_not_whole_in_its_work_directory_proves_nothing(
    program: str, layers: Sequence[Layer], words: str, sweep_of: Make, tmp_path: Path
) -> None:
    kept = tmp_path / "facts.json"
    with sweep_of((sys.executable, "-c", program.replace("ELSEWHERE", str(kept))), puts(2)) as sweep:
        for layer in layers:
            report = (sweep if layer.is_recorded else Dependencies(sweep)).trial(layer).report(1)
            assert (report.clean, report.tried, report.findings) == (False, 0, ())
            assert words in report.unproven[0]
            kept.unlink(missing_ok=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("variant", ["right", "first"])
def test_a_session_is_long_enough_for_the_first_file_that_is_made_later(variant: str, sweep_of: Make) -> None:
    """Its second segment begins at the 21st write, and `first` goes on syncing the first one."""
    sweep = sweep_of(Store("segments", variant), puts(2), least=1, longer=puts(40))
    report = sweep.trial(Layer.POWER).report(0)
    assert report.unproven == ()
    assert report.clean is (variant == "right")
    assert {finding.verdict.kind for finding in report.findings} == (set() if report.clean else {CrashClass.LOST})
    assert all("In a long session" in finding.story for finding in report.findings)


@pytest.mark.parametrize(
    ("family", "longer", "note"),
    [
        ("log", puts(5), "in 5 writes"),
        ("mapped", puts(5, size=70_000, after=3), "in 3 writes, and the next was answered"),
    ],
)
def test_that_no_later_file_was_met_is_said(family: str, longer: Workload, note: str, sweep_of: Make) -> None:
    report = sweep_of(Store(family, "right"), puts(2), least=1, longer=longer).trial(Layer.POWER).report(0)
    assert report.clean, report.unproven
    assert note in report.tally


def test_a_store_that_calls_no_write_has_nothing_that_is_torn(sweep_of: Make) -> None:
    sweep = sweep_of(Store("mapped", "right"), puts(2), least=1)
    for report in (sweep.trial(Layer.TORN_KILL).report(0), sweep.trial(Layer.SHORT).report(0)):
        assert (report.clean, report.tried) == (True, 0)
        assert "does not apply" in report.beside
    assert sweep.trial(Layer.SYNC_ERRORS).report(0).tried
    broken = sweep_of(Store("mapped", "none"), puts(2), least=1).trial(Layer.POWER).report(0)
    assert {finding.verdict.kind for finding in broken.findings} == {CrashClass.LOST}


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


def test_every_run_begins_on_a_copy_of_the_base(
    subject_of: Callable[[Store], Lines], sweep_of: Make, tmp_path: Path
) -> None:
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
    sweep = sweep_of(STORE["log-right"], workload, base=base, least=2)
    reports = [sweep.trial(layer).report(0) for layer in (Layer.POWER, Layer.KILL)]
    reports += [Dependencies(sweep).trial(layer).report(0) for layer in (Layer.TRUNCATED, Layer.DOWN)]
    assert [report.findings for report in reports] == [()] * 4
    assert [report.clean for report in reports] == [True] * 4
    assert (base / "facts.log").read_bytes() == contents
    # What is there before has to be known.
    unknown = sweep_of(STORE["log-right"], replace(workload, before={}), base=base).trial(Layer.POWER).report(0)
    assert "in a folder in which no operation was done it shows" in unknown.unproven[0]


def test_points_that_no_later_run_reaches_prove_nothing(sweep_of: Make) -> None:
    sweep = sweep_of(STORE["log-right"])
    beyond = partial(sweep._struck, lambda _: Injection(error=errno.EIO, at=1_000_000), "an error at")
    report = sweep.trial(Layer.ERRORS, beyond).report(0)
    assert report.tried == 0
    assert report.unproven
    assert not report.findings


@pytest.mark.parametrize(
    ("count", "least", "both", "layers"),
    [
        (3, 1, 2, (Layer.KILL, Layer.SHORT)),
        (3, 4, 6, (Layer.KILL,)),
        # A workload of one operation has one session.
        (1, 2, 2, (Layer.KILL,)),
    ],
)
def test_so_many_points_are_tried_whatever_time_they_take(
    count: int, least: int, both: int, layers: Sequence[Layer], sweep_of: Make
) -> None:
    sweep = sweep_of(STORE["log-right"], puts(count), least=least)
    for layer in layers:
        report = sweep.trial(layer).report(0)
        assert (report.clean, report.tried, report.floor) == (True, both, both)


def test_an_acknowledgement_that_cannot_be_placed_proves_nothing(
    sweep_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = sweep_of(STORE["log-right"])
    sweep.baseline()

    def lost(*_: object) -> Promises:
        raise RunError("operation 1 was acknowledged by a way that cannot be seen")

    monkeypatch.setattr(runs, "acknowledgements", lost)
    for report in [sweep.trial(one).report(1) for one in (Layer.POWER, Layer.SYNC_ERRORS, Layer.RECOVERY)]:
        assert not report.clean
        assert "by a way that cannot be seen" in report.unproven[0]


@pytest.mark.parametrize("layer", [Layer.POWER, Layer.KILL])
def test_a_broken_state_is_kept_with_its_recording(
    layer: Layer, sweep_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first of each class.
    monkeypatch.undo()
    kept = tmp_path / "kept"
    report = sweep_of(STORE["plain-in_place"], puts(3), keep=kept).trial(layer).report(5)
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
    first, second = (sweep_of(STORE["log-no_checksum"]).trial(Layer.POWER).report(SECONDS) for _ in range(2))
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


# It is opened only once it is needed, and what it does then to bring itself in order is a recovery, too.
# It appends and syncs. The first request of a process has it compact its file, synced or not before it takes the place.
_LAZY = """
import json, os, sys
sync, folder = sys.argv[1], sys.argv[-1]
path, opened, facts = os.path.join(folder, "facts"), False, {}
def synced(name):
    handle = os.open(name, os.O_RDONLY); os.fsync(handle); os.close(handle)
def first():
    for line in open(path) if os.path.exists(path) else ():
        if line.endswith("\\n"): facts.update(json.loads(line))
    with open(path + "~", "w") as stream: stream.write(json.dumps(facts) + "\\n")
    if sync == "synced": synced(path + "~")
    os.rename(path + "~", path)
    synced(folder)
print("READY", flush=True)
for line in sys.stdin:
    words = line.split()
    if not opened: first()
    opened = True
    if words == ["DUMP"]:
        print(json.dumps(facts), flush=True)
        continue
    new = {words[1] + ".left": words[2], words[1] + ".right": words[2]}
    facts |= new
    with open(path, "a") as stream:
        stream.write(json.dumps(new) + "\\n"); stream.flush(); os.fsync(stream.fileno())
    print("OK", flush=True)
"""


@pytest.mark.parametrize("sync", ["unsynced", "synced"])
def test_a_first_request_that_compacts_without_a_sync_loses_what_was_acknowledged(sync: str, sweep_of: Make) -> None:
    report = sweep_of((sys.executable, "-S", "-c", _LAZY, sync), puts(3), patience=20).trial(Layer.RECOVERY).report(0)
    assert {finding.verdict.kind for finding in report.findings} <= {CrashClass.LOST, CrashClass.TORN}
    assert report.clean is (sync == "synced")
    assert bool(report.findings) is (sync == "unsynced")
    assert report.tried > (sync == "synced")
