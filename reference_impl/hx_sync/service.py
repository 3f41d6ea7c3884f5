"""One session: the methods of methods.yaml, bound to the parts of the reference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl import base64url
from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Senseless
from holdfast.reference_impl.commanding import commanded, session_words
from holdfast.reference_impl.hx_sync import keys, ledger, views
from holdfast.reference_impl.hx_sync.algorithms import Key
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.importing import Importing
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.nodes import Name, Node, Nodes
from holdfast.reference_impl.hx_sync.objects import Objects, hash_of
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.s3 import connected
from holdfast.reference_impl.hx_sync.settings import load_settings
from holdfast.reference_impl.hx_sync.storage import Store, TooLargeError
from holdfast.reference_impl.hx_sync.terms import CONTRACT, Reason, RefusedError
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.specs import kept_terms
from holdfast.specs.model import Group
from holdfast.specs.schema import explain
from holdfast.specs.strictjson import canonical


class Parts:
    """Everything that the devices below one folder work with, usually one device of one person."""

    def __init__(self, root: Path, config: Mapping[str, str], *, where: str | Path | None = None) -> None:
        """The store lies below `root` too, unless `where` names another folder, or `s3://BUCKET/PREFIX`.

        Raises OpenError, ValueError.
        """
        self.root = root
        self.config = config
        self.settings = load_settings(config)
        self.layout = Layout(self.settings.store_folder, self.settings.vault_id)
        self.patience = Patience()
        most = self.settings.max_object_bytes
        self.store: Store = (
            connected(where, self.layout, max_object_bytes=most)
            if isinstance(where, str)
            else FolderStore(where or root, self.layout, max_object_bytes=most)
        )
        self.nodes = Nodes(root, self.settings, self.patience)
        self.objects = Objects(self.settings, self.layout, self.store)
        self.publishing = Publishing(self.objects)
        self.importing = Importing(self.objects, self.patience)
        self.forgetting = Forgetting(self.objects, self.publishing, self.importing)

    def master(self) -> Key:
        """The vault key. Raises RefusedError."""
        try:
            return keys.read(self.settings.vault_key)
        except keys.KeyInvalidError as error:
            raise RefusedError(Reason.KEY_INVALID, str(error)) from error

    def close(self) -> None:
        """Give back what is open. Never raises."""
        self.nodes.close()


class Service:
    """Implements `session.Session` for hx-sync."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, parts: Parts, *, now: datetime, mutant: str | None = None) -> None:
        """`mutant` is the planted bug of this process, for that of a command line."""
        self._parts = parts
        self._now = now
        self._mutant = mutant
        self._known = kept_terms(CONTRACT).methods

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`. Operations judge their own arguments; for the rest a misfit is the caller's fault."""
        known = self._known.get(method)
        if known is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._known)}")
        # A method has its name of the contract, but for the one that Python reserves.
        bound: Callable[[Any], Answer] = getattr(self, "import_all" if method == "import" else method)
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
            return base64url.read(args["bytes"])
        except base64url.SpellingError as error:
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
        return Ok({"found": data is not None, "bytes": None if data is None else base64url.write(data)})

    def state(self, args: Any) -> Answer:
        """See methods.yaml."""
        self._parts.store.check()
        names = [args["node"]] if "node" in args else self._parts.nodes.names()
        found: dict[str, list[dict[str, Any]]] = {each: [] for each in (*views.SHOWN, "digests")}
        for name in names:
            node = self._parts.nodes.node(name)
            with node.index.reading() as connection:
                lists = views.lists(connection, node)
            for each, rows in lists.items():
                found[each].extend({"at": name, **row} for row in rows)
            found["digests"].append({"at": name, "digest": views.digest(lists)})
        return Ok({each: sorted(rows, key=canonical) for each, rows in found.items()})

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
                rows.append({**told, "sha256": hash_of(raw)})
        return Ok({"objects": rows})

    def blob(self, args: Any) -> Answer:
        """See methods.yaml."""
        node = self._parts.nodes.node(args["node"])
        with node.index.reading() as connection:
            is_cached = ledger.is_cached(connection, args["blob_hash"])
            plain = node.cache.read(args["blob_hash"]) if is_cached else None
        return Ok({"found": plain is not None, "bytes": None if plain is None else base64url.write(plain)})

    def status(self, args: Any) -> Answer:
        """See methods.yaml."""
        node = self._parts.nodes.node(args["node"])
        with node.index.reading() as connection:
            return Ok(views.status(connection, node, ledger.told(connection)))

    # Provocations

    def command_line(self, args: Any) -> Answer:
        """See methods.yaml. Raises OSError, subprocess.SubprocessError."""
        device = ["--home", str(self._parts.root), "--node", args["node"]]
        session = session_words(self._parts.config, self._mutant, now=self._now)
        return Ok(commanded(["hx", *args["arguments"], *device, *session]))
