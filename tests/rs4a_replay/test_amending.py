"""The suites alter a database only where the launcher says that it is made for the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.conformance.suites.rs4a_replay.ddl_changes import AMEND

OPERAND = {"database": "session_7", "change": "bare", "what": ""}
PLACE = {"dsn": "postgresql://nobody@127.0.0.1:1/server", "effect": "registry.registration"}


@pytest.mark.parametrize(
    "place",
    [
        PLACE,
        {**PLACE, "disposable": False},
        {"dsn": PLACE["dsn"], "disposable": True},
        {"effect": PLACE["effect"], "disposable": True},
        {**PLACE, "disposable": True, "other": "member"},
    ],
)
def test_no_server_is_asked_where_the_launcher_does_not_say_all_of_it(place: Mapping[str, Any]) -> None:
    found = AMEND.do(place, OPERAND)
    assert found == {
        "unique": [],
        "error": "the launcher names no server of disposable databases with effect",
    }


def test_a_server_that_cannot_be_reached_leaves_a_note_without_its_secrets() -> None:
    found = AMEND.do({**PLACE, "dsn": "postgresql://nobody:secret@127.0.0.1:1/server", "disposable": True}, OPERAND)
    assert found["unique"] == []
    assert "disposable" not in found["error"]
    assert "secret" not in found["error"]
