"""Bugs in how the lists of a segment are read (HX-SEG-9)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.records import Batch, EventRow, Records
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.planting import Change, part

_LISTS = {"events", "sessions", "artifacts", "pins"}


class OptionalListsRequired(Objects):
    def batch(self, found: Found) -> Batch:
        batch = super().batch(found)
        if not canonical.read(self.payload(found)).keys() >= _LISTS:
            raise RefusedError(Reason.SEGMENT_MALFORMED, "expected four lists", key=found.place.key)
        return batch


class EventsDefaulted(Records):
    def lists(self, value: Mapping[str, Any]) -> Mapping[str, list[Any]]:
        return super().lists({"events": [], **value})


class UnknownListsUntold(Records):
    def rows(self, value: Mapping[str, Any], header: Header) -> Batch:
        return replace(super().rows(value, header), ignored=())


class UnknownMembersIgnored(Records):
    def lists(self, value: Mapping[str, Any]) -> Mapping[str, list[Any]]:
        return super().lists({name: found for name, found in value.items() if name in _LISTS})


class WordsComposed(Records):
    def event(self, record: Any, header: Header) -> EventRow:
        row = super().event(record, header)
        return (*row[:-1], unicodedata.normalize("NFC", row[-1]))


BUGS: Mapping[str, Change] = {
    "words-composed": part(records=WordsComposed),
    "optional-lists-required": part(objects=OptionalListsRequired),
    "events-defaulted": part(records=EventsDefaulted),
    "unknown-lists-untold": part(records=UnknownListsUntold),
    "unknown-members-ignored": part(records=UnknownMembersIgnored),
}
