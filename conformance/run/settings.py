"""The settings of a run, as the command line hands them to each of its processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.conformance.adapter.process import Deadlines
from holdfast.reports.evidence import Redactor, SeedOrigin
from holdfast.servers.pace import Pace

# The command of the reference, which every run meets as it meets any other adapter.
REFERENCE = (sys.executable, "-P", "-m", "holdfast.reference_impl")
# The time of a layer of faults after its floor: none by default, so that a run tries the same on any machine.
FAULT_SECONDS = 0.0


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run that each of its processes needs. All values are JSON, so that they can be handed over."""

    adapter: tuple[str, ...]
    contracts: tuple[str, ...]
    seed: str
    launcher: tuple[str, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)
    slow: float = 1.0
    passed_environment: tuple[str, ...] = ()
    workdir: str | None = None
    # Seconds for each layer of faults. Its floor is tried in any case, however long that takes.
    fault_seconds: float = FAULT_SECONDS
    # A factor on the floors of the layers of faults, and on the number of histories.
    thorough: float = 1.0
    # The folder for the states of a disk that broke a promise; None keeps none.
    keep: str | None = None
    # The command whose forks are processes of the adapter (`holdfast.conformance.adapter.forks`); empty starts each.
    forkserver: tuple[str, ...] = ()
    # The cases that run, as far as `-k` has them; None stands for all.
    cases: tuple[str, ...] | None = None
    # How fast the machine is; None until the first engine of the run has measured it.
    pace: Pace | None = None

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets that the user handed to this run."""
        environment = {name: os.environ[name] for name in self.passed_environment if name in os.environ}
        return Redactor.knowing(config=self.config, environment=environment, command=self.adapter)

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines that hold."""
        return Deadlines().scaled(self.factor)

    @property
    def factor(self) -> float:
        """The factor on every limit of time: `--slow`, times what the machine is slower than usual."""
        return self.slow * (1.0 if self.pace is None else self.pace.factor)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller's description of a run: the source of its seed, and a nonce and a revision if there are any."""

    seed_origin: SeedOrigin
    nonce: str | None = None
    commit: str | None = None
