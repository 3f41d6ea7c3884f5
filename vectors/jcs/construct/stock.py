"""The stock of a block of rows: every fragment that its documents are built from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from holdfast.vectors.jcs.construct.defects import Defect
from holdfast.vectors.jcs.construct.dice import Integers
from holdfast.vectors.jcs.construct.faults import Faults


@dataclass(frozen=True, slots=True)
class Stock:
    """Fragments and where what lies among them.

    Fragments 0 … are the marks. From there on a lexeme is four fragments, its spellings, the canonical one first:
    lexeme l is the fragments 4l … 4l + 3. `starts` and `sizes` are lexemes by `Segment`, `family_starts` by `Family`.
    Wrapper w opens with lexeme `wrapper_start` + w and closes with the one `wrapper_count` further. The bad and the
    good text of defect d are the fragments `defect_start` + 2d and the next. `reasons` has the `Reason.code` of each
    fragment or 0. `lengths` are bytes; whitespace beside a mark is at most `most_space` bytes.
    """

    fragments: pa.BinaryArray
    lengths: Integers
    reasons: npt.NDArray[np.uint8]
    starts: Integers
    sizes: Integers
    family_starts: Integers
    wrapper_start: int
    wrapper_count: int
    defect_start: int
    defects: tuple[Defect, ...]
    faults: Faults
    most_space: int
