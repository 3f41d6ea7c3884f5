"""A commit of unknown outcome is searched for. If it is not found, the answer still does not deny it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from holdfast.reference_impl.answers import Accepted, Effect, Indeterminate
from holdfast.reference_impl.hx_sync.factory import REFERENCE
from holdfast.reference_impl.hx_sync.index import Index
from holdfast.reference_impl.sqlite import UncertainError
from tests.hx_sync.devices import at, event, opened, uuid


class Unsure(Index):
    """Reports an unknown outcome after a commit, whether it happened or not."""

    happened = True

    def commit(self, connection: sqlite3.Connection) -> None:
        if self.happened:
            super().commit(connection)
        else:
            connection.execute("ROLLBACK")
        raise UncertainError("told to be unsure")


class Lost(Unsure):
    happened = False


def prepare(root: Path) -> str:
    with opened(root) as devices:
        key = devices.publish(1, events=[event(1)])
        devices.accepted("import", node="b")
    return key


FORGET = {"node": "a", "tombstone_id": uuid(1), "start_ts": at(0), "end_ts": at(9)}


def test_what_is_found_again_was_done(tmp_path: Path) -> None:
    key = prepare(tmp_path)
    with opened(tmp_path, replace(REFERENCE, index=Unsure)) as devices:
        answer = devices.ask("import_object", node="a", key=key)
        assert isinstance(answer, Accepted | Indeterminate)
        assert devices.state("a")["segments"]
    with opened(tmp_path) as devices:
        assert devices.accepted("import_object", node="a", key=key)["effect"] == "prior"


def test_what_is_not_found_may_have_been_done(tmp_path: Path) -> None:
    key = prepare(tmp_path)
    with opened(tmp_path, replace(REFERENCE, index=Lost)) as devices:
        assert isinstance(devices.ask("import_object", node="a", key=key), Indeterminate)
        assert isinstance(devices.ask("import", node="a"), Indeterminate)
        assert isinstance(devices.ask("rebuild", node="a"), Indeterminate)
        # It is in the store, so all other devices forget.
        assert isinstance(devices.ask("forget", **FORGET), Indeterminate)
        assert len(devices.seen("objects")["objects"]) == 2
    with opened(tmp_path) as devices:
        assert devices.accepted("import_object", node="a", key=key)["effect"] == "new"
        answer = devices.ask("forget", **FORGET)
        assert isinstance(answer, Accepted)
        assert answer.effect is Effect.PRIOR
        assert devices.state("a")["events"] == []
