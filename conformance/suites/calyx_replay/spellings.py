"""calyx-replay: the committed vectors of `jcs` inside an envelope, and as the list that version 0 left.

Each string of the vectors becomes a value and a name in the header of an envelope of its own, in its own bytes. The
sender has signed these bytes, so that only the encoding is wrong where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.specs.strictjson import loads
from holdfast.vectors.derive import derive
from holdfast.vectors.record import Refused, Vector, load
from holdfast.vectors.taxonomy import Category, Profile

# An array of one string, as most vectors of strings are.
_ONE_STRING = re.compile(rb'\[("(?:[^"\\]|\\.)*")\]', re.DOTALL)
# Objects whose names sort in an unusual way, or are special in some language.
_OF_NAMES = (Category.ORDER_UTF16, Category.ORDER_PREFIX, Category.ORDER_TRAPS)
# What no reader of JSON may take for JSON. A byte order mark may be ignored (RFC 8259, section 8.1).
_NO_JSON, _BOM = ("SYNTAX", "INVALID_UTF8"), b"\xef\xbb\xbf"


def _agreed() -> Iterator[Vector]:
    """The vectors of which all profiles say the same."""
    return (each for each in load() if each.refused_by in (0, sum(profile.bit for profile in Profile)))


@cache
def _strings() -> Sequence[tuple[bytes, bool, str]]:
    """Strings of JSON as they are spelt, whether that is the canonical form, and the id of the vector."""
    found = ((_ONE_STRING.fullmatch(each.document), each) for each in _agreed())
    return [(match[1], each.canonical == each.document, each.id) for match, each in found if match is not None]


@cache
def _objects() -> Sequence[tuple[Mapping[str, Any], str]]:
    """Objects with names of every kind, and the id of the vector."""
    canonical = (
        (loads(each.canonical), each.id) for each in _agreed() if each.category in _OF_NAMES and each.canonical
    )
    return [(value, name) for value, name in canonical if isinstance(value, dict) and value]


@cache
def _texts() -> Sequence[tuple[bytes, str]]:
    """Bytes that are no JSON, and the id of the vector."""
    refused = ((each.document, each.expected[Profile.CORE], each.id) for each in _agreed())
    return [
        (document, name)
        for document, answer, name in refused
        if isinstance(answer, Refused) and answer.reason in _NO_JSON and not document.startswith(_BOM)
    ]


def _draft(session: SuiteSession, label: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    header = {
        "msg_id": derive("calyx.msg_id", session.hex64(f"id {label}")),
        "recipient_fp": session.hex64("recipient"),
        "timestamp": session.now,
        **(more or {}),
    }
    return {"key": "sender", "header": header, "ciphertext": base64url(label.encode())}


@clause("CALYX-KEY-6", "CALYX-KEY-1")
def test_a_header_holds_every_canonical_string_and_no_other_spelling_of_one(bench: Bench) -> None:
    """As the value of a further member, and as its name."""
    with bench.session() as session:
        for token, is_canonical, name in _strings():
            for part in ("value", "name"):
                spliced = {**_draft(session, f"{part} {name}"), part: base64url(token)}
                sent = derive("calyx.spliced", spliced)
                _judged(bench, session, sent, f"{name} as a {part}", refused=not is_canonical)
        for members, name in _objects():
            sent = derive("calyx.envelope", _draft(session, f"names {name}", dict.fromkeys(members, "x")))
            _judged(bench, session, sent, f"the names of {name}", refused=False)


def _judged(bench: Bench, session: SuiteSession, sent: str, what: str, *, refused: bool) -> None:
    answer = session.call("accept", {"envelope": sent})
    due = "refused ENVELOPE_MALFORMED" if refused else "accepted new"
    value, key = bench.must_be(answer, due, f"an envelope whose header has {what}"), derive("calyx.replay_key", sent)
    if not refused and (value or {}).get("replay_key") != key:
        bench.fail("fail_open", f"the key of an envelope with {what}", expected=key, received=f"{value}")


@clause("CALYX-MIG-7")
def test_bytes_that_are_no_json_are_no_list(bench: Bench) -> None:
    """Nothing is taken over from them, and nothing else is recorded."""
    place = str(bench.contract.parameters["seen_cache_path"].value)
    with bench.session() as session:
        for data, name in _texts():
            session.place(place, data)
            what = f"a list that is {name} of the vectors"
            bench.must_be(session.call("migrate"), "refused MIGRATION_MALFORMED", what)
