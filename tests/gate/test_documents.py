"""A run of documents, altered in every field: the gate makes the rows again, and believes only what its table says."""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.cli.vectors.evidence import Asked, record
from holdfast.conformance.gate import documents
from holdfast.conformance.gate.decision import Expected, GateDecision, decide, installed_kit, parse_requirement
from holdfast.conformance.gate.model import ReasonCode as R
from holdfast.conformance.run.documents import stream_seed
from holdfast.conformance.run.settings import Caller
from holdfast.reports.evidence import SeedOrigin, read_evidence, seed_of_nonce
from holdfast.specs import strictjson
from holdfast.vectors.jcs.construct import STREAM
from holdfast.vectors.jcs.opening import opening_of
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.results import Opened, Result, Target
from holdfast.vectors.jcs.spark.tally import Meaning, Row
from holdfast.vectors.taxonomy import Category, Profile
from tests.forger import resealed
from tests.gate.alterations import believed_at, in_line, paths_of, place_of

NONCE, COUNT = "ticket 17", 600
SEED = stream_seed(seed_of_nonce(NONCE), SeedOrigin.NONCE) or 0
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def _made_once() -> Iterator[None]:
    """A short ladder, and each batch of rows made once: thousands of alterations are of the same rows."""
    made, whole, kept = documents._made, opening_of(SEED), dict[object, Any]()
    few = replace(whole, rungs=whole.rungs[::100])

    def once(line: Any) -> Any:
        key = (line.seed, line.count, line.profile)
        return kept.get(key) or kept.setdefault(key, made(line))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "opening_of", lambda seed: replace(few, seed=seed))
        patch.setattr(documents, "_made", once)
        yield


def sound(**changes: Any) -> Result:
    """What an SDK shows that answers every document as expected."""
    line: Any = type("Line", (), {"seed": SEED, "count": COUNT, "profile": "core"})
    made = documents._made(line)
    rows, opened = (tuple(table.rows.values()) for table in made.tables)
    target = Target("mine", "", "", "", Command((sys.executable,), 1, 1))
    before = Opened(made.tables[1].count, made.tables[1].root, opened, 0)
    base = Result(target, Profile.CORE, str(STREAM), SEED, COUNT, made.tables[0].root, rows, 0, (), "answers", None, 1)
    return replace(base, opened=before, answers=made.answers, **changes)


def decided(lines: Lines, folder: Path, **expected: Any) -> GateDecision:
    path = folder / "altered.jsonl"
    path.write_bytes(b"".join(raw + b"\n" for raw in resealed(lines)))
    asked = Expected(**{"rows": COUNT, "nonce": NONCE, **expected})
    return decide(
        read_evidence(path),
        [parse_requirement("jcs/vectors")],
        now=datetime.now(UTC),
        expected=asked,
        kit=installed_kit(),
    )


def lines_of(result: Result, folder: Path) -> Lines:
    asked = Asked(Caller(SeedOrigin.NONCE, NONCE), seed_of_nonce(NONCE))
    record(result, folder / "run.jsonl", asked)
    return [strictjson.loads(raw) for raw in (folder / "run.jsonl").read_bytes().splitlines()]


def other_values(value: Any) -> list[Any]:
    if isinstance(value, int | float):
        return [value + 1]
    if isinstance(value, list) and value:
        return [value[1:], value[::-1]]
    return [value + "0", "fail_open"] if isinstance(value, str) else ["x"]


def test_no_field_of_a_sound_run_can_be_altered_but_what_the_table_lists(tmp_path: Path) -> None:
    lines = lines_of(sound(), tmp_path)
    assert decided(lines, tmp_path).can_proceed == "YES"
    tried = Counter[str]()
    for number, line in enumerate(lines):
        for path in [each for each in paths_of(line) if each and each[0] not in ("type", "prev", "seal")]:
            place = place_of(line, path, {})
            tried[place] += 1
            value = reduce(getitem, path, line)  # type: ignore[arg-type]
            for other in other_values(value) if tried[place] < 4 and not believed_at(place) else ():
                new: Any = copy.deepcopy(line)
                reduce(getitem, path[:-1], new)[path[-1]] = other
                altered = [*lines[:number], new, *lines[number + 1 :]]
                altered[-1] = new if place.startswith("footer") else in_line(altered)
                assert new == line or decided(altered, tmp_path).can_proceed == "NO", f"{place}: {value!r}: {other!r}"


def wrong(result: Result, found: Meaning) -> Result:
    """One row of P5 departs, and nothing shows it but the table."""
    rows = [
        Row(row.category, row.profile, {**row.counts, Meaning.AGREE: row.counts[Meaning.AGREE] - 1, found: 1})
        if (row.category, row.profile) == (Category.NUMBER_INTEGERS, Profile.CORE)
        else row
        for row in result.generated
    ]
    return replace(result, generated=tuple(rows))


@pytest.mark.parametrize(
    ("result", "more", "codes"),
    [
        (lambda: sound(), {"rows": COUNT + 1}, {R.NOT_PROVEN}),
        (lambda: sound(), {"nonce": "another"}, {R.OTHER_NONCE}),
        (lambda: sound(restarts=1), {}, {R.NOT_PROVEN}),
        (lambda: sound(profile=Profile.SAFE_INT), {}, {R.NOT_IN_RUN}),
        (lambda: sound(categories=(Category.NUMBER_INTEGERS,)), {}, {R.NARROWED, R.MISSING_RESULTS}),
        # Its table says that a row departs, its digests that none does.
        (lambda: wrong(sound(), Meaning.WRONG_BYTES), {}, {R.NON_CONFORMING, R.JUDGED_OTHERWISE}),
        (lambda: wrong(sound(), Meaning.ACCEPTED), {}, {R.FAIL_OPEN, R.JUDGED_OTHERWISE}),
    ],
)  # fmt: skip
def test_what_holds_a_run_of_documents(tmp_path: Path, result: Any, more: dict[str, Any], codes: set[R]) -> None:
    assert {reason.code for reason in decided(lines_of(result(), tmp_path), tmp_path, **more).reasons} >= codes
