"""Lines to write, and ways to damage a file of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.reports.evidence import (
    AdapterIdentity,
    Artefact,
    Artefacts,
    Claimed,
    ContractPin,
    EvidenceWriter,
    Exchange,
    Header,
    Implementation,
    KitIdentity,
    Log,
    NotHashed,
    Restart,
    SeedOrigin,
    Selection,
    Source,
    VerdictLine,
)

DIGEST = "sha256:" + "0" * 64
ARTEFACTS = Artefacts.of([Artefact("guard", "0" * 64, Source.COMMAND)], not_hashed=[NotHashed("lib", "gone")])
CASES = ("toy/once/one", "toy/once/two")


@pytest.fixture
def header() -> Header:
    """A header of a run with two cases."""
    return Header(
        kit=KitIdentity("holdfast", "0.1.0", DIGEST),
        contracts=(ContractPin("toy", "0.1.0", DIGEST, DIGEST),),
        adapter=AdapterIdentity(
            ("acme-guard", "--adapter"),
            "c0ffee",
            Implementation("acme-guard", "2.1.0", "go"),
            (Claimed("toy", "0.1.0", {"clock": "system clock only"}),),
        ),
        environment={"python": "3.11.7"},
        config={"isolation": "serializable"},
        seed="5eed",
        seed_origin=SeedOrigin.CHOSEN,
        nonce=None,
        deadlines={"op": 2.0},
        started=datetime(2026, 1, 1, tzinfo=UTC),
        plan=CASES,
        selection=Selection(("toy",), None),
    )


def exchange(case: str, n: int) -> Exchange:
    """An accepted put."""
    return Exchange(
        case=case,
        side="main",
        n=n,
        action="when.0 call put",
        worker=0,
        request={"op": "call", "method": "put", "args": {"key": f"k{n}", "nonce": "n"}},
        answer={"outcome": "accepted", "effect": "new", "value": {"entry": {"key": f"k{n}", "nonce": "n"}}},
        event=None,
        sent_us=10,
        received_us=20,
    )


def verdict(case: str, word: str = "conforms") -> VerdictLine:
    """A verdict of a case."""
    return VerdictLine(case, ("TOY-01",), word, None, "", "", "", "", None, 0.25, None, None)


@pytest.fixture
def write_run(tmp_path: Path, header: Header) -> Callable[..., Path]:
    """Writes a small complete run and says where."""

    def write(name: str = "run.jsonl") -> Path:
        path = tmp_path / name
        with EvidenceWriter(path) as writer:
            writer.header(header)
            for case in CASES:
                writer.write(exchange(case, 0))
                writer.write(exchange(case, 1))
                writer.write(verdict(case))
            writer.write(Log(0, "started\n"))
            writer.write(Restart(0, "crash", 1))
            writer.write(ARTEFACTS)
            writer.finish(verdict="conforms", exit_status=0, finished=datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
        return path

    return write


@pytest.fixture
def run_path(write_run: Callable[[], Path]) -> Path:
    """A small complete run."""
    return write_run()
