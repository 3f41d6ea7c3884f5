"""One session: the methods of methods.yaml, bound to the parts of the reference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Senseless
from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.command_line import CommandLine
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.keys import KeyInvalidError, VaultKeys
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.ledger import Ledger
from holdfast.reference_impl.hx_sync.nodes import Name, Node, Nodes
from holdfast.reference_impl.hx_sync.objects import Objects
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.spelling import SpellingError, from_base64url, to_base64url
from holdfast.reference_impl.hx_sync.storage import Store, TooLargeError
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.hx_sync.views import SHOWN, Views
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.specs import Contract
from holdfast.specs.model import Group
from holdfast.specs.schema import explain


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything one device, or the devices of one session, work with."""

    contract: Contract
    settings: Settings
    keys: VaultKeys
    layout: Layout
    store: Store
    nodes: Nodes
    objects: Objects
    publishing: Publishing
    forgetting: Forgetting
    importing: Importing
    ledger: Ledger
    views: Views
    patience: Patience
    command_line: CommandLine
    root: Path

    def master(self) -> bytes:
        """The vault key. Raises RefusedError."""
        try:
            return self.keys.read(self.settings.vault_key)
        except KeyInvalidError as error:
            raise RefusedError(Reason.KEY_INVALID, str(error)) from error

    def close(self) -> None:
        """Give back what is open. Never raises."""
        self.nodes.close()


