"""What a node of the reference imports per second, and what sealing costs, each against the bare work under it.

- *import*: a segment of events as `import_object` takes it: read, both tags, strict JSON, every event held to its
  rules, its digest, one transaction with what is forgotten asked for each row. *Bare*: the same rows in one
  `executemany` and one commit, into a table of the same columns in a WAL database of its own, `synchronous` FULL.
- *seal*, *open*: an object around a payload of 1 MiB against the same AEAD of PyNaCl on the same bytes.
- *growth*: what an event costs in an index of each size, each in an index of its own.

Sides take turns, and in turn go first, so that a busy machine slows both alike; what counts are ratios of medians.

Run: `python -m bench.replication [--segments N] [--events N] [--held 1000,10000,100000,1000000]`
"""

from __future__ import annotations

import random
import secrets
import sqlite3
import statistics
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nacl import bindings

from bench.turns import Taken, arguments, grown, in_turns, seconds, show
from holdfast.reference_impl.answers import Accepted, Effect
from holdfast.reference_impl.hx_sync import envelope
from holdfast.reference_impl.hx_sync.launch import launch
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.service import Parts
from holdfast.reference_impl.hx_sync.settings import load_settings
from holdfast.reference_impl.hx_sync.terms import Kind

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WARM_UP = 2
GROWN = 5
PAYLOAD = 1 << 20
COLUMNS = "node_id, session_id, seq, digest, at, kind, data"
SETTINGS = load_settings({})
MASTER = bytes.fromhex(SETTINGS.vault_key)


