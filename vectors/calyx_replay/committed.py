"""The committed envelopes of `calyx-replay`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.vectors.calyx_replay.derive import VARIANTS
from holdfast.vectors.calyx_replay.envelopes.lint import lint_envelopes
from holdfast.vectors.calyx_replay.envelopes.record import FILE, PLACE, SCHEMA, read
from holdfast.vectors.lines import unlike_others

FILES = frozenset({FILE})


def problems(files: Mapping[str, bytes]) -> Iterable[str]:
    """See `holdfast.vectors.lint.Committed`."""
    yield from unlike_others(files[FILE], schema=SCHEMA, place=PLACE)
    records = read(files[FILE], place=PLACE)
    yield from lint_envelopes(records)
    spelt = {record.of.get("how") for record in records if record.derivation == "calyx.variant"}
    for how in sorted(VARIANTS.keys() - spelt):
        yield f"no envelope is spelt in the way {how}"
