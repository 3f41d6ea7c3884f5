"""The expected keys of rs4a-replay agree with array texts that were spelled out by hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.vectors.derive import derive, names
from holdfast.vectors.rs4a_replay import derive as rs4a

DATA = Path(__file__).resolve().parents[2] / "vectors" / "rs4a_replay" / "data" / "keys.json"
VECTORS: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["vectors"]
BY_NAME = {vector["name"]: vector for vector in VECTORS}


@pytest.mark.parametrize("name", BY_NAME)
def test_arrays_and_keys_are_those_spelled_out_by_hand(name: str) -> None:
    submission = BY_NAME[name]["submission"]
    made = {"logical_request_key": rs4a.logical_request_array(submission), "replay_key": rs4a.replay_array(submission)}
    for key, array in made.items():
        spelled = BY_NAME[name][key]
        assert array == spelled["array"]
        assert hashlib.sha256(array.encode()).hexdigest() == derive(f"rs4a.{key}", submission) == spelled["sha256"]


def test_unknown_derivation_is_an_error_that_lists_the_known_ones() -> None:
    assert {"mesh.fingerprint", "rs4a.logical_request_key", "rs4a.replay_key"} <= set(names())
    with pytest.raises(ValueError, match=r"known names: .*mesh\.fingerprint, .*rs4a\.logical"):
        derive("rs4a.nothing", {})
