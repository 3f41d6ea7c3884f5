"""Adapters of the toy contract that are classes: a sound one, and others that differ from it in one thing."""

from __future__ import annotations

import os
from typing import Any

from holdfast import Adapter
from tests.hostile.adapters.honest import Adapter as Honest

Answer = dict[str, Any]


class Shelf(Adapter):
    """The honest shelf behind methods."""

    contract = "toy"
    workers = 4

    def opened(self) -> None:
        self.shelf = Honest()
        self.shelf.open({"workdir": self.workdir, "state": "fresh" if self.is_fresh else "existing"})
        self.shelf.stop_point = self.failpoint  # type: ignore[method-assign]

    def closed(self) -> None:
        self.shelf.answer({"op": "close"})

    def put(self, args: Any) -> Answer:
        done = self.shelf.put(args)
        return self.accepted(done["value"]) if done["outcome"] == "accepted" else self.refused(done["reason"])

    def state(self, args: Any) -> Answer:
        return self.ok({"entry": self.shelf.entries()})

    def audit(self, args: Any) -> Answer:
        return self.ok({"records": self.shelf.records()})

    def hold_at(self, args: Any) -> Answer:
        self.arm(args["point"], args["fault"])
        return self.ok()


class Open(Shelf):
    """Says of a nonce that was consumed that it was not."""

    def put(self, args: Any) -> Answer:
        done = super().put(args)
        return self.accepted({"entry": args}) if done.get("reason") == "NONCE_CONSUMED" else done


class Raising(Shelf):
    """Raises where it has to refuse."""

    def put(self, args: Any) -> Answer:
        done = super().put(args)
        if done["outcome"] == "refused":
            raise LookupError(done["reason"])
        return done


class Lacking(Shelf):
    """Has no audit."""

    audit = None  # type: ignore[assignment]


class Silent(Shelf):
    """Answers what is no JSON, or nothing."""

    def put(self, args: Any) -> Answer:
        return self.accepted({"entry": b"bytes"})

    def state(self, args: Any) -> Answer:
        return None  # type: ignore[return-value]


class Leaving(Shelf):
    """Ends when it is opened."""

    def opened(self) -> None:
        os._exit(0)
