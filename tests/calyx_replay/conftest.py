"""The folder that mailboxes of the reference are made of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.reference_impl.calyx_replay.launch import launch
from holdfast.servers.pace import adopted
from holdfast.servers.serving import Launched
from tests.pace import busy


@pytest.fixture(autouse=True)
def _patient() -> Iterator[None]:
    """A mailbox in this process waits for its store as long as one that the kit starts on this machine."""
    with adopted(busy(1.0)):
        yield


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    launched = launch({}, parent=tmp_path_factory.mktemp("calyx"))
    yield launched
    launched.stop()
