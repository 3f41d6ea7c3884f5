"""The committed vectors of `m5-log`: encodings of CBOR, signatures of Ed25519, and their checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.vectors.lines import read_json
from holdfast.vectors.m5_log import curve, encoding

ENCODINGS, SIGNATURES = "cbor.json", "ed25519.json"
FILES = frozenset({ENCODINGS, SIGNATURES})

Record = Mapping[str, Any]


def encodings(data: bytes | None = None) -> Sequence[Record]:
    """{cbor, source} of each encoding, with the `value` that it has in an operation, or `why` none may hold it."""
    found: Sequence[Record] = read_json(data, "m5_log", ENCODINGS)["vectors"]
    return found


def signatures(data: bytes | None = None) -> Mapping[str, Sequence[Any]]:
    """`rfc8032`: {seed, pub_key, message, signature}; `speccheck`: `valid` and `what` too; `small_order`: encodings."""
    found: Mapping[str, Sequence[Any]] = read_json(data, "m5_log", SIGNATURES)
    return found


def encoded(value: Any) -> bytes:
    """The deterministic encoding of a `value`: {integer}, {hex} and {map} stand for what JSON has not."""
    if isinstance(value, list):
        return encoding.head(4, len(value)) + b"".join(map(encoded, value))
    if not isinstance(value, dict):
        return encoding.value(value)
    ((kind, found),) = value.items()
    if kind == "map":
        pairs = {encoded(key): encoded(item) for key, item in found}
        return encoding.head(5, len(pairs)) + b"".join(key + pairs[key] for key in sorted(pairs))
    return encoding.binary(bytes.fromhex(found)) if kind == "hex" else encoding.value(int(found))


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    spelt, signed = encodings(files[ENCODINGS]), signatures(files[SIGNATURES])
    lists = {"encodings": spelt, **{name: signed[name] for name in ("rfc8032", "speccheck")}}
    yield from (f"there are no {name}, so nothing is shown" for name, held in lists.items() if not held)
    yield from encoding_problems(spelt)
    yield from signature_problems(signed)


def encoding_problems(records: Sequence[Record]) -> Iterable[str]:
    """Encodings that stand there twice, and those that are not that of their value."""
    for spelt, times in Counter(record["cbor"] for record in records).items():
        if times > 1:
            yield f"{spelt}: stands there {times} times"
    for record in records:
        if ("value" in record) is ("why" in record):
            yield f"{record['cbor']}: expected a value, or why there is none"
        elif "value" in record and encoded(record["value"]).hex() != record["cbor"]:
            yield f"{record['cbor']}: its value has the encoding {encoded(record['value']).hex()}"


def signature_problems(found: Mapping[str, Sequence[Any]]) -> Iterable[str]:
    """Signatures that are not what the numbers of the curve say."""
    for record in found["rfc8032"]:
        if curve.sign(bytes.fromhex(record["seed"]), bytes.fromhex(record["message"])).hex() != record["signature"]:
            yield f"{record['signature']}: is not the signature of its seed"
    for record in [*({**each, "valid": True} for each in found["rfc8032"]), *found["speccheck"]]:
        parts = (bytes.fromhex(record[name]) for name in ("pub_key", "message", "signature"))
        if curve.valid(*parts) is not record["valid"]:
            yield f"{record['signature']}: the vector says {record['valid']}, the curve does not"
    if {bytes.fromhex(spelt) for spelt in found["small_order"]} != curve.small_encodings():
        yield "small_order: these are not the encodings of the points of small order"
