"""The committed keys of `rs4a-replay`."""

from __future__ import annotations

from functools import partial

from holdfast.vectors.fingerprints.lint import lint_file
from holdfast.vectors.fingerprints.record import FILE

# The other one holds keys that the tests of the derivations compare.
FILES = frozenset({FILE, "keys.json"})
problems = partial(lint_file, contract="rs4a-replay")
