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
KEYS = ("logical_request_key", "replay_key")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", BY_NAME)
def test_spelled_out_array_hashes_to_the_committed_digest(name: str, key: str) -> None:
    spelled = BY_NAME[name][key]
    assert hashlib.sha256(spelled["array"].encode("utf-8")).hexdigest() == spelled["sha256"]


@pytest.mark.parametrize("name", BY_NAME)
def test_array_text_is_the_one_spelled_out_by_hand(name: str) -> None:
    submission = BY_NAME[name]["submission"]
    assert rs4a.logical_request_array(submission) == BY_NAME[name]["logical_request_key"]["array"]
    assert rs4a.replay_array(submission) == BY_NAME[name]["replay_key"]["array"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", BY_NAME)
def test_derived_key_is_the_committed_digest(name: str, key: str) -> None:
    assert derive(f"rs4a.{key}", BY_NAME[name]["submission"]) == BY_NAME[name][key]["sha256"]


def test_unknown_derivation_is_an_error_that_lists_the_known_ones() -> None:
    assert {"mesh.fingerprint", "rs4a.logical_request_key", "rs4a.replay_key"} <= set(names())
    with pytest.raises(ValueError, match=r"known names: .*mesh\.fingerprint, .*rs4a\.logical"):
        derive("rs4a.nothing", {})
