"""The hand-made source of the canonicalisation vectors.

Documents and expected bytes stand in the modules as they are. No canonicaliser is called anywhere in this package,
so that no error of a canonicaliser becomes an expectation.
"""

from __future__ import annotations

from holdfast.vectors.jcs.committed.build import files, records
from holdfast.vectors.jcs.committed.lint import problems
from holdfast.vectors.jcs.nearmiss import DATA
from holdfast.vectors.record import read

__all__ = ["OTHERS", "files", "problems", "read", "records"]

# Measured by the tests of the near misses.
OTHERS = frozenset({DATA})
