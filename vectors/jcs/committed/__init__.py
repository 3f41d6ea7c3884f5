"""The hand-made source of the canonicalisation vectors.

Documents and expected bytes stand in the modules as they are. No canonicaliser is called anywhere in this package,
so that no error of a canonicaliser becomes an expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.vectors.jcs.committed.build import files as made
from holdfast.vectors.jcs.committed.build import records
from holdfast.vectors.jcs.committed.lint import problems as problems_of_records
from holdfast.vectors.jcs.nearmiss import DATA
from holdfast.vectors.taxonomy import Category

__all__ = ["FILES", "problems", "records"]

FILES = frozenset({DATA, *(f"{category.value}.jsonl" for category in Category)})


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    for name, content in made().items():
        if files[name] != content:
            yield f"vectors/jcs/data/{name}: is not of the records of its program"
    yield from problems_of_records()
