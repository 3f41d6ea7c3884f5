"""The stream as documents for a canonicaliser."""

from __future__ import annotations

import json
from typing import Any

import rfc8785

from holdfast.vectors.jcs.es6.stream import made, plan
from holdfast.vectors.jcs.spark.numbers import documents
from tests.vectors.es6 import oracle


def rows(count: int, partition_blocks: int) -> list[dict[str, Any]]:
    return [
        row
        for partition in plan(count, partition_blocks=partition_blocks)
        for piece in documents(partition)
        for row in piece.to_pylist()
    ]


def test_a_document_names_the_number_and_its_canonical_text() -> None:
    made = rows(30_000, 100_000)
    assert [row["line"] for row in made] == list(range(30_000))
    for row in made[::17]:
        (value,) = json.loads(row["document"])
        assert row["canonical"] == f"[{oracle.text(value)}]".encode() == rfc8785.dumps([value])
        assert row["document"] != row["canonical"]


def test_the_canonical_texts_are_those_of_the_stream() -> None:
    (partition,) = plan(20_000)
    lines = made(partition).text.splitlines()
    assert [b"[" + line.split(b",")[1] + b"]" for line in lines] == [row["canonical"] for row in rows(20_000, 1 << 18)]


def test_any_partitioning_gives_the_same_documents() -> None:
    assert rows(9_000, 500) == rows(9_000, 1 << 18)
