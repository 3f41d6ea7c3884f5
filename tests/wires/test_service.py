"""`holdfast verify --service`: a service in another language, from its service.toml alone."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from holdfast import reference_impl
from holdfast.conformance.cli.target import target_of
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.settings import RunSettings
from holdfast.reports.evidence import read_evidence
from holdfast.servers.wires.instances import free_port
from holdfast.specs import load_contract
from tests import warm

HERE = Path(__file__).parent
_SUITE = "idempotency-key/suite/"
_TWO = f"{_SUITE}keys-that-differ-in-one-thing-are-two"
_COOKIE = f"{_SUITE}a-cookie-of-the-first-caller-is-not-replayed"
_HOSTILE = f"{_SUITE}a-key-is-no-part-of-the-stores-language"
_KEYS = f"{_SUITE}a-request-without-its-required-key-is-refused"
_RACE = f"{_SUITE}a-retry-while-the-first-is-processed-has-no-effect"
_PAYLOAD = f"{_SUITE}a-key-with-another-payload-is-refused-and-the-first-result-stays"
_REPLAY = f"{_SUITE}what-is-replayed-is-the-stored-result"
_DEATH = f"{_SUITE}a-success-survives-the-death-of-the-instance"
_WINDOW = f"{_SUITE}the-window-of-a-broker-outlives-what-was-consumed"
_POWER = f"{_SUITE}a-loss-of-power-keeps-every-key-that-was-answered"
_SYNC = f"{_SUITE}a-sync-that-failed-has-saved-no-key"
_STORE = f"{_SUITE}nothing-is-executed-while-the-store-is-out-of-reach"


def file_of(folder: Path, bug: str, *, further: str = "") -> Path:
    """The service.toml of the service, with a bug."""
    for name in ("service.mjs", "service.toml"):
        text = (HERE / name).read_text(encoding="utf-8").replace("BUG", bug)
        (folder / name).write_text(text + (further if name.endswith("toml") else ""), encoding="utf-8")
    return folder / "service.toml"


def _holdfast(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return warm.run(words, cwd=cwd, env=os.environ, limit=600)


def _verified(file: Path, *cases: str) -> dict[str, str]:
    evidence = file.parent / "run.jsonl"
    named = [word for case in cases for word in ("--case", case)]
    done = _holdfast("verify", "--service", str(file), *named, "--evidence", str(evidence), cwd=file.parent)
    assert evidence.exists(), done.stdout + done.stderr
    return {each.case: each.verdict for each in read_evidence(evidence).verdicts}


def test_a_sound_service_conforms_and_what_has_no_wire_is_unsupported(tmp_path: Path) -> None:
    found = _verified(file_of(tmp_path, ""), _KEYS, _RACE, _PAYLOAD, _REPLAY, _TWO, _COOKIE, _DEATH, _STORE)
    assert [found[case] for case in (_KEYS, _RACE, _PAYLOAD, _REPLAY, _TWO, _COOKIE)] == ["conforms"] * 6
    # Its keys do not outlive the process, and it has no store at an address.
    assert [found[case] for case in (_DEATH, _STORE)] == ["unsupported"] * 2


# What its sound form conforms to, and the case that finds each of its bugs.
KEPT = (_KEYS, _RACE, _PAYLOAD, _REPLAY, _TWO, _COOKIE)
BUGS = {
    "missing-key-executed": _KEYS,
    "checked-later": _RACE,
    "any-payload": _PAYLOAD,
    "column-cut": _TWO,
    "cookie-frees": _COOKIE,
}


# By default some of them stand for the rest.
_SELDOM = ("missing-key-executed", "column-cut", "cookie-frees")


@pytest.mark.parametrize(
    ("bug", "case"),
    [pytest.param(*each, marks=pytest.mark.sweep if each[0] in _SELDOM else ()) for each in BUGS.items()],
)
def test_a_broken_service_fails_open(tmp_path: Path, bug: str, case: str) -> None:
    assert _verified(file_of(tmp_path, bug), case) == {case: "fail_open"}


# Answers each request with the status that is its argument, and has no effect.
_DULL = """
import http from "node:http";
const status = Number(process.argv[2]);
http.createServer((_, response) => response.writeHead(status).end("dull")).listen(process.env.PORT, "127.0.0.1");
"""


def _in_the_place_of(start: str, folder: Path, *, line: str = "") -> Path:
    """The service.toml whose [service] has another `start`, or another line in its place."""
    file = file_of(folder, "")
    (folder / "dull.mjs").write_text(_DULL, encoding="utf-8")
    (folder / "ends.mjs").write_text("throw new Error('no database')", encoding="utf-8")
    text = file.read_text(encoding="utf-8").replace('start = "node service.mjs "', line or f'start = "{start}"')
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("start", "line", "said"),
    [
        ("", 'url = "http://127.0.0.1:1"', "ConnectionRefusedError"),
        ("no-such-program", "", "'no-such-program' cannot be started"),
        ("node ends.mjs", "", "no database"),
        ("timeout 1 node service.mjs", "", "ended"),
        ("node dull.mjs 404", "", "status 404"),
        ("node dull.mjs 500", "", "status 500"),
        ("node dull.mjs 401", "", "status 401"),
        ("node dull.mjs 400", "", "status 400"),
        ("node dull.mjs 201", "", "one effect at the sink"),
    ],
)
def test_a_service_that_cannot_be_asked_is_one_line_before_anything_is_judged(
    start: str, line: str, said: str, tmp_path: Path
) -> None:
    target = target_of((), service=_in_the_place_of(start, tmp_path, line=line))
    with Engine(RunSettings(adapter=target.adapter, contracts=("idempotency-key",), seed="5eed")) as engine:
        found = engine.preflight(load_contract("idempotency-key"))
    assert found.verdict.is_incomplete
    assert said in found.detail
    assert "\n" not in found.detail
    # Where the route, the credential or the key is wrong, the handler is not to blame.
    points = {"status 401": "[credentials]", "status 400": "[profile]", "status 404": "`path`", "status 500": "`path`"}
    assert points.get(said, "") in found.advice
    assert (": check " in found.advice) == (said in points)


def test_verify_and_doctor_end_with_13_where_nothing_listens(tmp_path: Path) -> None:
    file = _in_the_place_of("", tmp_path, line='url = "http://127.0.0.1:1"')
    assert set(_verified(file).values()) == {"no_verdict"}
    footer = read_evidence(tmp_path / "run.jsonl").footer
    assert footer is not None
    assert footer.exit == 13
    assert _holdfast("doctor", "--service", str(file), cwd=tmp_path).returncode == 13


def test_a_service_at_a_url_finds_the_sink_in_a_header_and_may_know_keys_of_another_run(tmp_path: Path) -> None:
    port = free_port()
    file = _in_the_place_of("", tmp_path, line=f'url = "http://127.0.0.1:{port}"')
    words = ["node", str(tmp_path / "service.mjs")]
    with subprocess.Popen(words, env={**os.environ, "PORT": str(port)}) as service:
        try:
            for _ in range(2):
                assert _verified(file, _TWO, _HOSTILE) == {_TWO: "conforms", _HOSTILE: "conforms"}
        finally:
            service.kill()


def test_a_service_toml_that_is_wrong_is_a_usage_error_that_says_where(tmp_path: Path) -> None:
    file = file_of(tmp_path, "", further="\nlifetime = 5\n")
    done = _holdfast("verify", "--service", str(file), cwd=tmp_path)
    assert done.returncode == 64
    assert "lifetime" in done.stderr
    assert "docs/services.md" in done.stderr


def test_doctor_looks_at_a_service(tmp_path: Path) -> None:
    done = _holdfast("doctor", "--service", str(file_of(tmp_path, "")), "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {each["name"]: each["health"] for each in json.loads(done.stdout)["examinations"]}["open"] == "good"


def test_doctor_does_not_say_that_a_program_starts_which_does_not_exist(tmp_path: Path) -> None:
    file = _in_the_place_of("no-such-program", tmp_path)
    done = _holdfast("doctor", "--service", str(file), "--format", "json", cwd=tmp_path)
    assert done.returncode == 13
    examined = {each["name"]: each["health"] for each in json.loads(done.stdout)["examinations"]}
    assert "start" not in examined
    assert examined["pre-flight"] == "bad"


def test_quick_says_that_a_contract_without_scripts_has_none(tmp_path: Path) -> None:
    done = _holdfast("verify", "--quick", "--service", str(file_of(tmp_path, "")), cwd=tmp_path)
    assert done.returncode == 64
    assert "idempotency-key has no scripted cases" in done.stderr


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
