"""The pytest plug-in: the cases of contracts as tests of your own project (docs/pytest.md).

pytest loads it wherever holdfast is installed, so it imports pytest alone until one of its options is given.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.conformance.run.fixture import Holdfast

_CONTRACT, _ADAPTER = "--holdfast-contract", "--holdfast-adapter"
OPTIONS = {
    _CONTRACT: {"action": "append", "metavar": "NAME", "help": "add the cases of this contract; repeat for more"},
    _ADAPTER: {"metavar": "COMMAND", "help": "the adapter that they ask"},
    "--holdfast-launcher": {"metavar": "COMMAND", "help": "command that provisions what the adapter needs"},
    "--holdfast-config": {"action": "append", "metavar": "K=V", "help": "for every session; repeat for more"},
    "--holdfast-pass-env": {"action": "append", "metavar": "NAME", "help": "variable the adapter may see; repeat"},
    "--holdfast-evidence": {"metavar": "FILE", "help": "where the evidence goes (default: holdfast-out/run.jsonl.zst)"},
    "--holdfast-quick": {"action": "store_true", "help": "the scripted cases alone; the gate will not take the run"},
    "--holdfast-no-faults": {"action": "store_true", "help": "without faults; the gate will not take the run"},
    "--holdfast-seed": {"metavar": "TEXT", "help": "fixes every random suffix; the gate will not take the run"},
    "--holdfast-nonce": {"metavar": "TEXT", "help": "known to you alone before; the seed is derived from it"},
    "--holdfast-commit": {"metavar": "REV", "help": "revision that the adapter was built from"},
    "--holdfast-gate": {"action": "store_true", "help": "the session fails unless CAN_PROCEED = YES"},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("holdfast", "conformance of an adapter (holdfast)")
    for name, words in OPTIONS.items():
        group.addoption(name, **words)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Set an older run aside before anything can fail, so that it cannot stand for this one. Raises UsageError."""
    given = early_config.known_args_namespace
    asked = any(getattr(given, name.strip("-").replace("-", "_")) for name in OPTIONS)
    if asked and not given.collectonly and "PYTEST_XDIST_WORKER" not in os.environ:
        from holdfast.conformance.cli.outermost.older_runs import EVIDENCE
        from holdfast.reports.earlier import EarlierError, set_aside

        try:
            set_aside(early_config.invocation_params.dir / (given.holdfast_evidence or EVIDENCE))
        except EarlierError as error:
            raise pytest.UsageError(f"holdfast: {error}") from error


def pytest_configure(config: pytest.Config) -> None:
    """Add the cases if they are asked for. Raises UsageError."""
    given = [name for name in OPTIONS if config.getoption(name)]
    missing = [name for name in (_CONTRACT, _ADAPTER) if name not in given]
    if given and missing:
        raise pytest.UsageError(f"{given[0]}: expected {' and '.join(missing)} too; nothing was proven")
    if given:
        from holdfast.conformance.cli.in_pytest import begin

        begin(config)


@pytest.fixture
def holdfast(tmp_path: Path) -> Holdfast:
    """`holdfast.verify(contract, adapter)` and `holdfast.crash(store)`, which fail the test (docs/python.md)."""
    from holdfast.conformance.run.fixture import Holdfast

    return Holdfast(tmp_path)
