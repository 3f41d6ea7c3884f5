"""The main job, as the README has it: every contract against the reference, and what the gate says of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.conformance.run.plan import plan_of
from holdfast.reports.evidence import read_evidence
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.specs import load_contract
from tests import warm
from tests.forger import lines_of

# One worker runs it once for all tests; two at the same time would also be too much for two cores.
pytestmark = pytest.mark.xdist_group("reference-run")


def holdfast(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in `folder`."""
    return warm.cold(warm.KIT, *words, cwd=folder)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The first command of README."""
    folder = tmp_path_factory.mktemp("first")
    return folder, holdfast("verify", "reference", "--contract", "calyx-replay", folder=folder)


def test_the_first_command_of_readme_conforms_and_may_proceed(
    first: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = first
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    contract = load_contract("calyx-replay")
    run = read_evidence(folder / "holdfast-out" / "run.jsonl.zst")
    assert not run.defects
    assert {line.case for line in run.verdicts} == {case.id for case in plan_of(contract)}
    assert {line.verdict for line in run.verdicts} == {"conforms"}
    assert all(clause in done.stdout for clause in contract.clauses)
    assert "accept-all" in done.stdout
    assert "refuse-all" in done.stdout
    assert "CAN_PROCEED = YES" in done.stdout


def test_the_gate_opens_on_the_first_run_and_says_how_much_of_the_faults_was_tried(
    first: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    """Its decision on the evidence as it stands on the disk is the end of the first command."""
    _, done = first
    said = done.stdout.partition("CAN_PROCEED = YES")[2]
    ((tried, total),) = re.findall(r"faults: (\d+) of (\d+)", said)
    assert 0 < int(tried) < int(total)


@pytest.mark.sweep
def test_the_gate_opens_with_a_proof_of_the_named_surface_and_with_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    assert holdfast("verify", "reference", "--contract", "rs4a-replay", folder=folder).returncode in (0, 12)
    server, proof = EmbeddedServer(parent=tmp_path), str(tmp_path / "proof.json")
    try:
        dsn = server.dsn("postgres")
        assert holdfast("reference", "provision", "--dsn", dsn, folder=tmp_path).returncode == 0
        parts = ["--effect", "rs4a_replay.registration", "--nonce", "rs4a_replay.nonce_consume"]
        parts += ["--audit", "rs4a_replay.audit", "--writer", "holdfast_registrar"]
        done = holdfast("fitness", dsn, *parts, "--challenge", "c0ffee", "--json", proof, folder=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        server.stop()
    name = json.loads(Path(proof).read_text(encoding="utf-8"))["server"]["name"]
    assert f"server: {name}" in done.stdout
    asked = ("gate", "holdfast-out/run.jsonl.zst", "--require", "rs4a-replay", "--fitness", proof, "--format", "json")
    surface, expected = ("--surface", "rs4a_replay.registration"), ("--server", name)
    opened = holdfast(*asked, *surface, *expected, "--challenge", "c0ffee", folder=folder)
    decision = json.loads(opened.stdout)
    assert (opened.returncode, decision["can_proceed"], decision["reasons"]) == (0, "YES", [])
    assert any("surface rs4a_replay.registration: FIT" in note for note in decision["notes"])
    missing = holdfast(*asked[:4], "--format", "json", folder=folder)
    assert missing.returncode == 12
    assert [reason["code"] for reason in json.loads(missing.stdout)["reasons"]] == ["fitness_missing"]
    others: list[list[str]] = [
        ["--surface", "prod", *expected],
        [*surface],
        [*surface, "--server", f"{name}-staging"],
        [*surface, *expected, "--challenge", "decaf"],
    ]
    for words in others:
        held = holdfast(*asked, *words, folder=folder)
        assert held.returncode == 12
        assert [reason["code"] for reason in json.loads(held.stdout)["reasons"]] == ["fitness_unverified"]


def test_a_server_of_the_users_own_is_used_and_left_as_it_was(tmp_path: Path) -> None:
    server = EmbeddedServer(parent=tmp_path)
    try:
        words = ("verify", "reference", "--config", f"dsn={server.dsn('postgres')}", "--clause", "RS4A-RP-02")
        done = holdfast(*words, "--format", "json", folder=tmp_path)
        shown = json.loads(done.stdout)
        assert shown["counts"] == {"conforms": len(shown["cases"])}, done.stderr
        assert shown["cases"]
    finally:
        server.stop()


def test_secrets_of_the_config_are_not_printed(tmp_path: Path) -> None:
    words = ("--config", "api_token=topsecret-4711", "--config", "dsn=host=nowhere password=hunter2hunter2")
    program = "holdfast.conformance.selfcheck.baseline_adapter"
    adapter = (sys.executable, "-P", "-m", program, "accept-all", "rs4a-replay")
    done = holdfast("verify", "--contract", "rs4a-replay", "-k", "rp-02", *words, "--", *adapter, folder=tmp_path)
    written = str(lines_of(tmp_path / "holdfast-out" / "run.jsonl.zst"))
    assert done.returncode == 10
    assert "holdfast verify" in done.stdout, "the command that reproduces a case is printed"
    for secret in ("topsecret-4711", "hunter2hunter2"):
        assert secret not in done.stdout + done.stderr + written
