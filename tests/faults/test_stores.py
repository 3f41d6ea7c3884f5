"""Every store works as long as nothing fails, the broken ones too: no bug shows without the layer that it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import Lines, puts
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.faults.subject import Outcome, perform
from tests.conftest import thinned
from tests.faults.stores.catalogue import BUGS, RIGHT, STORES, Store

WORKLOAD = puts(7, seed=4)


@pytest.mark.parametrize("store", thinned(STORES), ids=lambda store: store.name)
def test_a_store_takes_the_workload_and_keeps_it(
    store: Store, subject_of: Callable[[Store], Lines], tmp_path: Path
) -> None:
    subject = subject_of(store)
    subject.start(tmp_path)
    try:
        history = perform(subject, WORKLOAD)
        assert [one.answer.outcome for one in history.asked] == [Outcome.OK] * 7
        assert subject.dump() == WORKLOAD.after(history.must)
    finally:
        subject.stop()
    # Two more starts, a new write between them.
    verdict = judge(subject, tmp_path, WORKLOAD, history.must, history.may)
    assert verdict.kind is CrashClass.CLEAN, str(verdict)


def test_the_catalogue_plants_bugs_for_every_layer() -> None:
    assert len({store.name for store in STORES}) == len(STORES)
    assert len(BUGS) >= 25
    assert all(store.wrong for store in BUGS)
    assert {store.family for store in RIGHT} == {store.family for store in STORES}
    assert {store.caught_by for store in BUGS} == {layer for layer in Layer if layer.option} - {Layer.TORN_KILL}
