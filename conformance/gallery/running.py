"""An entry of the gallery, `entries/NAME/entry.toml` beside a small service and its `service.toml`; and its run.

A run installs it, verifies it whole, and each case that does not conform twice more.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from holdfast.conformance.cases.record import Record
from holdfast.conformance.gallery.timeline import curls, timeline
from holdfast.conformance.verdict import Verdict
from holdfast.reports.evidence import Run, read_evidence
from holdfast.servers.wires.profile import CONTRACT
from holdfast.specs.errors import unknown

ENTRIES = Path(__file__).parent / "entries"
_FILE = "entry.toml"


class EntryError(ValueError):
    """There is no such entry, or it cannot be read."""


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A limit that the library's own documentation or its issue tracker states, and the cases that fail by it.

    `url` is where the quotation stands, in the version of the entry.
    """

    cases: tuple[str, ...]
    quote: str
    source: str
    url: Annotated[str, msgspec.Meta(pattern="^https://")]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a library before it is run."""

    title: str
    language: str
    package: str
    version: str
    homepage: str
    store: str
    install: tuple[str, ...]
    safe: str
    declared: tuple[Declared, ...] = ()
    # Whom the findings were reported to, when and where; empty as long as no maintainer was informed.
    disclosure: str = ""

    def quoted(self, case: str) -> Declared | None:
        """The limit that a case fails by, if the documentation states it."""
        return next((limit for limit in self.declared if case in limit.cases), None)


def names() -> list[str]:
    """Every entry."""
    return sorted(file.parent.name for file in ENTRIES.glob(f"*/{_FILE}"))


def read(name: str) -> Entry:
    """An entry. Raises EntryError."""
    if name not in names():
        raise EntryError(unknown("entry", name, names()))
    try:
        return msgspec.convert(tomllib.loads((ENTRIES / name / _FILE).read_text(encoding="utf-8")), Entry)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise EntryError(f"{name}/{_FILE}: {error}") from error


TRIES = 3
_INSTALL_S, _RUN_S = 1200, 1800
_SHOWN = ("conforms", "unsupported")
# The service of an entry as its advice has it.
SAFE = "safe.toml"


class RunError(Exception):
    """An entry could not be installed or run; nothing is known of it then."""


@dataclass(frozen=True, slots=True)
class RepeatedFailure:
    """A case that does not conform: how often of TRIES, what was said of it, and what was done."""

    case: str
    verdict: str
    times: int
    detail: str
    lines: Sequence[str]
    curls: Sequence[str]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run of an entry showed."""

    date: str
    verdicts: Mapping[str, str]
    findings: Sequence[RepeatedFailure]
    # The digest of the kit, which covers the tests.
    suite: str = ""
    # What the second profile showed, the one that follows the advice; None if there is none.
    safe: Mapping[str, str] | None = None


def installed(name: str, entry: Entry, below: Path) -> Path:
    """A copy of the entry in which its install commands were run. Raises RunError."""
    folder = below / name
    shutil.copytree(ENTRIES / name, folder, dirs_exist_ok=True)
    shutil.copy(ENTRIES / "valkey.py", folder)
    for command in entry.install:
        words = shlex.split(command.replace("{python}", sys.executable))
        done = _done(words, folder, _INSTALL_S)
        if done.returncode:
            raise RunError(f"{name}: {command!r} ended with status {done.returncode} in {folder}: {_said(done)}")
    return folder


def _done(words: Sequence[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(words, cwd=folder, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{shlex.join(words)} did not end in {seconds:g} s") from error


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stderr or done.stdout)[-800:].decode("utf-8", "replace")


def run(folder: Path, seeds: Sequence[str]) -> Ran:
    """Verify an entry with the first seed, and again with each other what did not conform. Raises RunError."""
    first = _verified(folder, seeds[0], ())
    safe = _verified(folder, f"{seeds[0]}-safe", (), SAFE) if (folder / SAFE).exists() else None
    verdicts = {line.case: line.verdict for line in first.verdicts}
    failed = [case for case, verdict in verdicts.items() if verdict not in _SHOWN]
    again = [_verified(folder, seed, failed) for seed in seeds[1:]] if failed else []
    findings = []
    for case in failed:
        line = next(each for each in first.verdicts if each.case == case)
        same = [run for run in again for each in run.verdicts if (each.case, each.verdict) == (case, line.verdict)]
        records = [Record.of(each) for each in first.sides().get(case, {}).get("main", ())]
        told = timeline(records, line.n), curls(records, line.n)
        findings.append(RepeatedFailure(case, line.verdict, 1 + len(same), line.detail, *told))
    assert first.header is not None
    advised = None if safe is None else {line.case: line.verdict for line in safe.verdicts}
    return Ran(str(first.header.started)[:10], verdicts, findings, first.header.kit.digest, advised)


def _verified(folder: Path, seed: str, cases: Sequence[str], service: str = "service.toml") -> Run:
    evidence = folder / "holdfast-out" / f"{seed}.jsonl"
    words = [sys.executable, "-m", "holdfast.conformance.cli", "verify", "--contract", CONTRACT]
    words += ["--service", service, "--seed", seed, "--jobs", "1", "--evidence", str(evidence)]
    words += [word for case in cases for word in ("--case", case)]
    # What an earlier run left says nothing of this one.
    evidence.unlink(missing_ok=True)
    done = _done(words, folder, _RUN_S)
    found = read_evidence(evidence) if evidence.exists() else None
    if found is None or found.footer is None:
        raise RunError(f"the run did not come to its end: {_said(done)}")
    if not found.verdicts or all(line.verdict == Verdict.NO_VERDICT.value for line in found.verdicts):
        raise RunError(f"the service did not start; `holdfast doctor --service {folder}/{service}` says why")
    return found
