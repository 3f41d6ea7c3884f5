"""No right store fails, for every content, every order, and every point of the power loss."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import Limits, Lines, puts
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.faults.subject import Workload
from holdfast.conformance.faults.sweep import Sweep
from tests.faults.stores.catalogue import ENVIRONMENT, RIGHT, Store

pytestmark = pytest.mark.usefixtures("tracer")

SEEDS = range(1, 21)
# Of each layer and seed; the seeds together try what one of them has no time for.
_POWER_S, _LEAST = 1.5, 2
# Characters of a value: nothing, a part of a sector, more than one, more than a page.
_SIZES = (0, 100, 700, 5000)
# It takes values for numbers, of which Python reads 4,300 digits.
_MOST = {"snapshot": 1500}
# What every run of the tests does.
_SLICE = {("log-right", 1), ("plain-right", 2)}


def drawn(store: Store, seed: int) -> Workload:
    """Some writes: how many, of what size, and how many of them cover others."""
    draw = random.Random(seed)
    count, names, size = draw.randint(3, 8), draw.randint(1, 6), draw.choice(_SIZES)
    return puts(count, seed=seed, names=names, size=min(size, _MOST.get(store.family, size)))


def _cases() -> list[object]:
    return [
        pytest.param(
            store, seed, id=f"{store.name}-{seed}", marks=() if (store.name, seed) in _SLICE else pytest.mark.sweep
        )
        for store in RIGHT
        for seed in SEEDS
    ]


@pytest.mark.parametrize(("store", "seed"), _cases())
def test_a_right_store_is_accused_from_no_seed(
    store: Store, seed: int, subject_of: Callable[[Store], Lines], tmp_path: Path
) -> None:
    command = subject_of(store)._command

    def lines(factor: float) -> Lines:
        return Lines(command, environment=ENVIRONMENT, limits=Limits().scaled(factor))

    with Sweep(
        lambda: lines(4), drawn(store, seed), traced=lambda: lines(20), seed=seed, least=_LEAST, parent=tmp_path
    ) as sweep:
        reports = [
            sweep.trial(Layer.POWER).report(_POWER_S),
            sweep.trial(Layer.KILL).report(0),
            sweep.trial(Layer.TORN_KILL).report(0),
            sweep.trial(Layer.RECOVERY).report(0),
        ]
        reports += [sweep.trial(Layer.ERRORS).report(0), sweep.trial(Layer.SHORT).report(0)]
        reports += [sweep.trial(Layer.SYNC_ERRORS).report(0)]
    for report in reports:
        # A loss before the first acknowledgement breaks no promise.
        accused = [str(finding) for finding in report.findings if finding.verdict.kind is not CrashClass.INIT]
        assert accused == [], f"{report.layer}, {report.tally}"
        assert report.unproven == ()
        assert report.tried > 0
