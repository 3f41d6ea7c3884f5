"""A sound implementation in another language conforms, and with one line changed it does not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import warm

# A hang of the kit; no run here takes nearly as long.
LIMIT_S = 600.0
FOREIGN = Path(__file__).resolve().parent / "foreign.mjs"


def verified(adapter: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The run of `holdfast verify`."""
    command = ["verify", "--contract", "mesh-delivery", *words, "--", "node", str(adapter)]
    return warm.run(command, cwd=folder, env=os.environ, limit=LIMIT_S)


def gated(requirement: str, *, folder: Path) -> subprocess.CompletedProcess[str]:
    """The answer of `holdfast gate` about the run in the folder."""
    command = ["gate", "holdfast-out/run.jsonl.zst", "--allow-seed", "--require", requirement]
    return warm.run(command, cwd=folder, env=os.environ, limit=LIMIT_S)


def test_a_sound_implementation_of_one_role_in_another_style_conforms(tmp_path: Path) -> None:
    done = verified(FOREIGN, folder=tmp_path)
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "not claim" in line]
    assert "broker (" in line
    assert "daemon (" in line
    verdict = done.stdout.splitlines()[-1].split()
    assert verdict[:2] == ["verdict:", "conforms"]
    assert gated("mesh-delivery/fingerprints", folder=tmp_path).returncode == 0
    for wider in ("mesh-delivery", "mesh-delivery/broker+fingerprints"):
        assert gated(wider, folder=tmp_path).returncode == 12


def test_with_x_a_run_does_not_end_at_a_case_of_a_role_that_is_not_claimed(tmp_path: Path) -> None:
    cases = ("mesh-delivery/b1/one-record-for-an-accepted-send", "mesh-delivery/f3/an-unknown-kind")
    done = verified(FOREIGN, "-x", *(word for case in cases for word in ("--case", case)), folder=tmp_path)
    assert "1 conforms" in done.stdout
    assert "1 unsupported" in done.stdout


def test_a_role_that_is_claimed_and_not_there_is_no_pass(tmp_path: Path) -> None:
    source = FOREIGN.read_text(encoding="utf-8")
    adapter = tmp_path / "claims.mjs"
    adapter.write_text(source.replace('broker: "computes fingerprints alone", ', ""), encoding="utf-8")
    done = verified(adapter, "--clause", "MESH-4.3-I1", folder=tmp_path)
    assert done.returncode == 12
    assert "no_verdict" in done.stdout


# A case that finds each of them: the line before and after it is changed, and the verdict.
CHANGED = [
    ("mesh-delivery/f3/an-unknown-kind", '"/destination_kind"', '"/priority"', "wrong_reason"),
    ("mesh-delivery/f3/an-unknown-kind", '"/destination_kind"', '"/destinationKind"', "wrong_reason"),
    (
        "mesh-delivery/suite/a-near-miss-of-a-destination-is-another-one-or-none",
        "let reference = destination_ref;",
        "let reference = destination_ref.trim();",
        "fail_open",
    ),
]


@pytest.mark.parametrize(("case", "before", "after", "verdict"), CHANGED)
def test_one_changed_line_of_it_is_found(case: str, before: str, after: str, verdict: str, tmp_path: Path) -> None:
    source = FOREIGN.read_text(encoding="utf-8")
    assert source.count(before) == 1
    adapter = tmp_path / "changed.mjs"
    adapter.write_text(source.replace(before, after), encoding="utf-8")
    done = verified(adapter, "--case", case, folder=tmp_path)
    # The exit status says first that one case proves little.
    assert f"verdict:  {verdict} " in done.stdout
