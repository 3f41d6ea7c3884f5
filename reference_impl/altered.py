"""A reference with one place of its source changed, as `selfcheck --automatic` makes it: the change is made at import.

The place stands in a file of its own, so `--mutant FILE.json` goes wherever the name of a planted bug goes: to the
adapter, to the launcher, and to the operators' command line that an adapter starts. No source is written.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_ENDING = ".json"


class ChangedError(ValueError):
    """The source is another one than that in which the place was found."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """The bytes from `start` to `end` of a module's source become `text`. `digest` is the SHA-256 of the source."""

    contract: str
    module: str
    digest: str
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The changed source. Raises ChangedError."""
        if hashlib.sha256(source).hexdigest() != self.digest:
            raise ChangedError(f"the source of {self.module} has changed since its places were listed; list them again")
        return source[: self.start] + self.text.encode() + source[self.end :]


def is_altered(mutant: str) -> bool:
    """Whether the name of a mutant is the file of an alteration; planted bugs have names without a dot."""
    return mutant.endswith(_ENDING)


def read(path: str) -> Alteration:
    """The alteration of a file. Raises OSError, ValueError."""
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    return Alteration(**{name: data[name] for name in Alteration.__slots__})


def install(words: Sequence[str]) -> None:
    """If a command line names an alteration as its mutant, let the module be imported with it. Raises as `read`."""
    for option, mutant in pairwise(words):
        if option == "--mutant" and is_altered(mutant):
            sys.meta_path.insert(0, _Finder(read(mutant)))


class _Loader(SourceFileLoader):
    """Compiles the changed source, and never reads or writes a compiled file."""

    def __init__(self, name: str, path: str, alteration: Alteration) -> None:
        super().__init__(name, path)
        self._alteration = alteration

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self._alteration.applied(self.get_data(path)), path)
        return code


class _Finder:
    """Finds the one module that is changed."""

    def __init__(self, alteration: Alteration) -> None:
        self._alteration = alteration

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """See `MetaPathFinder`."""
        if fullname != self._alteration.module:
            return None
        found: ModuleSpec | None = PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None:
            return None
        loader = _Loader(fullname, found.origin, self._alteration)
        return spec_from_file_location(fullname, found.origin, loader=loader)
