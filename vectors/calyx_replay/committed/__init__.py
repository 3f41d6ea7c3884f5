"""The hand-made source of the envelope vectors of `calyx-replay`. Bytes stand in the modules as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.vectors.calyx_replay.committed import accepted
from holdfast.vectors.calyx_replay.envelopes.lint import lint_envelopes
from holdfast.vectors.calyx_replay.envelopes.record import FILE, EnvelopeVector, write

__all__ = ["FILES", "problems", "records"]

FILES = frozenset({FILE})


def records() -> tuple[EnvelopeVector, ...]:
    """Every record, in the order in which they are written."""
    return tuple(accepted.records())


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    if files[FILE] != write(records()):
        yield f"vectors/calyx_replay/data/{FILE}: is not of the records of its program"
    yield from lint_envelopes(records())
