"""Bugs in how the lists of a segment are read (HX-SEG-9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.mutants.planting import mutant
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.records import Batch, Records
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.mutants.catalogue import Mutant
from holdfast.reference_impl.mutants.planting import EVERYTHING, part

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


MUTANTS: tuple[Mutant, ...] = (
    mutant(
        "optional-lists-required",
        "A segment that leaves out one of the four lists is refused",
        part(objects=OptionalListsRequired),
        {"SEG-9": "over_refusal"},
        {EVERYTHING: "most segments have no more than events"},
    ),
    mutant(
        "events-defaulted",
        "A segment without events is one with no events",
        part(records=EventsDefaulted),
        {"SEG-9": "fail_open"},
    ),
    mutant(
        "unknown-lists-untold",
        "Nobody is told of lists that are ignored",
        part(records=UnknownListsUntold),
        {"SEG-9": "wrong_reason"},
    ),
    mutant(
        "unknown-members-ignored",
        "Whatever else stands beside the lists is ignored",
        part(records=UnknownMembersIgnored),
        {"SEG-9": "fail_open"},
    ),
)
