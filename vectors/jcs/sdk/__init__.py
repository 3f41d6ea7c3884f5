"""SDK runners: public canonicalisers of six languages behind frames, built from locked versions on this machine.

A runner is a folder with `runner.toml` (see `manifest`), its sources and its lock. Those of the kit stand
beside this file; more are found in the folders that the environment variable HOLDFAST_SDKS lists.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from holdfast import __version__
from holdfast.specs.errors import unknown
from holdfast.vectors.jcs.frames.process import scrubbed_environment
from holdfast.vectors.jcs.sdk.building import artefact, cache_root, make
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
