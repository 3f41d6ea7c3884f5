"""One envelope has one spelling and one signature; everything else is refused before the store is asked."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from nacl.signing import SigningKey

from holdfast.reference_impl.answers import Fault
from holdfast.specs import load_terms
from holdfast.specs.strictjson import canonical
from tests.calyx_replay.conftest import Box, b64, content, envelope, key_of, sender, signed

# The order of the group, RFC 8032 section 5.1.
L = 2**252 + 27742317777372353535851937790883648493
MALFORMED, INVALID = "ENVELOPE_MALFORMED", "SIGNATURE_INVALID"


def _text(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return lambda raw: change(raw.decode()).encode()


def _dumped(**options: Any) -> Callable[[bytes], bytes]:
    return lambda raw: json.dumps(json.loads(raw), **options).encode()


def _spare_bits(text: str) -> str:
    """The same bytes, with a bit set that means nothing."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return text[:-1] + alphabet[alphabet.index(text[-1]) | 1]


def _respelt(member: str, change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    def respelt(raw: bytes) -> bytes:
        value = json.loads(raw)
        place = value if member in value else value["header"]
        place[member] = change(place[member])
        return canonical(value)

    return respelt


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "space after comma": _dumped(separators=(", ", ":"), sort_keys=True),
    "space after colon": _dumped(separators=(",", ": "), sort_keys=True),
    "indented": _dumped(indent=1, sort_keys=True),
    "other member order": lambda raw: json.dumps(
        dict(reversed(json.loads(raw).items())), separators=(",", ":")
    ).encode(),
    "other order in the header": lambda raw: json.dumps(
        {**json.loads(raw), "header": dict(reversed(json.loads(raw)["header"].items()))},
        separators=(",", ":"),
    ).encode(),
    "leading space": lambda raw: b" " + raw,
    "leading newline": lambda raw: b"\n" + raw,
    "trailing newline": lambda raw: raw + b"\n",
    "trailing carriage return": lambda raw: raw + b"\r",
    "trailing nul": lambda raw: raw + b"\0",
    "trailing value": lambda raw: raw + b"{}",
    "byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "utf-16": lambda raw: raw.decode().encode("utf-16"),
    "utf-32": lambda raw: raw.decode().encode("utf-32-le"),
    "escaped letter in a value": _text(lambda text: text.replace("calyx-mail", "\\u0063alyx-mail")),
    "escaped letter in a name": _text(lambda text: text.replace('"header"', '"\\u0068eader"')),
    "escaped slash": _text(lambda text: text.replace("calyx-mail/0.1", "calyx-mail\\/0.1")),
    "duplicate member, same value": _text(lambda text: '{"protocol_version":"calyx-mail/0.1",' + text[1:]),
    "duplicate member, other value": _text(lambda text: '{"ciphertext":"AAAA",' + text[1:]),
    "duplicate member in the header": _text(lambda text: text.replace('"header":{', '"header":{"x":"1",', 1)),
    "duplicate name by an escape": _text(lambda text: '{"\\u0063iphertext":"AAAA",' + text[1:]),
    "padded signature": _respelt("signature", lambda text: text + "=="),
    "spare bits in the signature": _respelt("signature", _spare_bits),
    "spare bits in the sender key": _respelt("sender_key", _spare_bits),
    "padded sender key": _respelt("sender_key", lambda text: text + "="),
    "padded ciphertext": _respelt("ciphertext", lambda text: text + "="),
    "newline in the ciphertext": _respelt("ciphertext", lambda text: text + "\n"),
    "space in the ciphertext": _respelt("ciphertext", lambda text: " " + text),
    "standard alphabet": _respelt("ciphertext", lambda _: "++//"),
    "one character too many": _respelt("ciphertext", lambda _: "AAAAA"),
    "upper-case sender_fp": _respelt("sender_fp", str.upper),
    "upper-case recipient_fp": _respelt("recipient_fp", str.upper),
    "upper-case msg_id": _respelt("msg_id", str.upper),
    "msg_id without hyphens": _respelt("msg_id", lambda text: text.replace("-", "")),
    "msg_id as urn": _respelt("msg_id", lambda text: "urn:uuid:" + text),
    "msg_id in braces": _respelt("msg_id", lambda text: "{" + text + "}"),
    "fullwidth digits": _respelt("recipient_fp", lambda _: "\uff11" * 64),
    "nothing": lambda _: b"",
    "array around it": lambda raw: b"[" + raw + b"]",
    "text around it": lambda raw: json.dumps(raw.decode()).encode(),
}


