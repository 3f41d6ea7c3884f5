"""Envelopes accepted per second by the reference mailbox, against a bare INSERT into its file; and how lookups grow.

Both sides work on one database in WAL mode with `synchronous` FULL, each through a connection of its own, one operation
after the other. They take turns in small batches, and in turn go first, so that a busy machine slows both alike. What
counts is the ratio of their medians.

- *reference*: `receive` as the adapter calls it: strict decode, signature, window, BEGIN IMMEDIATE, check, row,
  delivery with the envelope itself, COMMIT.
- *bare*: what a program without any promise does: one INSERT of the same six columns, committed by itself.

Lookups: a replay of what is there (`SELECT` by key through the reference's own store) in a table of each size, each in
a database of its own, at random keys. A B-tree grows by a level for each factor of a hundred or so: the time stays
flat while its pages are in memory.

Run: `python -m bench.acceptances [--batches N] [--batch N] [--rows 1000,100000,10000000]`
"""

from __future__ import annotations

import hashlib
import random
import sqlite3
import statistics
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.turns import arguments, grown, in_turns, seconds, show
from holdfast.reference_impl.answers import Accepted
from holdfast.reference_impl.calyx_replay.provision import make
from holdfast.reference_impl.calyx_replay.service import Parts
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.vectors.derive import derive
from holdfast.vectors.spelling import decoded, encoded

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WARM_UP = 50
LOOKUPS = 2000
INSERT = (
    "INSERT INTO replay_state (replay_key, msg_id, sender_fp, recipient_fp, seen_at, envelope_timestamp) "
    "VALUES (?, ?, ?, ?, ?, ?)"
)


def envelope(number: int) -> bytes:
    """One valid envelope of its own, of about a kilobyte."""
    header = {
        "msg_id": str(uuid.UUID(int=number, version=4)),
        "recipient_fp": "ab" * 32,
        "timestamp": "2026-01-01T00:00:00Z",
    }
    text = encoded(hashlib.sha512(str(number).encode()).digest() * 8)
    return decoded(derive("calyx.envelope", {"key": "bench", "header": header, "ciphertext": text}))


def row(label: str, number: int) -> tuple[str, ...]:
    """The six values of a row of its own."""
    key = hashlib.sha256(f"{label} {number}".encode()).hexdigest()
    name = str(uuid.UUID(int=number, version=4))
    return key, name, "cd" * 32, "ab" * 32, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00Z"


def mailbox(root: Path) -> Parts:
    """A provisioned mailbox in an empty folder."""
    parts = Parts(root, {})
    make(parts.store.location)
    return parts


def acceptances(*, batches: int, batch: int) -> None:
    """Print what an operation of the reference and of the bare side takes."""
    total = WARM_UP + batches * batch
    sent = [envelope(number) for number in range(total)]
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        parts = mailbox(Path(scratch))

        def receive(number: int) -> None:
            parts.patience.begin()
            answer = parts.mailbox.receive(sent[number], now=NOW)
            assert isinstance(answer, Accepted), answer

        connection = sqlite3.connect(parts.store.location.database, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        sides = [receive, lambda number: connection.execute(INSERT, row("bare", number)).close()]
        ours, bare = in_turns(sides, warm_up=WARM_UP, batches=batches, batch=batch)
        connection.close()
        parts.store.close()
    show({"reference": ours, "bare": bare})


def lookup(rows: int) -> float:
    """The median of the seconds of a lookup in a table of `rows` rows."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        parts = mailbox(Path(scratch))
        with sqlite3.connect(parts.store.location.database, isolation_level=None) as filled:
            filled.execute("PRAGMA synchronous = OFF")
            filled.execute("PRAGMA cache_size = -1000000")
            for chunk in _chunks(rows):
                filled.execute("BEGIN")
                filled.executemany(INSERT, chunk)
                filled.execute("COMMIT")
        filled.close()
        drawn = random.Random(rows)
        keys = [row("row", drawn.randrange(rows))[0] for _ in range(LOOKUPS + WARM_UP)]
        parts.patience.begin()
        with parts.store.reading(Purpose.OBSERVE) as connection:

            def look(number: int) -> None:
                assert parts.store.has(connection, keys[number])

            taken = seconds(look, 0, len(keys))
        parts.store.close()
    return statistics.median(taken[WARM_UP:])


def _chunks(rows: int) -> Iterator[list[tuple[str, ...]]]:
    # In the order of the keys a table this large is made in minutes instead of hours.
    size = 1_000_000
    for first in range(0, rows, size):
        yield sorted(row("row", number) for number in range(first, min(rows, first + size)))


def main() -> None:
    """Print the rates and their ratio, how it spreads over tenths of the run, and the lookups."""
    options = arguments(__doc__, batches=100, batch=10, rows="1000,100000,10000000")
    acceptances(batches=options.batches, batch=options.batch)
    grown("lookup", options.rows, lookup)


if __name__ == "__main__":
    main()
