"""The derivations of `calyx-replay` against vectors that were fixed elsewhere, and against what they claim to be."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from holdfast.specs.strictjson import canonical as rfc8785
from holdfast.vectors.calyx_replay import derive as calyx
from holdfast.vectors.calyx_replay.canonical import decoded, encoded
from holdfast.vectors.derive import derive

FP = "ab" * 32
DRAFT: dict[str, Any] = {
    "key": "alice",
    "header": {
        "msg_id": "0f0e0d0c-0b0a-4908-8706-050403020100",
        "recipient_fp": FP,
        "timestamp": "2026-01-01T00:00:09Z",
        "subject": 'é 中 💡 " \\ \u0001 /',
    },
    "ciphertext": "aGVsbG8",
}


def read(envelope: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(decoded(envelope))
    return found


def verifies(envelope: str) -> bool:
    parts = read(envelope)
    signature = decoded(parts.pop("signature"))
    key = Ed25519PublicKey.from_public_bytes(decoded(parts["header"]["sender_key"]))
    try:
        key.verify(signature, rfc8785(parts))
    except InvalidSignature:
        return False
    return True


def test_keys_and_signatures_are_those_of_rfc_8032_test_1() -> None:
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    signature = (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b"
    )
    assert calyx.public_key(seed).hex() == public
    assert calyx.sign(seed, b"").hex() == signature


def test_the_vector_of_this_envelope_stays() -> None:
    """Fixed when it was written, so that no later change goes unnoticed."""
    assert derive("calyx.replay_key", derive("calyx.envelope", DRAFT)) == VECTOR


@pytest.mark.parametrize("how", list(calyx.VARIANTS))
def test_a_variant_is_other_bytes(how: str) -> None:
    made = derive("calyx.envelope", DRAFT)
    spelled = decoded(derive("calyx.variant", {"envelope": made, "how": how}))
    assert spelled != decoded(made)
    lenient = ("duplicate-member", "member-order", "whitespace", "unicode-escape", "escaped-solidus", "leading-space")
    if how in (*lenient, "trailing-newline"):
        assert json.loads(spelled) == read(made)
    if how == "bom":
        assert json.loads(spelled.decode("utf-8-sig")) == read(made)
    if how.startswith(("padded", "spare")):
        part = how.partition("-")[2].removeprefix("bits-").replace("-", "_")
        one, other = (p.get(part, p["header"].get(part)) for p in (json.loads(spelled), read(made)))
        assert one != other
        assert decoded(one.rstrip("=")) == decoded(other)


@pytest.mark.parametrize("key", [None, "alice"])
def test_a_malleated_signature_is_another_one_of_the_same_message(key: str | None) -> None:
    made = derive("calyx.envelope", DRAFT)
    before = decoded(read(made)["signature"])
    for how in ("s-plus-l", "r-reencoded", "trailing-bytes"):
        asked = {"envelope": made, "how": how} | ({} if key is None else {"key": key})
        forged = derive("calyx.malleated", asked)
        assert {**read(forged), "signature": ""} == {**read(made), "signature": ""}
        after = decoded(read(forged)["signature"])
        assert after != before
        assert not verifies(forged)
        if how == "s-plus-l":
            assert int.from_bytes(after[32:], "little") - int.from_bytes(before[32:], "little") == calyx._L


@pytest.mark.parametrize(
    "part",
    "ciphertext signature header.msg_id header.timestamp header.recipient_fp header.subject header.sender_key".split(),
)
def test_an_altered_envelope_differs_in_that_part_alone(part: str) -> None:
    made = derive("calyx.envelope", DRAFT)
    forged = derive("calyx.altered", {"envelope": made, "part": part, "resign": False})
    one, other = read(made), read(forged)
    for path in ("ciphertext", "signature", *(f"header.{name}" for name in one["header"])):
        (a, name), (b, _) = calyx._place(one, path), calyx._place(other, path)
        assert (a[name] != b[name]) is (path == part)
    if part == "header.msg_id":
        assert uuid.UUID(other["header"]["msg_id"]).version == 4
    if part == "header.timestamp":
        assert other["header"]["timestamp"] == "2026-01-01T00:00:00Z"
    if part != "header.sender_key":
        assert not verifies(forged)


VECTOR = "565e06852d8977df132a65f719611034623d84a1b586978c4d321a7fd7341bb7"


@pytest.mark.parametrize("part", ["name", "value"])
@pytest.mark.parametrize("token", [b'"plain"', b'"\\u0061"', b'"\\ud800"', b'"\xff"'])
def test_a_spliced_envelope_holds_the_bytes_of_the_token_and_is_signed(part: str, token: bytes) -> None:
    raw = decoded(derive("calyx.spliced", {**DRAFT, part: encoded(token)}))
    assert token in raw
    signature = raw.split(b'"signature":"')[1].split(b'"')[0]
    as_it_stands = raw.replace(b',"signature":"' + signature + b'"', b"")
    canonical = as_it_stands.replace(b'"\\u0061"', b'"a"')
    key = Ed25519PublicKey.from_public_bytes(calyx.public_key(hashlib.sha256(b"alice").digest()))
    key.verify(decoded(signature.decode()), canonical)
