"""The committed vectors of the envelope, on another implementation than that of the linter; and the linter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nacl.bindings
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from nacl.exceptions import CryptoError, UnavailableError

from holdfast.specs.errors import SpecError
from holdfast.vectors.hx_sync import committed
from holdfast.vectors.hx_sync.committed import KINDS, lint_envelopes, records

RECORDS = records()
NAMES = [record["name"] for record in RECORDS]
# Fixed here, so that no vector disappears unnoticed.
PUBLISHED = [
    "rfc8439-2.3.2", "rfc8439-2.4.2", "rfc8439-2.5.2", "rfc8439-2.6.2", "rfc8439-2.8.2", "rfc8439-a.5",
    "xchacha-2.2.1", "xchacha-a.3.1", "nist-gcm-256",
]  # fmt: skip


def test_the_published_vectors_are_there_and_name_their_source() -> None:
    assert NAMES[: len(PUBLISHED)] == PUBLISHED
    assert {record["kind"] for record in RECORDS} == set(KINDS)
    for record in RECORDS[: len(PUBLISHED)]:
        assert record["source"].startswith(("RFC 8439", "draft-irtf-cfrg-xchacha-03", "NIST CAVP"))


TWIN = RECORDS[NAMES.index("segment-of-nothing")]
PARTS = ("key", "nonce", "aad", "plain", "sealed")


@pytest.mark.parametrize("record", [each for each in RECORDS if each["kind"] == "aead"], ids=lambda each: each["name"])
def test_libsodium_seals_and_opens_the_same(record: Mapping[str, Any]) -> None:
    key, nonce, aad, plain, sealed = (
        bytes.fromhex(record[name]) for name in ("key", "nonce", "aad", "plain", "sealed")
    )
    name = {
        "chacha20-poly1305": "chacha20poly1305_ietf",
        "xchacha20-poly1305": "xchacha20poly1305_ietf",
        "aes-256-gcm": "aes256gcm",
    }[record["algorithm"]]
    if record["algorithm"] == "aes-256-gcm":
        # Another interface of OpenSSL than the kit's, which says where the tag is.
        opener = Cipher(AES(key), modes.GCM(nonce, sealed[-16:])).decryptor()
        opener.authenticate_additional_data(aad)
        assert opener.update(sealed[:-16]) + opener.finalize() == plain
    seal = getattr(nacl.bindings, f"crypto_aead_{name}_encrypt")
    unseal = getattr(nacl.bindings, f"crypto_aead_{name}_decrypt")
    try:
        assert seal(plain, aad, nonce, key) == sealed
    except UnavailableError:
        # libsodium has AES only in hardware; OpenSSL has answered above.
        return
    assert unseal(sealed, aad, nonce, key) == plain
    with pytest.raises(CryptoError):
        unseal(sealed, aad + b"x", nonce, key)


# The linter


def changed(name: str, /, **members: Any) -> list[str]:
    """What is said of the vectors with these members in one, which leaves if there are none."""
    others = [record for record in RECORDS if members or record["name"] != name]
    return list(lint_envelopes([{**record, **members} if record["name"] == name else record for record in others]))


@pytest.mark.parametrize("name", NAMES)
def test_no_vector_can_be_changed_unnoticed(name: str) -> None:
    record = RECORDS[NAMES.index(name)]
    for member, value in record.items():
        if member in {"key", "vault_key", "output", "sealed", "plain", "nonce", "aad", "object", "payload"} and value:
            other = value[:-1] + ("0" if value[-1] != "0" else "1")
            assert any(problem.startswith(f"{name}: ") for problem in changed(name, **{member: other})), member


@pytest.mark.parametrize(
    ("name", "members", "words"),
    [
        ("segment", {"name": "tombstone"}, "2 vectors are called that"),
        ("segment", {"path": "elsewhere"}, "its path is HXSync"),
        ("segment", {"object_key": "00" * 32}, "its object_key is"),
        ("cut-short", {"twin": "rfc8439-2.8.2"}, "no object of this file"),
        ("cut-short", {"twin": "nothing"}, "no object of this file"),
        (
            "header-changed",
            {"object": RECORDS[NAMES.index("segment-of-nothing")]["object"]},
            "header-changed: it opens",
        ),
        ("rfc8439-2.5.2", {}, "no vector is of kind poly1305"),
    ],
)
def test_what_is_wrong_with_the_vectors_is_found(name: str, members: Mapping[str, Any], words: str) -> None:
    assert any(words in problem for problem in changed(name, **members))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "expected JSON"),
        (b"{}", "sealed-object|'about'|vectors"),
        (b'{"about": "x", "vectors": [{"name": "a", "kind": "aead", "source": "x"}]}', "algorithm|required"),
    ],
)
def test_a_file_that_does_not_fit_is_told(data: bytes, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        committed.records(data)