@pytest.mark.parametrize("how", SPELLINGS)
def test_no_second_spelling_of_an_accepted_envelope_is_taken(box: Box, how: str) -> None:
    raw = envelope(x="1")
    other = SPELLINGS[how](raw)
    assert other != raw
    assert box.outcome(raw) == "new"
    assert box.outcome(other) == MALFORMED
    assert box.keys() == {key_of(raw)}
    assert box.outcome(raw) == "REPLAY_DUPLICATE"


CONTENTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "further member": lambda value: value.update(replay_key="00" * 32),
    "no ciphertext": lambda value: value.pop("ciphertext"),
    "other protocol version": lambda value: value.update(protocol_version="calyx-mail/0.2"),
    "protocol version as number": lambda value: value.update(protocol_version=0.1),
    "header as text": lambda value: value.update(header="x"),
    "ciphertext as number": lambda value: value.update(ciphertext=1),
    "number in the header": lambda value: value["header"].update(priority=1),
    "null in the header": lambda value: value["header"].update(priority=None),
    "object in the header": lambda value: value["header"].update(more={"deep": {"deeper": "x"}}),
    "no msg_id": lambda value: value["header"].pop("msg_id"),
    "no recipient_fp": lambda value: value["header"].pop("recipient_fp"),
    "no sender_fp": lambda value: value["header"].pop("sender_fp"),
    "no sender_key": lambda value: value["header"].pop("sender_key"),
    "no timestamp": lambda value: value["header"].pop("timestamp"),
    "timestamp as number": lambda value: value["header"].update(timestamp=1767268800),
    "UUID of version 1": lambda value: value["header"].update(msg_id="4b0ce8ee-e6a0-11f0-8000-000000000000"),
    "UUID of another variant": lambda value: value["header"].update(msg_id="4b0ce8ee-e6a0-41f0-0000-000000000000"),
    "fingerprint of another key": lambda value: value["header"].update(sender_fp="cd" * 32),
    "short sender key": lambda value: value["header"].update(
        sender_key=b64(b"k" * 31), sender_fp=hashlib.sha256(b"k" * 31).hexdigest()
    ),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_a_signed_envelope_of_another_shape_is_malformed(box: Box, what: str) -> None:
    value = content(sender())
    CONTENTS[what](value)
    assert box.outcome(signed(value, sender())) == MALFORMED
    assert box.keys() == set()


def test_an_envelope_as_long_as_the_contract_allows_is_taken_and_one_byte_more_is_not(box: Box) -> None:
    value = content(sender(), filler="")
    room = int(load_terms("calyx-replay").parameters["max_envelope_bytes"].value or 0) - len(signed(value, sender()))
    for more, expected in ((0, "new"), (1, MALFORMED)):
        value["header"]["filler"] = "x" * (room + more)
        assert box.outcome(signed(value, sender())) == expected


@pytest.mark.parametrize(
    "args", [{}, {"envelope": 1}, {"envelope": "A"}, {"envelope": "AB"}, {"envelope": "A=="}, [], 3]
)
def test_arguments_that_are_no_bytes_are_malformed_requests(box: Box, args: Any) -> None:
    answer = box.session.call("accept", args)
    assert getattr(answer, "reason", None) == "REQUEST_MALFORMED"


# Signatures


def _with_signature(raw: bytes, signature: bytes) -> bytes:
    return canonical({**json.loads(raw), "signature": b64(signature)})


def _signature(raw: bytes) -> bytes:
    return base64.urlsafe_b64decode(json.loads(raw)["signature"] + "==")


def _s_plus(raw: bytes, times: int) -> bytes:
    signature = _signature(raw)
    s = int.from_bytes(signature[32:], "little") + times * L
    return _with_signature(raw, signature[:32] + s.to_bytes(32, "little"))


