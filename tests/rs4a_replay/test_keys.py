"""Keys against texts written by hand: what is hashed is spelled out here, not computed."""

from __future__ import annotations

import hashlib

import pytest

from holdfast.reference_impl.rs4a_replay.keys import Keys, TargetError
from holdfast.reference_impl.rs4a_replay.reading import MalformedError, Reader
from holdfast.reference_impl.rs4a_replay.settings import load_settings
from holdfast.specs import load_terms
from tests.rs4a_replay.conftest import HASH, submission

KEYS = Keys(load_settings({}).keys)
READER = Reader(load_terms("rs4a-replay").methods["register"].args, KEYS)
NONCE = "n" * 20

LOGICAL_TEXT = f'["rs4a-07/logical-request-key/v1","register_dot","dot://acme/thing","{HASH}","owner-1"]'
LOGICAL = hashlib.sha256(LOGICAL_TEXT.encode()).hexdigest()
REPLAY_TEXT = (
    f'["rs4a-07/replay-key/v1","rs4a/0.2","{LOGICAL}","register_dot","dot://acme/thing","{HASH}","owner-1","run-1"]'
)


def test_both_keys_are_the_hash_of_the_array_that_the_contract_spells_out() -> None:
    derived = KEYS.derive(READER.read(submission(NONCE)))
    assert derived.logical_request_key == LOGICAL
    assert derived.replay_key == hashlib.sha256(REPLAY_TEXT.encode()).hexdigest()


def test_attempt_nonce_principal_and_time_are_in_neither_key() -> None:
    other = submission("m" * 20, attempt="try-2", principal="agent-2", issued_at="2026-01-01T00:00:09Z")
    assert KEYS.derive(READER.read(other)) == KEYS.derive(READER.read(submission(NONCE)))


@pytest.mark.parametrize(
    ("sent", "normal"),
    [
        ("DOT://Acme/Thing", "dot://acme/Thing"),
        ("dot://acme/th%69ng", "dot://acme/thing"),
        ("dot://acme/a/./b/../thing", "dot://acme/a/thing"),
        ("dot://acme/thing/", "dot://acme/thing"),
        ("dot://acme/%2e%2e/thing", "dot://acme/thing"),
        ("dot://acme/e\u0301", "dot://acme/\u00e9"),
        ("dot://acme/a%2fb", "dot://acme/a%2Fb"),
        ("dot://a%c3%a9B/x", "dot://a%C3%A9b/x"),
        ("dot://acme/x/?q=A/", "dot://acme/x?q=A/"),
        ("dot://acme/", "dot://acme"),
        ("thing", "thing"),
    ],
)
def test_a_target_is_brought_to_its_normal_form_and_stays_there(sent: str, normal: str) -> None:
    assert KEYS.normal_target(sent) == normal
    assert KEYS.normal_target(normal) == normal


@pytest.mark.parametrize("target", ["dot://acme/%zz", "dot://acme/%4", "/", ".."])
def test_a_target_without_a_normal_form_is_an_error(target: str) -> None:
    with pytest.raises(TargetError):
        KEYS.normal_target(target)


@pytest.mark.parametrize("issued_at", ["2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01T00:00:60Z"])
def test_a_time_that_does_not_exist_is_malformed(issued_at: str) -> None:
    with pytest.raises(MalformedError):
        READER.read(submission(NONCE, issued_at=issued_at))
