"""What an adapter, or its launcher, does not offer is not proven: a test without it is no pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from holdfast.conformance.run.settings import REFERENCE
from holdfast.reference_impl.mesh_delivery import claims
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.registry import Deferred
from tests import warm

SUITE = "mesh-delivery/suite/"
COLUMN = f"{SUITE}a-column-that-is-lost-in-use-lets-no-send-be-taken-without-its-record"
SOCKETS = (
    f"{SUITE}a-handshake-over-a-websocket-is-decided-as-any-other-and-told-by-the-code-of-the-close",
    f"{SUITE}ids-that-a-transport-may-spoil-are-each-another-one",
    f"{SUITE}letters-of-several-bytes-come-whole-over-every-transport",
)
ADAPTER, LAUNCHER = [*REFERENCE, "adapter"], [*REFERENCE, "launch"]
# It hands on all that another program says, but for one thing.
RELAY = """
import json, subprocess, sys
child = subprocess.Popen({command!r}, stdout=subprocess.PIPE)
for line in child.stdout:
    said = json.loads(line)
    {change}
    print(json.dumps(said), flush=True)
sys.exit(child.wait())
"""
# Where the databases of the launcher are; and the sockets of the adapter's broker.
SILENT = RELAY.format(command=LAUNCHER, change='said.pop("surface", None)')
NO_SOCKETS = {"http": "none", "websocket": "none"}
CLAIMS = """for claim in said.get("ok", {{}}).get("claims", []):
        claim.update({{"not_claimed": {none}}} if claim["contract"] == "mesh-delivery" else {{}})"""
WITHOUT_SOCKETS = RELAY.format(command=ADAPTER, change=CLAIMS.format(none=NO_SOCKETS))


def verified(folder: Path, *cases: str, adapter: list[str], launcher: list[str]) -> subprocess.CompletedProcess[str]:
    """The run of `holdfast verify`."""
    named = [word for case in cases for word in ("--case", case)]
    command = ["verify", "--contract", "mesh-delivery", *named, "--launcher", " ".join(launcher), "--", *adapter]
    return warm.run(command, cwd=folder, env=os.environ, limit=600)


def written(folder: Path, source: str) -> list[str]:
    """The command of a program with this source."""
    path = folder / "program.py"
    path.write_text(source, encoding="utf-8")
    return [sys.executable, str(path)]


def test_a_clause_that_only_an_altered_database_shows_is_not_proven_without_one(tmp_path: Path) -> None:
    done = verified(tmp_path, COLUMN, adapter=ADAPTER, launcher=written(tmp_path, SILENT))
    assert done.returncode == 12, done.stdout + done.stderr
    assert "1 not_reached" in done.stdout


def test_a_test_of_sockets_is_unsupported_where_none_is_claimed(tmp_path: Path) -> None:
    done = verified(tmp_path, *SOCKETS, adapter=written(tmp_path, WITHOUT_SOCKETS), launcher=LAUNCHER)
    assert done.returncode == 13, done.stdout + done.stderr
    assert "3 unsupported" in done.stdout


# The reference of mesh-delivery agrees with fingerprints that were written independently of it, and fails closed.


def test_nobody_has_a_name_that_the_database_cannot_hold_and_it_is_not_asked() -> None:
    # Nothing listens there.
    nowhere = Administrator("host=127.0.0.1 port=1 dbname=none", Patience(0.1))
    assert nowhere.inbox("7c9e6679-7425-40de-944b-e07fc1f90ae7", "a\0b") == []
    with pytest.raises(psycopg.Error):
        nowhere.inbox("7c9e6679-7425-40de-944b-e07fc1f90ae7", "ab")


def test_without_the_extra_http_no_socket_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "find_spec", lambda name: None if name == "uvicorn" else name)
    assert set(Deferred("mesh-delivery").not_claimed) == {"http", "websocket"}
    monkeypatch.undo()
    assert Deferred("mesh-delivery").not_claimed == Deferred("jcs").not_claimed == {}
