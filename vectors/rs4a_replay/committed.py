"""The committed keys of `rs4a-replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.vectors.fingerprints.lint import lint_file
from holdfast.vectors.fingerprints.record import FILE

# The other one holds keys that the tests of the derivations compare.
FILES = frozenset({FILE, "keys.json"})


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    return lint_file(files, "rs4a-replay")
