"""Vectors as files for other tools: JSON lines with their schema, digests and licence. It needs no Spark.

Each part has one line for each document: what every profile answers, bytes as lower-case hexadecimal.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.specs import load_contract
from holdfast.specs.strictjson import canonical
from holdfast.vectors.jcs.construct import STREAM, batch
from holdfast.vectors.jcs.opening import SLICES, may_be_too_deep, opening_of
from holdfast.vectors.record import Canonical, load
from holdfast.vectors.taxonomy import Category, Profile

# More than this is for Spark: `holdfast vectors generate`.
MOST = 100_000
LICENCE = "Apache-2.0"
_SLICE = 8192
_HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
_SHAPE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A document, and what every profile answers",
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "category", "clause", "document", "expected"],
    "properties": {
        "id": {"type": "string", "description": "`holdfast vectors show ID` shows it"},
        "category": {"enum": [each.value for each in Category]},
        "clause": {"type": "string"},
        "document": {**_HEX, "description": "bytes in hexadecimal; many are no text"},
        "deep": {"const": True, "description": "an implementation may refuse it for its depth"},
        "expected": {
            "type": "object",
            "additionalProperties": False,
            "required": [profile.value for profile in Profile],
            "properties": {
                profile.value: {
                    "oneOf": [
                        {"type": "object", "required": ["canonical"], "properties": {"canonical": _HEX}},
                        {
                            "type": "object",
                            "required": ["refused"],
                            "properties": {"refused": {"type": "string", "description": "one of its reasons"}},
                        },
                    ]
                }
                for profile in Profile
            },
        },
    },
}


def export(folder: Path, *, count: int, seed: int) -> Mapping[str, int]:
    """Write the committed vectors, the ladder of sizes and `count` rows of `seed` into a new folder.

    The number of documents by file. The folder is there whole or not at all. Raises OSError, FileExistsError for a
    folder that is there, SpecError, and ValueError for a count or seed that is out of range.
    """
    if not 0 <= count <= MOST:
        raise ValueError(f"expected 0 to {MOST} rows, got {count}; `holdfast vectors generate` writes more, with Spark")
    if folder.exists():
        raise FileExistsError(f"{folder} is there; name a new folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        partial = Path(scratch, folder.name)
        partial.mkdir()
        parts = {"committed": _committed(), "ladder": _ladder(seed), "generated": _generated(seed, count)}
        counts = {f"{name}.jsonl": _lines(partial / f"{name}.jsonl", rows) for name, rows in parts.items()}
        terms = load_contract("jcs")
        said = {
            "contract": terms.name,
            "version": terms.version,
            "kit": __version__,
            "stream": STREAM,
            "seed": seed,
            "files": counts,
            "licence": LICENCE,
        }
        (partial / "schema.json").write_text(json.dumps(_SHAPE, indent=1) + "\n", encoding="utf-8")
        (partial / "manifest.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        sums = [f"{_digest(path)}  {path.name}\n" for path in sorted(partial.iterdir())]
        (partial / "SHA256SUMS").write_text("".join(sums), encoding="ascii")
        partial.rename(folder)
    return counts


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    with path.open("xb") as file:
        for count, row in enumerate(rows, 1):  # noqa: B007 - how many there were
            file.write(canonical(row) + b"\n")
    return count


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _committed() -> Iterator[Mapping[str, Any]]:
    for each in load():
        answers = {
            profile.value: {"canonical": said.body.hex()} if isinstance(said, Canonical) else {"refused": said.reason}
            for profile, said in each.expected.items()
        }
        deep = {"deep": True} if may_be_too_deep(each.document) else {}
        row = {"id": each.id, "category": each.category.value, "clause": each.clause, **deep}
        yield {**row, "document": each.document.hex(), "expected": answers}


def _ladder(seed: int) -> Iterator[Mapping[str, Any]]:
    opening = opening_of(seed)
    for piece in range(min(SLICES, opening.count)):
        for row in opening.rows(piece).to_pylist():
            if row["index"] >= len(opening.committed):
                deep = {"deep": True} if row["deep"] else {}
                yield {**_row({**row, "name": f"ladder:{seed}:{row['name']}"}), **deep}


def _generated(seed: int, count: int) -> Iterator[Mapping[str, Any]]:
    for start in range(0, count, _SLICE):
        for row in batch(seed, start, min(_SLICE, count - start)).to_pylist():
            clause = Category(row["category"]).clause
            yield _row({**row, "name": f"{seed}:{row['index']}", "clause": clause})


def _row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    answers = {
        profile.value: {"refused": row["reason"]}
        if row["refused_by"] & profile.bit
        else {"canonical": row["canonical"].hex()}
        for profile in Profile
    }
    named = {"id": row["name"], "category": row["category"], "clause": row["clause"]}
    return {**named, "document": row["document"].hex(), "expected": answers}
