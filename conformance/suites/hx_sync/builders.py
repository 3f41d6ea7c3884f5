"""The objects of one history: made from its session and the number of a draft, and found again by their age."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from holdfast.conformance.cases.values import base64url, from_base64url, shift
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.hx_sync.generate import Step
from holdfast.conformance.suites.hx_sync.model import Blob, Segment, Tombstone, Triple
from holdfast.conformance.suites.hx_sync.operations import Device, Lies
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import CREATED_AT

# Beside the clock: just before it, at it, and behind it.
_BESIDE = ("-0.500000s", "-0.000001s", "+0.000000s", "+0.000001s", "+0.500000s")
# More than a mebibyte, of bytes that no codec makes fewer; and more than any buffer holds.
_LARGE, _LONG = 1_300_000, 70_000
# How many events of a large segment lie in a second.
_PER_SECOND = 100


class Drafts:
    """Every object of a history, the newest last."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._session = session
        self._world = ObjectBuilder(bench, session, "history")
        self._blobs = [self._world.blob(f"blob {number}") for number in range(3)]
        self._made: list[Made] = []

    def of(self, which: int) -> Made | None:
        """The object of this age; None if none was made."""
        return self._made[-1 - which % len(self._made)] if self._made else None

    def newest(self) -> Iterator[Made]:
        """All, the newest first."""
        return reversed(self._made)

    def keep(self, made: Made) -> Made:
        """Make it the newest."""
        self._made = [*(each for each in self._made if each.key != made.key), made]
        return made

    def node_id(self, node: str) -> str:
        """The id of a device."""
        return self._world.node_id(node)

    def mark(self, node_id: str, session_id: str, seq: int) -> str | None:
        """What stands in every content of this event, if it is one of `any_segment`."""
        for node in ("a", "b", "c", "d", "z"):
            for name in ("s1", "s2"):
                if (self.node_id(node), self._world.uuid(name)) == (node_id, session_id):
                    return self._world.mark(node, name, seq)
        return None

    def marks(self) -> list[str]:
        """What can be searched for of all events."""
        return [mark for triple in sorted(self._triples()) if (mark := self.mark(*triple)) is not None]

    def _triples(self) -> set[Triple]:
        return {
            (event["node_id"], event["session_id"], event["seq"])
            for made in self.newest()
            if isinstance(made.says, Segment)
            for event in made.says.batch["events"]
        }

    def gone(self, device: Device, *, blobs: bool) -> list[Any]:
        """What a device has forgotten, to search for: titles, `blobs`, and events with the names of artifacts."""
        windows = [lies.says for lies in device.objects(Tombstone).values() if isinstance(lies.says, Tombstone)]
        titles = {
            row["title"].split(" ")[-1]
            for lies in device.objects(Segment).values()
            if isinstance(lies.says, Segment)
            for row in lies.says.batch.get("sessions", ())
            if any(window.covers(lies.says.node_id, row["started_at"]) for window in windows)
        }
        cached = {row["blob_hash"] for row in device.shown.state["blobs"]}
        plain = [
            {"bytes": made.args["bytes"]}
            for made in self.newest()
            if blobs and isinstance(made.says, Blob) and made.key in device.imported and made.args
            if made.says.blob_hash not in cached
        ]
        # In one order: the gate asks the same again.
        events = [mark for triple in sorted(device.forgotten) if (mark := self.mark(*triple)) is not None]
        return [*sorted(titles), *plain[:8], *events]

    def _dice(self, step: Step) -> Random:
        return Random(self._session.rand(f"draft {step.draft}"))  # noqa: S311 - nothing is kept secret with it

    def segment(self, step: Step) -> Made:
        """A segment of the step's device."""
        label = f"segment {step.draft}"
        if step.how == "now":
            events = [
                self._world.event(step.node, "s1", 10 + number, shift(self._session.now, beside), label)
                for number, beside in enumerate(_BESIDE)
            ]
            return self.keep(self._world.segment(step.node, label, *events))
        if step.how == "many":
            one = self._world.event(step.node, "many", 0, at(0))
            rows = ({**one, "seq": seq, "ts": at(seq / _PER_SECOND), "data": {"n": seq}} for seq in range(step.draft))
            return self.keep(self._world.segment(step.node, label, *rows))
        return self.keep(self._world.any_segment(self._dice(step), label, self._blobs, step.node))

    def contradiction(self, step: Step) -> Made | None:
        """Another batch under the id of the newest segment of this device. It is not kept."""
        for made in self.newest():
            if made.method == "publish" and made.args["node"] == step.node:
                other = self._world.any_segment(self._dice(step), f"segment {step.draft}", self._blobs, step.node)
                assert isinstance(other.says, Segment)
                return replace(made, says=other.says, args={**made.args, "batch": other.says.batch})
        return None

    def blob(self, step: Step) -> Made:
        """A blob that several histories share, or one of its own."""
        if step.how == "long":
            return self.keep(self._random(step, _LONG))
        own = self._world.blob(f"own {step.draft}")
        made = self._dice(step).choice([*self._blobs, own, own])
        return self.keep(replace(made, args={**made.args, "node": step.node}))

    def large(self, step: Step) -> Made:
        """A blob of more than a mebibyte, which fits no line of the protocol."""
        return self.keep(replace(self._random(step, _LARGE), method="", args={}))

    def _random(self, step: Step, length: int) -> Made:
        encoded = base64url(self._dice(step).randbytes(length))
        data = from_base64url(derive("hx.blob", {"bytes": encoded, "label": f"large {step.draft}"}))
        says = Blob(derive("hx.sha256", encoded))
        key = derive("hx.key", {"type": "blob", "id": says.blob_hash})
        return Made(key, data, says, "publish_blob", {"node": step.node, "bytes": encoded})

    def tombstone(self, step: Step) -> Made:
        """A window, which the step's device asks for."""
        label = f"tombstone {step.draft}"
        if step.how == "into the future":
            window = shift(self._session.now, "-1.000000s"), shift(self._session.now, "+86400.000000s")
            made = self._world.tombstone(label, *window, step.node if step.draft % 2 else None)
        elif step.how == "half of many":
            made = self._world.tombstone(label, at(0), at(step.draft / _PER_SECOND / 2))
        else:
            made = self._world.any_tombstone(self._dice(step), label)
        args = {**made.args, "node": step.node}
        if step.how == "inverted":
            args = {**args, "start_ts": made.args["end_ts"], "end_ts": shift(made.args["start_ts"], "-0.000001s")}
            return replace(made, args=args)
        return self.keep(replace(made, args=args))

    def any(self, step: Step) -> Made:
        """An object of any kind but a manifest, as another implementation has sealed it."""
        kind = self._dice(step).choice((self.segment, self.segment, self.tombstone, self.blob))
        kind = self.blob if step.how == "long" else kind
        return kind(step)


def lies_of(made: Made) -> Lies:
    """What lies at its key when the kit has sealed it."""
    return Lies(made.says, hashlib.sha256(made.data).hexdigest(), CREATED_AT)
