"""The committed vectors of the envelope, and their checks (`data/objects.json`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.poly1305 import Poly1305

from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects import format as envelope
from holdfast.vectors.lines import read_json
from holdfast.vectors.spelling import encoded

DATA = "objects.json"
FILES = frozenset({DATA})
KINDS = ("chacha20-block", "chacha20", "poly1305", "poly1305-key", "hchacha20", "aead", "object", "refused")

Record = Mapping[str, Any]


def records(data: bytes | None = None) -> Sequence[Record]:
    """Every vector, of the committed file unless `data` is given. Raises SpecError."""
    found: Sequence[Record] = read_json(data, "hx_sync", DATA, "sealed-object")["vectors"]
    return found


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    return lint_envelopes(records(files[DATA]))


def lint_envelopes(vectors: Sequence[Record]) -> Iterable[str]:
    """Every problem of names and kinds, and every result that differs from the vector."""
    for name, times in Counter(record["name"] for record in vectors).items():
        if times > 1:
            yield f"{name}: {times} vectors are called that"
    for kind in KINDS:
        if kind not in {record["kind"] for record in vectors}:
            yield f"no vector is of kind {kind}"
    by_name = {record["name"]: record for record in vectors}
    for record in vectors:
        if record["kind"] in _CHECKS:
            due = record["sealed"] if "sealed" in record else record["output"]
            found = _CHECKS[record["kind"]](record).hex()
            if found != due:
                yield f"{record['name']}: gives {found}, the vector says {due}"
        elif record["kind"] == "object":
            yield from _object(record)
        else:
            yield from _refused(record, by_name.get(record["twin"]))


def _object(record: Record) -> Iterable[str]:
    name, text = record["name"], encoded(bytes.fromhex(record["object"]))
    if derive(record["made"]["derivation"], record["made"]["of"]) != text:
        yield f"{name}: {record['made']['derivation']} makes another object of its draft"
    parts, key = derive("hx.parts", text), record["vault_key"]
    opened = derive("hx.opened", {"object": text, "key": key})
    if opened["error"] is not None:
        yield f"{name}: it does not open: {opened['error']}"
        return
    payload = envelope.payload_of(envelope.parts_of(bytes.fromhex(record["object"])), bytes.fromhex(key)).hex()
    stated = {
        "header": parts["header_text"],
        "object_key": opened["object_key"],
        "payload": payload,
        "path": derive("hx.key", {"object": text}),
    }
    for member, found in stated.items():
        if record[member] != found:
            yield f"{name}: its {member} is {found}, the vector says {record[member]}"
    if opened["header"]["object_type"] == "blob":
        plain = derive("hx.sha256", opened["payload"])
        if plain != opened["header"]["blob_hash"]:
            yield f"{name}: its bytes have the hash {plain}"


def _refused(record: Record, twin: Record | None) -> Iterable[str]:
    name, text = record["name"], encoded(bytes.fromhex(record["object"]))
    if twin is None or twin["kind"] != "object":
        yield f"{name}: its twin {record['twin']} is no object of this file"
        return
    if record["vault_key"] != twin["vault_key"]:
        yield f"{name}: with the key of another vault it would not open anyway"
    of = {**record["made"]["of"], "object": encoded(bytes.fromhex(twin["object"]))}
    if derive(record["made"]["derivation"], of) != text:
        yield f"{name}: {record['made']['derivation']} makes another object of its twin"
    if derive("hx.opened", {"object": text, "key": record["vault_key"]})["error"] is None:
        yield f"{name}: it opens"


def _bytes(record: Record, member: str) -> bytes:
    return bytes.fromhex(record[member])


def _stream(record: Record, counter: int, plain: bytes) -> bytes:
    nonce = counter.to_bytes(4, "little") + _bytes(record, "nonce")
    return Cipher(ChaCha20(_bytes(record, "key"), nonce), None).encryptor().update(plain)


def _aead(record: Record) -> bytes:
    key, nonce, plain, aad = (_bytes(record, name) for name in ("key", "nonce", "plain", "aad"))
    if record["algorithm"] == "chacha20-poly1305":
        return ChaCha20Poly1305(key).encrypt(nonce, plain, aad)
    return envelope.seal(record["algorithm"], key, nonce, plain, aad)


_CHECKS: Mapping[str, Callable[[Record], bytes]] = {
    "chacha20-block": lambda record: _stream(record, record["counter"], bytes(64)),
    "chacha20": lambda record: _stream(record, record["counter"], _bytes(record, "plain")),
    "poly1305": lambda record: Poly1305.generate_tag(_bytes(record, "key"), _bytes(record, "plain")),
    "poly1305-key": lambda record: _stream(record, 0, bytes(32)),
    "hchacha20": lambda record: envelope.hchacha20(_bytes(record, "key"), _bytes(record, "nonce")),
    "aead": _aead,
}
