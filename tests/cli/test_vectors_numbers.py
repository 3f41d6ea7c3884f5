"""`holdfast vectors es6`: what each way of not coming to an end amounts to."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import typer

import holdfast.vectors.jcs.es6.job
import holdfast.vectors.jcs.spark.numbers
from holdfast.conformance.cli.console import Format
from holdfast.conformance.cli.vectors import es6 as numbers
from holdfast.conformance.cli.vectors.es6 import es6
from holdfast.specs import schema
from holdfast.vectors.jcs.es6.job import PUBLISHED, Es6Result
from holdfast.vectors.jcs.es6.stream import StreamBrokenError, StreamLostError
from holdfast.vectors.jcs.spark.numbers import Departure, NumberResult
from holdfast.vectors.jcs.spark.tally import Meaning

MATCHING = Es6Result(1000, 37_967, PUBLISHED[1000].sha256, 1, 0.5)


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def working(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(spark=None, progress=SimpleNamespace(show=None))

    monkeypatch.setattr(numbers, "working", working)
    monkeypatch.setattr(numbers, "target_of", lambda *_: SimpleNamespace(command=None))


def _ends(monkeypatch: pytest.MonkeyPatch, numbers: NumberResult | None, format_: Format = Format.TEXT) -> int:
    monkeypatch.setattr(holdfast.vectors.jcs.es6.job, "run", lambda *_, **__: MATCHING)
    monkeypatch.setattr(holdfast.vectors.jcs.spark.numbers, "verify_numbers", lambda *_, **__: numbers)
    with pytest.raises(typer.Exit) as caught:
        es6(1000, None if numbers is None else "reference", format_=format_)
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (StreamLostError("nothing came"), 12, "not proven: nothing came"),
        (StreamBrokenError("no join"), 20, "fault of the kit: no join"),
    ],
)
def test_lines_that_did_not_come_are_not_proven_and_wrong_ones_are_a_fault_of_the_kit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, status: int, said: str
) -> None:
    def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(holdfast.vectors.jcs.es6.job, "run", run)
    with pytest.raises(typer.Exit) as caught:
        es6(1000)
    assert caught.value.exit_code == status
    assert said in capsys.readouterr().err


def test_processes_that_failed_on_no_number_are_told_to_people_and_to_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {**dict.fromkeys(Meaning, 0), Meaning.AGREE: 1000}
    numbers = NumberResult(1000, counts, {}, None, restarts=3)
    assert _ends(monkeypatch, numbers, Format.JSON) == 12
    raw = json.loads(capsys.readouterr().out)
    assert schema.explain(schema.published_validator("vectors-es6"), raw) is None
    assert raw["sdk"]["restarts"] == 3
    assert _ends(monkeypatch, numbers) == 12
    assert "3 processes of the runner failed on no number in particular" in capsys.readouterr().out


def test_the_first_number_that_is_written_otherwise_stands_in_both_outputs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {**dict.fromkeys(Meaning, 0), Meaning.AGREE: 999, Meaning.WRONG_BYTES: 1}
    first = {Meaning.WRONG_BYTES: Departure(4, b"[1E+21]", b"[1e+21]", "[1e21]")}
    numbers = NumberResult(1000, counts, first, None)
    assert _ends(monkeypatch, numbers, Format.JSON) == 11
    assert json.loads(capsys.readouterr().out)["sdk"]["first"].startswith("line 4: [1E+21] became [1e21]")
    assert _ends(monkeypatch, numbers) == 11
    assert "show hex:5b31452b32315d --sdk reference" in capsys.readouterr().out
    assert _ends(monkeypatch, None) == 0
