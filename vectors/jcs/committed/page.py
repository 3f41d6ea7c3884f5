"""The notation of records: literal documents, beside their expected bytes.

No code here computes a canonical form. A page only holds the common values of its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from holdfast.vectors.record import Canonical, Expected, Refused, Vector
from holdfast.vectors.taxonomy import Category, Profile

# The marks of a table of numbers: which profile refuses the row, and why.
_MARKS = {
    "safe": (Profile.SAFE_INT, "UNSAFE_INTEGER"),
    "long": (Profile.I_JSON_STRICT, "NUMBER_TOO_PRECISE"),
    "under": (Profile.I_JSON_STRICT, "NUMBER_UNDERFLOW"),
}


@dataclass(frozen=True, slots=True)
class Page:
    """A category, and the clause and source that its records have unless they say otherwise."""

    category: Category
    clause: str
    source: str

    def accepted(
        self,
        name: str,
        document: str | bytes,
        canonical: str | bytes,
        note: str,
        *,
        but: Mapping[Profile, str] | None = None,
        twin: str | None = None,
        clause: str | None = None,
        source: str | None = None,
    ) -> Vector:
        """A document with a canonical form; `but` gives the reasons of the profiles that refuse it all the same."""
        body = Canonical(_bytes(canonical))
        refusals = but or {}
        expected: dict[Profile, Expected] = {
            profile: Refused(refusals[profile]) if profile in refusals else body for profile in Profile
        }
        return self._record(name, document, expected, note, twin=twin, clause=clause, source=source)

    def refused(
        self,
        name: str,
        document: str | bytes,
        reason: str,
        note: str,
        *,
        twin: str,
        clause: str | None = None,
        source: str | None = None,
    ) -> Vector:
        """A document that every profile refuses, beside the id of its accepted twin."""
        expected: dict[Profile, Expected] = dict.fromkeys(Profile, Refused(reason))
        return self._record(name, document, expected, note, twin=twin, clause=clause, source=source)

    def numbers(
        self, table: str, *, twin: str, clause: str | None = None, source: str | None = None
    ) -> Iterator[Vector]:
        """Accepted documents `[LITERAL]`, one a line: name, literal, canonical text, marks, note.

        A mark names a profile's refusal (see `_MARKS`), several are joined by `+`, `-` means no mark. `twin` is the
        record beside which a marked row is refused.
        """
        for line in table.strip().splitlines():
            name, literal, text, marks, note = line.split(maxsplit=4)
            but = dict(_MARKS[mark] for mark in marks.split("+")) if marks != "-" else None
            yield self.accepted(
                name,
                f"[{literal}]",
                f"[{text}]",
                note,
                but=but,
                twin=twin if but else None,
                clause=clause,
                source=source,
            )

    def _record(
        self,
        name: str,
        document: str | bytes,
        expected: Mapping[Profile, Expected],
        note: str,
        *,
        twin: str | None,
        clause: str | None,
        source: str | None,
    ) -> Vector:
        return Vector(
            id=f"{self.category.value}-{name}",
            category=self.category,
            document=_bytes(document),
            expected=expected,
            clause=clause or self.clause,
            kills=(),
            source=source or self.source,
            twin=twin,
            note=note,
        )


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8") if isinstance(text, str) else text
