"""Envelopes, keys and forgeries of `calyx-replay`, computed from the contract (methods.yaml, `$defs/bytes`).

Bytes travel as base64url without padding. A sender is named by a label; its Ed25519 seed is the SHA-256 of that label.
What a forger does to a signature is written out here.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import uuid
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.vectors.spelling import canonical, checked, decoded, encoded, known, utc_instant

# The form of values of `calyx-replay` that stand by themselves: instants, identifiers of a list, and retentions.
# Two values of one form are one value. A form of None says that the contract leaves open what the value is.

# Twice the window of the contract, in microseconds.
_LEAST_RETENTION = 600_000_000
# methods.yaml, $defs/msg_id.
_MOST_OF_AN_ID = 256


def instant(text: str) -> str | None:
    """A timestamp, character for character; None where the contract leaves open whether it is one."""
    return None if utc_instant(text) is None else text


def msg_id(text: str) -> str:
    """A message id, UUID version 4 in lower case, fixed by `text`."""
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode("utf-8")).digest()[:16], version=4))


def id_list(asked: Mapping[str, Any]) -> str:
    """A list of version 0, base64url: {first, more, of}. The ids of `first`, and so many `more`, fixed by `of`."""
    ids = [*asked["first"], *(msg_id(f"{asked['of']} {number}") for number in range(asked["more"]))]
    return listed(ids)


def listed_id(text: str) -> str | None:
    """An entry of that list; None where it is another spelling of an id, and for what may be too long to be one."""
    if not isinstance(text, str):
        raise ValueError("no text")
    if not 0 < len(text) <= _MOST_OF_AN_ID:
        return None
    try:
        return text if str(uuid.UUID(text.strip())) == text else None
    except ValueError:
        return text if text == text.strip() else None


def retention(hours: Any) -> Mapping[str, str]:
    """A retention in microseconds; of the class `short` below twice the window. Raises ValueError for no number."""
    microseconds = Fraction(hours) * 3_600_000_000
    named = {"class": "short"} if microseconds < _LEAST_RETENTION else {}
    return {"form": str(microseconds), **named}


def pruned(asked: Mapping[str, Any]) -> int:
    """How many records of these ages in hours are older than the retention: {retention_hours, ages_hours}."""
    return sum(Fraction(age) > Fraction(asked["retention_hours"]) for age in asked["ages_hours"])


PROTOCOL_VERSION = "calyx-mail/0.1"
# RFC 8032 section 5.1: the prime of the field, and the order of the base point.
_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_ENVELOPE = frozenset({"key", "header", "ciphertext", "protocol_version", "extra", "drop"})
_BYTES = frozenset({"ciphertext", "signature", "header.sender_key"})
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_SECONDS = re.compile(r"(T[0-9]{2}:[0-9]{2}:[0-9])([0-9])")


def _seed(label: str) -> bytes:
    return hashlib.sha256(label.encode("utf-8")).digest()


@lru_cache(maxsize=1024)
def _private(seed: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_key(seed: bytes) -> bytes:
    """The public key of a 32-byte seed (RFC 8032)."""
    return _private(seed).public_key().public_bytes_raw()


def sign(seed: bytes, message: bytes) -> bytes:
    """The signature of `message`, 64 bytes (RFC 8032)."""
    return _private(seed).sign(message)


def sender_key(label: str) -> str:
    """The public key of the sender of that label, base64url."""
    return encoded(public_key(_seed(label)))


def sender_fp(label: str) -> str:
    """The fingerprint of that sender: SHA-256 of its public key, 64 lower-case hex digits."""
    return hashlib.sha256(public_key(_seed(label))).hexdigest()


def sender_fp_of_key(key: Any) -> str:
    """The fingerprint of a public key as base64url, of any length; of a text that is none, that of its characters."""
    text = str(key)
    try:
        data = decoded(text)
    except ValueError:
        data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()


def replay_key(envelope: str) -> str:
    """The key of an envelope: SHA-256 over its bytes as they stand, 64 lower-case hex digits."""
    return hashlib.sha256(decoded(envelope)).hexdigest()


def _message(parts: Mapping[str, Any]) -> bytes:
    """The signed bytes: all members but the signature."""
    return canonical({name: part for name, part in parts.items() if name != "signature"}).encode("utf-8")


def envelope(draft: Mapping[str, Any]) -> str:
    """The bytes of an envelope that is signed: {key, header, ciphertext, protocol_version?, extra?, drop?}.

    `header` needs no sender_key and no sender_fp; one that stands there is kept. `extra` are further members at the
    top, `drop` lists members to leave out, as `header.msg_id`; both before it is signed. `drop: [signature]` is after.
    """
    known(draft, _ENVELOPE, "an envelope")
    label = draft["key"]
    parts: dict[str, Any] = {
        "protocol_version": draft.get("protocol_version", PROTOCOL_VERSION),
        "header": {"sender_key": sender_key(label), "sender_fp": sender_fp(label), **draft["header"]},
        "ciphertext": draft["ciphertext"],
        **draft.get("extra", {}),
    }
    dropped = list(draft.get("drop", ()))
    for path in dropped:
        if path != "signature":
            place, name = _place(parts, path)
            del place[name]
    if "signature" not in dropped:
        parts["signature"] = encoded(sign(_seed(label), _message(parts)))
    return encoded(canonical(parts).encode("utf-8"))


def _place(parts: dict[str, Any], path: str, *, absent: bool = False) -> tuple[dict[str, Any], str]:
    *way, name = path.split(".")
    place = parts
    for part in way:
        place = place[part]
    if name not in place and not absent:
        raise ValueError(f"the envelope has no {path}")
    return place, name


def _parts(of: str) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(decoded(of))
    return parts


def variant(asked: Mapping[str, str]) -> str:
    """Another spelling of an envelope: {envelope, how}. Its meaning is the same, at least to a lenient reader."""
    how = asked["how"]
    if how not in VARIANTS:
        raise ValueError(f"no variant is called {how!r}; known: {', '.join(VARIANTS)}")
    return encoded(VARIANTS[how](decoded(asked["envelope"])))


def _with(path: str, change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        parts = json.loads(data)
        place, name = _place(parts, path)
        place[name] = change(place[name])
        return canonical(parts).encode("utf-8")

    return changed


def _text(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return lambda data: change(data.decode("utf-8")).encode("utf-8")


def _in_order(*names: str) -> Callable[[bytes], bytes]:
    def ordered(data: bytes) -> bytes:
        parts = json.loads(data)
        return ("{" + ",".join(f"{canonical(name)}:{canonical(parts[name])}" for name in names) + "}").encode("utf-8")

    return ordered


def _spare_bits(text: str) -> str:
    """The same bytes with one of the bits set that base64 does not use."""
    if len(text) % 4 not in (2, 3):
        raise ValueError("a text without spare bits: its bytes are a multiple of three")
    return text[:-1] + _ALPHABET[_ALPHABET.index(text[-1]) | 1]


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)


def _spaced(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True, separators=(", ", ": "))


def _extended(data: bytes) -> bytes:
    return canonical({**json.loads(data), "note": "beside"}).encode("utf-8")


_VERSION = f'"{PROTOCOL_VERSION}"'
VARIANTS: dict[str, Callable[[bytes], bytes]] = {
    "duplicate-member": _text(lambda text: f'{text[:-1]},"protocol_version":{_VERSION}}}'),
    "member-order": _in_order("protocol_version", "header", "ciphertext", "signature"),
    "whitespace": _text(_spaced),
    "unicode-escape": _text(lambda text: text.replace(_VERSION, '"\\u0063' + _VERSION[2:])),
    "escaped-solidus": _text(lambda text: text.replace(_VERSION, _VERSION.replace("/", "\\/"))),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "leading-space": lambda data: b" " + data,
    "trailing-newline": lambda data: data + b"\n",
    "trailing-bytes": lambda data: data + b"{}",
    "trailing-nul": lambda data: data + b"\x00",
    "utf-16": lambda data: b"\xff\xfe" + data.decode("utf-8").encode("utf-16-le"),
    "padded-signature": _with("signature", _padded),
    "spare-bits-signature": _with("signature", _spare_bits),
    "padded-sender-key": _with("header.sender_key", _padded),
    "spare-bits-sender-key": _with("header.sender_key", _spare_bits),
    "padded-ciphertext": _with("ciphertext", _padded),
    "spare-bits-ciphertext": _with("ciphertext", _spare_bits),
    "uppercase-fp": _with("header.sender_fp", str.upper),
    "uppercase-recipient": _with("header.recipient_fp", str.upper),
    "uppercase-msg-id": _with("header.msg_id", str.upper),
    "extra-member": _extended,
}


def malleated(asked: Mapping[str, str]) -> str:
    """An envelope whose signature is another encoding of a good one: {envelope, how, key?}.

    `s-plus-l` adds the group order to S; `trailing-bytes` puts a byte after the signature; `r-reencoded` flips the
    sign bit of R, or with the sender's `key` signs with R as the identity in an encoding beyond the field's prime,
    which a verifier accepts that decodes R without asking whether its encoding is the canonical one.
    """
    parts = _parts(asked["envelope"])
    how = asked["how"]
    signature = decoded(parts["signature"])
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if how == "s-plus-l":
        signature = r + (s + _L).to_bytes(32, "little")
    elif how == "trailing-bytes":
        signature += b"\x00"
    elif how == "r-reencoded":
        signature = (
            _signed_at_identity(_seed(asked["key"]), _message(parts))
            if "key" in asked
            else r[:31] + bytes([r[31] ^ 0x80]) + signature[32:]
        )
    else:
        raise ValueError(f"no malleation is called {how!r}; known: s-plus-l, r-reencoded, trailing-bytes")
    return encoded(canonical({**parts, "signature": encoded(signature)}).encode("utf-8"))


def _signed_at_identity(seed: bytes, message: bytes) -> bytes:
    """R is the identity, as y = p + 1; S = k a, so that S B = R + k A (RFC 8032 section 5.1.7)."""
    r = (_P + 1).to_bytes(32, "little")
    secret = bytearray(hashlib.sha512(seed).digest()[:32])
    secret[0] &= 248
    secret[31] = (secret[31] & 127) | 64
    k = int.from_bytes(hashlib.sha512(r + public_key(seed) + message).digest(), "little")
    return r + (k * int.from_bytes(secret, "little") % _L).to_bytes(32, "little")


def altered(asked: Mapping[str, Any]) -> str:
    """An envelope in which one thing is another: {envelope, part, resign, key?, to?, at?}.

    `part` is a path such as `header.timestamp`; it becomes `to`, or the nearest other value of its kind. With `to` it
    may be a new member. Of bytes one bit is changed, `at` the `first` (as is usual), the `middle` or the `last` byte.
    `resign: true` signs it with `key`; with the part `header.sender_key` it is then that key's envelope.
    """
    parts = copy.deepcopy(_parts(asked["envelope"]))
    path, resign = asked["part"], asked["resign"]
    place, name = _place(parts, path, absent="to" in asked)
    if resign and path == "header.sender_key":
        parts["header"] |= {"sender_key": sender_key(asked["key"]), "sender_fp": sender_fp(asked["key"])}
    else:
        place[name] = asked["to"] if "to" in asked else _other(path, place[name], asked.get("at", "first"))
    if resign:
        parts["signature"] = encoded(sign(_seed(asked["key"]), _message(parts)))
    return encoded(canonical(parts).encode("utf-8"))


def _other(path: str, value: Any, at: str) -> str:
    """Another value of the same kind, so that only the signature shows the difference."""
    if not isinstance(value, str):
        raise ValueError(f"{path} is no text; say `to`")
    if path in _BYTES:
        data = bytearray(decoded(value))
        if not data:
            return encoded(b"\x00")
        data[{"first": 0, "middle": len(data) // 2, "last": -1}[at]] ^= 1
        return encoded(bytes(data))
    if path == "header.timestamp":
        return _SECONDS.sub(lambda match: f"{match[1]}{(int(match[2]) + 1) % 10}", value, count=1)
    if path in {"header.msg_id", "header.sender_fp", "header.recipient_fp"}:
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return value + "x"


def spliced(asked: Mapping[str, Any]) -> str:
    """An envelope with one more string in its header, in the bytes of a JSON token: {key, header, ciphertext, value}.

    `value` is the token as base64url; with `name` in its place it is the name of the member. The sender has signed the
    canonical form, or the bytes as they stand where these bytes have none. A name that cannot be read stands last.
    """
    part = "name" if "name" in asked else "value"
    token = decoded(asked[part])
    try:
        plain = json.loads(token)
        canonical(plain).encode("utf-8")
    except ValueError:
        plain = None
    name, held = ("x", "a value" if plain is None else plain) if part == "value" else (plain or "~", "x")
    member = f"{canonical(name)}:{canonical(held)}".encode()
    spelt = b'"x":' + token if part == "value" else token + b':"x"'
    draft = {"key": asked["key"], "header": {**asked["header"], name: held}, "ciphertext": asked["ciphertext"]}
    parts = _parts(envelope(draft))
    if plain is None:
        parts["signature"] = encoded(sign(_seed(asked["key"]), _message(parts).replace(member, spelt)))
    return encoded(canonical(parts).encode("utf-8").replace(member, spelt))


# The values of leaves (methods.yaml, x-leaf)


def outer(text: str) -> str | None:
    """An envelope as it travels; None for spare bits and half a byte, which the contract does not speak of.

    Raises ValueError for other characters.
    """
    if re.fullmatch("[A-Za-z0-9_-]*", text) is None:
        raise ValueError("no base64url without padding")
    return text if len(text) % 4 != 1 and encoded(decoded(text)) == text else None


def binary(text: str) -> str:
    """Bytes in an envelope, in their one spelling. Raises ValueError for another."""
    if outer(text) is None:
        raise ValueError("spare bits, or half a byte")
    return text


def text(envelope: str) -> str:
    """The JSON text of an envelope."""
    return decoded(envelope).decode("utf-8")


def part(asked: Mapping[str, str]) -> str:
    """One member of an envelope: {envelope, part}."""
    place, name = _place(_parts(asked["envelope"]), asked["part"])
    found: str = place[name]
    return found


def document(text: str) -> str:
    """A JSON text in its canonical form. Raises ValueError for another."""
    if canonical(json.loads(text)) != text:
        raise ValueError("not the RFC 8785 form")
    return text


def left(text: str) -> str | None:
    """The same in a file; None with blanks around it, which a reader of files may take off."""
    return None if text != text.strip() and document(text.strip()) else document(text)


def listed(ids: list[Any]) -> str:
    """The bytes of a list as version 0 left it."""
    return encoded(json.dumps(ids).encode("utf-8"))


DERIVATIONS = {
    function.__name__: checked(function)
    for function in (
        altered,
        binary,
        document,
        envelope,
        id_list,
        instant,
        left,
        listed,
        listed_id,
        malleated,
        msg_id,
        outer,
        part,
        pruned,
        replay_key,
        retention,
        sender_fp,
        sender_fp_of_key,
        sender_key,
        spliced,
        text,
        variant,
    )
}
