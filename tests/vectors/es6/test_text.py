"""The text of doubles in columns, against Appendix B of RFC 8785 and against a plain oracle."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from holdfast.vectors.jcs.es6.stream import lines, text
from tests.vectors.appendix_b import APPENDIX_B
from tests.vectors.es6 import oracle

SIGN = np.uint64(1 << 63)


def hold(values: npt.NDArray[np.float64]) -> None:
    """Columns, lines and oracle agree on every value."""
    expected = [oracle.text(value) for value in values.tolist()]
    assert text(values).to_pylist() == expected
    patterns = values.view(np.uint64)
    wanted = "".join(f"{pattern:x},{row}\n" for pattern, row in zip(patterns.tolist(), expected, strict=True))
    assert bytes(lines(patterns)).decode("ascii") == wanted


def finite(patterns: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    values = patterns.view(np.float64)
    return values[np.isfinite(values)]


def around(values: npt.NDArray[np.float64], steps: int) -> npt.NDArray[np.float64]:
    """Both signs of the values, and `steps` neighbours on each side."""
    patterns = values.view(np.uint64)
    near = np.concatenate([patterns + np.uint64(step) for step in range(steps + 1)])
    below = np.concatenate([patterns[patterns > step] - np.uint64(step) for step in range(1, steps + 1)])
    both = np.concatenate([near, below])
    return finite(np.concatenate([both, both | SIGN]))


@pytest.mark.parametrize(("pattern", "expected"), APPENDIX_B.items(), ids=[f"{pattern:016x}" for pattern in APPENDIX_B])
def test_appendix_b_is_reproduced(pattern: int, expected: str) -> None:
    patterns = np.array([pattern], np.uint64)
    assert text(patterns.view(np.float64)).to_pylist() == [expected]
    assert bytes(lines(patterns)) == f"{pattern:x},{expected}\n".encode()
    assert oracle.text(oracle.double(pattern)) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_has_no_text_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected finite numbers"):
        text(np.array([1.0, value]))
    with pytest.raises(ValueError, match="expected finite numbers"):
        lines(np.array([value]).view(np.uint64))


def test_random_bit_patterns_agree_with_the_oracle() -> None:
    generator = np.random.default_rng(8785)
    hold(finite(generator.integers(0, 1 << 64, 40_000, dtype=np.uint64)))


def test_powers_of_ten_and_their_neighbours_agree_with_the_oracle() -> None:
    hold(around(np.array([float(f"1e{exponent}") for exponent in range(-323, 309)]), steps=3))


def test_powers_of_two_and_their_neighbours_agree_with_the_oracle() -> None:
    hold(around(np.array([math.ldexp(1.0, exponent) for exponent in range(-1074, 1024)]), steps=2))


def test_subnormal_numbers_agree_with_the_oracle() -> None:
    generator = np.random.default_rng(1)
    widths = generator.integers(0, 53, 6_000)
    patterns = generator.integers(0, 1 << 52, 6_000, dtype=np.uint64) >> widths.astype(np.uint64)
    hold(around(np.concatenate([patterns, np.arange(300, dtype=np.uint64)]).view(np.float64), steps=1))


@pytest.mark.parametrize(("low", "high"), [(1e-8, 1e-4), (1e-4, 1e10), (1e10, 1e17), (1e15, 1e22)])
def test_the_band_where_notations_differ_agrees_with_the_oracle(low: float, high: float) -> None:
    generator = np.random.default_rng(2)
    exponents = generator.uniform(math.log10(low), math.log10(high), 8_000)
    values = (10.0**exponents) * generator.choice([-1.0, 1.0], 8_000)
    hold(np.concatenate([values, np.trunc(values), np.round(values, 2)]))


def test_few_digits_at_every_exponent_agree_with_the_oracle() -> None:
    mantissas = ["1", "2", "5", "9", "12", "15", "99", "123", "125", "999999", "1234567", "123456789012345"]
    hold(around(np.array([float(f"{m}e{e}") for m in mantissas for e in range(-330, 309 - len(m))]), steps=1)[::3])


def test_integers_up_to_2_to_53_agree_with_the_oracle() -> None:
    generator = np.random.default_rng(3)
    widths = generator.integers(0, 53, 8_000)
    values = (generator.integers(0, 1 << 53, 8_000) >> widths).astype(np.float64)
    hold(np.concatenate([values, -values, np.arange(-120.0, 120.0)]))


def test_any_number_of_rows_gives_the_same_texts() -> None:
    values = finite(np.random.default_rng(4).integers(0, 1 << 64, 70, dtype=np.uint64))
    values[::7] = np.arange(len(values[::7]), dtype=np.float64)
    for count in range(len(values)):
        hold(values[:count].copy())
