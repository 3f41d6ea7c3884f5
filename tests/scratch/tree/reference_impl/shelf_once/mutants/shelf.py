"""Bugs about what a shelf takes, and whether it keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.reference_impl.shelf_once.factory import Store

from holdfast.reference_impl.planting import Change, part, value


class DuplicateAccepted(Store):
    def put(self, key: str, name: str) -> bool:
        super().put(key, name)
        return True


class Unsynced(Store):
    def sync(self) -> str:
        return "PRAGMA synchronous = OFF"


BUGS: Mapping[str, Change] = {
    "shelf-duplicate-accepted": part(store=DuplicateAccepted),
    "shelf-limit-doubled": value(lambda settings: replace(settings, longest_name=2 * settings.longest_name)),
    "shelf-unsynced": part(store=Unsynced),
}
