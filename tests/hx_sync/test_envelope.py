"""Objects: what is sealed opens, and no changed byte does."""

from __future__ import annotations

import struct

import pytest

from holdfast.reference_impl.hx_sync.algorithms import Algorithms, UnauthenticError
from holdfast.reference_impl.hx_sync.envelope import Envelope, Nonces
from holdfast.reference_impl.hx_sync.header import Headers, MalformedError
from holdfast.reference_impl.hx_sync.instants import Instants
from holdfast.reference_impl.hx_sync.settings import load_settings
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.specs.strictjson import canonical
from tests.hx_sync.devices import KEY, NODES, uuid

PAYLOAD = b'{"events":[]}'
ALGORITHMS = ("xchacha20-poly1305", "aes-256-gcm")
SEGMENT = {"node_id": NODES["a"], "segment_id": uuid(1), "created_at": "2026-01-01T00:00:00Z"}


def envelope(algorithm: str = ALGORITHMS[0]) -> Envelope:
    return Envelope(load_settings({"algorithm": algorithm}), Algorithms(), Headers(Instants()), Nonces())


def opens(raw: bytes, key: bytes = KEY) -> bytes:
    made = envelope()
    return made.open(key, made.take_apart(raw))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_sealed_opens_whatever_the_reader_publishes_with(algorithm: str) -> None:
    raw = envelope(algorithm).seal(KEY, Kind.SEGMENT, SEGMENT, PAYLOAD)

    assert opens(raw) == PAYLOAD


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_object_opens_with_a_byte_changed_anywhere(algorithm: str) -> None:
    raw = envelope(algorithm).seal(KEY, Kind.SEGMENT, SEGMENT, PAYLOAD)

    for offset in range(len(raw)):
        for bit in (0x01, 0x80):
            changed = bytearray(raw)
            changed[offset] ^= bit
            with pytest.raises((MalformedError, UnauthenticError)):
                opens(bytes(changed))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_object_opens_that_was_cut_or_has_something_behind_it(algorithm: str) -> None:
    raw = envelope(algorithm).seal(KEY, Kind.SEGMENT, SEGMENT, PAYLOAD)

    for changed in (*(raw[:length] for length in range(len(raw))), raw + b"\0", raw + raw):
        with pytest.raises((MalformedError, UnauthenticError)):
            opens(changed)


def test_another_vault_key_opens_nothing() -> None:
    with pytest.raises(UnauthenticError):
        opens(envelope().seal(KEY, Kind.SEGMENT, SEGMENT, PAYLOAD), bytes(32))


def test_another_spelling_of_the_same_header_is_read_and_does_not_open() -> None:
    raw = envelope().seal(KEY, Kind.SEGMENT, SEGMENT, PAYLOAD)
    (length,) = struct.unpack(">I", raw[7:11])
    spelt = raw[11 : 11 + length].replace(b",", b", ")
    other = raw[:7] + struct.pack(">I", len(spelt)) + spelt + raw[11 + length :]

    assert envelope().take_apart(other).header.object_id == uuid(1)
    with pytest.raises(UnauthenticError):
        opens(other)


def test_equal_payloads_have_nothing_in_common_but_their_header() -> None:
    first, second = (envelope().seal(KEY, Kind.SEGMENT, SEGMENT, PAYLOAD) for _ in range(2))
    one, other = envelope().take_apart(first), envelope().take_apart(second)

    assert one.clear == other.clear
    assert one.wrap_nonce != other.wrap_nonce
    assert one.wrapped != other.wrapped
    assert one.nonce != other.nonce
    assert one.body != other.body


def header(**members: object) -> bytes:
    due = {
        "magic": "HXOBJ",
        "version": 0,
        "object_type": "segment",
        "vault_id": uuid(9),
        "crypto": {"alg": ALGORITHMS[0]},
        **SEGMENT,
    }
    return canonical({name: value for name, value in {**due, **members}.items() if value is not ...})


@pytest.mark.parametrize(
    "wrong",
    [
        {"magic": "HXOBK"},
        {"magic": ...},
        {"version": "0"},
        {"version": False},
        {"version": 1},
        {"object_type": "segments"},
        {"vault_id": NODES["a"].upper()},
        {"crypto": {}},
        {"crypto": {"alg": "none"}},
        {"crypto": {"alg": ALGORITHMS[1]}},
        {"crypto": {"alg": ALGORITHMS[0], "kdf": "x"}},
        {"created_at": "2026-01-01T00:00:00"},
        {"created_at": ...},
        {"segment_id": ...},
        {"node_id": None},
        {"more": 1},
    ],
)
def test_a_header_has_exactly_its_members(wrong: dict[str, object]) -> None:
    headers = Headers(Instants())
    headers.read(header(), ALGORITHMS[0])

    with pytest.raises(MalformedError):
        headers.read(header(**wrong), ALGORITHMS[0])


def test_a_header_is_strict_json() -> None:
    twice = header()[:-1] + b',"version":0}'

    for data in (twice, header() + b" x", b"\xef\xbb\xbf" + header(), b"[]", b""):
        with pytest.raises(MalformedError):
            Headers(Instants()).read(data, ALGORITHMS[0])
