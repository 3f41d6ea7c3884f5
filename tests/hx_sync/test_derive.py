"""The derivations of `hx-sync`: what they seal opens, and nothing that was changed does."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

import nacl.bindings
import pytest
import zstandard
from nacl.exceptions import CryptoError

from holdfast.specs import load_terms
from holdfast.specs.strictjson import canonical as rfc8785
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync import derive as hx
from holdfast.vectors.hx_sync.objects import altering, frames
from holdfast.vectors.hx_sync.objects.format import BYTE, KEY, NONCE, PRELUDE, TAG, WRAPPED, parts_of, payload_of

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


def opens(data: bytes, **more: Any) -> bool:
    found = opened(data, **more)
    assert found.keys() == {"error", "header", "payload", "object_key"}
    assert [found[name] is None for name in ("header", "payload", "object_key")] == [found["error"] is not None] * 3
    return found["error"] is None


def test_the_defaults_are_parameters_of_the_contract() -> None:
    parameters = load_terms("hx-sync").parameters
    due = {"vault_id": hx.VAULT_ID, "vault_key": hx.VAULT_KEY, "node_a": hx.NODE_A, "algorithm": "xchacha20-poly1305"}
    assert {name: parameters[name].value for name in due} == due


@pytest.mark.parametrize("algorithm", BYTE)
def test_a_sealed_object_has_the_layout_of_the_contract_and_opens(algorithm: str) -> None:
    data = make(algorithm=algorithm)
    length = int.from_bytes(data[7:11], "big")
    assert data[:7] == b"HXOBJ\x00" + bytes([BYTE[algorithm]])
    header = json.loads(data[PRELUDE : PRELUDE + length])
    assert rfc8785(header) == data[PRELUDE : PRELUDE + length]
    assert header == {
        "magic": "HXOBJ",
        "version": 0,
        "object_type": "segment",
        "vault_id": hx.VAULT_ID,
        "crypto": {"alg": algorithm},
        "node_id": hx.NODE_A,
        "segment_id": derive("hx.uuid", "one"),
        "created_at": hx.CREATED_AT,
    }
    payload = rfc8785(SEGMENT["payload"])
    assert len(data) == PRELUDE + length + 2 * NONCE[algorithm] + WRAPPED + len(payload) + TAG
    found = opened(data)
    assert found["header"] == header
    assert found["payload"] == SEGMENT["payload"]


def test_libsodium_opens_what_is_sealed_here() -> None:
    """By offsets written out, so that neither code of `holdfast.vectors.hx_sync.objects` is believed."""
    data = make()
    end = 11 + int.from_bytes(data[7:11], "big")
    unseal = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt
    own = unseal(data[end + 24 : end + 72], data[:end], data[end : end + 24], MASTER)
    assert len(own) == KEY
    assert own.hex() == opened(data)["object_key"]
    assert unseal(data[end + 96 :], data[:end], data[end + 72 : end + 96], own) == rfc8785(SEGMENT["payload"])


@pytest.mark.parametrize("algorithm", BYTE)
def test_no_object_opens_of_which_one_byte_is_another(algorithm: str) -> None:
    data = make(algorithm=algorithm)
    asked: dict[str, Any] = {"object": hx.encoded(data), "how": "flip"}
    for at in range(len(data)):
        assert not opens(hx.decoded(derive("hx.altered", {**asked, "at": at, "bits": 1 << at % 8}))), at


@pytest.mark.parametrize("how", ["swap-header", "swap-wrap", "swap-wrap-nonce", "swap-nonce", "swap-payload"])
def test_parts_of_two_objects_do_not_make_a_third(how: str) -> None:
    asked = {"object": hx.encoded(make()), "how": how, "with": hx.encoded(make(label="two"))}
    mixed = hx.decoded(derive("hx.altered", asked))
    assert mixed not in {make(), make(label="two")}
    assert not opens(mixed)


def test_objects_are_cut_and_grow_where_they_are_told_to() -> None:
    data = make()
    starts = altering.regions(data)
    assert sorted(starts.values()) == list(starts.values())

    def altered(**asked: Any) -> bytes:
        return hx.decoded(derive("hx.altered", {"object": hx.encoded(data), **asked}))

    for name, start in starts.items():
        assert altered(how="truncate", at=name) == data[:start]
    assert altered(how="truncate", at=-1) == data[:-1]
    assert altered(how="append") == data + b"\x00"
    assert altered(how="append", bytes="AQI") == data + b"\x01\x02"
    assert altered(how="insert", at="nonce", bytes="AQ") == data[: starts["nonce"]] + b"\x01" + data[starts["nonce"] :]
    assert altered(how="flip", at="tag", bits=0x80)[starts["tag"]] == data[starts["tag"]] ^ 0x80


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"key": "00" * 32}, {}),
        ({}, {"key": "00" * 32}),
        ({"aad": "none"}, {}),
        ({"aad": "prelude"}, {}),
        ({"wrap_aad": "header"}, {}),
        ({"payload_aad": "none"}, {}),
        ({"aad": {"bytes": "AQ"}}, {}),
        ({"header_text": '{"object_type": "segment"}', "aad": "canonical"}, {}),
        ({"cipher": "aes-256-gcm"}, {}),
        ({"algorithm_byte": 2}, {}),
        ({"algorithm_byte": 3}, {}),
        ({"header_length": 20}, {}),
        ({"header_length": 2**32 - 1}, {}),
        ({"tail": "AA"}, {}),
    ],
    ids=str,
)
def test_an_object_that_was_sealed_in_another_way_does_not_open(
    changes: Mapping[str, Any], asked: Mapping[str, Any]
) -> None:
    assert not opens(make(**changes), **asked)


def test_the_seal_binds_to_the_header_as_it_is_spelled() -> None:
    text = '{ "object_type" : "segment", "vault_id" : "x" }'
    found = opened(make(header_text=text))
    assert found["header"] == json.loads(text)
    assert derive("hx.parts", hx.encoded(make(header_text=text)))["header_text"] == text
    assert parts_of(make(header_bytes=hx.encoded(b"\xef\xbb\xbf{}"))).header == b"\xef\xbb\xbf{}"


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


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": None, "payload_text": "{"},
        {"payload": None, "payload_text": '{"a": 1, "a": 2}'},
        {"payload": None, "payload_bytes": "gA"},
        {"header_text": "[]"},
        {"header_text": "{"},
        {"header_bytes": "gA"},
        {"type": "blob", "payload_text": "no frame", "payload": None, "header": {"compression": "zstd"}},
    ],
)
def test_what_opens_to_something_else_is_an_error_too(changes: Mapping[str, Any]) -> None:
    told = {name: value for name, value in {**SEGMENT, **changes}.items() if value is not None}
    assert not opens(hx.decoded(derive("hx.object", told)))


def test_what_is_other_in_an_object_is_that_and_nothing_else() -> None:
    assert make(magic="HXOBK")[:5] == b"HXOBK"
    assert make(version=1)[5] == 1
    assert opened(make(header={"extra": 1}, drop=["created_at"]))["header"].keys() >= {"extra"}
    assert "created_at" not in opened(make(drop=["created_at"]))["header"]
    assert opened(make(object_key="07" * 32))["object_key"] == "07" * 32
    fixed = parts_of(make(wrap_nonce="01" * 24, nonce="02" * 24))
    assert (fixed.wrap_nonce, fixed.nonce) == (b"\x01" * 24, b"\x02" * 24)
    assert make(key="00" * 32) != make()
    assert opens(make(key="00" * 32), key="00" * 32)


def test_equal_labels_seal_equal_bytes_and_others_share_neither_key_nor_nonce() -> None:
    assert make() == make()
    one, two = (parts_of(make(label=label)) for label in ("one", "two"))
    assert len({one.wrap_nonce, two.wrap_nonce, one.nonce, two.nonce}) == 4
    assert opened(make())["object_key"] != opened(make(label="two"))["object_key"]


def test_a_text_that_is_no_canonical_json_is_sealed_as_it_stands() -> None:
    text = '{"events": [], "events": []}'
    told = {"type": "segment", "label": "t", "payload_text": text}
    assert payload_of(parts_of(hx.decoded(derive("hx.object", told))), MASTER) == text.encode()


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("content", [b"", b"hello", b"abc" * 100_000])
def test_a_blob_holds_its_bytes_under_their_hash(compression: str, content: bytes) -> None:
    asked = {"bytes": hx.encoded(content), "label": "b", "compression": compression}
    made = derive("hx.blob", asked)
    found = derive("hx.opened", {"object": made})
    assert hx.decoded(found["payload"]) == content
    assert found["header"]["blob_hash"] == hashlib.sha256(content).hexdigest()
    assert found["header"]["byte_len_plain"] == len(content)
    digest = hashlib.sha256(content).hexdigest()
    where = f"HXSync/vaults/{hx.VAULT_ID}/objects/blobs/{digest[:2]}/{digest[2:4]}/{digest}.hxblob"
    assert derive("hx.key", {"object": made}) == where


def test_zeros_are_a_blob_like_any_other_bytes() -> None:
    zeros = {"zeros": 3_000_000, "label": "z"}
    told = {"bytes": hx.encoded(bytes(3_000_000)), "label": "z"}
    left, right = (derive("hx.opened", {"object": derive("hx.blob", asked)}) for asked in (zeros, told))
    assert left == right
    for compression in ("zstd", "none"):
        made = derive("hx.blob", {**zeros, "compression": compression})
        assert derive("hx.opened", {"object": made})["payload"] == hx.encoded(bytes(3_000_000))


def test_a_blob_may_lie_about_itself() -> None:
    asked = {"bytes": "aGVsbG8", "label": "b", "byte_len_plain": 7, "blob_hash": "ab" * 32, "header": {"note": "x"}}
    header = derive("hx.opened", {"object": derive("hx.blob", asked)})["header"]
    assert (header["byte_len_plain"], header["blob_hash"], header["note"]) == (7, "ab" * 32, "x")


def test_frames_are_what_they_are_called() -> None:
    plain = b"hello " * 1000

    def made(**asked: Any) -> bytes:
        return hx.decoded(derive("hx.zstd", {"bytes": hx.encoded(plain), **asked}))

    assert frames.plain(made()) == plain
    assert frames.plain(made(compressed=True)) == frames.plain(made(compressed=True, checksum=True)) == plain
    assert len(made(compressed=True, checksum=True)) == len(made(compressed=True)) + 4 < len(plain)
    for content in (b"", b"x" * 300_000, bytes(range(256)) * 2000, b"x" * 131_072 + b"y"):
        assert frames.plain(frames.frame(content)) == content
        assert frames.plain(frames.stating(frames.compressed(content), len(content))) == content
    assert zstandard.frame_content_size(made(without_size=True)) == -1
    for told in (made(without_size=True), made(without_size=True, compressed=True)):
        assert zstandard.ZstdDecompressor().decompressobj().decompress(told) == plain
    for size in (5, 6001, 2**40):
        assert zstandard.frame_content_size(made(stated_size=size)) == size
    assert frames.plain(made(stated_size=6000)) == plain
    assert made(trailing="AQI") == made() + b"\x01\x02"
    assert made(skippable="AQI") == bytes.fromhex("502a4d18020000000102") + made()
    both = made(frames=2)
    first = zstandard.ZstdDecompressor().decompressobj()
    assert first.decompress(both) + zstandard.ZstdDecompressor().decompress(first.unused_data) == plain
    bomb = hx.decoded(derive("hx.zstd", {"zeros": 200_000_000}))
    assert zstandard.frame_content_size(bomb) == 200_000_000
    assert len(bomb) < 100_000


@pytest.mark.parametrize("asked", [{"stated_size": 5}, {"stated_size": 2**40}, {"frames": 2}, {"trailing": "AA"}])
def test_the_payload_of_a_blob_is_one_frame_that_tells_the_truth(asked: Mapping[str, Any]) -> None:
    frame = derive("hx.zstd", {"bytes": "aGVsbG8gaGVsbG8", **asked})
    made = derive("hx.blob", {"bytes": "aGVsbG8gaGVsbG8", "label": "b", "frame": frame})
    assert not opens(hx.decoded(made))


def test_keys_of_all_types_are_paths_of_the_layout() -> None:
    node, name = derive("hx.uuid", "n"), derive("hx.uuid", "one")
    base = f"HXSync/vaults/{hx.VAULT_ID}/objects"
    due = {
        "segment": f"{base}/segments/{node}/{name}.hxseg",
        "tombstone": f"{base}/tombstones/{name}.hxtomb",
        "manifest": f"{base}/manifests/{node}.hxman",
    }
    for kind, key in due.items():
        told = {"type": kind, "id": name, "node_id": node}
        assert derive("hx.key", told) == key
        made = derive("hx.object", {**told, "label": "one", "payload": {}})
        assert derive("hx.key", {"object": made}) == key


def test_the_digest_is_over_one_nodes_rows_without_its_name() -> None:
    state: dict[str, Any] = {name: [] for name in ("sessions", "artifacts", "pins", "blobs", "tombstones")}
    state["events"] = [{"at": "a", "event_key": "2"}, {"at": "b", "event_key": "3"}, {"at": "a", "event_key": "1"}]
    state |= {"segments": [{"at": "a"}], "digests": [{"at": "a"}]}
    text = (
        '{"artifacts":[],"blobs":[],"events":[{"event_key":"1"},{"event_key":"2"}],"pins":[],"sessions":[],'
        '"tombstones":[]}'
    )
    assert derive("hx.digest", {"state": state, "at": "a"}) == hashlib.sha256(text.encode()).hexdigest()


def test_of_two_contents_the_one_with_the_lower_digest_is_shown() -> None:
    events = [{**EVENT, "kind": str(number)} for number in range(5)]
    lowest = sorted(events, key=lambda event: hashlib.sha256(rfc8785(event)).hexdigest())[0]
    assert derive("hx.winner", events) == derive("hx.winner", events[::-1]) == lowest


def test_ids_digests_and_canonical_forms() -> None:
    made = uuid.UUID(derive("hx.uuid", "x"))
    assert (made.version, made.variant) == (4, uuid.RFC_4122)
    assert derive("hx.sha256", "aGVsbG8") == hashlib.sha256(b"hello").hexdigest()
    assert hx.decoded(derive("hx.canonical", {"b": 1, "a": 1.50})) == b'{"a":1.5,"b":1}'


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


BYTES = hx.encoded(b"some bytes")
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


def test_objects_of_every_type_can_be_published() -> None:
    window = {"start_ts": "2026-01-01T00:00:00Z", "end_ts": "2026-01-01T00:00:00Z"}
    made = {
        "tombstone": derive("hx.object", {"type": "tombstone", "label": "x", "payload": window}),
        "manifest": derive("hx.object", {"type": "manifest", "label": "x", "payload": {"objects": []}}),
        "blob": derive("hx.blob", {"label": "x", "bytes": BYTES}),
    }
    for kind, data in made.items():
        assert derive("hx.published", {"object": data, "type": kind}) == []
        assert "type" in derive("hx.published", {"object": data, "type": "segment"})
    assert derive("hx.published", {"object": None, "type": "blob"}) == ["error"]


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


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("object", {"type": "segment", "label": "x"}, "payload"),
        ("object", {**SEGMENT, "payload_text": "{}"}, "too many values"),
        ("object", {**SEGMENT, "colour": 1}, "not made of colour"),
        ("object", {**SEGMENT, "type": "folder"}, "no type is called 'folder'"),
        ("object", {**SEGMENT, "header_text": "{}", "drop": []}, "not both"),
        ("object", {**SEGMENT, "key": "00"}, "64 hex digits"),
        ("object", {**SEGMENT, "algorithm": "rot13"}, "rot13"),
        ("object", {**SEGMENT, "nonce": "00"}, "nonce of 24 bytes"),
        ("object", {**SEGMENT, "aad": "all"}, "known: due"),
        ("object", {**SEGMENT, "version": 300}, "bytes must be in range"),
        ("object", {"type": "segment"}, "label"),
        ("blob", {"label": "x"}, "bytes"),
        ("blob", {"label": "x", "bytes": "=="}, "base64url"),
        ("altered", {"object": "AAAA", "how": "burn"}, "no alteration"),
        ("altered", {"object": "AAAA", "how": "flip", "at": 3}, "no byte 3"),
        ("altered", {"object": "AAAA", "how": "truncate", "at": "nonce"}, "not an object"),
        ("opened", {"object": "AAAA", "key": "00"}, "64 hex digits"),
        ("sha256", "a", "base64url"),
        ("zstd", {}, "bytes"),
        ("digest", {"state": {}}, "events"),
        ("leaks", {"canaries": ["short"], "in": ""}, "by chance"),
    ],
    ids=str,
)
def test_what_cannot_be_made_is_a_value_error_that_says_why(name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        derive(f"hx.{name}", value)


def test_libsodium_refuses_a_changed_object_too() -> None:
    """The refusals above are not those of one library alone."""
    parts = parts_of(make())
    with pytest.raises(CryptoError):
        nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            parts.wrapped_key, parts.aad[:-1] + b" ", parts.wrap_nonce, MASTER
        )
