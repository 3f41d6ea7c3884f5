"""The environment of an adapter or a launcher, and the factor of `holdfast --slow` that it carries."""

from __future__ import annotations

import os
from collections.abc import Sequence

from holdfast.servers.pace import SLOW_VARIABLE

# Variables a program may need to run at all. Everything else (DSNs, tokens, PYTHONPATH) stays with the kit.
PASSED_ENVIRONMENT = (
    "PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TMPDIR SHELL SYSTEMROOT JAVA_HOME GOROOT GOPATH GOCACHE "
    "CARGO_HOME RUSTUP_HOME NODE_PATH HOLDFAST_SPECS"
).split()
# The zone of an adapter. On a machine in UTC an adapter that uses local time would look right.
ZONE = {"TZ": "Pacific/Chatham"}
# Another zone, and a locale that writes a comma into decimals and sorts by a language. Characters stay what they are:
# an adapter reads and writes UTF-8. The locale need not be installed. LC_ALL, which outranks the others, is taken out.
ELSEWHERE = {
    "LC_ALL": "",
    "LC_CTYPE": "C.UTF-8",
    "LC_NUMERIC": "de_DE.UTF-8",
    "LC_COLLATE": "de_DE.UTF-8",
    "LANG": "de_DE.UTF-8",
    "TZ": "America/St_Johns",
}


def scrubbed_environment(passed: Sequence[str] = ()) -> dict[str, str]:
    """The environment an adapter gets: the variables programs need to run, and those named in `passed`."""
    names = {*PASSED_ENVIRONMENT, *passed}
    return {name: value for name, value in os.environ.items() if name in names}


def adapter_environment(passed: Sequence[str] = (), *, slow: float = 1.0) -> dict[str, str]:
    """The environment of an adapter or a launcher: the scrubbed one, its zone unless one is passed, and `slow`."""
    return {**ZONE, **scrubbed_environment(passed), SLOW_VARIABLE: repr(slow)}
