"""The reference of mesh-delivery agrees with fingerprints that were written independently of it, and fails closed."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.reference_impl.mesh_delivery import claims
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.entry import implementation
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.registry import Deferred
from holdfast.specs import load_contract


def test_nobody_has_a_name_that_the_database_cannot_hold_and_it_is_not_asked() -> None:
    # Nothing listens there.
    nowhere = Administrator("host=127.0.0.1 port=1 dbname=none", Patience(0.1))
    assert nowhere.inbox("7c9e6679-7425-40de-944b-e07fc1f90ae7", "a\0b") == []
    with pytest.raises(psycopg.Error):
        nowhere.inbox("7c9e6679-7425-40de-944b-e07fc1f90ae7", "ab")


def test_without_the_extra_http_no_socket_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "find_spec", lambda name: None if name == "uvicorn" else name)
    assert set(Deferred("mesh-delivery").not_claimed) == {"http", "websocket"}
    assert implementation().not_claimed == Deferred("mesh-delivery").not_claimed
    assert Deferred("jcs").not_claimed == {}


def test_the_implementation_claims_everything_of_its_version() -> None:
    assert implementation().not_claimed == {}
    assert implementation().version == load_contract("mesh-delivery").version
