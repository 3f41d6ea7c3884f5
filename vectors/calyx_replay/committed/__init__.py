"""The hand-made source of the envelope vectors of `calyx-replay`. Bytes stand in the modules as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.vectors.calyx_replay.committed import accepted
from holdfast.vectors.calyx_replay.envelopes.lint import lint_envelopes
from holdfast.vectors.calyx_replay.envelopes.record import FILE, EnvelopeVector, read, write

__all__ = ["OTHERS", "files", "problems", "read", "records"]

OTHERS = frozenset[str]()


def records() -> tuple[EnvelopeVector, ...]:
    """Every record, in the order in which they are written."""
    return tuple(accepted.records())


def files() -> Mapping[str, bytes]:
    """See `holdfast.vectors.committed.Source`."""
    return {FILE: write(records())}


def problems() -> Iterable[str]:
    """See `holdfast.vectors.committed.Source`."""
    return lint_envelopes(records())
