"""The derivations of `hx-sync`: what they seal opens, and nothing that was changed does."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import nacl.bindings
import pytest

from holdfast.specs.strictjson import canonical as rfc8785
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync import derive as hx
from holdfast.vectors.hx_sync.objects.format import KEY, parts_of

EVENT = {
    "node_id": "0f0e0d0c-0b0a-4908-8706-050403020100",
    "session_id": "1f0e0d0c-0b0a-4908-8706-050403020100",
    "seq": 1,
    "ts": "2026-01-01T00:00:00Z",
    "kind": "note",
    "data": {"é 💡": [1.5, None]},
}
SEGMENT = {"type": "segment", "label": "one", "payload": {"events": [EVENT]}}
MASTER = bytes.fromhex(hx.VAULT_KEY)


def make(**changes: Any) -> bytes:
    return hx.decoded(derive("hx.object", {**SEGMENT, **changes}))


def opened(data: bytes, **more: Any) -> Any:
    return derive("hx.opened", {"object": hx.encoded(data), **more})


def test_libsodium_opens_what_is_sealed_here() -> None:
    """By offsets written out, so that neither code of `holdfast.vectors.hx_sync.objects` is believed."""
    data = make()
    end = 11 + int.from_bytes(data[7:11], "big")
    unseal = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt
    own = unseal(data[end + 24 : end + 72], data[:end], data[end : end + 24], MASTER)
    assert len(own) == KEY
    assert own.hex() == opened(data)["object_key"]
    assert unseal(data[end + 96 :], data[:end], data[end + 72 : end + 96], own) == rfc8785(SEGMENT["payload"])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "expected bytes, got None"),
        ({}, "expected bytes"),
        ("=", "base64url"),
        ("AAAA", "prelude is not there"),
        ("SFhPQkoAAQAAAAJ7fQ", "its payload would begin"),
    ],
)
def test_what_is_no_object_has_no_parts_and_does_not_open(data: Any, words: str) -> None:
    assert words in derive("hx.opened", {"object": data})["error"]
    found = derive("hx.parts", data)
    assert words in found.pop("error")
    assert set(found.values()) == {None}


OWN = "77" * 32


@pytest.mark.parametrize(
    ("second", "due"),
    [
        ({"label": "two", "nonce": "03" * 24}, []),
        ({}, ["ciphertext", "nonce", "object_key", "wrap_nonce", "wrapped_key"]),
        ({"label": "two", "nonce": "03" * 24, "object_key": OWN}, ["object_key"]),
        ({"label": "two", "nonce": "03" * 24, "object_key": hx.VAULT_KEY}, ["vault_key"]),
        ({"label": "two", "nonce": "01" * 24}, ["nonce"]),
        ({"label": "two", "nonce": "03" * 24, "wrap_nonce": "01" * 24}, ["nonces"]),
        ({"label": "two", "nonce": "02" * 24, "wrap_nonce": "02" * 24}, ["nonces"]),
    ],
)
def test_what_two_objects_have_in_common_is_named(second: Mapping[str, Any], due: list[str]) -> None:
    first = {"nonce": "01" * 24, "object_key": OWN} if "object_key" in second else {"nonce": "01" * 24}
    made = [hx.encoded(make(**first)), hx.encoded(make(**{"nonce": "01" * 24, **second}))]
    assert derive("hx.common", made) == due
    assert derive("hx.common", [*made, None]) == ["error"]
    # If a key cannot be unwrapped, its owner is unknown.
    assert derive("hx.common", [*made, hx.encoded(make(label="x", key="11" * 32))]) == ["error"]


SPACED = '{"events": []}'


@pytest.mark.parametrize(
    ("changes", "due"),
    [
        ({}, []),
        ({"algorithm": "aes-256-gcm"}, []),
        ({"header": {"app": "x/1.0"}}, ["members"]),
        ({"drop": ["created_at"]}, ["members"]),
        ({"header": {"version": "0"}}, ["values"]),
        ({"header": {"version": False}}, ["values"]),
        ({"header": {"segment_id": hx.NODE_A.upper()}}, ["values"]),
        ({"header": {"created_at": "2026-02-31T00:00:00Z"}}, ["values"]),
        ({"header": {"created_at": "2026-01-01T00:00:00"}}, ["values"]),
        ({"header": {"vault_id": hx.NODE_A}}, ["values"]),
        ({"header": {"crypto": {"alg": "aes-256-gcm"}}}, ["values"]),
        ({"header": {"crypto": {"alg": "xchacha20-poly1305", "kid": 1}}}, ["values"]),
        ({"magic": "HXOBK"}, ["prelude"]),
        ({"version": 1}, ["prelude"]),
        ({"payload_text": SPACED}, ["payload"]),
        ({"payload_text": "no JSON"}, ["error"]),
        ({"header_text": "[]"}, ["error"]),
        ({"key": "11" * 32}, ["error"]),
    ],
    ids=str,
)
def test_what_is_published_is_held_to_the_letter(changes: Mapping[str, Any], due: list[str]) -> None:
    sealed = {**SEGMENT, **changes}
    if "payload_text" in changes:
        del sealed["payload"]
    made = derive("hx.object", sealed)
    assert derive("hx.published", {"object": made, "type": "segment"}) == due


def test_a_header_in_another_spelling_is_not_one_that_is_published() -> None:
    header = json.loads(parts_of(make()).header)
    for text in (json.dumps(header, sort_keys=True), json.dumps(dict(reversed(header.items())), separators=(",", ":"))):
        made = derive("hx.object", {**SEGMENT, "header_text": text})
        assert derive("hx.published", {"object": made, "type": "segment"}) == ["header"]


def test_what_lies_in_the_store_beside_its_objects_is_told() -> None:
    vault = f"HXSync/vaults/{hx.VAULT_ID}"
    keys = [derive("hx.key", {"type": "blob", "id": "ab" * 32}), derive("hx.key", {"type": "tombstone", "id": "x"})]
    folders = [
        *("HXSync/vaults", vault, f"{vault}/tmp", f"{vault}/objects", f"{vault}/objects/blobs"),
        *(f"{vault}/objects/blobs/ab", f"{vault}/objects/blobs/ab/ab", f"{vault}/objects/tombstones"),
        *(f"{vault}/objects/segments", f"{vault}/tmp/objects/blobs/ab", f"{vault}/tmp/{vault}/objects"),
    ]
    there: list[dict[str, Any]] = [{"path": path, "kind": "folder", "size": None} for path in folders]
    there += [{"path": path, "kind": "file", "size": 1} for path in keys]
    assert derive("hx.stored", {"files": there, "keys": keys}) == {"missing": [], "others": []}
    assert derive("hx.stored", {"files": there, "keys": keys[:1]})["others"] == [keys[1]]
    assert derive("hx.stored", {"files": there[:-1], "keys": keys})["missing"] == [keys[1]]
    for path, kind in (
        (f"{vault}/tmp/x.bak", "file"),
        (f"{vault}/tmp/secret", "folder"),
        (f"{vault}/objects/blobs/ab/cd", "folder"),
        ("HXSync/catalogue.json", "file"),
        (f"{vault}/objects/link", "link"),
    ):
        more = [*there, {"path": path, "kind": kind, "size": None}]
        assert derive("hx.stored", {"files": more, "keys": keys}) == {"missing": [], "others": [path]}
    linked = [*there[:-1], {"path": keys[1], "kind": "link", "size": None}]
    assert derive("hx.stored", {"files": linked, "keys": keys})["missing"] == [keys[1]]


CANARY = "geheim-é-text"


@pytest.mark.parametrize(
    "hay",
    [
        CANARY,
        {"a": [1, None, {"b": f"…{CANARY}…"}]},
        {CANARY: 1},
        hx.encoded(b"\x00\xff" + CANARY.encode()),
        hx.encoded(b"x" + hx.encoded(b"12" + CANARY.encode() + b"3").encode()),
        hx.encoded(b"12345" + base64.b64encode(b"1" + CANARY.encode() + b"34")),
        CANARY.encode().hex(),
        hx.encoded(CANARY.encode().hex().upper().encode()),
        hx.encoded(("x" + CANARY).encode("utf-16-be")),
        hx.encoded(json.dumps({"text": CANARY}).encode()),
    ],
    ids=str,
)
def test_a_text_is_found_in_every_spelling(hay: Any) -> None:
    assert derive("hx.leaks", {"canaries": ["another one", CANARY], "in": ["x", hay]}) == [CANARY]


def test_a_sealed_text_is_not_found() -> None:
    made = derive("hx.object", {**SEGMENT, "payload": {"events": [{**EVENT, "kind": CANARY}]}})
    assert derive("hx.leaks", {"canaries": [CANARY, "events"], "in": made}) == []
    assert derive("hx.leaks", {"canaries": [hx.VAULT_ID], "in": made}) == [hx.VAULT_ID]


# Normal forms of what stands in objects and arguments of hx-sync.

GOOD = "2025-12-31T12:00:00Z"


@pytest.mark.parametrize("either", ["2025-12-31t12:00:00Z", "2025-12-31T12:00:00z", "2025-12-31 12:00:00Z"])
def test_what_rfc_3339_leaves_open_is_open(either: str) -> None:
    assert derive("hx.instant", either) is None


def test_a_header_has_exactly_the_members_of_its_type() -> None:
    header: dict[str, Any] = {
        "magic": "HXOBJ",
        "version": 0,
        "object_type": "manifest",
        "vault_id": "v",
        "crypto": {"alg": "x"},
        "node_id": "n",
        "created_at": GOOD,
    }
    text = derive("hx.text", header)
    assert derive("hx.header_text", text) == text
    for wrong in (
        {**header, "more": 1},
        {**header, "crypto": {"alg": "x", "more": 1}},
        {**header, "object_type": "blob"},
    ):
        with pytest.raises(ValueError, match=r"."):
            derive("hx.header_text", derive("hx.text", wrong))


def test_a_key_without_a_place_is_misplaced() -> None:
    key = derive("hx.key", {"type": "blob", "id": "ab" * 32})
    assert derive("hx.place", key) == key
    for other in (f"{key}.partial", key.upper(), key.replace("/ab/ab/", "/ab/ac/")):
        assert derive("hx.place", other) == {"form": other, "class": "misplaced"}
