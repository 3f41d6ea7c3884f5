"""`holdfast fuzz`: bugs that only HTTP has are found, and a sound server is not accused."""

from __future__ import annotations

import json
import secrets
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.fuzz.cases import follow, fuzz_cases, schema_of
from holdfast.conformance.fuzz.exchange import Response
from holdfast.conformance.verdict import Verdict
from holdfast.specs import load_contract
from tests import warm
from tests.conftest import thinned
from tests.hostile.verify import LIMIT_S, environment

SERVER = Path(__file__).with_name("leaky_server.py")
LAUNCH = f"{sys.executable} -P -m holdfast.reference_impl launch"
NEARLY, KEYED, DRAWN = (
    f"calyx-replay/http/{name}-of-accept"
    for name in ("nearly-good-requests", "a-header-decides-nothing", "drawn-requests")
)


def fuzzed(bug: str, folder: Path, *cases: str, requests: int = 200) -> tuple[int, dict[str, Any]]:
    """The exit status, and the cases by their ids."""
    chosen = [word for case in cases for word in ("--case", case)]
    words = [
        *("fuzz", "--contract", "calyx-replay", "--launcher", LAUNCH, "--requests", str(requests), "--seed", "a"),
        *("--start", f"{sys.executable} {SERVER} {bug} --port {{port}}", "--format", "json", *chosen),
    ]
    done = warm.run(words, cwd=folder, env=environment(folder), limit=LIMIT_S)
    return done.returncode, {each["case"]: each for each in json.loads(done.stdout)["cases"]}


@pytest.mark.parametrize(
    ("bug", "case", "verdict"),
    thinned(
        [
            ("UnknownFields", NEARLY, "fail_open"),
            ("ErrorInside", NEARLY, "fail_open"),
            ("RefusedAndDone", NEARLY, "state_leak"),
            ("Surrogates", NEARLY, "no_verdict"),
            ("KeyedByHeader", KEYED, "fail_open"),
            ("LastWins", NEARLY, "fail_open"),
            ("AnyMethod", NEARLY, "fail_open"),
            ("Reflecting", NEARLY, "state_leak"),
            ("Untyped", DRAWN, "no_verdict"),
            ("Long", NEARLY, "fail_open"),
            ("Retried", KEYED, "fail_open"),
            ("EmptyAgain", NEARLY, "fail_open"),
            ("AnySession", NEARLY, "fail_open"),
        ]
    ),
)
def test_a_bug_that_only_http_has_is_found(bug: str, case: str, verdict: str, tmp_path: Path) -> None:
    status, found = fuzzed(bug, tmp_path, case)
    assert found[case]["verdict"] == verdict, found[case]
    assert status in (10, 12)
    assert "curl" in found[case]["advice"]


def test_a_sound_server_is_not_accused(tmp_path: Path) -> None:
    status, found = fuzzed("Sound", tmp_path, NEARLY, KEYED, DRAWN, requests=60)
    assert {case: each["verdict"] for case, each in found.items()} == dict.fromkeys((NEARLY, KEYED, DRAWN), "conforms")
    # It was narrowed to three cases.
    assert status == 12


@pytest.mark.parametrize("is_sound", [True, False])
def test_links_are_followed_though_an_implementation_draws_its_ids_and_a_failure_is_never_lost(is_sound: bool) -> None:
    contract = load_contract("mesh-delivery")
    sent = 0

    def ask(case: Any, *, led: bool) -> Response:
        nonlocal sent
        del case
        sent += 1
        if not is_sound and led and sent > 40:
            raise NonConformance(Judgement(Verdict.FAIL_OPEN, detail="as planted"))
        # What comes depends on nothing that was sent, and is another thing each time.
        named = {"client_message_id": uuid.uuid4().hex, "broker_message_id": str(uuid.uuid4())}
        status = secrets.choice((200, 201, 409))
        return Response(
            "http://127.0.0.1/", status, [("Content-Type", "application/json")], json.dumps(named).encode(), 1
        )

    schema = schema_of(contract, list(contract.methods.values()))
    if is_sound:
        follow(schema, count=150, start=1, ask=ask)
        assert sent > 50
    else:
        with pytest.raises(NonConformance, match="as planted"):
            follow(schema, count=150, start=1, ask=ask)


def test_a_method_that_is_not_claimed_is_not_asked_and_nothing_is_asked_of_who_claims_none() -> None:
    contract = load_contract("m5-log")
    cases = [case.id for case, _ in fuzz_cases(contract, count=10, lacking={"put_op"})]
    assert cases
    assert not any("put-op" in case for case in cases)
    assert list(fuzz_cases(contract, count=10, lacking=contract.methods)) == []


def test_a_server_that_claims_nothing_is_not_proven(tmp_path: Path) -> None:
    status, found = fuzzed("ClaimsNothing", tmp_path)
    assert found == {}
    assert status == 12
