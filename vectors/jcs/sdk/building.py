"""Builds: from the sources of a runner to a folder in the cache that is named after them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.vectors.jcs.sdk.manifest import BuildError, Manifest, resolved

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
