"""The committed request fingerprints of `mesh-delivery`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.vectors.fingerprints.lint import lint_file
from holdfast.vectors.fingerprints.record import FILE

FILES = frozenset({FILE})


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    return lint_file(files, "mesh-delivery")
