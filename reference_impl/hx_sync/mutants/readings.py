"""Bugs of hx-sync: what the source leaves open and the contract settles (HX-SEG-14 to -16, HX-LAY-7, HX-IMP-6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.header import Header, MalformedError
from holdfast.reference_impl.hx_sync.instants import InstantError, Instants
from holdfast.reference_impl.hx_sync.layout import Layout, parts_of
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Records, Window
from holdfast.reference_impl.hx_sync.terms import RefusedError
from holdfast.reference_impl.planting import Change, part

_KNOWN = (
    "a0a0a0a0-0a0a-4a0a-8a0a-a0a0a0a0a0a0",
    "b0b0b0b0-0b0b-4b0b-8b0b-b0b0b0b0b0b0",
    "c0c0c0c0-0c0c-4c0c-8c0c-c0c0c0c0c0c0",
)
_NOT_PLAIN = re.compile(rb'"seq":\s*[0-9]+[.eE]')


class PlainDigitsOnly(Records):
    def parse(self, payload: bytes) -> dict[str, Any]:
        # As a parser for 64-bit integers reads it.
        if _NOT_PLAIN.search(payload):
            raise MalformedError("seq: expected digits")
        return super().parse(payload)


class FromYearOne(Instants):
    def read(self, text: object) -> int:
        if isinstance(text, str) and text.startswith("0000"):
            raise InstantError("expected a year from 1 on")
        return super().read(text)


class TimesUnreadAtPublishing(Publishing):
    def check_batch(self, payload: bytes, header: Header) -> None:
        try:
            super().check_batch(payload, header)
        except RefusedError as error:
            # "Each device checks it again."
            if "event.ts" not in str(error):
                raise


class UnreadableWindowIsAll(Forgetting):
    def window(self, args: Any) -> Window:
        try:
            return super().window(args)
        except RefusedError:
            return Window(0, self._instants.read("9999-12-31T23:59:59Z"))


class PutAnywhere(Layout):
    def putable(self, key: str) -> bool:
        return parts_of(key) is not None and key.startswith(f"{self.objects}/")


class KnownDevicesOnly(Records):
    def check_event_node(self, node_id: Any, header: Header) -> None:
        super().check_event_node(node_id, header)
        if node_id not in _KNOWN:
            raise MalformedError("event.node_id: expected a device of this vault")


BUGS: Mapping[str, Change] = {
    "seq-of-plain-digits": part(records=PlainDigitsOnly),
    "events-from-year-one": part(instants=FromYearOne),
    "unread-times-published": part(publishing=TimesUnreadAtPublishing),
    "unread-window-forgets-all": part(forgetting=UnreadableWindowIsAll),
    "put-anywhere-under-objects": part(layout=PutAnywhere),
    "known-devices-only": part(records=KnownDevicesOnly),
}
