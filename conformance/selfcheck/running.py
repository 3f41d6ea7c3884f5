"""One `holdfast verify` of a mutant or a baseline adapter, in a process of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.reports.evidence import Run, read_evidence
from holdfast.servers.janitor import Janitor, JanitorLostError

# One mutant against a whole contract takes about a minute on PostgreSQL; this only ends what hangs for ever.
RUN_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is run: an adapter, its launcher if it has one, and the part of the contract.

    No `clauses` are all of them. `faults` are the fault cases that are injected; None for all that there are. `slow`
    is the factor of the deadlines.
    """

    name: str
    adapter: Sequence[str]
    contract: str
    launcher: Sequence[str] = ()
    store: str = ""
    clauses: Sequence[str] = ()
    faults: Sequence[str] | None = None
    slow: float = 1.0

    def arguments(self, evidence: Path) -> list[str]:
        """The command line."""
        words = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "verify", "--contract", self.contract]
        words += ["--evidence", str(evidence), "--seed", "selfcheck", "--format", "json", "--slow", str(self.slow)]
        # Several mutants run at the same time already.
        words += ["--jobs", "1"]
        for clause in self.clauses:
            words += ["--clause", clause]
        if self.faults is not None:
            words += ["--no-faults", *(word for case in self.faults for word in ("--case", case))]
        if self.launcher:
            words += ["--config", f"store={self.store}", "--launcher", shlex.join(self.launcher)]
        return [*words, "--", *self.adapter]


def evidence_of(wanted: Wanted, janitor: Janitor) -> Run:
    """Run it and read its evidence. Raises RuntimeError if there is none."""
    with tempfile.TemporaryDirectory(dir=janitor.make_folder()) as scratch:
        evidence = Path(scratch) / "run.jsonl"
        # In a group of its own that the janitor knows, so that it ends with this process, however this one ends.
        child = subprocess.Popen(
            wanted.arguments(evidence),
            cwd=scratch,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            janitor.watch_group(child.pid)
            said = child.communicate(timeout=RUN_TIMEOUT_S)[1].decode(errors="replace").strip()[-600:]
        except subprocess.TimeoutExpired as error:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise RuntimeError(f"{wanted.name}: the run took longer than {RUN_TIMEOUT_S} s") from error
        except JanitorLostError:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            janitor.forget_group(child.pid)
        if not evidence.is_file():
            raise RuntimeError(f"{wanted.name}: no evidence, exit {child.returncode}: {said}")
        run = read_evidence(evidence)
        if run.defects:
            raise RuntimeError(f"{wanted.name}: damaged evidence: {run.defects[0]}")
        return run
