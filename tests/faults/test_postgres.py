"""PostgreSQL, a store of many processes, under the layers: right as it comes, caught where a setting makes it wrong."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.conformance.faults import sweep as subject_of_tests
from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import Kind
from holdfast.conformance.faults.recording import Sync, Type, Write
from holdfast.conformance.faults.subject import Workload
from holdfast.conformance.faults.sweep import Report, Sweep
from tests.conftest import missing
from tests.faults.stores import postgres
from tests.faults.stores.catalogue import ENVIRONMENT, Layer, Store
from tests.faults.test_seeds import SEEDS, drawn

# One worker makes the cluster, and two servers side by side would be in each other's way.
pytestmark = [pytest.mark.usefixtures("tracer"), pytest.mark.xdist_group("faults-postgres")]

RIGHT = Store("postgres", "right")
NO_COMMIT_SYNC = Store("postgres", "no_commit_sync", Layer.POWER, "synchronous_commit=off")
NO_FSYNC = Store("postgres", "no_fsync", Layer.POWER, "fsync=off")
TWO_TRANSACTIONS = Store("postgres", "two_transactions", Layer.KILL, "each fact is a transaction")
# A restart takes a third of a second: at least this number of points is tried.
_LEAST = 4
_DEEP_S = 90.0

Make = Callable[[Store], Sweep]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster that nothing was written to."""
    if shutil.which("setpriv") is None:
        missing("setpriv, of util-linux")
    folder = tmp_path_factory.mktemp("cluster")
    postgres.make_template(folder)
    return folder


@pytest.fixture
def sweep_of(cluster: Path, tmp_path: Path) -> Iterator[Make]:
    """A function from a variant to its sweep."""
    made: list[Sweep] = []

    def make(store: Store) -> Sweep:
        made.append(_sweep(store, puts(6), cluster, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _sweep(store: Store, workload: Workload, cluster: Path, parent: Path, seed: int = 0) -> Sweep:
    def lines(factor: float) -> Lines:
        return Lines(store.command(), environment=ENVIRONMENT, limits=Limits().scaled(factor))

    return Sweep(
        lambda: lines(6),
        workload,
        traced=lambda: lines(20),
        base=cluster,
        seed=seed,
        least=_LEAST,
        parent=parent,
    )


def _clean(report: Report) -> None:
    assert [str(one) for one in report.findings] == []
    assert report.unproven == ()
    assert report.tried > 0


def test_every_process_of_the_server_is_recorded(sweep_of: Make) -> None:
    run = sweep_of(RIGHT).baseline()
    files = {entry.file: entry.names[0] for entry in run.recording.snapshot if entry.type is Type.FILE}
    logs = {file for file, name in files.items() if name.startswith(b"data/pg_wal/")}
    written = [one for one in run.recording.operations if isinstance(one.action, Write) and one.action.file in logs]
    synced = [one for one in run.recording.operations if isinstance(one.action, Sync) and one.action.file in logs]
    assert len(synced) >= len(run.history.must)
    # The program that answers, and of the server a backend, the checkpointer and the postmaster at least.
    assert len({one.task for one in run.recording.operations}) >= 4
    assert written[0].task != run.recording.operations[0].task


@pytest.mark.sweep
def test_the_right_store_keeps_what_it_acknowledged(sweep_of: Make) -> None:
    sweep = sweep_of(RIGHT)
    _clean(sweep.power_loss(0))
    _clean(sweep.kills(0))


@pytest.mark.parametrize("store", [NO_COMMIT_SYNC, NO_FSYNC], ids=lambda store: store.name)
def test_a_commit_that_is_not_synced_is_lost(store: Store, sweep_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_of_tests, "MOST_FINDINGS", 1)
    report = sweep_of(store).power_loss(0)
    assert [finding.verdict.kind for finding in report.findings] == [Kind.LOST]
    assert report.unproven == ()


@pytest.mark.sweep
@pytest.mark.parametrize("layer", [Sweep.power_loss, Sweep.kills])
def test_two_transactions_for_one_write_are_torn(
    layer: Callable[[Sweep, float], Report], sweep_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject_of_tests, "MOST_FINDINGS", 1)
    report = layer(sweep_of(TWO_TRANSACTIONS), _DEEP_S)
    assert [finding.verdict.kind for finding in report.findings] == [Kind.TORN]


@pytest.mark.sweep
def test_the_right_store_is_not_accused_by_any_layer(sweep_of: Make) -> None:
    sweep = sweep_of(RIGHT)
    _clean(sweep.power_loss(_DEEP_S))
    _clean(sweep.kills(_DEEP_S / 3))
    _clean(sweep.kills(_DEEP_S / 6, torn=True))
    _clean(sweep.errors(_DEEP_S / 6, errno.ENOSPC))
    _clean(sweep.short_writes(_DEEP_S / 6))
    _clean(sweep.sync_errors(_DEEP_S / 6))
    _clean(sweep.recovery(_DEEP_S / 3))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", SEEDS)
def test_the_right_store_is_accused_from_no_seed(seed: int, cluster: Path, tmp_path: Path) -> None:
    with _sweep(RIGHT, drawn(RIGHT, seed), cluster, tmp_path, seed) as sweep:
        _clean(sweep.power_loss(2))
        _clean(sweep.kills(0))
