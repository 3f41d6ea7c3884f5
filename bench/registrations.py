"""Registrations per second of the reference on PostgreSQL, against a bare transaction of the same two inserts.

One embedded server, one client, one connection for each side (the reference has a second for its audit), the same role,
`synchronous_commit` on for both, one operation after the other. The sides take turns in small batches, and in turn go
first, so that a busy machine slows both alike. The number that counts is the ratio of their medians: at least 0.5.

- *reference*: `register` as the adapter calls it. Schema and keys, surface check and look-up, audit probe, both inserts
  under named arbiters, a COMMIT of its own, the durable row read back and verified: five exchanges one after the
  other (look-up, audit and its rollback, inserts, commit).
- *bare*: what a program without any promise does with psycopg as it comes: BEGIN, two INSERTs into the same relations
  with the same constraints, COMMIT; psycopg prepares the statements by itself. Four exchanges.
- *bare, pipelined*: the same statements sent as the reference sends its own (prepared, several in one message). No part
  of the target: it tells what the promises cost once the way of sending is the same.

A slow disk hides everything behind the COMMIT, and lifts the ratio: compare ratios at like medians of *bare*.

Run: `python -m bench.registrations [--batches N] [--batch N]`
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from bench.turns import Taken, arguments, in_turns, show
from holdfast.reference_impl.answers import Accepted
from holdfast.reference_impl.postgres import with_database, with_settings
from holdfast.reference_impl.postgres_names import session_database
from holdfast.reference_impl.postgres_pipeline import Step, run
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.rs4a_replay.launch import launch
from holdfast.reference_impl.session import OpenRequest, StateWanted, SurfaceWanted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HASH = "ab" * 32
WINDOW = {"not_before": "2026-01-01T00:00:00Z", "not_after": "2026-01-01T01:00:00Z"}
# Enough that statements are prepared and pages are warm before anything counts.
WARM_UP = 50

TARGET = 0.5

BARE_CONSUME = (
    "INSERT INTO rs4a_replay.nonce_consume "
    "(consume_id, authorization_nonce, logical_request_key, purpose, consumed_at) VALUES (%s, %s, %s, %s, %s)"
)
BARE_EFFECT = (
    "INSERT INTO rs4a_replay.registration (decision_id, logical_request_key, replay_key, authorization_nonce, "
    "operation, canonical_target, run_id, deployed_artifact_hash, owner_or_approval_binding, protocol_version, "
    "attempt_id, inert, committed_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)


def submission(nonce: str, number: int) -> dict[str, Any]:
    """One valid submission of its own logical request."""
    request = {
        "protocol_version": "rs4a/0.2",
        "operation": "register_dot",
        "canonical_target": f"dot://bench/{number}",
        "owner_or_approval_binding": "owner-1",
        "principal": "agent-1",
        "run_id": "run-1",
        "deployed_artifact_hash": HASH,
        "authorization_nonce": nonce,
        "attempt_id": f"try-{number}",
        "issued_at": "2026-01-01T00:00:00Z",
    }
    return {"request": request, "trusted_attested": {"artifact_hash": HASH}}


def bare_rows(kind: str, number: int) -> tuple[tuple[str, ...], tuple[str | bool, ...]]:
    """The values of the two inserts of one registration."""
    key, instant = f"{number:064x}", "2026-01-01T00:00:00Z"
    if kind == "pipelined":
        key = "f" + key[1:]
    name, nonce = f"{kind}-{number}", f"{kind}-nonce-{number:020d}"
    return (name, nonce, key, "registration", instant), (
        name, key, key, nonce, "register_dot", f"dot://{name}", "run-1", HASH, "owner-1", "rs4a/0.2",
        f"try-{number}", True, instant,
    )  # fmt: skip


def bare(connection: psycopg.Connection[Any], number: int) -> None:
    """The two inserts of one registration and nothing else."""
    consume, effect = bare_rows("bare", number)
    with connection.transaction():
        connection.execute(BARE_CONSUME, consume)
        connection.execute(BARE_EFFECT, effect)


def bare_pipelined(connection: psycopg.Connection[Any], number: int) -> None:
    """The same in two messages."""
    consume, effect = bare_rows("pipelined", number)
    run(connection, Step("BEGIN"), Step(BARE_CONSUME, consume), Step(BARE_EFFECT, effect))
    run(connection, Step("COMMIT"))


def measure(*, batches: int, batch: int) -> list[Taken]:
    """Seconds of each operation of each side, batch by batch."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        Path(scratch).chmod(0o711)
        workdir = Path(scratch) / "w"
        workdir.mkdir()
        launched = launch({}, parent=Path(scratch))
        implementation = Rs4aReplay()
        try:
            config = launched.ready.config
            session = implementation.open(OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, workdir, NOW, config))
            template = psycopg.conninfo.conninfo_to_dict(config["dsn"])["dbname"]
            database = with_database(config["writer_dsn"], session_database(str(template), workdir))
            total = WARM_UP + batches * batch
            nonces = []
            for _ in range(total):
                issued = session.call("issue_nonce", {"binding": {"principal": "agent-1"}, "window": WINDOW})
                assert isinstance(issued, Accepted), issued
                nonces.append(issued.value["nonce"])

            def register(number: int) -> None:
                answer = session.call("register", submission(nonces[number], number))
                assert isinstance(answer, Accepted), answer

            dsn = with_settings(database, synchronous_commit="on")
            with (
                psycopg.connect(dsn, autocommit=True) as connection,
                psycopg.connect(dsn, autocommit=True) as pipelined,
            ):
                sides = [
                    register,
                    lambda number: bare(connection, number),
                    lambda number: bare_pipelined(pipelined, number),
                ]
                measured = in_turns(sides, warm_up=WARM_UP, batches=batches, batch=batch)
            session.close()
        finally:
            implementation.shut_down()
            launched.stop()
        return measured


def main() -> None:
    """Print the rates and the ratios, and how they spread over tenths of the run."""
    options = arguments(__doc__, batches=100, batch=10)
    measured = measure(batches=options.batches, batch=options.batch)
    show(dict(zip(("reference", "bare", "bare, pipelined"), measured, strict=True)), f"target {TARGET:.2f} for bare")


if __name__ == "__main__":
    main()
