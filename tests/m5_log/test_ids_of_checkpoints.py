"""A sound store whose checkpoint ids are ten apart: the contract asks only that they increase."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.reference_impl.altered import Alteration
from holdfast.reference_impl.m5_log import checkpoints
from tests import warm

# What is about the ids themselves, about rows under them, or about an id that was never given.
SCRIPTS = (
    "cf-5/meta-says-what-the-store-is",
    "cf-9/ids-increase-in-numbers-and-in-bytes",
    "ckp-2/an-unknown-checkpoint-is-no-empty-state",
    "ckp-7/a-checkpoint-in-the-place-of-another",
    "ckp-7/a-changed-bit-of-a-checkpoint-is-noticed",
    "ckp-7/a-damaged-checkpoint-is-refused",
    "cli-2/replays-print-one-state",
    "cli-5/an-unknown-checkpoint-prints-no-state",
    "open-2/another-schema-version-is-refused",
    "suite/no-near-miss-of-the-id-of-a-checkpoint-is-its-id",
)
SUITES = (
    "suite/a-command-that-is-killed-at-any-moment-has-done-all-or-nothing",
    "suite/a-command-that-is-refused-leaves-everything-as-it-was",
    "suite/every-operation-beside-itself-and-its-rivals-is-explained-by-some-order",
    "suite/every-operation-that-fails-or-is-killed-is-whole-or-not-at-all",
)


def ten_apart(folder: Path) -> Path:
    """The file of an alteration, which goes to the adapter and to the commands that it runs."""
    source = Path(checkpoints.__file__).read_bytes()
    before, after = b"made + 1", "made + 10"
    assert source.count(before) == 1
    start = source.index(before)
    digest = sha256(source).hexdigest()
    made = Alteration("m5-log", checkpoints.__name__, digest, start, start + len(before), after)
    (file := folder / "altered.json").write_text(json.dumps(asdict(made)), encoding="utf-8")
    return file


@pytest.mark.parametrize("names", [SCRIPTS, pytest.param(SUITES, marks=pytest.mark.sweep)], ids=["scripts", "suites"])
def test_a_store_whose_ids_leave_some_out_conforms(names: tuple[str, ...], tmp_path: Path) -> None:
    cases = [word for name in names for word in ("--case", f"m5-log/{name}")]
    adapter = [sys.executable, "-P", "-m", warm.REFERENCE, "adapter", "--mutant", str(ten_apart(tmp_path))]
    # Commands start an interpreter each, beside other tests.
    words = ("verify", "--contract", "m5-log", *cases, "--slow", "4", "--", *adapter)
    done = warm.cold(warm.KIT, *words, cwd=tmp_path)
    assert f"{len(names)} conforms" in done.stdout, done.stdout
