"""Checkpoints of the first hundred million lines that ship with the kit, so that partitions can start at once.

python -m vectors.jcs.es6.landmarks        walks the chain from its beginning and writes the file again (10 s)

No result depends on them: every run makes all lines from the beginning of the chain, and a landmark that is not where
the partition before it ends breaks the run (`stream.joined`). They save walking the chain beforehand, which takes 0.1 s
for each million lines on one core while the other cores wait.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Final

from holdfast.vectors.jcs.es6.stream import ORIGIN, PARTITION_BLOCKS, Checkpoint, StreamBrokenError, walk

# The longest stream with a published digest.
_REACH: Final = 100_000_000
_NAME: Final = "landmarks.json"


def landmarks() -> tuple[Checkpoint, ...]:
    """The shipped checkpoints, in the order of the stream, `PARTITION_BLOCKS` blocks apart, without the origin.

    Raises:
        StreamBrokenError: the file is damaged so much that it cannot be read.
    """
    text = files("holdfast.vectors.jcs.es6").joinpath(_NAME).read_text(encoding="ascii")
    try:
        rows = json.loads(text)["checkpoints"]
        return tuple(Checkpoint(int(before), int(lines), bytes.fromhex(state)) for before, lines, state in rows)
    except (ValueError, KeyError, TypeError) as error:
        raise StreamBrokenError(
            f"expected {_NAME} to list [candidates, lines, block]; got {error!r}: install the kit again"
        ) from error


def rendered() -> str:
    """The text of the file, walked anew."""
    rows, place = [], walk(ORIGIN, PARTITION_BLOCKS)
    while place.lines < _REACH:
        rows.append(f'    [{place.candidates}, {place.lines}, "{place.state.hex()}"]')
        place = walk(place, PARTITION_BLOCKS)
    about = "candidates and lines before each checkpoint, and the last block of the chain before it"
    return f'{{\n  "about": "{about}",\n  "checkpoints": [\n' + ",\n".join(rows) + "\n  ]\n}\n"


if __name__ == "__main__":
    Path(__file__).with_name(_NAME).write_text(rendered(), encoding="ascii")