MALLEATIONS: dict[str, Callable[[bytes], bytes]] = {
    "S + L": lambda raw: _s_plus(raw, 1),
    "S + 2 L": lambda raw: _s_plus(raw, 2),
    "trailing byte": lambda raw: _with_signature(raw, _signature(raw) + b"\0"),
    "the message behind it": lambda raw: _with_signature(raw, _signature(raw) + b"message"),
    "cut short": lambda raw: _with_signature(raw, _signature(raw)[:-1]),
    "empty": lambda raw: _with_signature(raw, b""),
    "zeros": lambda raw: _with_signature(raw, bytes(64)),
    "R negated": lambda raw: _with_signature(
        raw, _signature(raw)[:31] + bytes([_signature(raw)[31] ^ 0x80]) + _signature(raw)[32:]
    ),
    "S bit flipped": lambda raw: _with_signature(raw, _signature(raw)[:63] + bytes([_signature(raw)[63] ^ 1])),
    "another sender's": lambda raw: signed(json.loads(raw), sender("mallory")),
    "ciphertext exchanged": lambda raw: canonical({**json.loads(raw), "ciphertext": b64(b"other")}),
}


@pytest.mark.parametrize("how", MALLEATIONS)
def test_no_second_signature_of_an_accepted_envelope_is_taken(box: Box, how: str) -> None:
    raw = envelope()
    assert box.outcome(MALLEATIONS[how](raw)) == INVALID
    assert box.keys() == set()
    assert box.outcome(raw) == "new"
    assert box.outcome(MALLEATIONS[how](raw)) == INVALID
    assert box.delivered() == [key_of(raw)]


# Points of small order: the identity, the point of order two, and two encodings that are not canonical.
@pytest.mark.parametrize(
    "key",
    [
        bytes([1]) + bytes(31),
        (2**255 - 20).to_bytes(32, "little"),
        bytes(32),
        (2**255 - 18).to_bytes(32, "little"),
        bytes([1]) + bytes(30) + bytes([0x80]),
    ],
)
def test_a_key_of_small_order_signs_nothing(box: Box, key: bytes) -> None:
    value = content(sender(), sender_key=b64(key), sender_fp=hashlib.sha256(key).hexdigest())
    # R the identity and S zero: valid for every message under a lenient check.
    raw = canonical({**value, "signature": b64(bytes([1]) + bytes(63))})
    assert box.outcome(raw) == INVALID


# The key


def test_the_key_is_over_the_whole_envelope_and_over_nothing_else(box: Box) -> None:
    value = content(sender(), note="n", replay_key="00" * 32)
    raw = signed(value, sender())
    assert box.value("replay_key", envelope=b64(raw)) == {"replay_key": key_of(raw)}
    assert box.value("accept", envelope=b64(raw))["replay_key"] == key_of(raw)


def test_equal_message_ids_are_two_envelopes_and_their_rows_bear_their_own_headers(box: Box) -> None:
    first = content(sender("a"), msg_id="0c3b8a5e-3b0a-4b6c-8d8e-0123456789ab", recipient_fp="12" * 32)
    second = content(sender("b"), msg_id="0c3b8a5e-3b0a-4b6c-8d8e-0123456789ab", at="2026-01-01T12:00:00.10Z")
    sent = {}
    for value, label in ((first, "a"), (second, "b")):
        raw = signed(value, sender(label))
        assert box.outcome(raw) == "new"
        sent[key_of(raw)] = value["header"]
    for row in box.value("state")["replay_state"]:
        header = sent.pop(row["replay_key"])
        assert {name: row[name] for name in ("msg_id", "sender_fp", "recipient_fp")} == {
            name: header[name] for name in ("msg_id", "sender_fp", "recipient_fp")
        }
        assert row["envelope_timestamp"] == header["timestamp"]
        assert row["seen_at"] == "2026-01-01T12:00:00.000000Z"
    assert sent == {}


def test_a_key_is_told_of_what_can_be_decoded_and_of_nothing_else(box: Box) -> None:
    stale = envelope(at="1999-01-01T00:00:00Z")
    assert box.value("replay_key", envelope=b64(stale)) == {"replay_key": key_of(stale)}
    assert isinstance(box.call("replay_key", envelope=b64(b"{}")), Fault)
    assert isinstance(box.call("nothing"), Fault)
    assert isinstance(box.call("state", more=1), Fault)


def test_the_key_pair_of_the_rfc_signs(box: Box) -> None:
    """RFC 8032, section 7.1, test 1."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    key = SigningKey(seed)
    assert bytes(key.verify_key).hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert box.outcome(signed(content(key), key)) == "new"
