"""Request fingerprints of `mesh-delivery`: requests with the seven fields that are hashed, spelt out."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.vectors.fingerprints.lint import lint_fingerprints
from holdfast.vectors.fingerprints.page import RequestPage
from holdfast.vectors.fingerprints.record import FILE, Fingerprint, read, write

__all__ = ["OTHERS", "files", "problems", "read", "records"]

OTHERS = frozenset[str]()
_PAGE, _KEY = RequestPage("mesh-delivery", "mesh"), "mesh.fingerprint"
_BROKER_ID = "0192f0c1-7a52-7c3e-9d4b-0a1b2c3d4e5f"
# The same 128 bits in Crockford's alphabet.
_BROKER_ULID = "01JBRC2YJJFGZ9TJRA3CP3TKJZ"
_PEER = "a1" * 32
# SHA-256 of no bytes, and of `hello`.
_NO_BODY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
_PLAIN = ("1", "topic", "alerts", "", "next", "", _HELLO)


def records() -> Iterator[Fingerprint]:
    """By clause, F1 to F13; what must be refused stands with its clause."""
    yield from _framing()
    yield from _destinations()
    yield from _replies_and_priorities()
    yield from _metas()
    yield from _bodies()
    yield from _refused()


def files() -> Mapping[str, bytes]:
    """See `holdfast.vectors.committed.Source`."""
    return {FILE: write(records())}


def problems() -> Iterable[str]:
    """See `holdfast.vectors.committed.Source`."""
    return lint_fingerprints(list(records()))


def _framing() -> Iterator[Fingerprint]:
    yield _key("plain", "F1", {}, _PLAIN, "the request that the others are changed from")
    yield _key(
        "all-fields",
        "F1",
        {
            "destination_kind": "dm",
            "destination_ref": _PEER,
            "reply_to": _BROKER_ID,
            "priority": "now",
            "meta": '{"k":1}',
        },
        ("1", "dm", _PEER, _BROKER_ID, "now", '{"k":1}', _HELLO),
        "every field has something in it",
    )
    yield _key("version-ten", "F2", {"envelope_version": 10}, ("10", *_PLAIN[1:]), "two digits, no padding")
    yield _key("version-two", "F2", {"envelope_version": 2}, ("2", *_PLAIN[1:]), "another version, another fingerprint")


def _destinations() -> Iterator[Fingerprint]:
    yield _key("queue", "F3", {"destination_kind": "queue"}, ("1", "queue", *_PLAIN[2:]), "a queue of the same name")
    yield _key(
        "topic-like-a-key",
        "F3",
        {"destination_ref": _PEER},
        ("1", "topic", _PEER, *_PLAIN[3:]),
        "a topic named like a public key",
    )
    yield _key(
        "dm",
        "F3",
        {"destination_kind": "dm", "destination_ref": _PEER},
        ("1", "dm", _PEER, *_PLAIN[3:]),
        "a message to that key",
    )
    yield _key(
        "dm-upper",
        "F4",
        {"destination_kind": "dm", "destination_ref": _PEER.upper()},
        ("1", "dm", _PEER, *_PLAIN[3:]),
        "a key in upper case is the same key",
        same_as="dm",
    )
    yield _key(
        "topic-case",
        "F4",
        {"destination_ref": "Alerts"},
        ("1", "topic", "Alerts", *_PLAIN[3:]),
        "a topic keeps its case",
    )
    yield _key(
        "topic-composed",
        "F4",
        {"destination_ref": "caf\u00e9"},
        ("1", "topic", "caf\u00e9", *_PLAIN[3:]),
        "a composed letter",
    )
    yield _key(
        "topic-decomposed",
        "F4",
        {"destination_ref": "cafe\u0301"},
        ("1", "topic", "cafe\u0301", *_PLAIN[3:]),
        "a decomposed letter is another topic; nothing is normalised",
    )
    yield _key(
        "topic-upper-key",
        "F4",
        {"destination_ref": _PEER.upper()},
        ("1", "topic", _PEER.upper(), *_PLAIN[3:]),
        "a topic named like a key keeps its case",
    )


def _replies_and_priorities() -> Iterator[Fingerprint]:
    replied = ("1", "topic", "alerts", _BROKER_ID, *_PLAIN[4:])
    yield _key("reply", "F5", {"reply_to": _BROKER_ID}, replied, "a reply")
    yield _key("reply-null", "F5", {"reply_to": None}, _PLAIN, "null is no reply", same_as="plain")
    yield _key("reply-empty", "F5", {"reply_to": ""}, _PLAIN, "the empty text is no reply", same_as="plain")
    yield _key("reply-upper", "F5", {"reply_to": _BROKER_ID.upper()}, replied, "the id in upper case", same_as="reply")
    yield _key("reply-ulid", "F5", {"reply_to": _BROKER_ULID}, replied, "the id as a ULID", same_as="reply")
    yield _key(
        "reply-ulid-lower", "F5", {"reply_to": _BROKER_ULID.lower()}, replied, "the ULID in lower case", same_as="reply"
    )
    for priority in ("now", "low"):
        yield _key(
            f"priority-{priority}",
            "F6",
            {"priority": priority},
            (*_PLAIN[:4], priority, *_PLAIN[5:]),
            "another priority",
        )
    yield _key("priority-named", "F6", {"priority": "next"}, _PLAIN, "the default, named", same_as="plain")


def _metas() -> Iterator[Fingerprint]:
    for name, meta, canonical, note in (
        ("order", '{"b":2,"a":1}', '{"a":1,"b":2}', "members in UTF-16 order"),
        ("utf16", '{"\uff20":1,"\U0001f600":2}', '{"\U0001f600":2,"\uff20":1}', "not the order of code points"),
        ("numbers", '{"n":1e21,"m":1e-7,"z":-0}', '{"m":1e-7,"n":1e+21,"z":0}', "the number text of ECMAScript"),
        ("raw", '{"s":"\u2028\u00e9<"}', '{"s":"\u2028\u00e9<"}', "nothing is escaped for ASCII or HTML"),
        ("nested", '{"o":{"d":[2,1],"c":null}}', '{"o":{"c":null,"d":[2,1]}}', "inner members too, arrays as they are"),
        ("nul", r'{"k":"a\u0000b"}', r'{"k":"a\u0000b"}', "NUL in meta is escaped, so it shifts nothing"),
        ("empty-value", '{"k":""}', '{"k":""}', "a member without content is no empty meta"),
    ):
        yield _key(f"meta-{name}", "F7", {"meta": meta}, (*_PLAIN[:5], canonical, _HELLO), note)
    for name, meta, same_as, canonical, note in (
        ("blanks", '{ "a" : 1 ,\n"b":2 }', "meta-order", '{"a":1,"b":2}', "whitespace and order"),
        ("spelt", r'{"\u0061":1.0,"b":0.2e1}', "meta-order", '{"a":1,"b":2}', "escapes and number spellings"),
    ):
        yield _key(f"meta-{name}", "F7", {"meta": meta}, (*_PLAIN[:5], canonical, _HELLO), note, same_as=same_as)
    for name, nothing, note in (
        ("absent-null", None, "null is no meta"),
        ("empty-object", "{}", "{} is no meta"),
        ("spaced-object", "{ }", "{} with a blank is no meta"),
        ("null-text", "null", "the text null is no meta"),
    ):
        yield _key(f"meta-{name}", "F8", {"meta": nothing}, _PLAIN, note, same_as="plain")


def _bodies() -> Iterator[Fingerprint]:
    for name, body, note in (
        ("crlf", b"a\r\nb", "line ends are bytes"),
        ("line-feed", b"a\nb", "another line end, another body"),
        ("not-utf8", b"\xff\xfe\x00", "a body is bytes, not text"),
        ("upper", b"HELLO", "another case, another body"),
    ):
        yield _key(f"body-{name}", "F9", {"body": body}, (*_PLAIN[:6], hashlib.sha256(body).hexdigest()), note)
    yield _key("body-empty", "F9", {"body": b""}, (*_PLAIN[:6], _NO_BODY), "no bytes")
    yield _key(
        "body-like-a-digest",
        "F10",
        {"body": _HELLO.encode()},
        (*_PLAIN[:6], hashlib.sha256(_HELLO.encode()).hexdigest()),
        "a body that is the digest of another body",
    )
    yield _key(
        "reference-like-fields",
        "F10",
        {"destination_ref": "alerts\x1fnext"},
        ("1", "topic", "alerts\x1fnext", *_PLAIN[3:]),
        "another separator inside a field means nothing",
    )


def _refused() -> Iterator[Fingerprint]:
    for name, clause, change, twin, note in (
        ("kind-unknown", "F3", {"destination_kind": "broadcast"}, "plain", "a kind that is not one of three"),
        ("kind-upper", "F3", {"destination_kind": "Topic"}, "plain", "a kind in another case"),
        (
            "dm-short",
            "F4",
            {"destination_kind": "dm", "destination_ref": _PEER[:-1]},
            "dm",
            "a public key with 63 digits",
        ),
        ("reply-text", "F5", {"reply_to": "None"}, "reply", "a word where an id must be"),
        ("priority-unknown", "F6", {"priority": "urgent"}, "priority-now", "a priority that is not one of three"),
        ("nul-topic", "F12", {"destination_ref": "a\x00b"}, "plain", "NUL in a topic"),
        (
            "nul-queue",
            "F12",
            {"destination_kind": "queue", "destination_ref": "a\x00"},
            "queue",
            "NUL in a queue id",
        ),
        ("nul-reply", "F12", {"reply_to": "b\x00"}, "reply", "NUL in the id of a reply"),
        ("meta-duplicate", "F13", {"meta": '{"a":1,"a":2}'}, "meta-order", "a name twice"),
        ("meta-surrogate", "F13", {"meta": r'{"a":"\ud800"}'}, "meta-raw", "half a character"),
        ("meta-nan", "F13", {"meta": '{"a":NaN}'}, "meta-numbers", "a word for no number"),
        ("meta-infinite", "F13", {"meta": '{"a":1e400}'}, "meta-numbers", "a number beyond doubles"),
        ("meta-unsafe", "F13", {"meta": '{"a":9007199254740993}'}, "meta-numbers", "2^53 + 1, which rounds to 2^53"),
        ("meta-not-utf8", "F13", {"meta": b'{"a":"\xff"}'}, "meta-raw", "bytes that are no text"),
        ("meta-array", "F13", {"meta": "[1]"}, "meta-order", "an array is no meta"),
        ("meta-nothing", "F13", {"meta": ""}, "meta-order", "no bytes are no JSON"),
    ):
        yield _PAGE.record(name, _KEY, f"MESH-4.4-{clause}", _request(change), None, note, twin=twin)


def _key(
    name: str,
    clause: str,
    change: dict[str, Any],
    fields: tuple[str, ...],
    note: str,
    *,
    same_as: str | None = None,
) -> Fingerprint:
    preimage = b"\x00".join(field.encode("utf-8") for field in fields)
    return _PAGE.record(name, _KEY, f"MESH-4.4-{clause}", _request(change), preimage, note, same_as=same_as)


def _request(change: dict[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {
        "envelope_version": 1,
        "destination_kind": "topic",
        "destination_ref": "alerts",
        "body": "hello",
    } | change
    for member in ("meta", "body"):
        value = request.get(member)
        if isinstance(value, str | bytes):
            request[member] = _spelt(value.encode("utf-8") if isinstance(value, str) else value)
    return request


def _spelt(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
