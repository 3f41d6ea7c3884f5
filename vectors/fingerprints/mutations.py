"""Single-field mutations of requests with their fingerprints, columnar and by the million.

Every row is a pure function of (seed, index), so any slicing and any number of processes give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from holdfast.vectors.fingerprints.rows import BLOCK_ROWS, COVERED, row_at
from holdfast.vectors.mesh_delivery import derive as mesh
from holdfast.vectors.rs4a_replay import derive as rs4a

SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("base", pa.int64()),
        ("key", pa.string()),
        ("field", pa.string()),
        ("identity", pa.binary()),
        ("fingerprint", pa.binary()),
    ]
)

# A fingerprint function: a request in, hexadecimal digits out.
Fingerprinter = Callable[[Mapping[str, Any]], str]


def derivations() -> dict[str, Fingerprinter]:
    """The fingerprint functions that `mutations` uses unless others are given, by key."""
    modules: dict[str, Mapping[str, Fingerprinter]] = {"mesh": mesh.DERIVATIONS, "rs4a": rs4a.DERIVATIONS}
    # Not by `derive`, which finds its modules again at every call.
    return {key: modules[key.partition(".")[0]][key.partition(".")[2]] for key in COVERED}


def mutations(
    seed: int, start: int, count: int, *, fingerprinters: Mapping[str, Fingerprinter] | None = None
) -> pa.RecordBatch:
    """The rows `start` to `start + count - 1` of `seed`, with the columns of SCHEMA.

    `identity` is equal in two rows of one key exactly if their requests are equal in what the key covers. `base` is
    the number of the block, `field` what was changed (empty for the base itself). `fingerprinters` are other functions
    to try, by key. Raises ValueError for a negative start or count.
    """
    if start < 0 or count < 0:
        raise ValueError(f"expected a start and a count from 0 on, got {start} and {count}")
    functions = derivations() if fingerprinters is None else fingerprinters
    rows = []
    for row in (row_at(seed, index) for index in range(start, start + count)):
        shown = {name: getattr(row, name) for name in SCHEMA.names[:-1]}
        rows.append({**shown, "fingerprint": bytes.fromhex(functions[row.key](row.request))})
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


__all__ = ["BLOCK_ROWS", "COVERED", "SCHEMA", "Fingerprinter", "derivations", "mutations"]
