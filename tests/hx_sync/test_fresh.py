"""What must be random in objects of hx-sync: values that only look so are told from drawn ones."""

from __future__ import annotations

import hashlib
import time
from random import Random
from typing import NoReturn, cast

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.hx_sync.fresh import drawn


class ReportedError(Exception):
    """What a bench reports."""


class Reporting:
    """A bench that only reports."""

    def fail(self, verdict: str, message: str, **more: object) -> NoReturn:
        raise ReportedError(f"{verdict} {message} {more}")


BENCH = cast("Bench", Reporting())


@pytest.mark.parametrize("count", [24, 60, 200, 700])
@pytest.mark.parametrize("size", [12, 24, 32])
def test_drawn_values_are_never_accused(count: int, size: int) -> None:
    dice = Random(f"{count} {size}")
    drawn(BENCH, [dice.randbytes(size) for _ in range(count)], "values")


@pytest.mark.parametrize(
    "made",
    [
        [hashlib.sha256(bytes([number])).digest()[:4] * 8 for number in range(100)],
        [(1 << 90 | number).to_bytes(24, "big") for number in range(100)],
        [time.time_ns().to_bytes(12, "big") for _ in range(100)],
        [bytes(20) + hashlib.sha256(bytes([number])).digest()[:4] for number in range(100)],
    ],
    ids=["four bytes repeated", "a counter", "a clock", "zeros in front"],
)
def test_values_of_fewer_bits_than_they_show_are_found(made: list[bytes]) -> None:
    with pytest.raises(ReportedError):
        drawn(BENCH, made, "values")
