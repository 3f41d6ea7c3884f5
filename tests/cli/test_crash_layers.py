"""`holdfast crash` and what it takes away: files, locks, disks, processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.conformance.faults import dependencies
from holdfast.conformance.faults.probe import Probe, mounting
from holdfast.conformance.faults.report import Layer
from holdfast.specs import schema
from tests.conftest import missing
from tests.faults.stores.catalogue import ENVIRONMENT, Store

# The package has the command under the name of its module.
CRASH = import_module("holdfast.conformance.cli.crash.command")
REFUSED = "Operation not permitted"


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])


def crash(store: str, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and what is said as JSON."""
    options = ["--least", *([] if "--ops" in words else ["--ops", "4"]), "--format", "json"]
    family, _, variant = store.partition("-")
    done = CliRunner().invoke(app, ["crash", *options, *words, "--", *Store(family, variant).command()])
    said = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("crash"), said) is None
    return done.exit_code, said


def layers(*names: str) -> Sequence[str]:
    return [word for name in names for word in ("--layer", name)]


def test_every_layer_of_a_store_has_a_name() -> None:
    # A contract alone has a clock. It alone kills by signals, where processes cannot be traced.
    of_contracts = {Layer.SIGNALS, Layer.CLOCK_BACK, Layer.CLOCK_FORWARD}
    assert {*CRASH._LAYERS.values()} == {*Layer} - of_contracts


def test_what_is_taken_away_needs_no_tracer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CRASH, "probe", lambda: Probe(REFUSED, "", REFUSED))
    status, said = crash("log-right", *layers("power", "missing", "locked", "down"))
    power, missing, locked, down = said["layers"]
    assert power["unproven"] == ["NOT TESTED: Operation not permitted"]
    assert (power["clean"], power["tried"]) == (False, 0)
    assert [one["clean"] for one in (missing, locked, down)] == [True] * 3
    assert [one["tried"] for one in (missing, locked, down)] == [1, 2, 0]
    assert down["beside"] == "does not apply: it starts no process of its own"
    assert status == 12


def test_a_layer_that_does_not_apply_proves_nothing_alone() -> None:
    status, said = crash("log-right", *layers("down"))
    assert said["layers"][0]["beside"] == "does not apply: it starts no process of its own"
    assert status == 12
    status, said = crash("log-right", *layers("down", "missing"))
    assert status == 0


TRACED = ("power", "torn", "short", "sync")


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize("names", [TRACED, pytest.param(tuple(CRASH._LAYERS), marks=pytest.mark.sweep)])
def test_a_store_that_never_calls_write_passes_without_the_layers_of_writes(names: Sequence[str]) -> None:
    if "full" in names and (reason := mounting()):
        missing(reason)
    status, said = crash("mapped-right", "--ops", "2", "--slow", "2", *layers(*names))
    found = dict(zip(names, said["layers"], strict=True))
    assert not any(one["findings"] for one in said["layers"])
    for layer in ("torn", "short"):
        assert (found[layer]["tried"], found[layer]["total"]) == (0, 0)
        assert found[layer]["beside"].startswith("does not apply: none of its")
    assert found["power"]["tried"]
    assert status == 0


def test_without_namespaces_two_layers_are_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "mounting", lambda: REFUSED)
    status, said = crash("log-right", *layers("readonly", "full"))
    assert [one["unproven"] for one in said["layers"]] == [["NOT TESTED: Operation not permitted"]] * 2
    assert status == 12


def test_a_store_may_promise_to_notice_damage() -> None:
    status, said = crash("log-right", *layers("truncated"))
    assert (status, said["layers"][0]["clean"]) == (0, True)
    status, said = crash("log-right", "--detects", *layers("truncated"))
    assert status == 10
    assert {found["class"] for found in said["layers"][0]["findings"]} == {"lost"}
    state = said["layers"][0]["findings"][0]["state"]
    assert Path(state).exists()


def test_values_are_large_enough_to_fill_a_disk() -> None:
    if reason := mounting():
        missing(reason)
    status, said = crash("log-swallow", *layers("full"))
    assert status == 10
    assert said["layers"][0]["layer"] == "disk full"
