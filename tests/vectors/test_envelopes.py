"""The committed vectors of the envelope, on every implementation: the kit's, libsodium, OpenSSL, the reference."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import nacl.bindings
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from nacl.exceptions import CryptoError, UnavailableError

from holdfast.reference_impl.hx_sync.algorithms import Algorithms, UnauthenticError
from holdfast.reference_impl.hx_sync.envelope import Envelope, Nonces
from holdfast.reference_impl.hx_sync.header import Headers, MalformedError
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.settings import load_settings
from holdfast.specs.errors import SpecError
from holdfast.vectors.hx_sync import committed
from holdfast.vectors.hx_sync.committed import KINDS, lint_envelopes, records
from holdfast.vectors.hx_sync.objects.format import hchacha20
from holdfast.vectors.lint import lint

RECORDS = records()
NAMES = [record["name"] for record in RECORDS]
# Fixed here, so that no vector disappears unnoticed.
PUBLISHED = [
    "rfc8439-2.3.2", "rfc8439-2.4.2", "rfc8439-2.5.2", "rfc8439-2.6.2", "rfc8439-2.8.2", "rfc8439-a.5",
    "xchacha-2.2.1", "xchacha-a.3.1", "nist-gcm-256",
]  # fmt: skip


def of_kind(*kinds: str) -> list[Any]:
    return [pytest.param(record, id=record["name"]) for record in RECORDS if record["kind"] in kinds]


def told(record: Mapping[str, Any], name: str) -> bytes:
    return bytes.fromhex(record[name])


def parts(record: Mapping[str, Any], *names: str) -> list[bytes]:
    return [told(record, name) for name in names]


def test_the_published_vectors_are_there_and_name_their_source() -> None:
    assert NAMES[: len(PUBLISHED)] == PUBLISHED
    assert {record["kind"] for record in RECORDS} == set(KINDS)
    for record in RECORDS[: len(PUBLISHED)]:
        assert record["source"].startswith(("RFC 8439", "draft-irtf-cfrg-xchacha-03", "NIST CAVP"))


def test_the_linter_finds_nothing() -> None:
    assert list(lint_envelopes(RECORDS)) == []
    assert not [problem for problem in lint() if "envelope" in problem]


# Written out here from RFC 8439, as a second implementation of what lies below the AEADs.


_WORDS = [int.from_bytes(b"expand 32-byte k"[at : at + 4], "little") for at in range(0, 16, 4)]


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    words = [counter, *(int.from_bytes(nonce[at : at + 4], "little") for at in (0, 4, 8))]
    state = [*_WORDS, *(int.from_bytes(key[at : at + 4], "little") for at in range(0, 32, 4)), *words]
    mixed = state.copy()

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for target, other, turned, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            mixed[target] = (mixed[target] + mixed[other]) % 2**32
            value = mixed[turned] ^ mixed[target]
            mixed[turned] = (value << by | value >> (32 - by)) % 2**32

    for _ in range(10):
        for first in range(4):
            quarter(first, first + 4, first + 8, first + 12)
        for first in range(4):
            quarter(first, 4 + (first + 1) % 4, 8 + (first + 2) % 4, 12 + (first + 3) % 4)
    return b"".join(((left + right) % 2**32).to_bytes(4, "little") for left, right in zip(state, mixed, strict=True))


def stream(key: bytes, counter: int, nonce: bytes, length: int) -> bytes:
    return b"".join(block(key, counter + at, nonce) for at in range(-(-length // 64)))[:length]


def poly1305(key: bytes, message: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def xored(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))


def chacha20_poly1305(key: bytes, nonce: bytes, plain: bytes, aad: bytes) -> bytes:
    sealed = xored(plain, stream(key, 1, nonce, len(plain)))
    padded = b"".join(data + bytes(-len(data) % 16) for data in (aad, sealed))
    lengths = len(aad).to_bytes(8, "little") + len(sealed).to_bytes(8, "little")
    return sealed + poly1305(stream(key, 0, nonce, 32), padded + lengths)


WRITTEN_OUT: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    "chacha20-block": lambda one: block(told(one, "key"), one["counter"], told(one, "nonce")),
    "chacha20": lambda one: xored(
        told(one, "plain"), stream(told(one, "key"), one["counter"], told(one, "nonce"), len(told(one, "plain")))
    ),
    "poly1305": lambda one: poly1305(told(one, "key"), told(one, "plain")),
    "poly1305-key": lambda one: stream(told(one, "key"), 0, told(one, "nonce"), 32),
}


@pytest.mark.parametrize("record", of_kind(*WRITTEN_OUT))
def test_what_lies_below_comes_out_of_a_second_implementation(record: Mapping[str, Any]) -> None:
    due = record["sealed"] if "sealed" in record else record["output"]
    assert WRITTEN_OUT[record["kind"]](record).hex() == due


@pytest.mark.parametrize("record", of_kind("hchacha20"))
def test_hchacha20_is_the_block_function_without_its_last_addition(record: Mapping[str, Any]) -> None:
    """The second implementation: the block function adds the state that it began with, which is taken away again."""
    key, nonce = parts(record, "key", "nonce")
    whole = block(key, int.from_bytes(nonce[:4], "little"), nonce[4:])
    began = b"expand 32-byte k" + key + nonce
    words = [
        (int.from_bytes(whole[at : at + 4], "little") - int.from_bytes(began[at : at + 4], "little")) % 2**32
        for at in (*range(0, 16, 4), *range(48, 64, 4))
    ]
    assert b"".join(word.to_bytes(4, "little") for word in words).hex() == record["output"]
    assert hchacha20(key, nonce).hex() == record["output"]


@pytest.mark.parametrize("record", of_kind("aead"))
def test_libsodium_and_a_second_implementation_seal_and_open_the_same(record: Mapping[str, Any]) -> None:
    key, nonce, aad, plain, sealed = parts(record, "key", "nonce", "aad", "plain", "sealed")
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
    elif record["algorithm"] == "chacha20-poly1305":
        assert chacha20_poly1305(key, nonce, plain, aad) == sealed
    else:
        assert chacha20_poly1305(hchacha20(key, nonce[:16]), bytes(4) + nonce[16:], plain, aad) == sealed
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


# The reference


def envelope() -> Envelope:
    return Envelope(load_settings({}), Algorithms(), Headers(Instants()), Nonces())


@pytest.mark.parametrize("record", of_kind("aead"))
def test_the_algorithms_of_the_reference_seal_and_open_the_same(record: Mapping[str, Any]) -> None:
    algorithm = Algorithms().by_name().get(record["algorithm"])
    if algorithm is None:
        assert record["algorithm"] == "chacha20-poly1305"
        return
    key, nonce, aad, plain, sealed = parts(record, "key", "nonce", "aad", "plain", "sealed")
    assert algorithm.encrypt(key, nonce, plain, aad) == sealed
    assert algorithm.decrypt(key, nonce, sealed, aad) == plain
    with pytest.raises(UnauthenticError):
        algorithm.decrypt(key, nonce, sealed[:-1] + bytes([sealed[-1] ^ 1]), aad)


@pytest.mark.parametrize("record", of_kind("object"))
def test_the_reference_opens_the_objects(record: Mapping[str, Any]) -> None:
    data, master = parts(record, "object", "vault_key")
    sealed = envelope().take_apart(data)
    assert sealed.clear[11:].decode() == record["header"]
    assert dict(sealed.header.members) == json.loads(record["header"])
    assert envelope().unwrap(master, sealed).hex() == record["object_key"]
    assert envelope().open(master, sealed).hex() == record["payload"]


@pytest.mark.parametrize("record", of_kind("refused"))
def test_the_reference_refuses_what_was_changed(record: Mapping[str, Any]) -> None:
    data, master = parts(record, "object", "vault_key")
    with pytest.raises((MalformedError, UnauthenticError)):
        envelope().open(master, envelope().take_apart(data))


# The linter


def changed(name: str, **members: Any) -> list[str]:
    vectors = [copy.deepcopy(dict(record)) for record in RECORDS]
    next(record for record in vectors if record["name"] == name).update(members)
    return list(lint_envelopes(vectors))


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
        ("rfc8439-2.5.2", {"kind": "object", "made": {}, "name": "x"}, "no vector is of kind poly1305"),
    ],
)
def test_what_is_wrong_with_the_vectors_is_found(name: str, members: Mapping[str, Any], words: str) -> None:
    vectors = [copy.deepcopy(dict(record)) for record in RECORDS]
    record = next(record for record in vectors if record["name"] == name)
    if "kind" in members:
        vectors.remove(record)
    else:
        record.update(members)
    assert any(words in problem for problem in lint_envelopes(vectors))


def test_an_object_that_opens_is_no_refusal() -> None:
    twin = RECORDS[NAMES.index("segment-of-nothing")]
    assert "header-changed: it opens" in changed("header-changed", object=twin["object"])


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
