"""SDK runners: public canonicalisers of six languages behind frames, built from locked versions on this machine.

A runner is a folder with `runner.toml` (see `manifest`), its sources and its lock. Those of the kit stand
beside this file; more are found in the folders that the environment variable HOLDFAST_SDKS lists.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from holdfast import __version__
from holdfast.specs.errors import unknown
from holdfast.vectors.jcs.frames.process import scrubbed_environment
from holdfast.vectors.jcs.sdk.manifest import (
    BuildError,
    DamagedError,
    Entry,
    Manifest,
    ManifestError,
    manifests,
    resolved,
)
from holdfast.vectors.taxonomy import Profile

# Builds: from the sources of a runner to a folder in the cache that is named after them

# A step compiles a few small libraries; on a busy machine with a cold cache a minute. Beyond this it hangs.
STEP_S = 900.0
# What of a failed step's output goes into the message.
OUTPUT_LINES = 30
# Part of every name in the cache: to be raised when the steps of old artefacts mean something else.
LAYOUT = "1"
# Settings of the kit's own environment that would change what is installed.
UNWANTED = ("PIP_CONSTRAINT", "PIP_TARGET", "PYTHONPATH", "PYTHONHOME", "CARGO_TARGET_DIR", "NODE_OPTIONS")


def cache_root() -> Path:
    """Where artefacts are kept: outside of the kit, which may be installed read-only."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of the variable: a relative path is to be ignored.
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "holdfast" / "sdk"


def artefact(manifest: Manifest, cache: Path) -> Path:
    """The folder of the built runners, whether it is there or not: another one for other sources, lock or machine."""
    digest = hashlib.sha256(f"{LAYOUT} {platform.system()} {platform.machine()}\0".encode())
    for file in sorted(path for path in manifest.folder.rglob("*") if path.is_file() and _counts(path)):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(manifest.folder).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return cache / f"{manifest.folder.name}-{digest.hexdigest()[:20]}"


def _counts(path: Path) -> bool:
    return "__pycache__" not in path.parts


def make(manifest: Manifest, cache: Path) -> None:
    """Build into the cache; who comes second waits and finds it done. Raises BuildError."""
    target = artefact(manifest, cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f".{target.name}.lock"):
            if not target.is_dir():
                _make_alone(manifest, target)
    except OSError as error:
        raise BuildError(
            f"cannot build {manifest.language} runners in {cache}: {error}; another place: XDG_CACHE_HOME=…"
        ) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The system lets go of the lock when the process ends, however that happens.
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make_alone(manifest: Manifest, target: Path) -> None:
    work = target.with_name(f".building-{target.name}")
    # Left behind by a build that was killed: no other process builds this while the lock is held.
    shutil.rmtree(work, ignore_errors=True)
    out, scratch = work / "out", work / "scratch"
    try:
        scratch.mkdir(parents=True)
        shutil.copytree(manifest.folder, out, ignore=shutil.ignore_patterns("__pycache__"))
        for step in manifest.steps:
            _run(resolved(step, out=out, scratch=scratch), out, manifest.language)
        # Only now has the artefact its name: half of one is never found.
        out.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(step: Sequence[str], folder: Path, language: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    with subprocess.Popen(
        step,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as child:
        try:
            output, _ = child.communicate(timeout=STEP_S)
        except BaseException as error:
            # Compilers start compilers: the whole group goes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise BuildError(f"a step of {language} did not end within {STEP_S:g} s: {' '.join(step)}") from error
            raise
    if child.returncode:
        end = output.decode("utf-8", "replace").splitlines()[-OUTPUT_LINES:]
        raise BuildError(
            f"a step of {language} ended with status {child.returncode}: {' '.join(step)}\n"
            + "\n".join(f"  {line}" for line in end)
            + "\nversions are locked and come from the public registries: is the network there?"
        )


__all__ = [
    "BuildError",
    "DamagedError",
    "ManifestError",
    "Sdk",
    "UnknownSdkError",
    "build",
    "exec_runner",
    "find",
    "names",
    "reference",
]


@dataclass(frozen=True, slots=True)
class Sdk:
    """A runner as it stands on this machine.

    `command` is what speaks frames; it is empty when the runner cannot be used, and then `missing` says why and what
    to do (a toolchain to install, or `holdfast vectors sdk build NAME`). What is missing is *not proven*, never passed.
    """

    name: str
    language: str
    library: str
    version: str
    command: tuple[str, ...]
    missing: str


class UnknownSdkError(LookupError):
    """No runner has this name; the text lists those there are."""


def names() -> tuple[str, ...]:
    """Every runner there is, built or not; the references come first. Raises ManifestError."""
    return (*_REFERENCES, *(entry.name for manifest in manifests() for entry in manifest.runners))


def reference(profile: Profile) -> str:
    """The name of the reference in this profile."""
    return next(name for name, of in _REFERENCES.items() if of == profile.value)


def find(name: str, *, cache: Path | None = None) -> Sdk:
    """The runner of this name as it stands now; never builds. Raises UnknownSdkError, ManifestError."""
    if name in _REFERENCES:
        itself = (sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", "--profile", _REFERENCES[name])
        return Sdk(name, "Python", "holdfast reference", __version__, itself, "")
    manifest, entry = _entry(name)
    folder = artefact(manifest, cache or cache_root())
    command: tuple[str, ...] = ()
    missing = _toolchain(manifest)
    if folder.is_dir():
        program, *arguments = resolved(entry.command, out=folder)
        # What is needed to build is no longer needed to run, unless it is the same program.
        if where := shutil.which(program):
            command, missing = (where, *arguments), ""
        else:
            missing = missing or f"{program} is not on PATH, and {name} runs on it"
    elif not missing:
        missing = f"{name} is not built yet (or its sources have changed): holdfast vectors sdk build {name}"
    return Sdk(name, manifest.language, entry.library, entry.version, command, missing)


def build(name: str, into: Path | None = None) -> Sdk:
    """Build the runner (and its siblings of the same language) unless that was done; several may try at once.

    `into` is the cache, by default `holdfast/sdk` in $XDG_CACHE_HOME. Raises UnknownSdkError, ManifestError,
    BuildError.
    """
    if name in _REFERENCES:
        return find(name)
    manifest, _ = _entry(name)
    cache = into or cache_root()
    if not artefact(manifest, cache).is_dir():
        if missing := _toolchain(manifest):
            raise BuildError(missing)
        make(manifest, cache)
    return find(name, cache=cache)


def exec_runner(name: str) -> NoReturn:
    """Become the runner: frames on standard input and output. Raises as `find`, and BuildError if it is missing."""
    sdk = find(name)
    if not sdk.command:
        raise BuildError(sdk.missing)
    os.execve(sdk.command[0], sdk.command, scrubbed_environment())  # noqa: S606 - a shell is what is not wanted


def _entry(name: str) -> tuple[Manifest, Entry]:
    for manifest in manifests():
        for entry in manifest.runners:
            if entry.name == name:
                return manifest, entry
    raise UnknownSdkError(unknown("SDK runner", name, names()))


def _toolchain(manifest: Manifest) -> str:
    """What building needs and this machine has not, or nothing."""
    absent = [need for need in manifest.needs if shutil.which(resolved([need.program], out=Path())[0]) is None]
    if not absent:
        return ""
    return f"for {manifest.language} " + "; ".join(f"{need.program} is missing: {need.get}" for need in absent)


_REFERENCES = {
    "reference" if profile is Profile.CORE else f"reference-{profile.value}": profile.value for profile in Profile
}
