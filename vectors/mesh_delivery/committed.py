"""The committed request fingerprints of `mesh-delivery`."""

from __future__ import annotations

from functools import partial

from holdfast.vectors.fingerprints.lint import lint_file
from holdfast.vectors.fingerprints.record import FILE

FILES = frozenset({FILE})
problems = partial(lint_file, contract="mesh-delivery")
