"""The environment of an adapter or a launcher, and the factor of `holdfast --slow` that it carries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

# Variables a program may need to run at all. Everything else (DSNs, tokens, PYTHONPATH) stays with the kit.
PASSED_ENVIRONMENT = (
    "PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TMPDIR SHELL SYSTEMROOT JAVA_HOME GOROOT GOPATH GOCACHE "
    "CARGO_HOME RUSTUP_HOME NODE_PATH HOLDFAST_SPECS"
).split()
# The zone of an adapter. On a machine in UTC an adapter that uses local time would look right.
ZONE = {"TZ": "Pacific/Chatham"}
# The variable in which an adapter and a launcher find the factor on every deadline, for the limits of their own
# (docs/adapter-protocol.md, "What counts against an adapter").
SLOW_VARIABLE = "HOLDFAST_SLOW"


def scrubbed_environment(passed: Sequence[str] = ()) -> dict[str, str]:
    """The environment an adapter gets: the variables programs need to run, and those named in `passed`."""
    names = {*PASSED_ENVIRONMENT, *passed}
    return {name: value for name, value in os.environ.items() if name in names}


def adapter_environment(passed: Sequence[str] = (), *, slow: float = 1.0) -> dict[str, str]:
    """The environment of an adapter or a launcher: the scrubbed one, its zone unless one is passed, and `slow`."""
    return {**ZONE, **scrubbed_environment(passed), SLOW_VARIABLE: repr(slow)}


def slowed(environment: Mapping[str, str], factor: float) -> dict[str, str]:
    """An environment in which everything may take `factor` times as long as in this one."""
    return {**environment, SLOW_VARIABLE: repr(_factor(environment.get(SLOW_VARIABLE, "")) * factor)}


def scaled(seconds: float) -> float:
    """A limit of time that is made for the deadlines without a factor, as it is with the one of this process."""
    return seconds * _FACTOR


def _factor(text: str) -> float:
    """The factor of a text; never less than 1, because the waits here take some time on any machine."""
    try:
        return max(1.0, float(text))
    except ValueError:
        return 1.0


_FACTOR = _factor(os.environ.get(SLOW_VARIABLE, ""))
