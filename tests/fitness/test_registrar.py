"""From the own surface of the reference to a proof, from there to a registrar that starts; and one that does not."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.gather import Names, assess
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.proof import Expected, proof_json, read, verify, write
from holdfast.conformance.gate.decision import installed_kit
from holdfast.specs import load_contract
from tests.fitness.documented import LEDGER, ledger_ddl
from tests.fitness.lives import LiveServer

WRITER = "holdfast_registrar"
OWN = Names("rs4a_replay.registration", "rs4a_replay.nonce_consume", "rs4a_replay.audit", WRITER)
NOW = "2026-01-01T00:00:00Z"


def _provisioned(dsn: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.reference_impl", "provision", "--dsn", dsn],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _written(assessment: Assessment, path: Path) -> Path:
    write(proof_json(assessment, kit=installed_kit(), made=datetime.now(UTC)), path)
    return path


def _adapter(folder: Path, config: dict[str, str], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the reference answers over the protocol to `open` with this config, and to calls."""
    opened = {
        "op": "open", "contract": "rs4a-replay", "state": "existing", "surface": "ready", "workdir": str(folder),
        "clock": NOW, "seed": "5eed", "config": {"store": "postgres", **config},
    }  # fmt: skip
    lines = [{"id": str(number), **line} for number, line in enumerate([opened, *calls])]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter"],
        input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def _count(connection: psycopg.Connection[Any], relation: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()
    assert row is not None
    return int(row[0])


def test_the_references_own_surface_is_proven_fit_and_only_then_used(
    live_server: LiveServer, clones: Scratch, tmp_path: Path
) -> None:
    with live_server.database("own") as connection:
        dsn, writer_dsn = live_server.dsn_of("own"), live_server.dsn_of("own", user=WRITER)
        _provisioned(dsn)
        (unproven,) = _adapter(tmp_path, {"writer_dsn": writer_dsn}, [])
        assert (unproven["outcome"], unproven["reason"]) == ("refused", "REPLAY_SURFACE_NOT_FIT")
        assessed = assess(dsn, OWN, Policy(), server=clones)
        assert assessed.judgement.status.value == "FIT", [reason.text for reason in assessed.judgement.reasons]
        proof = _written(assessed, tmp_path / "proof.json")
        assert assessed.server is not None
        expected = Expected("rs4a_replay.registration", assessed.server.name)
        contract, now = load_contract("rs4a-replay"), datetime.now(UTC)
        assert verify(read(proof), contract=contract, kit=installed_kit(), now=now, expected=expected) == ()
        window = {"not_before": NOW, "not_after": "2026-01-01T01:00:00Z"}
        nonce = {"binding": {"principal": "agent-1"}, "window": window}
        issue = {"op": "call", "method": "issue_nonce", "args": nonce}
        config = {"writer_dsn": writer_dsn, "fitness": str(proof)}
        opened, issued = _adapter(tmp_path, config, [issue])
        assert (opened["outcome"], issued["outcome"]) == ("ok", "accepted")
        assert _count(connection, "rs4a_replay.nonce_issue") == 1
        connection.execute("ALTER TABLE rs4a_replay.registration DISABLE TRIGGER registration_no_truncate")
        changed, _ = _adapter(tmp_path, config, [issue])
        assert (changed["outcome"], changed["reason"]) == ("refused", "REPLAY_SURFACE_NOT_FIT")
        assert _count(connection, "rs4a_replay.nonce_issue") == 1


@pytest.mark.parametrize("name", ["iu_route_attempt", "registration"])
def test_a_registrar_that_is_configured_with_the_ledger_does_not_start_and_writes_nothing(
    live_server: LiveServer, clones: Scratch, tmp_path: Path, name: str
) -> None:
    with live_server.database("ledger", ledger_ddl()) as connection:
        connection.execute(f"CREATE ROLE {WRITER} LOGIN")
        effect = LEDGER
        if name != "iu_route_attempt":
            # Under the very name that the registrar would write to.
            connection.execute("CREATE SCHEMA rs4a_replay; ALTER TABLE iu_route_attempt SET SCHEMA rs4a_replay")
            connection.execute(f"ALTER TABLE rs4a_replay.iu_route_attempt RENAME TO {name}")
            effect = f"rs4a_replay.{name}"
        connection.execute(f"GRANT SELECT, INSERT ON {effect} TO {WRITER}")
        assessed = assess(live_server.dsn_of("ledger"), Names(effect, writer=WRITER), Policy(), server=clones)
        proof = _written(assessed, tmp_path / "proof.json")
        config = {"writer_dsn": live_server.dsn_of("ledger", user=WRITER), "fitness": str(proof)}
        (answer,) = _adapter(tmp_path, config, [])
        assert (answer["outcome"], answer["reason"]) == ("refused", "REPLAY_SURFACE_NOT_FIT")
        assert _count(connection, effect) == 0
