"""Trivial and hostile adapters against the real command line: each with its exit status and its verdict of each case.

The verdicts stand in the order of the plan. A `|` separates what may happen by the chance of timing.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.specs.loader import read_contract
from holdfast.specs.model import CaseKind
from tests.hostile.verify import ADAPTERS, TOY, Outcome, adapter, verify

PYTHON = sys.executable

# The cases of the toy contract, in the order of its plan, by the last part of their ids.
CASES = (
    "an-acknowledged-put-survives-a-kill",
    "a-put-killed-before-its-commit-left-nothing",
    "one-of-two-concurrent-puts-wins",
    "a-put-key-stands-on-the-shelf",
    "a-second-put-of-a-key-is-refused",
    "a-consumed-nonce-puts-no-other-key",
    "an-empty-key-is-malformed",
)
SILENT = {"crash", "hang", "garbage", "eof", "missing", "budget", "busy"}

CONFORMS = " ".join(["conforms"] * 7)
UNDECIDED = "{0} {0} {0} not_reached not_reached not_reached not_reached"
# The second case waits for a failpoint that is never reached, so that crash does not end it.
UNDECIDED_LATER = "{0} not_reached {0} {0} {0} not_reached not_reached"
NO_REFUSAL = "{0} conforms {0} conforms {0} {0} {0}"
OPEN = "lost_durability not_reached fail_open|not_reached wrong_reason fail_open fail_open fail_open"


@dataclass(frozen=True, slots=True)
class Scenario:
    """An adapter with its arguments, what is expected of the run, and the factor on all deadlines."""

    words: str
    exit: int
    verdicts: str
    slow: float = 1.0

    @property
    def command(self) -> list[str]:
        """The adapter's command."""
        name, *rest = self.words.split()
        places = {"PYTHON": PYTHON, "HONEST": str(ADAPTERS / "honest.py")}
        words = [places.get(word, word) for word in rest]
        stem, _, ending = name.partition(".")
        if ending == "py":
            return [*adapter(stem, *words)]
        return [{"sh": "sh", "mjs": "node"}[ending], str(ADAPTERS / name), *words]


def all_the_same(verdict: str) -> str:
    """One verdict for every case: the adapter failed before any."""
    return " ".join([verdict] * len(CASES))


