"""An honest implementation that takes its time: what a case shows rests on facts, never on who is faster."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hostile.verify import HERE, assert_nothing_remains, holdfast, temp_folder

# Ten times what a case of two workers takes by itself, and less than any deadline.
DELAY_S = 0.15
REFERENCE = (sys.executable, "-P", "-m", "holdfast.reference_impl")
# Every way in which two calls meet: one loses, one waits and wins, one nonce, one compensation.
MEETINGS = (
    "the-attempt-that-waited-collides-with-the-winner",
    "the-waiting-attempt-wins-when-the-first-one-dies",
    "a-nonce-about-to-be-consumed-does-not-pay-twice",
    "of-two-compensations-at-once-one-has-an-effect",
    "two-attempts-at-once-have-one-effect",
)


def verdicts(adapter: Sequence[str], cases: Sequence[str], *, folder: Path) -> dict[str, str]:
    """What those cases of rs4a-replay show of an adapter on SQLite, by the last part of their ids."""
    evidence = folder / "run.jsonl"
    words = ["verify", "--contract", "rs4a-replay", "--config", "store=sqlite", "-k", " or ".join(cases)]
    words += ["--jobs", "2", "--launcher", shlex.join((*REFERENCE, "launch")), "--evidence", str(evidence)]
    with temp_folder() as temp:
        ended = holdfast(*words, "--", *adapter, temp=temp, cwd=folder)
        assert_nothing_remains(temp)
    assert evidence.exists(), ended.stderr
    lines = [json.loads(line) for line in evidence.read_text(encoding="utf-8").splitlines()]
    return {
        line["case"].rsplit("/", 1)[1]: f"{line['verdict']} {line['detail']}".strip()
        for line in lines
        if line["type"] == "verdict"
    }


@pytest.mark.sweep
@pytest.mark.parametrize("delay_s", [DELAY_S])
def test_calls_that_meet_are_judged_alike_however_slow_the_adapter_is(delay_s: float, tmp_path: Path) -> None:
    slow = (sys.executable, str(HERE / "adapters" / "slow_line.py"), str(delay_s), *REFERENCE, "adapter")
    found = verdicts(slow, MEETINGS, folder=tmp_path)
    assert found == dict.fromkeys(MEETINGS, "conforms")