class Service:
    """Implements `session.Session` for hx-sync."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, parts: Parts, *, now: datetime) -> None:
        self._parts = parts
        self._now = now
        self._methods: Mapping[str, Callable[[Any], Answer]] = {
            "enroll": self.enroll,
            "publish": self.publish,
            "publish_blob": self.publish_blob,
            "publish_manifest": self.publish_manifest,
            "forget": self.forget,
            "import_object": self.import_object,
            "import": self.import_all,
            "rebuild": self.rebuild,
            "put": self.put,
            "list": self.list,
            "get": self.get,
            "state": self.state,
            "objects": self.objects,
            "blob": self.blob,
            "status": self.status,
            "command_line": lambda args: Ok(parts.command_line.run(args["node"], args["arguments"], now=self._now)),
        }

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`. Operations judge their own arguments; for the rest a misfit is the caller's fault."""
        known = self._parts.contract.methods.get(method)
        if known is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._methods)}")
        bound = self._methods[method]
        self._parts.patience.begin()
        problem = None if known.args.is_valid(args) else explain(known.args, args)
        if known.group is Group.OPERATION:
            return self._operated(bound, args, problem)
        if problem is not None:
            return Fault(f"{method}: expected arguments that fit its schema: {problem}")
        try:
            return bound(args)
        except RefusedError as error:
            return Senseless(f"{method}: cannot be told: {error}")
        except StoreError as error:
            # The stored state is unknown. Unknown is not the same as empty.
            return Fault(f"{method}: cannot be told: {error}")

    def _operated(self, bound: Callable[[Any], Answer], args: Any, problem: str | None) -> Answer:
        try:
            if problem is not None:
                raise RefusedError(Reason.REQUEST_MALFORMED, problem)
            return bound(args)
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        except StoreError as error:
            return RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()

    def begin(self) -> None:
        """The devices start: remove what a crash left in their caches. If this fails, a later start repeats it."""
        with contextlib.suppress(StoreError):
            for name in self._parts.nodes.names():
                self.mend(name)

    def mend(self, name: Name) -> None:
        """Sweep the cache of one device, if it has files and its index is free at once. Never raises."""
        with contextlib.suppress(StoreError, RefusedError, OSError):
            node = self._parts.nodes.at_once(name)
            try:
                if next(node.cache.files(), None) is not None:
                    self._parts.importing.sweep(node)
            finally:
                node.index.close()

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`."""
        self._now = now

    def close(self) -> None:
        """See `session.Session`."""
        self._parts.close()

    # Operations, each with the checks that its decision order begins with

    def _begun(self, args: Any) -> tuple[bytes, Node]:
        master = self._parts.master()
        self._parts.store.check()
        node = self._parts.nodes.node(args["node"])
        with node.index.reading():
            pass
        return master, node

    def enroll(self, args: Any) -> Answer:
        """See methods.yaml."""
        self._parts.master()
        self._parts.store.check()
        fresh = self._parts.nodes.enroll(args["node"], args["node_id"])
        return Accepted(Effect.NEW if fresh else Effect.PRIOR, {"node_id": args["node_id"]})

    def publish(self, args: Any) -> Answer:
        """See methods.yaml."""
        master, node = self._begun(args)
        return self._parts.publishing.segment(node, args["segment_id"], args["batch"], master, now=self._now)

    def publish_blob(self, args: Any) -> Answer:
        """See methods.yaml."""
        plain = self._bytes(args)
        master, _ = self._begun(args)
        return self._parts.publishing.blob(plain, master)

    def publish_manifest(self, args: Any) -> Answer:
        """See methods.yaml."""
        master, node = self._begun(args)
        return self._parts.publishing.manifest(node, master, now=self._now)

    def forget(self, args: Any) -> Answer:
        """See methods.yaml."""
        master, node = self._begun(args)
        return self._parts.forgetting.forget(node, args, master, now=self._now)

    def import_object(self, args: Any) -> Answer:
        """See methods.yaml."""
        master, node = self._begun(args)
        return self._parts.importing.import_object(node, args["key"], master)

    def import_all(self, args: Any) -> Answer:
        """See methods.yaml."""
        master, node = self._begun(args)
        return self._parts.importing.import_all(node, master)

    def rebuild(self, args: Any) -> Answer:
        """See methods.yaml."""
        master, node = self._begun(args)
        return self._parts.importing.rebuild(node, master)

    def put(self, args: Any) -> Answer:
        """See methods.yaml."""
        data = self._bytes(args)
        self._parts.store.check()
        return self._parts.publishing.put(args["key"], data)

    def _bytes(self, args: Any) -> bytes:
        try:
            return from_base64url(args["bytes"])
        except SpellingError as error:
            raise RefusedError(Reason.REQUEST_MALFORMED, f"bytes: {error}") from error

    # Observations; each raises StoreError, RefusedError

    def list(self, args: Any) -> Answer:
        """See methods.yaml."""
        return Ok({"keys": [*self._parts.store.list(args["prefix"]).keys]})

    def get(self, args: Any) -> Answer:
        """See methods.yaml."""
        try:
            data = self._parts.store.get(args["key"])
        except TooLargeError as error:
            return Fault(f"get: {error}")
        return Ok({"found": data is not None, "bytes": None if data is None else to_base64url(data)})

    def state(self, args: Any) -> Answer:
        """See methods.yaml."""
        self._parts.store.check()
        names = [args["node"]] if "node" in args else self._parts.nodes.names()
        found: dict[str, list[dict[str, Any]]] = {each: [] for each in (*SHOWN, "digests")}
        for name in names:
            node = self._parts.nodes.node(name)
            with node.index.reading() as connection:
                lists = self._parts.views.all(connection, node)
            for each, rows in lists.items():
                found[each].extend({"at": name, **row} for row in rows)
            found["digests"].append({"at": name, "digest": self._parts.views.digest(lists)})
        return Ok({each: self._in_order(rows) for each, rows in found.items()})

    def _in_order(self, rows: Any) -> Any:
        return sorted(rows, key=canonical.write)

    def objects(self, _: Any) -> Answer:
        """See methods.yaml."""
        parts = self._parts
        rows = []
        for key in parts.store.list(parts.layout.objects).keys:
            place = parts.layout.place(key)
            try:
                raw = None if place is None else parts.store.get(key)
            except TooLargeError as error:
                return Fault(f"objects: {error}")
            # One that has gone since it was listed is not there.
            if place is not None and raw is not None:
                told = {"key": key, "object_type": place.kind.value, "id": place.object_id}
                rows.append({**told, "sha256": parts.objects.hash(raw)})
        return Ok({"objects": rows})

    def blob(self, args: Any) -> Answer:
        """See methods.yaml."""
        node = self._parts.nodes.node(args["node"])
        with node.index.reading() as connection:
            is_cached = self._parts.ledger.is_cached(connection, args["blob_hash"])
            plain = node.cache.read(args["blob_hash"]) if is_cached else None
        return Ok({"found": plain is not None, "bytes": None if plain is None else to_base64url(plain)})

    def status(self, args: Any) -> Answer:
        """See methods.yaml."""
        node = self._parts.nodes.node(args["node"])
        with node.index.reading() as connection:
            return Ok(self._parts.views.status(connection, node, self._parts.ledger.told(connection)))
