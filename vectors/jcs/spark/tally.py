"""What answers amount to: outcomes of rows, counts of them in cells, and the table of SDK, category and profile.

A row is counted once, under (category, profiles that refuse it, outcome); the table of each profile follows from these
counts. So one run shows every profile, and the counts of a table add up to the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum, unique

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.frames.columns import canonical_frames, status_bytes
from holdfast.vectors.taxonomy import Category, Profile

CATEGORIES: tuple[Category, ...] = tuple(Category)
_PROFILE_SETS = 1 << len(Profile)


@unique
class Outcome(IntEnum):
    """What an SDK answered to a row, before any profile is asked."""

    EXPECTED_BYTES = 0
    OTHER_BYTES = 1
    REFUSED = 2
    NO_VERDICT = 3


@unique
class Meaning(StrEnum):
    """What the outcome means in one profile. Only the first is of the fail-open class."""

    ACCEPTED = "accepted_must_refuse"
    WRONG_BYTES = "wrong_bytes"
    NO_VERDICT = "no_verdict"
    OVER_REFUSAL = "over_refusal"
    AGREE = "agree"

    @property
    def words(self) -> str:
        """The description, for tables."""
        return self.value.replace("_", " ").replace("accepted must refuse", "accepted, must refuse")


# By the status byte of a frame. A byte that no status has is no verdict.
_OF_BYTE = np.full(256, Outcome.NO_VERDICT, dtype=np.int8)
_OF_BYTE[Status.CANONICAL.byte], _OF_BYTE[Status.REFUSED.byte] = Outcome.OTHER_BYTES, Outcome.REFUSED
_OUTCOMES = len(Outcome)
CELLS = len(CATEGORIES) * _PROFILE_SETS * _OUTCOMES


def outcomes(answers: pa.BinaryArray, canonical: pa.BinaryArray) -> npt.NDArray[np.int8]:
    """The outcome of each row: its answer (a frame) against the canonical bytes, null where `core` refuses.

    Raises ValueError unless there is one answer for each row.
    """
    if len(answers) != len(canonical):
        raise ValueError(f"expected {len(canonical)} answers, got {len(answers)}")
    codes = _OF_BYTE[status_bytes(answers)]
    same = pc.fill_null(pc.equal(answers, canonical_frames(canonical)), False).to_numpy(zero_copy_only=False)
    return np.where(same, np.int8(Outcome.EXPECTED_BYTES), codes)


def finding(refused: bool, outcome: Outcome) -> Meaning:  # noqa: FBT001  (one bit of the row, not a switch)
    """What an outcome means where the profile refuses the row, or accepts it."""
    if outcome is Outcome.NO_VERDICT:
        return Meaning.NO_VERDICT
    if refused:
        return Meaning.AGREE if outcome is Outcome.REFUSED else Meaning.ACCEPTED
    if outcome is Outcome.REFUSED:
        return Meaning.OVER_REFUSAL
    return Meaning.AGREE if outcome is Outcome.EXPECTED_BYTES else Meaning.WRONG_BYTES


def disagreement(expected: Answered, answered: Answered) -> Meaning:
    """The finding of one document, given the answer that is expected. Both may be anything a runner can say."""
    code = Outcome(_OF_BYTE[answered.status.byte])
    if code is Outcome.OTHER_BYTES and answered.body == expected.body:
        code = Outcome.EXPECTED_BYTES
    return finding(expected.status is Status.REFUSED, code)


# finding number by [refused, outcome]
_FINDINGS = tuple(Meaning)
_LOOKUP = np.array(
    [[_FINDINGS.index(finding(refused, outcome)) for outcome in Outcome] for refused in (False, True)], dtype=np.int8
)
AGREE = _FINDINGS.index(Meaning.AGREE)


def findings(refused_by: npt.NDArray[np.int8], codes: npt.NDArray[np.int8], profile: Profile) -> npt.NDArray[np.int8]:
    """The number of the finding (in the order of Meaning) of each row in `profile`."""
    found: npt.NDArray[np.int8] = _LOOKUP[(refused_by & profile.bit != 0).astype(np.int8), codes]
    return found


def count(
    categories: npt.NDArray[np.int64], refused_by: npt.NDArray[np.int8], codes: npt.NDArray[np.int8]
) -> npt.NDArray[np.int64]:
    """The cells of some rows; `categories` are positions in CATEGORIES."""
    cell = (categories * _PROFILE_SETS + refused_by) * _OUTCOMES + codes
    return np.bincount(cell, minlength=CELLS).astype(np.int64)


def digests(
    answers: pa.BinaryArray,
    codes: npt.NDArray[np.int8],
    canonical: pa.BinaryArray,
    categories: npt.NDArray[np.int64],
) -> bytes:
    """For each of CATEGORIES the SHA-256 of what was answered to its rows, in order: 32 bytes each.

    Canonical bytes are their frame, a refusal is `R` without its reason, and what is no verdict is `N`.
    """
    others = pc.if_else(
        pa.array(codes == Outcome.REFUSED), b"R", pc.if_else(pa.array(codes == Outcome.OTHER_BYTES), answers, b"N")
    )
    said = pc.if_else(pa.array(codes == Outcome.EXPECTED_BYTES), canonical_frames(canonical), others)
    of_each = (said.filter(pa.array(categories == position)).to_pylist() for position in range(len(CATEGORIES)))
    return b"".join(hashlib.sha256(b"".join(rows)).digest() for rows in of_each)


def chained(blocks: Sequence[bytes]) -> Mapping[Category, str]:
    """By category, the SHA-256 over its digests in `blocks`, in hexadecimal."""
    return {
        category: hashlib.sha256(b"".join(block[32 * at : 32 * at + 32] for block in blocks)).hexdigest()
        for at, category in enumerate(CATEGORIES)
    }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: rows of a category by finding, in one profile."""

    category: Category
    profile: Profile
    counts: Mapping[Meaning, int]

    @property
    def rows(self) -> int:
        """All rows of the category."""
        return sum(self.counts.values())

    @property
    def worst(self) -> Meaning | None:
        """The gravest finding that is there; None where there are no rows."""
        return next((found for found in Meaning if self.counts[found]), None)


def table(cells: npt.NDArray[np.int64]) -> tuple[Row, ...]:
    """A line for each profile and category, categories in their order."""
    cube = cells.reshape(len(CATEGORIES), _PROFILE_SETS, _OUTCOMES)
    rows = []
    for profile in Profile:
        for position, category in enumerate(CATEGORIES):
            counts = dict.fromkeys(Meaning, 0)
            for refusing in range(_PROFILE_SETS):
                for outcome in Outcome:
                    counts[finding(bool(refusing & profile.bit), outcome)] += int(cube[position, refusing, outcome])
            rows.append(Row(category, profile, counts))
    return tuple(rows)


def summed(one: Iterable[Row], other: Iterable[Row]) -> tuple[Row, ...]:
    """The lines of two tables of the same profiles and categories, their counts added."""
    return tuple(
        Row(a.category, a.profile, {found: a.counts[found] + b.counts[found] for found in Meaning})
        for a, b in zip(one, other, strict=True)
    )