@contextmanager
def device() -> Iterator[tuple[Parts, Node]]:
    """The node a over an empty store."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        parts = Parts(Path(launch({}, parent=Path(scratch)).ready.config["template"]), {})
        parts.patience.begin()
        node = parts.nodes.node("a")
        with node.index.reading():
            # Whoever publishes has read which node it is.
            pass
        yield parts, node
        parts.nodes.close()


def event(session: str, seq: int, began: datetime) -> dict[str, Any]:
    """An event of about 250 bytes, `seq` seconds after its session began."""
    return {
        "node_id": SETTINGS.nodes["a"],
        "session_id": session,
        "seq": seq,
        "ts": (began + timedelta(seconds=seq)).isoformat().replace("+00:00", "Z"),
        "kind": "command",
        "data": {"line": f"make target-{seq}", "exit": seq % 3, "directory": "/home/somebody/project"},
    }


def row(session: str, seq: int, began: datetime) -> tuple[Any, ...]:
    """The row that such an event becomes."""
    digest = f"{random.Random(f'{session}{seq}').getrandbits(256):064x}"
    data = f'{{"directory":"/home/somebody/project","exit":{seq % 3},"line":"make target-{seq}"}}'
    return SETTINGS.nodes["a"], session, seq, digest, int(began.timestamp() + seq) * 1_000_000, "command", data


def session_of(number: int) -> str:
    """The id of the session that a segment is about."""
    return str(uuid.UUID(int=random.Random(-number - 1).getrandbits(128), version=4))


def published(parts: Parts, node: Node, number: int, events: int) -> str:
    """The key of a new segment of `events` events."""
    began = NOW + timedelta(seconds=number * events)
    batch = {"events": [event(session_of(number), seq, began) for seq in range(events)]}
    done = parts.publishing.segment(node, str(uuid.uuid4()), batch, MASTER, now=NOW)
    assert isinstance(done, Accepted), done
    return str(done.value["key"])


def taken_in(parts: Parts, node: Node, key: str) -> None:
    """Import one segment."""
    parts.patience.begin()
    done = parts.importing.import_object(node, key, MASTER)
    assert isinstance(done, Accepted), done
    assert done.effect is Effect.NEW


def imports(*, segments: int, events: int) -> tuple[Taken, Taken]:
    """Seconds of each segment, imported and written barely."""
    total = WARM_UP + segments
    with device() as (parts, node), tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        keys = [published(parts, node, number, events) for number in range(total)]
        rows = [
            [row(session_of(number), seq, NOW + timedelta(seconds=number * events)) for seq in range(events)]
            for number in range(total)
        ]
        bare = sqlite3.connect(Path(scratch, "bare.db"), isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL").close()
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute(f"CREATE TABLE events ({COLUMNS}, PRIMARY KEY (node_id, session_id, seq, digest)) WITHOUT ROWID")
        bare.execute("CREATE INDEX events_by_instant ON events(at)")

        def write(number: int) -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.executemany(f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows[number])
            bare.execute("COMMIT")

        ours, theirs = in_turns(
            [lambda number: taken_in(parts, node, keys[number]), write], warm_up=WARM_UP, batches=segments, batch=1
        )
        bare.close()
    return ours, theirs


def opened(sealed: envelope.Sealed) -> bytes:
    """The payload."""
    return envelope.decrypt(envelope.unwrap(MASTER, sealed), sealed)


def sealing(*, batches: int) -> tuple[tuple[Taken, Taken], tuple[Taken, Taken]]:
    """Seconds of sealing and of opening, each by the reference and by PyNaCl."""
    most = SETTINGS.max_header_bytes
    payload, key, nonce = secrets.token_bytes(PAYLOAD), secrets.token_bytes(32), secrets.token_bytes(24)
    own = {"node_id": SETTINGS.nodes["a"], "segment_id": session_of(1), "created_at": "2026-01-01T00:00:00.000000Z"}
    sealed = envelope.seal(SETTINGS, MASTER, Kind.SEGMENT, own, payload)
    boxed = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(payload, b"", nonce, key)
    pairs = (
        (
            lambda _: envelope.seal(SETTINGS, MASTER, Kind.SEGMENT, own, payload),
            lambda _: bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(payload, b"", nonce, key),
        ),
        (
            lambda _: opened(envelope.take_apart(sealed, max_header_bytes=most)),
            lambda _: bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(boxed, b"", nonce, key),
        ),
    )
    made, read = (in_turns(pair, warm_up=WARM_UP, batches=batches, batch=5) for pair in pairs)
    return (made[0], made[1]), (read[0], read[1])


def cost_among(held: int, events: int) -> float:
    """The median of the seconds of an event, where the index holds `held` events of other sessions."""
    with device() as (parts, node):
        keys = [published(parts, node, number, events) for number in range(WARM_UP + GROWN)]
        taken_in(parts, node, keys[0])
        path = Path(node.index.folder, "index.db")
        with sqlite3.connect(path, isolation_level=None) as filled:
            filled.execute("PRAGMA synchronous = OFF")
            for first in range(0, held, events):
                # Sessions have ids at random, so each lands anywhere in the tree; their events were earlier.
                session = str(uuid.UUID(int=random.Random(first).getrandbits(128), version=4))
                began = NOW - timedelta(seconds=held - first)
                rows = [row(session, seq, began) for seq in range(min(events, held - first))]
                filled.execute("BEGIN")
                filled.executemany(f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
                filled.execute("COMMIT")
        filled.close()
        taken = seconds(lambda number: taken_in(parts, node, keys[number]), 1, len(keys) - 1)
    return statistics.median(taken[WARM_UP - 1 :]) / events


def main() -> None:
    """Print rates, ratios and how the cost of an event grows."""
    options = arguments(__doc__, segments=60, events=1000, held="1000,10000,100000,1000000")
    ours, bare = imports(segments=options.segments, events=options.events)
    show({"import": ours, "bare": bare}, "in events", each=options.events)
    for name, (made, plain) in zip(("seal", "open"), sealing(batches=options.segments), strict=True):
        show({name: made, "PyNaCl": plain}, "in bytes", each=PAYLOAD)
    grown("an event", options.held, lambda size: cost_among(size, options.events))


if __name__ == "__main__":
    main()
