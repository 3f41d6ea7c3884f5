"""Sets of objects for devices to import, sealed by the kit itself."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.hx_sync.view import Blob, Object, Row, Segment, Tombstone, normal
from holdfast.vectors.derive import derive

# The devices that a session begins with.
NODES = ("a", "b", "c")
_BEGIN = datetime(2025, 12, 31, 12, tzinfo=UTC)
# What only RFC 8785 writes so: numbers, names in the order of UTF-16, escapes of control characters. A writer may have
# another way for data without one of these, so few events have all.
_NUMBERS = {"zero": 0, "number": 1.5, "large": 1e21, "small": 5e-324, "micro": 1e-6}
_NAMES = {
    "\U0001f600": "behind in code points, before in UTF-16",
    "\ufb33": {"\u00e9": "e\u0301", "\u20ac": '\n"\\/\u007f\u2028'},
}
_ESCAPED = {"\0": "a\0b", "escaped": "\u000f"}
# Comes first and is long, without its texts too.
_LONG = {"A": [0] * 520}
# One of these is in an event.
_ODD: tuple[dict[str, Any], ...] = (
    _NUMBERS | _NAMES,
    _LONG | _NAMES,
    _LONG | _NUMBERS,
    _NUMBERS | _NAMES | _ESCAPED,
    _NAMES,
    {},
)
# What is easily lost.
_EMPTY = {"none": None, "empty": [[], {}, ""]}
# What stores of text are apt to cut, normalise or strip; each is shown as it was published.
TEXTS = (
    "title",
    "other",
    "nul \0 behind",
    "\ufeffmark",
    "\u00e9 e\u0301",
    "\x01\x1f\x7f\u2028 ",
    " \t\r\n",
    "\ufffe\U0010ffff",
)
# How the same instant may be spelled, in minutes of offset.
OFFSETS = (0, 60, -330, 825)
# How long the kind of an event may be, in characters; and a character that other counts take for more than one.
_KIND, _WIDE = 64, "\U0001f600"


def at(seconds: float, *, offset: int = 0) -> str:
    """The instant `seconds` after noon of the day before sessions begin, with a UTC `offset` in minutes."""
    moment = _BEGIN + timedelta(seconds=seconds)
    if not offset:
        return moment.isoformat().replace("+00:00", "Z")
    sign, minutes = ("-", -offset) if offset < 0 else ("+", offset)
    local = (moment + timedelta(minutes=offset)).replace(tzinfo=None)
    return f"{local.isoformat()}{sign}{minutes // 60:02d}:{minutes % 60:02d}"


def _near(dice: random.Random, second: float) -> float:
    """That second or a microsecond beside it, where an edge shows."""
    return second + dice.choice([0, 0, 0, 0.000001, -0.000001])


@dataclass(frozen=True, slots=True)
class Made:
    """An object of the store: where it lies, its bytes, and what it says to the model.

    `method` and `args` are how a device is asked to publish the same itself.
    """

    key: str
    data: bytes
    says: Object
    method: str
    args: Row


class ObjectBuilder:
    """Ids and objects of one session, all of its own labels."""

    def __init__(
        self, bench: Bench, session: SuiteSession, label: str, *, algorithm: str = "xchacha20-poly1305"
    ) -> None:
        self._session = session
        self._label = label
        self._parameters = bench.contract.parameters
        self._algorithm = algorithm

    def node_id(self, name: str) -> str:
        """The id of a device, of one that a session begins with or another."""
        return str(self._parameters[f"node_{name}"].value) if name in NODES else self.uuid(f"node {name}")

    def uuid(self, label: str) -> str:
        """An id."""
        made: str = derive("hx.uuid", f"{self._session.rand(self._label)}-{label}")
        return made

    def event(self, node: str, session: str, seq: int, ts: str, text: str = "") -> dict[str, Any]:
        """An event of a device; `text` makes it another content."""
        mark = self.mark(node, session, seq)
        odd = random.Random(mark).choice(_ODD)  # noqa: S311 - nothing is kept secret with it
        data = {"text": f"{self._label} {text}", "mark": mark, **_EMPTY, **odd}
        key = {"node_id": self.node_id(node), "session_id": self.uuid(session), "seq": seq}
        # Some are as long as a kind may be, of characters that are two units of UTF-16. Each can be searched for.
        kind = f"{mark} {_WIDE * _KIND}"[:_KIND] if seq % 2 else f"note {mark}"
        return {**key, "ts": ts, "kind": kind, "data": data}

    def mark(self, node: str, session: str, seq: int) -> str:
        """What stands in every content of this event and nowhere else, to search for."""
        return self._session.rand(f"{self._label} {node} {session} {seq}")

    def artifact(self, label: str, session: str, seq: int, blob: Made, name: str = "file") -> dict[str, Any]:
        """That an event made a blob."""
        assert isinstance(blob.says, Blob)
        key = {"artifact_id": self.uuid(f"artifact {label}"), "session_id": self.uuid(session), "seq": seq}
        return {**key, "blob_hash": blob.says.blob_hash, "name": name}

    def session(self, label: str, started_at: str, title: str = "") -> dict[str, Any]:
        """A session."""
        return {"session_id": self.uuid(label), "started_at": started_at, "title": title or label}

    def pin(self, node: str, session: str, seq: int, *, pinned: bool = True) -> dict[str, Any]:
        """A segment that pins or unpins an event of device a, b or c."""
        return {
            "node_id": self.node_id(node),
            "session_id": self.uuid(session),
            "seq": seq,
            "pinned": pinned,
        }

    def segment(self, node: str, label: str, *events: Row, **lists: Sequence[Row]) -> Made:
        """A segment of device a, b or c."""
        batch = {"events": list(events), **{name: list(rows) for name, rows in lists.items()}}
        node_id, segment_id = self.node_id(node), self.uuid(label)
        # One of four is as another writer spells it (HX-SEG-14).
        payload = {"payload_text": _spelt(batch)} if segment_id[-1] in "048c" else {"payload": batch}
        asked = {"type": "segment", "label": label, "id": segment_id, "node_id": node_id, **payload}
        args = {"node": node, "segment_id": asked["id"], "batch": batch}
        return self._made("hx.object", asked, Segment(node_id, batch), "publish", args)

    def tombstone(self, label: str, start_ts: str, end_ts: str, scope: str | None = None) -> Made:
        """A tombstone for the events of one device or of all, issued by device c."""
        says = Tombstone(self.uuid(label), start_ts, end_ts, None if scope is None else self.node_id(scope))
        payload = {"start_ts": start_ts, "end_ts": end_ts, **({} if says.scope is None else {"node_id": says.scope})}
        asked = {"type": "tombstone", "label": label, "id": says.tombstone_id, "payload": payload}
        args = {"node": "c", "tombstone_id": says.tombstone_id, **payload}
        return self._made("hx.object", {**asked, "node_id": self.node_id("c")}, says, "forget", args)

    def blob(self, content: str) -> Made:
        """A blob of this text."""
        encoded = derive("hx.canonical", f"{self._label} {content}")
        says = Blob(derive("hx.sha256", encoded))
        asked, args = {"bytes": encoded, "label": f"blob {content}"}, {"node": "b", "bytes": encoded}
        return self._made("hx.blob", asked, says, "publish_blob", args)

    def _made(self, name: str, asked: Row, says: Object, method: str, args: Row) -> Made:
        label = self.uuid(f"sealed {asked['label']}")
        text = derive(name, {"algorithm": self._algorithm, **asked, "label": label})
        return Made(derive("hx.key", {"object": text}), from_base64url(text), says, method, args)

    def round(self, part: int) -> list[Made]:
        """What is published in one round: segments of two devices that overlap, a blob, a tombstone in the second."""
        blob = self.blob(f"of {part % 3}")
        base = 100 * part
        mine = [self.event("a", "s1", 10 * part + number, at(base + number)) for number in range(6)]
        again = self.event("a", "s1", 10 * part - 10, at(base - 100)) if part else self.event("a", "s9", 0, at(1))
        artifacts, sessions = [self.artifact(f"{part}", "s1", 10 * part, blob)], [self.session("s1", at(0))]
        pins = [self.pin("a", "s1", 10 * part + 1), self.pin("b", "s1", part, pinned=False)]
        made = [
            self.segment("a", f"a {part}", *mine, again, artifacts=artifacts, sessions=sessions),
            self.segment("b", f"b {part}", self.event("b", "s1", part, at(base + 2)), pins=pins),
            self.segment("a", f"overlaps {part}", *mine[2:4]),
            blob,
        ]
        if part == 1:
            made.append(self.tombstone("round", at(99), at(103), "a"))
        return made

    def any_objects(self, dice: random.Random, count: int) -> list[Made]:
        """Objects of all kinds that meet in few events, times, sessions and blobs."""
        blobs = [self.blob(f"blob {number}") for number in range(4)]
        made = []
        for number in range(count):
            if dice.random() < 0.25:
                made.append(self.any_tombstone(dice, f"t{number}"))
            else:
                made.append(self.any_segment(dice, f"segment {number}", blobs, dice.choice("ab")))
        return [*made, *blobs]

    def any_tombstone(self, dice: random.Random, label: str) -> Made:
        """A window that meets few of the times of `any_segment`."""
        start = _near(dice, dice.randrange(40))
        end = max(start, _near(dice, start + dice.choice([0, 0, 3, 8])))
        spelled = [at(second, offset=dice.choice(OFFSETS)) for second in (start, end)]
        return self.tombstone(label, spelled[0], spelled[1], dice.choice([None, "a", "b"]))

    def _when(self, dice: random.Random, usual: float) -> str:
        """Any time, or half of the times the usual one, so that the same content comes again in another segment."""
        second = usual if dice.random() < 0.5 else _near(dice, dice.randrange(40))
        return at(second, offset=dice.choice(OFFSETS))

    def _titled(self, dice: random.Random, node: str, session: str) -> dict[str, Any]:
        """A content of a session, whose title stands in no content that began at another time."""
        began, word = self._when(dice, 20), dice.choice([*TEXTS, *[TEXTS[0]] * len(TEXTS)])
        mark = self._session.rand(f"{self._label} {node} {session} began {normal(began)}")
        return self.session(session, began, f"{word} {mark}")

    def any_segment(self, dice: random.Random, label: str, blobs: Sequence[Made], node: str) -> Made:
        """A segment of a device that meets others in few events, times, sessions and blobs."""
        places = dice.sample([(session, seq) for session in ("s1", "s2") for seq in range(4)], dice.randrange(1, 5))
        events = [
            self.event(node, session, seq, self._when(dice, 7 * seq), dice.choice(["", "", "other"]))
            for session, seq in places
        ]
        artifacts = [
            self.artifact(
                str(which),
                session,
                seq,
                dice.choice(blobs),
                f"{dice.choice(TEXTS)} {self.mark(node, session, seq)}",
            )
            # Each of an event of its own segment: what is due for an artifact whose event is nowhere is open.
            for which, (session, seq) in enumerate(places)
            if dice.random() < 0.5
        ]
        sessions = [
            self._titled(dice, node, session)
            for session in sorted({session for session, _ in places})
            if dice.random() < 0.7
        ]
        pins = [
            self.pin(dice.choice("ab"), dice.choice(["s1", "s2"]), dice.randrange(4), pinned=dice.random() < 0.7)
            for _ in range(dice.randrange(3))
        ]
        # Two records of one segment on one event say both, in either order.
        pins += [{**pin, "pinned": not pin["pinned"]} for pin in pins if dice.random() < 0.5]
        return self.segment(node, label, *events, artifacts=artifacts, sessions=sessions, pins=pins)


def _spelt(batch: Row) -> str:
    """A batch with blanks, and with zeros that have a sign and a fraction in what its events say."""
    return json.dumps(
        {**batch, "events": [{**each, "data": _signed(each["data"])} for each in batch["events"]]},
        ensure_ascii=False,
        indent=1,
    )


def _signed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _signed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_signed(inner) for inner in value]
    return -0.0 if type(value) is int and value == 0 else value
