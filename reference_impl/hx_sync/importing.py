"""Import (source section 7): verify, then apply and record in one transaction, and never twice.

A refused object is not recorded as imported, and it does not stop the import of the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.hx_sync import ledger, merging
from holdfast.reference_impl.hx_sync.algorithms import Key
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.storage import Listing
from holdfast.reference_impl.hx_sync.terms import Hex, Kind, Reason, RefusedError
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import StoreError, UncertainError

# Tombstones first, so that forgotten events are not written and deleted again. Any order gives the same result.
_ORDER = (Kind.TOMBSTONE, Kind.SEGMENT, Kind.BLOB, Kind.MANIFEST)


@dataclass(frozen=True, slots=True)
class Plan:
    """A verified object, and how it is applied inside a transaction: whether it is new, and whether blobs have to go.

    `apply` is called if these bytes are not imported yet. It raises RefusedError, sqlite3.Error, OSError, StoreError.
    """

    found: Found
    apply: Callable[[sqlite3.Connection], tuple[bool, bool]]
    ignored: Sequence[str] = ()


@dataclass(slots=True)
class Round:
    """One import of everything. `rejected` maps keys to reasons."""

    imported: int = 0
    skipped: int = 0
    rejected: dict[str, str] = field(default_factory=dict)
    foreign: Sequence[str] = ()
    withheld: Sequence[str] = ()


class UnfinishedError(UncertainError):
    """What was asked for is done, and something is left to do. So it cannot be refused any more."""


class Importing:
    """Imports into nodes. Methods raise RefusedError, StoreError and UncertainError unless they say otherwise."""

    def __init__(self, objects: Objects, patience: Patience) -> None:
        self._objects = objects
        self._layout = objects.layout
        self._store = objects.store
        self._patience = patience

    # One object

    def import_object(self, node: Node, key: str, master: Key) -> Answer:
        """The operation."""
        found = self._objects.fetch(key, master)
        value: dict[str, Any] = {"key": key}
        if self.is_known(node, found):
            return Accepted(Effect.PRIOR, value)
        plan = self.plan(node, found)
        if plan.ignored:
            value["ignored_lists"] = list(plan.ignored)
        try:
            fresh = self.run(node, plan)
        except UnfinishedError as error:
            return Indeterminate(str(error))
        except UncertainError as error:
            # That it is not there now proves nothing: a recovery from the log may bring it back.
            if not self._looks_known(node, found):
                return Indeterminate(str(error))
            fresh = True
        try:
            self.settle(node, master)
        except StoreError as error:
            return Indeterminate(f"the object is imported, and something is left to do: {error}")
        return Accepted(Effect.NEW if fresh else Effect.PRIOR, value)

    def _looks_known(self, node: Node, found: Found) -> bool:
        try:
            return self.is_known(node, found)
        except StoreError:
            return False

    def is_known(self, node: Node, found: Found) -> bool:
        """Whether these very bytes were imported, and no part of them is missing."""
        with node.index.reading() as connection:
            return self.known(connection, node, found)

    def known(self, connection: sqlite3.Connection, node: Node, found: Found) -> bool:
        """The same inside a transaction. Raises sqlite3.Error."""
        if ledger.recorded(connection, found.place) != found.object_hash:
            return False
        return found.place.kind is not Kind.BLOB or self.is_settled(connection, node, found.place.object_id)

    def is_settled(self, connection: sqlite3.Connection, node: Node, blob_hash: Hex) -> bool:
        """Whether the bytes of a blob that was imported lie in the cache, or may not lie there."""
        if not ledger.is_cached(connection, blob_hash):
            return not ledger.available(connection, blob_hash)
        try:
            node.cache.read(blob_hash)
        except StoreError:
            return False
        return True

    def run(self, node: Node, plan: Plan) -> bool:
        """Apply and record in one transaction; whether it was new. Raises UnfinishedError once that is done."""
        with node.index.writing() as connection:
            # Another process may have been faster.
            if self.known(connection, node, plan.found):
                return False
            before = ledger.forgotten(connection)
            fresh, leaves = plan.apply(connection)
            forgets = fresh and (plan.found.place.kind is Kind.TOMBSTONE or ledger.forgotten(connection) != before)
        if leaves:
            try:
                self.sweep(node)
            except (StoreError, OSError) as error:
                raise UnfinishedError(f"the object is imported, and something is left to do: {error}") from error
        if forgets:
            node.index.purge()
        return fresh

    def plan(self, node: Node, found: Found) -> Plan:
        """Verify all of an object, and say how it is applied."""
        place = found.place
        if place.kind is Kind.SEGMENT:
            batch = self._objects.batch(found)
            return Plan(found, lambda connection: self.apply_segment(connection, found, batch), batch.ignored)
        if place.kind is Kind.TOMBSTONE:
            window = self._objects.window(found)
            return Plan(found, lambda connection: self.apply_tombstone(connection, found, window))
        if place.kind is Kind.MANIFEST:
            inventory = self._objects.inventory(found)
            return Plan(found, lambda connection: self.apply_manifest(connection, found, inventory))
        plain = self._objects.blob(found)
        return Plan(found, lambda connection: self.apply_blob(connection, node, found, plain))

    def apply_segment(self, connection: sqlite3.Connection, found: Found, batch: Any) -> tuple[bool, bool]:
        """Its records, and then that it was imported."""
        self.check_unreplaced(connection, found)
        leaves = merging.segment(connection, found.header, batch)
        ledger.record_segment(connection, found.place, found.object_hash)
        return True, leaves

    def apply_tombstone(self, connection: sqlite3.Connection, found: Found, window: Any) -> tuple[bool, bool]:
        """Remove the events that it covers, and then record it."""
        self.check_unreplaced(connection, found)
        leaves = merging.tombstone(connection, window)
        ledger.record_tombstone(connection, found.place.object_id, window, found.object_hash)
        return True, leaves

    def check_unreplaced(self, connection: sqlite3.Connection, found: Found) -> None:
        """No object with other bytes was imported in its place. Raises RefusedError."""
        if ledger.recorded(connection, found.place) is not None:
            detail = "an object of this id was imported before, with other bytes"
            raise RefusedError(Reason.OBJECT_REPLACED, detail, key=found.place.key)

    def apply_manifest(self, connection: sqlite3.Connection, found: Found, inventory: Any) -> tuple[bool, bool]:
        """What its node claims to have in the store, in place of what it claimed before."""
        ledger.record_manifest(connection, found.place.object_id, inventory, found.object_hash)
        return True, False

    def apply_blob(self, connection: sqlite3.Connection, node: Node, found: Found, plain: bytes) -> tuple[bool, bool]:
        """Into the cache if it may lie there, and then that it was imported. Sealed anew it is nothing new."""
        blob_hash = found.place.object_id
        if ledger.recorded(connection, found.place) is not None and self.is_settled(connection, node, blob_hash):
            return False, False
        cached = ledger.available(connection, blob_hash)
        if cached:
            node.cache.write(blob_hash, plain)
        ledger.record_blob(connection, blob_hash, found.object_hash, cached=cached)
        return True, False

    # What follows

    def sweep(self, node: Node) -> None:
        """Remove every file from the folder that the index does not list in its cache."""
        with node.index.writing() as connection:
            node.cache.sweep(ledger.cached(connection))

    def settle(self, node: Node, master: Key) -> None:
        """Restore the blobs that an event has made available again. A refused one waits for its object."""
        with node.index.reading() as connection:
            awaited = ledger.awaited(connection)
        for blob_hash in awaited:
            try:
                self.run(node, self.plan(node, self._objects.fetch(self._layout.blob(blob_hash), master)))
            except RefusedError:
                continue

    # Everything

    def import_all(self, node: Node, master: Key) -> Answer:
        """The operation."""
        done = Round()
        try:
            self.round(node, master, done)
        except UncertainError as error:
            return Indeterminate(str(error))
        except StoreError as error:
            if not done.imported:
                raise
            return Indeterminate(f"imported {done.imported} objects before the index or the store went away: {error}")
        value = {
            "imported": done.imported,
            "skipped": done.skipped,
            "rejected": [{"key": key, "reason": reason} for key, reason in sorted(done.rejected.items())],
            "foreign": list(done.foreign),
        }
        return Accepted(Effect.NEW if done.imported else Effect.PRIOR, value)

    def round(self, node: Node, master: Key, done: Round) -> None:
        """Every object in the store, one after the other; `done` holds the results so far."""
        listing = self._store.list(self._layout.objects)
        places, done.foreign = self.sorted_out(listing)
        for place in places:
            self._patience.begin()
            self.attempt(done, place, partial(self.take, node, place, master))
        self.sweep(node)
        self.remember(node, done, listing)

    def sorted_out(self, listing: Listing) -> tuple[list[Place], Sequence[str]]:
        """What has a place in the layout, in the order of import, and the keys of what has none."""
        placed = [(key, self._layout.place(key)) for key in listing.keys]
        places = [place for _, place in placed if place is not None]
        places.sort(key=lambda place: (_ORDER.index(place.kind), place.key))
        return places, sorted([*(key for key, place in placed if place is None), *listing.strays])

    def attempt(self, done: Round, place: Place, take: Callable[[], bool]) -> None:
        """Import one object; a refusal is noted and keeps nothing else back."""
        try:
            if take():
                done.imported += 1
            else:
                done.skipped += 1
        except RefusedError as error:
            done.rejected[place.key] = error.reason.value

    def take(self, node: Node, place: Place, master: Key) -> bool:
        """Import one object in a transaction of its own; whether it was new."""
        found = self._fetched(place, master)
        return False if self.is_known(node, found) else self.run(node, self.plan(node, found))

    def _fetched(self, place: Place, master: Key) -> Found:
        try:
            return self._objects.fetch(place.key, master)
        except StoreError as error:
            # The store is there; one object that cannot be read is no reason to keep the others back.
            self._store.check()
            raise RefusedError(Reason.STORE_UNAVAILABLE, str(error), key=place.key) from error

    def remember(self, node: Node, done: Round, listing: Listing) -> None:
        """Replace the record of the last round by the keys that this one refused, found out of place, and missed."""
        with node.index.reading() as connection:
            done.withheld = ledger.missing(connection, self._layout, set(listing.keys))
            if ledger.told(connection) == (done.rejected, list(done.foreign), list(done.withheld)):
                return
        with node.index.writing() as connection:
            ledger.tell(connection, done.rejected, done.foreign, done.withheld)

    # Anew

    def rebuild(self, node: Node, master: Key) -> Answer:
        """The operation: one transaction, so that a crash leaves the old index or the new one."""
        try:
            listing = self._store.list(self._layout.objects)
            with node.index.writing() as connection:
                ledger.reset(connection)
                done = Round()
                places, done.foreign = self.sorted_out(listing)
                for place in places:
                    self.attempt(done, place, partial(self.retake, connection, node, place, master))
                done.withheld = ledger.missing(connection, self._layout, set(listing.keys))
                ledger.tell(connection, done.rejected, done.foreign, done.withheld)
        except UncertainError as error:
            return Indeterminate(str(error))
        try:
            self.sweep(node)
            # The rebuild may be the first to find a tombstone, or a content that a tombstone covers.
            node.index.purge()
        except StoreError as error:
            return Indeterminate(f"the index is rebuilt, and something is left to do: {error}")
        return Accepted(Effect.NEW, {})

    def retake(self, connection: sqlite3.Connection, node: Node, place: Place, master: Key) -> bool:
        """Import one object inside the transaction of a rebuild; whether it was new."""
        found = self._fetched(place, master)
        if self.known(connection, node, found):
            return False
        fresh, _ = self.plan(node, found).apply(connection)
        return fresh
