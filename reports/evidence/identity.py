"""What ran, in the evidence: the files of the adapter that were hashed, what was not, and where the seed came from.

The digest of all files is that of the lines that `sha256sum` prints for them, sorted bytewise, so that a build can
compute it without holdfast: `sha256sum guard lib/rules.so | LC_ALL=C sort | sha256sum`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum, unique
from typing import Annotated

from holdfast.specs.typed import Digest, Form, Text, about, matching


@unique
class Source(StrEnum):
    """How a file came to be counted as part of the adapter."""

    COMMAND = "command"  # it stands on the command line
    NAMED = "named"  # --adapter-file names it
    LOADED = "loaded"  # a process of the adapter was observed with it


class Artefact(Form, frozen=True, order=True):
    """One file. `path` does not depend on where the checkout lies."""

    path: Annotated[Text, about("Below the folder of the program or the current folder; the bare name elsewhere.")]
    sha256: Annotated[str, matching("^[0-9a-f]{64}$")]
    source: Annotated[
        Source, about("On the command line, named by --adapter-file, or seen in a process of the adapter.")
    ]


class NotHashed(Form, frozen=True, order=True):
    """Something that belongs or may belong to the adapter and has no digest, and why."""

    what: Text
    why: Text


class Artefacts(Form, frozen=True, tag_field="type", tag="artefacts"):
    """What ran. Written once, after the cases, because what a process loads is known late."""

    files: tuple[Artefact, ...]
    not_hashed: Annotated[
        tuple[NotHashed, ...], about("What belongs or may belong to the adapter and is not in the digest.")
    ]
    changed: Annotated[tuple[Text, ...], about("Files that were not the same at the end of the run as at its start.")]
    digest: Annotated[
        Digest | None,
        about(
            "Of the sorted lines that sha256sum prints for the files (`sha256`, two blanks, `path`); null if no file "
            "was hashed."
        ),
    ]

    @classmethod
    def of(
        cls, files: Iterable[Artefact], *, not_hashed: Iterable[NotHashed] = (), changed: Iterable[str] = ()
    ) -> Artefacts:
        """With the digest of these files."""
        listed = tuple(sorted(set(files)))
        return cls(listed, tuple(sorted(set(not_hashed))), tuple(sorted(set(changed))), digest_of(listed))


def digest_of(files: Iterable[Artefact]) -> str | None:
    """The digest of all files, None for none; the source of a file does not count."""
    lines = sorted(f"{file.sha256}  {file.path}\n".encode() for file in files)
    return "sha256:" + hashlib.sha256(b"".join(lines)).hexdigest() if lines else None


@unique
class SeedOrigin(StrEnum):
    """Where the seed of a run came from."""

    FRESH = "fresh"  # generated for this run; it was not known before
    NONCE = "nonce"  # derived from the nonce of the caller
    CHOSEN = "chosen"  # given by who ran it


# A nonce is derived into a seed in a domain of its own, so that no other digest of it is one.
_SEED_DOMAIN = "holdfast seed of a nonce\n"


def seed_of_nonce(nonce: str) -> str:
    """The seed of a run that was asked for with this nonce."""
    return hashlib.sha256(f"{_SEED_DOMAIN}{nonce}".encode()).hexdigest()[:32]
