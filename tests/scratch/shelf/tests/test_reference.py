"""The reference of shelf-once, called without an adapter."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from shelf_once.reference.entry import implementation

from holdfast.reference_impl.answers import Refused
from holdfast.reference_impl.session import OpenRequest, StateWanted, SurfaceWanted


def test_a_name_is_put_once(tmp_path: Path) -> None:
    request = OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, tmp_path, datetime.now(UTC), {})
    session = implementation().open(request)
    session.call("put", {"name": "one"})
    assert session.call("put", {"name": "one"}) == Refused("DUPLICATE")
    session.close()
