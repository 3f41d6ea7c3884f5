"""What ran, in the evidence: the files of the adapter that were hashed, what was not, and where the seed came from.

The digest of all files is that of the lines that `sha256sum` prints for them, sorted bytewise, so that a build can
compute it without holdfast: `sha256sum guard lib/rules.so | LC_ALL=C sort | sha256sum`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import Any


@unique
class Source(StrEnum):
    """How a file came to be counted as part of the adapter."""

    COMMAND = "command"  # it stands on the command line
    NAMED = "named"  # --adapter-file names it
    LOADED = "loaded"  # a process of the adapter was seen with it


@dataclass(frozen=True, slots=True, order=True)
class Artefact:
    """One file. `path` does not depend on where the checkout lies; `sha256` is in hexadecimal."""

    path: str
    sha256: str
    source: Source

    def as_json(self) -> dict[str, Any]:
        """As it stands in the line."""
        return {"path": self.path, "sha256": self.sha256, "source": self.source.value}


@dataclass(frozen=True, slots=True, order=True)
class NotHashed:
    """Something that belongs or may belong to the adapter and has no digest, and why."""

    what: str
    why: str

    def as_json(self) -> dict[str, Any]:
        """As it stands in the line."""
        return {"what": self.what, "why": self.why}


@dataclass(frozen=True, slots=True)
class Artefacts:
    """The line `artefacts`: what ran. `changed` are the files that were not the same at the end of the run.

    `digest` is None if no file was hashed.
    """

    files: tuple[Artefact, ...]
    not_hashed: tuple[NotHashed, ...]
    changed: tuple[str, ...]
    digest: str | None

    @classmethod
    def of(
        cls, files: Iterable[Artefact], *, not_hashed: Iterable[NotHashed] = (), changed: Iterable[str] = ()
    ) -> Artefacts:
        """With the digest of these files."""
        listed = tuple(sorted(set(files)))
        return cls(listed, tuple(sorted(set(not_hashed))), tuple(sorted(set(changed))), digest_of(listed))

    def as_json(self) -> dict[str, Any]:
        """The line."""
        return {
            "type": "artefacts",
            "digest": self.digest,
            "files": [file.as_json() for file in self.files],
            "not_hashed": [each.as_json() for each in self.not_hashed],
            "changed": list(self.changed),
        }


def digest_of(files: Iterable[Artefact]) -> str | None:
    """The digest of all files, None for none; the source of a file does not count."""
    lines = sorted(f"{file.sha256}  {file.path}\n".encode() for file in files)
    return "sha256:" + hashlib.sha256(b"".join(lines)).hexdigest() if lines else None


@unique
class SeedOrigin(StrEnum):
    """Where the seed of a run came from."""

    FRESH = "fresh"  # drawn for this run; nobody knew it before
    NONCE = "nonce"  # derived from the nonce of the caller
    CHOSEN = "chosen"  # given by who ran it


# A nonce is derived into a seed in a domain of its own, so that no other digest of it is one.
_SEED_DOMAIN = "holdfast seed of a nonce\n"


def seed_of_nonce(nonce: str) -> str:
    """The seed of a run that was asked for with this nonce."""
    return hashlib.sha256(f"{_SEED_DOMAIN}{nonce}".encode()).hexdigest()[:32]
