"""What stands beside generated rows: the plan, written first, and the manifest, written last.

A folder with a plan and no manifest is half-written. Readers take what the manifest lists and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, convert, field

from holdfast.specs.errors import StrictJsonError
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.strictjson import loads
from holdfast.specs.typed import InvalidError, written
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS, block_count, block_rows, partition_digest, root
from holdfast.vectors.jcs.spark.storage import StorageError, Store

# Spark's readers pass over names that begin with an underscore.
PLAN = "_holdfast_plan.json"
MANIFEST = "manifest.json"
_SCHEMA = "vectors-manifest"


class OutputError(Exception):
    """A folder is not what it is taken for: half-written, of other rows, or damaged. Says what to do."""


class KitFaultError(Exception):
    """What the kit itself counted cannot be right. No folder and no runner is at fault."""


class Plan(Struct, frozen=True, tag_field="schema", tag=1):
    """What was asked for, and the groups of blocks it is written in: (first block, number of blocks)."""

    stream: str
    seed: int
    count: int
    block_rows: int
    groups: tuple[tuple[int, int], ...]
    files_per_group: int

    @property
    def asked(self) -> tuple[str, int, int, int]:
        """What decides the rows; the rest only decides the files."""
        return self.stream, self.seed, self.count, self.block_rows


class Part(Struct, frozen=True):
    """One file: its path in the folder, its first block, rows, bytes, and the digests of its blocks in order."""

    path: str
    first_block: int
    rows: int
    size: int = field(name="bytes")
    sha256: str
    leaves: tuple[str, ...] = field(name="blocks")


class Group(Struct, frozen=True):
    """A group of blocks that is written: its rows by category, and its files."""

    categories: dict[str, int]
    parts: tuple[Part, ...]


class Manifest(Struct, frozen=True, tag_field="schema", tag=1):
    """A complete batch of rows: what it is of, rows by category, files, and the root over all blocks."""

    stream: str
    seed: int
    count: int
    block_rows: int
    root: str
    categories: dict[str, int]
    parts: tuple[Part, ...]


def write_json(store: Store, name: str, value: Struct) -> None:
    """Write one JSON file, whole or not at all."""
    store.write(name, json.dumps(written(value), indent=1).encode() + b"\n")


def read_json(store: Store, name: str) -> Any:
    """Read one JSON file. Raises OutputError when it is not JSON."""
    try:
        return loads(store.read(name))
    except StorageError as error:
        # It is there, so another folder is not the answer.
        raise OutputError(f"{error}; if it is damaged, remove the folder and generate again") from error
    except StrictJsonError as error:
        raise OutputError(
            f"{store.at(name)}: expected JSON, got {error}; remove the folder and generate again"
        ) from error


def read_plan(store: Store) -> Plan | None:
    """The plan of a folder; None if there is none."""
    if not store.exists(PLAN):
        return None
    try:
        return convert(read_json(store, PLAN), Plan)
    except InvalidError as error:
        raise OutputError(f"{store.at(PLAN)}: expected a plan, got {error!r}; remove the folder") from error


def read_manifest(store: Store) -> Manifest:
    """The manifest of a complete folder, all its files there with their lengths. Raises OutputError otherwise."""
    if not store.exists(MANIFEST):
        if store.exists(PLAN):
            raise OutputError(
                f"{store.uri} is half-written: generating it was interrupted. "
                "Finish it with `holdfast vectors generate … --resume`, or remove it"
            )
        raise OutputError(f"{store.uri}: expected generated rows ({MANIFEST}), found none; `holdfast vectors generate`")
    raw = read_json(store, MANIFEST)
    problem = explain(published_validator(_SCHEMA), raw)
    if problem is not None:
        raise OutputError(f"{store.at(MANIFEST)}: {problem}; remove the folder and generate again")
    manifest = convert(raw, Manifest)
    contradiction = _contradiction(manifest)
    if contradiction is not None:
        raise OutputError(
            f"{store.at(MANIFEST)} contradicts itself: {contradiction}; the folder is damaged: "
            "remove it and generate again"
        )
    _check_files(store, manifest)
    return manifest


def _contradiction(manifest: Manifest) -> str | None:
    """What in a manifest cannot all be true: it would let rows be left out, or be read for ever."""
    if manifest.block_rows != BLOCK_ROWS:
        return f"expected blocks of {BLOCK_ROWS} rows, got {manifest.block_rows}"
    due = 0
    for part in manifest.parts:
        blocks = range(due, due + len(part.leaves))
        rows = sum(block_rows(number, manifest.count) for number in blocks if number < block_count(manifest.count))
        if not part.leaves or part.first_block != due or part.rows != rows:
            return (
                f"expected {part.path} to hold whole blocks from {due} on, got {part.rows} rows from block "
                f"{part.first_block}"
            )
        if partition_digest(bytes.fromhex(one) for one in part.leaves) != part.sha256:
            return f"expected the digest of {part.path} to be that of its blocks, got {part.sha256}"
        due = blocks.stop
    if due != block_count(manifest.count):
        return f"expected {block_count(manifest.count)} blocks for {manifest.count} rows, got {due}"
    if sum(manifest.categories.values()) != manifest.count:
        return f"expected {manifest.count} rows by category, got {sum(manifest.categories.values())}"
    leaves = root([bytes.fromhex(one) for part in manifest.parts for one in part.leaves])
    return None if leaves == manifest.root else f"expected the root {leaves} of its blocks, got {manifest.root}"


def _check_files(store: Store, manifest: Manifest) -> None:
    listed: dict[str, Mapping[str, int]] = {}
    for part in manifest.parts:
        folder, _, name = part.path.rpartition("/")
        if folder not in listed:
            try:
                listed[folder] = store.files(folder)
            except StorageError as error:
                raise OutputError(str(error)) from error
        found = listed[folder].get(name)
        if found != part.size:
            came = "it is missing" if found is None else f"it has {found}"
            raise OutputError(
                f"{store.at(part.path)}: expected {part.size} bytes, {came}; the folder is damaged: "
                "remove it and generate again"
            )