SCENARIOS = (
    # Honest adapters, for all their other behaviour.
    Scenario("honest.py", 0, CONFORMS),
    Scenario("chatter_on_stderr.py", 0, CONFORMS),
    Scenario("grandchild.py", 0, CONFORMS, slow=0.3),
    Scenario("grandchild.py escapes", 0, CONFORMS, slow=0.3),
    Scenario("ignores_sigterm.py", 0, CONFORMS, slow=0.3),
    Scenario("removes_workdir.py", 0, CONFORMS),
    Scenario("claims_little.py", 12, CONFORMS.replace("conforms conforms", "conforms unsupported", 1)),
    # Everything or nothing.
    Scenario("accept_all.py", 10, OPEN, slow=0.3),
    Scenario("accept_all.sh", 10, OPEN, slow=0.3),
    Scenario("accept_all.mjs", 10, OPEN, slow=0.3),
    Scenario(
        "refuse_all.py",
        12,
        "not_reached not_reached over_refusal over_refusal not_reached not_reached wrong_reason",
        slow=0.3,
    ),
    # Gone, or silent, before any case.
    Scenario("crash_at_start.py", 13, all_the_same("no_verdict:crash")),
    Scenario("crash_at_start.sh", 13, all_the_same("no_verdict:crash")),
    Scenario("exit_0_at_start.py", 13, all_the_same("no_verdict:eof")),
    Scenario("exit_0_at_start.sh", 13, all_the_same("no_verdict:eof")),
    Scenario("segfault.py", 13, all_the_same("no_verdict:crash")),
    Scenario("segfault.sh", 13, all_the_same("no_verdict:crash")),
    Scenario("hang_at_start.py", 13, all_the_same("no_verdict:hang"), slow=0.05),
    Scenario("hang_at_start.sh", 13, all_the_same("no_verdict:hang"), slow=0.05),
    Scenario("echo.py", 13, all_the_same("no_verdict:garbage")),
    Scenario("echo.sh", 13, all_the_same("no_verdict:garbage")),
    Scenario("garbage.py", 13, all_the_same("no_verdict:garbage")),
    Scenario("garbage.sh", 13, all_the_same("no_verdict:garbage")),
    Scenario("half_line.mjs", 13, all_the_same("no_verdict:garbage")),
    Scenario("banner.py", 13, all_the_same("no_verdict:garbage")),
    Scenario("banner.sh PYTHON HONEST", 13, all_the_same("no_verdict:garbage")),
    Scenario("lies_in_hello.py challenge", 13, all_the_same("no_verdict:garbage")),
    Scenario("lies_in_hello.py protocol", 13, all_the_same("no_verdict:garbage")),
    # Gone, or silent, in the middle.
    Scenario("crash_on_call.py", 12, UNDECIDED_LATER.format("no_verdict:crash"), slow=0.3),
    Scenario("uncaught.mjs", 12, UNDECIDED.format("no_verdict:crash"), slow=0.3),
    Scenario("hang_on_call.py", 12, UNDECIDED.format("no_verdict:hang"), slow=0.3),
    Scenario("hang_on_call.mjs", 12, UNDECIDED.format("no_verdict:hang"), slow=0.3),
    Scenario("late_replies.py 1.5", 12, UNDECIDED.format("no_verdict:hang"), slow=0.3),
    Scenario("grandchild.py dies", 12, UNDECIDED_LATER.format("no_verdict:hang"), slow=0.3),
    # A missing answer where a refusal is due is no refusal.
    Scenario("crash_instead_of_refusing.py", 12, NO_REFUSAL.format("no_verdict:crash")),
    Scenario("hang_instead_of_refusing.py", 12, NO_REFUSAL.format("no_verdict:hang"), slow=0.5),
    Scenario("exit_0_instead_of_refusing.py", 12, NO_REFUSAL.format("no_verdict:eof")),
    Scenario("fault_instead_of_refusing.py", 12, NO_REFUSAL.format("no_verdict:fault")),
    Scenario("whole_line_without_end.py", 12, NO_REFUSAL.format("no_verdict:garbage")),
    # Words that are no answer.
    Scenario("garbage_on_call.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("half_line.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("line_too_long.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("flood.py", 12, UNDECIDED_LATER.format("no_verdict:garbage"), slow=0.3),
    Scenario("wrong_ids.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("repeated_id.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("no_id.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario(
        "answers_early.py",
        12,
        # Whether the second line was there in time is up to the machine; then it answers another request.
        "{0} {0}|not_reached {0} {0}|not_reached {0}|not_reached not_reached not_reached".format("no_verdict:garbage"),
    ),
    Scenario("log_on_stdout.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("duplicate_names.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("big_integers.py", 12, UNDECIDED.format("no_verdict:garbage")),
    *(
        Scenario(f"odd_json.py {odd}", 12, UNDECIDED.format("no_verdict:garbage"))
        for odd in ("deep", "nan", "infinite", "surrogate", "control", "digits")
    ),
    Scenario("invalid_envelope.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("invalid_value.py", 12, UNDECIDED.format("no_verdict:garbage")),
    Scenario("undeclared_reason.py", 12, NO_REFUSAL.format("no_verdict:garbage")),
    Scenario("unsupported_though_claimed.py", 12, UNDECIDED_LATER.format("no_verdict:garbage"), slow=0.3),
    # Well-formed and wrong.
    Scenario("wrong_reason.py", 11, NO_REFUSAL.format("wrong_reason")),
    Scenario("forgets.py", 10, "lost_durability conforms fail_open conforms state_leak state_leak state_leak"),
    Scenario("leaks.py", 10, "state_leak conforms fail_open conforms state_leak state_leak state_leak"),
    Scenario("no_audit.py", 10, "state_leak conforms conforms conforms state_leak state_leak state_leak"),
    Scenario("blind.py", 10, "lost_durability conforms fail_open wrong_reason fail_open fail_open not_reached"),
)


def assert_no_refusal_rests_on_silence(outcome: Outcome) -> None:
    """A refusal that conforms was refused in words, its twin was accepted in words, and nothing broke meanwhile."""
    contract = read_contract(TOY / "toy")
    for case, verdict in outcome.verdicts.items():
        if verdict != "conforms":
            continue
        exchanges = [line for line in outcome.exchanges if line["case"] == case]
        silent = [line["event"] for line in exchanges if line["event"] and line["event"]["kind"] in SILENT]
        assert not silent, f"{case} conforms, yet: {silent}"
        known = contract.case(case)
        assert known is not None
        if known.kind is CaseKind.REFUSAL:
            said = {
                side: {line["answer"]["outcome"] for line in exchanges if line["side"] == side and line["answer"]}
                for side in ("main", "twin")
            }
            assert "refused" in said["main"], f"{case} conforms without a refusal"
            assert "accepted" in said["twin"], f"{case} conforms without an accepted twin"


def assert_verdicts(outcome: Outcome, expected: str) -> None:
    """Every planned case has the verdict that stands at its place."""
    assert [case.rsplit("/", 1)[1] for case in outcome.plan] == list(CASES)
    found = [outcome.verdicts.get(case, "missing") for case in outcome.plan]
    # On a machine that does not let the kit itself run it says so, and does not count that as a death.
    busy = "no_verdict:busy" in found
    instead = {"no_verdict:hang", "no_verdict:busy"}
    wrong = [
        f"{case}: expected {due}, got {verdict}"
        for case, due, verdict in zip(CASES, expected.split(), found, strict=True)
        if verdict not in due.split("|") and not (busy and "no_verdict:hang" in expected and verdict in instead)
    ]
    assert not wrong, "\n".join(wrong)


def run(scenario: Scenario, tmp_path: Path, options: Sequence[str] = ()) -> Outcome:
    """Run a scenario; skipped where its interpreter is missing."""
    if shutil.which(scenario.command[0]) is None:
        pytest.skip(f"no {scenario.command[0]} on this machine")
    return verify(scenario.command, options=["--slow", str(scenario.slow), *options], cwd=tmp_path)


# What goes as another scenario that stays: at the start, and with words that are no answer.
GO_ALIKE = {
    "segfault.py", "echo.py", "banner.py", "lies_in_hello.py protocol", "repeated_id.py", "no_id.py", "big_integers.py",
    "log_on_stdout.py", "garbage_on_call.py", *(f"odd_json.py {odd}" for odd in ("infinite", "surrogate", "digits")),
}  # fmt: skip


def _swept(scenario: Scenario) -> bool:
    """Whether it misbehaves as another does. By default one script in each other language stands for the rest."""
    script = Path(scenario.words.split()[0])
    has_twin = script.suffix != ".py" and any(each.words == f"{script.stem}.py" for each in SCENARIOS)
    return scenario.words in GO_ALIKE or (has_twin and script.name not in {"accept_all.sh", "half_line.mjs"})


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(each, id=each.words.replace(" ", "-"), marks=pytest.mark.sweep if _swept(each) else ())
        for each in SCENARIOS
    ],
)
def test_an_adapter_gets_its_verdicts_and_exit_status(scenario: Scenario, tmp_path: Path) -> None:
    outcome = run(scenario, tmp_path)
    assert outcome.exit == scenario.exit, f"{outcome.stdout}\n{outcome.stderr}"
    assert "Traceback (most recent call last)" not in outcome.stderr.replace(_own_traceback(outcome), "")
    assert_verdicts(outcome, scenario.verdicts)
    assert_no_refusal_rests_on_silence(outcome)
    assert outcome.footer["exit"] == scenario.exit


def _own_traceback(outcome: Outcome) -> str:
    """The adapter's standard error as far as the kit repeats it: an adapter's traceback is no error of the kit."""
    marker = "its standard error"
    return outcome.stderr[outcome.stderr.index(marker) :] if marker in outcome.stderr else ""


@pytest.mark.parametrize("lie", ["version", "contract", "nothing"])
def test_a_contract_that_is_not_claimed_in_its_version_fails_before_any_case(lie: str, tmp_path: Path) -> None:
    outcome = run(Scenario(f"lies_in_hello.py {lie}", 13, ""), tmp_path)
    assert outcome.exit == 13, outcome.stderr
    assert "toy 0.1.0" in outcome.stderr
    assert "conforms" not in outcome.verdicts.values()


def test_an_adapter_that_never_opens_a_session_failed_before_any_case(tmp_path: Path) -> None:
    outcome = run(Scenario("stops_reading.py", 13, "", slow=0.3), tmp_path)
    assert outcome.exit == 13, outcome.stderr
    assert_verdicts(outcome, UNDECIDED.format("no_verdict:eof"))


def transcript(outcome: Outcome, path: Path) -> Path:
    """The answers of a run, one a line, in the order in which they came."""
    answers = [line["answer"] for line in outcome.exchanges if line["answer"] is not None]
    path.write_text("".join(json.dumps(answer) + "\n" for answer in answers), encoding="utf-8")
    return path


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """What the honest adapter said in another run."""
    folder = tmp_path / "honest"
    folder.mkdir()
    outcome = run(Scenario("honest.py", 0, CONFORMS), folder)
    assert outcome.exit == 0, outcome.stderr
    return transcript(outcome, tmp_path / "transcript.jsonl")


def test_a_canned_transcript_fails_at_the_challenge(recorded: Path, tmp_path: Path) -> None:
    hello = {
        "id": "1",
        "ok": {
            "protocol": 1,
            "challenge": "9f2c" * 8,
            "implementation": {"name": "honest-shelf", "version": "1.0.0", "language": "python"},
            "claims": [{"contract": "toy", "version": "0.1.0", "not_claimed": {}}],
            "limits": {"workers": 4},
        },
    }
    recorded.write_text(json.dumps(hello) + "\n" + recorded.read_text(encoding="utf-8"), encoding="utf-8")
    outcome = run(Scenario(f"canned.py {recorded}", 13, ""), tmp_path)
    assert outcome.exit == 13, outcome.stderr
    assert_verdicts(outcome, all_the_same("no_verdict:garbage"))


def test_canned_answers_under_the_right_ids_fail_at_what_is_random(recorded: Path, tmp_path: Path) -> None:
    outcome = run(Scenario(f"canned.py {recorded} {tmp_path / 'counter'}", 10, "", slow=0.5), tmp_path)
    assert outcome.exit == 10, outcome.stderr
    assert outcome.verdicts[outcome.plan[0]] == "lost_durability"


def test_an_adapter_that_kills_the_kit_leaves_no_complete_evidence(tmp_path: Path) -> None:
    outcome = run(Scenario("kills_the_kit.py", -9, ""), tmp_path)
    assert outcome.exit == -9
    assert not [line for line in outcome.lines if line["type"] == "footer"]
    assert "conforms" not in outcome.verdicts.values()


def test_several_processes_of_the_kit_say_the_same(tmp_path: Path) -> None:
    outcome = run(Scenario("crash_instead_of_refusing.py", 12, ""), tmp_path, options=["--jobs", "2"])
    assert outcome.exit == 12, outcome.stderr
    assert_no_refusal_rests_on_silence(outcome)
    assert set(outcome.verdicts) == set(outcome.plan)
