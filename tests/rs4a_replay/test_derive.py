"""The expected keys of rs4a-replay agree with array texts that were spelled out by hand."""

from __future__ import annotations

import copy
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


def test_logical_key_stands_inside_the_replay_array() -> None:
    for vector in VECTORS:
        assert json.loads(vector["replay_key"]["array"])[2] == vector["logical_request_key"]["sha256"]


@pytest.mark.parametrize(
    ("target", "normal"),
    [
        ("dot://acme/a", "dot://acme/a"),
        ("DOT://ACME/a", "dot://acme/a"),
        ("dot://acme/A", "dot://acme/A"),
        ("dot://acme/%61", "dot://acme/a"),
        ("dot://%41cme/a", "dot://acme/a"),
        ("dot://acme/a%2fb", "dot://acme/a%2Fb"),
        ("dot://ac%2fme/a", "dot://ac%2Fme/a"),
        ("dot://acme/%2541", "dot://acme/%2541"),
        ("dot://acme/x/../a", "dot://acme/a"),
        ("dot://acme/../a", "dot://acme/a"),
        ("dot://acme/./a/.", "dot://acme/a"),
        ("dot://acme/a/..", "dot://acme"),
        ("dot://acme/a/", "dot://acme/a"),
        ("dot://acme/", "dot://acme"),
        ("dot://acme", "dot://acme"),
        ("dot://acme/e\u0301", "dot://acme/\u00e9"),
        ("dot://acme/%65\u0301", "dot://acme/\u00e9"),
        ("dot://acme/a?Q=%7e#F", "dot://acme/a?Q=~#F"),
        ("urn:Acme:Lamp", "urn:Acme:Lamp"),
        ("lamp", "lamp"),
    ],
)
def test_target_has_one_normal_form_and_it_is_its_own(target: str, normal: str) -> None:
    assert rs4a.normal_target(target) == normal
    assert rs4a.normal_target(normal) == normal


@pytest.mark.parametrize("member", ["operation", "canonical_target", "owner_or_approval_binding"])
def test_submission_without_a_keyed_member_has_no_key(member: str) -> None:
    submission = copy.deepcopy(BY_NAME["plain"]["submission"])
    del submission["request"][member]
    with pytest.raises(ValueError, match=member):
        derive("rs4a.logical_request_key", submission)


def test_key_needs_no_nonce_and_no_attempt() -> None:
    submission = copy.deepcopy(BY_NAME["plain"]["submission"])
    del submission["request"]["authorization_nonce"], submission["request"]["attempt_id"]
    assert derive("rs4a.replay_key", submission) == BY_NAME["plain"]["replay_key"]["sha256"]


def test_unknown_derivation_is_an_error_that_lists_the_known_ones() -> None:
    assert {"mesh.fingerprint", "rs4a.logical_request_key", "rs4a.replay_key"} <= set(names())
    with pytest.raises(ValueError, match=r"known names: .*mesh\.fingerprint, .*rs4a\.logical"):
        derive("rs4a.nothing", {})


@pytest.mark.parametrize("target", ["dot://acme/%zz", "dot://acme/a%", "dot://acme/%4", "dot://acme/100%-wool"])
def test_target_with_a_bare_percent_sign_has_no_normal_form(target: str) -> None:
    with pytest.raises(ValueError, match="percent sign"):
        rs4a.normal_target(target)
