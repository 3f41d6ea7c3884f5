"""The harness itself places, reads, links, lists and removes files of a workdir for suite tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.conformance.adapter.messages import Reply
from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.drive import Driver
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.session import Action
from tests.harness.ledger import LEDGER
from tests.harness.suite_play import bench_on

pytestmark = pytest.mark.usefixtures("helper")


class Alone(Driver):
    """A driver whose worker agrees to everything; what is done without a worker is done as ever."""

    def __init__(self, workdir: Path) -> None:
        pool = SimpleNamespace(deadlines=SimpleNamespace(session=60.0), epoch_ns=0)
        super().__init__(cast("WorkerPool", pool), workdir, config={})

    def exchange(self, action: Action) -> None:
        for worker, request in action.requests:
            self.write_reply(action, worker, request, Reply({"outcome": "ok"}, None, 0, 0))

    def finish(self, judgement: Any) -> None:
        """The folder is the test's own."""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SuiteSession]:
    bench = bench_on(LEDGER, "ledger/suite/files", lambda _: Alone(tmp_path), workers=1)
    with bench.session() as opened:
        yield opened


def test_what_is_placed_and_linked_is_seen_and_can_be_removed(session: SuiteSession, tmp_path: Path) -> None:
    session.place("store/deep/one", b"\xff\x00")
    session.link("store/two", "deep/one")
    seen = session.file("store/deep/one")
    assert (seen["kind"], seen["size"], seen["bytes"]) == ("file", 2, "_wA")
    assert session.tree("store") == [
        {"path": "store/deep", "kind": "folder", "size": None},
        {"path": "store/deep/one", "kind": "file", "size": 2},
        {"path": "store/two", "kind": "link", "size": None},
    ]
    assert session.tree("nothing") == []
    session.copy("store", "kept")
    session.remove("store/deep/one")
    assert not session.file("store/deep/one")["exists"]
    assert [row["path"] for row in session.tree("kept")] == ["kept/deep", "kept/deep/one", "kept/two"]
    assert (tmp_path / "store" / "two").is_symlink()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda session: session.remove("store/none"), "no file in the workdir"),
        (lambda session: session.tree("store/one"), "cannot be listed"),
        (lambda session: session.link("store/one", "x"), "File exists"),
        (lambda session: session.place("store", b""), "Is a directory"),
    ],
)
def test_what_cannot_be_done_ends_the_test_as_not_reached(
    session: SuiteSession, act: Callable[[SuiteSession], object], words: str
) -> None:
    session.place("store/one", b"1")
    with pytest.raises(NonConformance, match=words) as found:
        act(session)
    assert found.value.judgement.verdict.value == "not_reached"
