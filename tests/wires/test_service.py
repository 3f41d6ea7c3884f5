"""`holdfast verify --service`: a service in another language, from its service.toml alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import reference_impl
from holdfast.reports.evidence import read_evidence

HERE = Path(__file__).parent
_SUITE = "idempotency-key/suite/"
_KEYS = f"{_SUITE}a-request-without-its-required-key-is-refused"
_RACE = f"{_SUITE}a-retry-while-the-first-is-processed-has-no-effect"
_PAYLOAD = f"{_SUITE}a-key-with-another-payload-is-refused-and-the-first-result-stays"
_REPLAY = f"{_SUITE}what-is-replayed-is-the-stored-result"
_DEATH = f"{_SUITE}a-success-survives-the-death-of-the-instance"
_WINDOW = f"{_SUITE}the-window-of-a-broker-outlives-what-was-consumed"
_POWER = f"{_SUITE}a-loss-of-power-keeps-every-key-that-was-answered"
_SYNC = f"{_SUITE}a-sync-that-failed-has-saved-no-key"
_STORE = f"{_SUITE}nothing-is-executed-while-the-store-is-out-of-reach"


def _file(folder: Path, bug: str, *, further: str = "") -> Path:
    """The service.toml of the service, with a bug."""
    for name in ("service.mjs", "service.toml"):
        text = (HERE / name).read_text(encoding="utf-8").replace("BUG", bug)
        (folder / name).write_text(text + (further if name.endswith("toml") else ""), encoding="utf-8")
    return folder / "service.toml"


def _verified(file: Path, *cases: str) -> dict[str, str]:
    evidence = file.parent / "run.jsonl"
    words = [sys.executable, "-m", "holdfast.conformance.cli", "verify", "--service", str(file)]
    words += [word for case in cases for word in ("--case", case)]
    done = subprocess.run(
        [*words, "--evidence", str(evidence)], capture_output=True, text=True, timeout=600, check=False, cwd=file.parent
    )
    assert evidence.exists(), done.stdout + done.stderr
    return {each.case: each.verdict for each in read_evidence(evidence).verdicts}


def test_a_sound_service_conforms_and_what_has_no_wire_is_unsupported(tmp_path: Path) -> None:
    found = _verified(_file(tmp_path, ""), _KEYS, _RACE, _PAYLOAD, _REPLAY, _DEATH, _STORE)
    assert [found[case] for case in (_KEYS, _RACE, _PAYLOAD, _REPLAY)] == ["conforms"] * 4
    # Its keys do not outlive the process, and it has no store at an address.
    assert [found[case] for case in (_DEATH, _STORE)] == ["unsupported"] * 2


@pytest.mark.parametrize(
    ("bug", "case"), [("missing-key-executed", _KEYS), ("checked-later", _RACE), ("any-payload", _PAYLOAD)]
)
def test_a_broken_service_fails_open(tmp_path: Path, bug: str, case: str) -> None:
    assert _verified(_file(tmp_path, bug), case) == {case: "fail_open"}


def test_a_service_that_does_not_start_is_never_a_pass(tmp_path: Path) -> None:
    file = _file(tmp_path, "")
    (tmp_path / "service.mjs").write_text("throw new Error('no')", encoding="utf-8")
    assert _verified(file, _KEYS) == {_KEYS: "no_verdict"}


def test_a_service_toml_that_is_wrong_is_a_usage_error_that_says_where(tmp_path: Path) -> None:
    file = _file(tmp_path, "", further="\nlifetime = 5\n")
    words = [sys.executable, "-m", "holdfast.conformance.cli", "verify", "--service", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 64
    assert "lifetime" in done.stderr
    assert "docs/services.md" in done.stderr


def test_doctor_looks_at_a_service(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "holdfast.conformance.cli", "doctor", "--service", str(_file(tmp_path, ""))]
    done = subprocess.run([*words, "--format", "json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {each["name"]: each["health"] for each in json.loads(done.stdout)["examinations"]}["open"] == "good"


def _broker(folder: Path) -> Path:
    """The service.toml of the reference as a broker."""
    reference = Path(reference_impl.__file__).parent / "idempotency_key" / "service-queue.toml"
    file = folder / "service.toml"
    file.write_text(reference.read_text(encoding="utf-8").replace("{mutant}", ""), encoding="utf-8")
    return file


@pytest.mark.sweep
def test_a_message_that_comes_again_behind_a_loss_of_power_is_no_second_effect(tmp_path: Path) -> None:
    assert _verified(_broker(tmp_path), _POWER, _SYNC) == {_POWER: "conforms", _SYNC: "conforms"}


def test_a_broker_is_judged_by_what_its_consumer_does(tmp_path: Path) -> None:
    assert _verified(_broker(tmp_path), _WINDOW, _KEYS, _RACE) == {
        _WINDOW: "conforms",
        _KEYS: "conforms",
        # Nothing is held where the answer comes before the effect.
        _RACE: "unsupported",
    }
