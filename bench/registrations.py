"""Registrations per second of the reference on PostgreSQL, against a bare transaction of the same two inserts.

Both run on one embedded server, interleaved in small batches so that a busy machine slows both alike, and the ratio of
their medians is printed (target: at least 0.5). The bare transaction is what a program without any promise would do:
BEGIN, two INSERTs into the same relations with the same constraints, COMMIT, through plain psycopg. The reference does
besides: surface check, audit probe, look-up, named arbiters, verification of the durable row.

Run: `python bench/registrations.py [--batches N] [--batch N]`
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from reference_impl.answers import Accepted
from reference_impl.postgres import with_database, with_settings
from reference_impl.rs4a_replay.entry import Rs4aReplay
from reference_impl.rs4a_replay.launch import launch
from reference_impl.rs4a_replay.postgres_databases import session_database
from reference_impl.session import OpenRequest, StateWanted, SurfaceWanted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HASH = "ab" * 32
WINDOW = {"not_before": "2026-01-01T00:00:00Z", "not_after": "2026-01-01T01:00:00Z"}
# Enough that statements are prepared and pages are warm before anything counts.
WARM_UP = 50

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


def bare(connection: psycopg.Connection[Any], number: int) -> None:
    """The two inserts of one registration and nothing else."""
    key, instant = f"{number:064x}", "2026-01-01T00:00:00Z"
    nonce = f"bare-nonce-{number:020d}"
    with connection.transaction():
        connection.execute(BARE_CONSUME, (f"bare-{number}", nonce, key, "registration", instant))
        connection.execute(
            BARE_EFFECT,
            (f"bare-{number}", key, key, nonce, "register_dot", f"dot://bare/{number}", "run-1", HASH, "owner-1",
             "rs4a/0.2", f"try-{number}", True, instant),
        )  # fmt: skip


def seconds(action: Callable[[int], None], first: int, count: int) -> list[float]:
    """How long each of `count` calls took."""
    taken = []
    for number in range(first, first + count):
        began = time.perf_counter()
        action(number)
        taken.append(time.perf_counter() - began)
    return taken


def measure(*, batches: int, batch: int) -> tuple[list[float], list[float]]:
    """Seconds of each registration and of each bare transaction."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as scratch:
        Path(scratch).chmod(0o711)
        workdir = Path(scratch) / "w"
        workdir.mkdir()
        launched = launch({}, parent=Path(scratch), mutant=None)
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

            ours: list[float] = []
            theirs: list[float] = []
            with psycopg.connect(with_settings(database, synchronous_commit="on"), autocommit=True) as connection:
                seconds(register, 0, WARM_UP)
                seconds(lambda number: bare(connection, number), 0, WARM_UP)
                for number in range(WARM_UP, total, batch):
                    ours += seconds(register, number, batch)
                    theirs += seconds(lambda each: bare(connection, each), number, batch)
            session.close()
        finally:
            implementation.shut_down()
            launched.stop()
        return ours, theirs


def main() -> None:
    """Print both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--batch", type=int, default=10)
    options = parser.parse_args()
    ours, theirs = measure(batches=options.batches, batch=options.batch)
    reference, plain = statistics.median(ours), statistics.median(theirs)
    print(f"reference   {1 / reference:8.0f} registrations/s   median {reference * 1e6:6.0f} us   n {len(ours)}")
    print(f"bare        {1 / plain:8.0f} transactions/s    median {plain * 1e6:6.0f} us   n {len(theirs)}")
    print(f"ratio       {plain / reference:8.2f}                    target 0.50")


if __name__ == "__main__":
    main()
