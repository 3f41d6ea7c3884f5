"""Forgetting (source sections 3.3 and 8): write a tombstone for a window of time, and apply it to one's own index."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.hx_sync import envelope, instants, ledger
from holdfast.reference_impl.hx_sync.algorithms import Key
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.nodes import Node
from holdfast.reference_impl.hx_sync.objects import Found, Objects
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Window
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from holdfast.reference_impl.instants import microseconds
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.specs.strictjson import canonical


class Forgetting:
    """Methods raise RefusedError, StoreError and UncertainError."""

    def __init__(self, objects: Objects, publishing: Publishing, importing: Importing) -> None:
        self._objects = objects
        self._layout = objects.layout
        self._publishing = publishing
        self._importing = importing

    def forget(self, node: Node, args: Any, master: Key, *, now: datetime) -> Answer:
        """The operation. After the object is in the store, only its application can be missing."""
        node_id = node.index.node_id
        asked = _window(args)
        window = _clamped(asked, microseconds(now))
        if window.start > window.end:
            raise RefusedError(Reason.TOMBSTONE_MALFORMED, "expected a window that starts before its end and now")
        key = self._layout.tombstone(args["tombstone_id"])
        own = {
            "tombstone_id": args["tombstone_id"],
            "created_at": instants.write(microseconds(now)),
            "node_id": node_id,
        }
        raw = envelope.seal(self._objects.settings, master, Kind.TOMBSTONE, own, _payload(window))
        done: Effect | None = None
        try:
            # The lock first: an index that is busy refuses before anything is published.
            with node.index.writing() as connection:
                # Every device finds it in the store.
                done = self._publishing.once(key, raw, master, lambda found: self._is_same(found, asked))
                self._apply(connection, node, key, master)
        except (RefusedError, StoreError) as error:
            if done is None:
                raise
            # Other devices apply the object from the store, so this one cannot report a refusal.
            if not (isinstance(error, UncertainError) and self._is_applied(node, key, master)):
                return Indeterminate(f"the tombstone is published, and may not be applied here: {error}")
        return self._told(node, key, done, master)

    def _told(self, node: Node, key: str, done: Effect, master: Key) -> Answer:
        try:
            self._importing.sweep(node)
            node.index.purge()
            window = self._objects.window(self._objects.fetch(key, master))
        except (RefusedError, StoreError) as error:
            return Indeterminate(f"the tombstone is published and applied, and something is left to do: {error}")
        start, end = instants.write(window.start), instants.write(window.end)
        return Accepted(done, {"key": key, "start_ts": start, "end_ts": end})

    def _apply(self, connection: sqlite3.Connection, node: Node, key: str, master: Key) -> None:
        """To one's own index, as an import does. Raises sqlite3.Error too."""
        found = self._objects.fetch(key, master)
        # One that was applied may have other bytes now: its object was removed from the store, and published again.
        if ledger.recorded(connection, found.place) is None:
            self._importing.plan(node, found).apply(connection)

    def _is_applied(self, node: Node, key: str, master: Key) -> bool:
        try:
            return self._importing.is_known(node, self._objects.fetch(key, master))
        except (RefusedError, StoreError):
            return False

    def _is_same(self, found: Found, asked: Window) -> bool:
        """Whether a tombstone is the earlier result of the same request, whose end was taken back to its own time."""
        made = instants.read(found.header.members["created_at"])
        return self._objects.window(found) == _clamped(asked, made)


def _window(args: Any) -> Window:
    """The window that is asked for. Raises RefusedError."""
    try:
        return Window(instants.read(args["start_ts"]), instants.read(args["end_ts"]), args.get("node_id"))
    except instants.InstantError as error:
        raise RefusedError(Reason.TOMBSTONE_MALFORMED, str(error)) from error


def _clamped(window: Window, now: int) -> Window:
    """Never beyond now: a tombstone does not cover future events."""
    return Window(window.start, min(window.end, now), window.node_id)


def _payload(window: Window) -> bytes:
    """The RFC 8785 form of a window."""
    scope = {} if window.node_id is None else {"node_id": window.node_id}
    start, end = instants.write(window.start), instants.write(window.end)
    return canonical({"start_ts": start, "end_ts": end, **scope})
