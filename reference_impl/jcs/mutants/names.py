"""Bugs about names and surrogates: duplicates that pass, and halves of characters that are repaired."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.jcs.reader import Container, Reader, Value, defect
from holdfast.reference_impl.jcs.terms import Profile, Reason
from holdfast.reference_impl.planting import Change, part


class LastWins(Reader):
    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        pass


class _First(dict[str, Any]):
    """Keeps its members, and reports that it has none."""

    def __contains__(self, name: object) -> bool:
        return False

    def __setitem__(self, name: str, value: Any) -> None:
        self.setdefault(name, value)


class _Last(dict[str, Any]):
    """Reports that it has no members."""

    def __contains__(self, name: object) -> bool:
        return False


class FirstWins(Reader):
    def opened(self, opening: str, level: int, at: int) -> Container:
        made = super().opened(opening, level, at)
        return _First() if isinstance(made, dict) else made


class OutermostOnly(Reader):
    def opened(self, opening: str, level: int, at: int) -> Container:
        made = super().opened(opening, level, at)
        return _Last() if isinstance(made, dict) and level > 1 else made


class EscapedUnseen(Reader):
    def member(self, text: str, at: int, container: dict[str, Value]) -> tuple[str, int]:
        name, end = self.name(text, at)
        if "\\" not in text[at:end]:
            self.refuse_duplicate(name, container, at)
        end = self.skip(text, end)
        if text[end : end + 1] != ":":
            defect(Reason.SYNTAX, end)
        return name, self.skip(text, end + 1)


class NullUnseen(Reader):
    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        if container.get(name) is not None:
            super().refuse_duplicate(name, container, at)


class CaseFolded(Reader):
    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        if any(name.casefold() == other.casefold() for other in container):
            defect(Reason.DUPLICATE_NAME, at)


class Composed(Reader):
    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        if any(unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other) for other in container):
            defect(Reason.DUPLICATE_NAME, at)


class StrictUnchecked(Reader):
    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        if self.profile is Profile.CORE:
            super().refuse_duplicate(name, container, at)


class SurrogateReplaced(Reader):
    def lone_surrogate(self, unit: int, at: int) -> str:
        return "\ufffd"


class SurrogateQuestioned(Reader):
    def lone_surrogate(self, unit: int, at: int) -> str:
        return "?"


class SurrogateDropped(Reader):
    def lone_surrogate(self, unit: int, at: int) -> str:
        return ""


class NamesUnchecked(Reader):
    def name(self, text: str, at: int) -> tuple[str, int]:
        return SurrogateReplaced(self.limits, self.profile).string(text, at)


class SecondHalvesOnly(Reader):
    def lone_surrogate(self, unit: int, at: int) -> str:
        # Their check searches for a low half. A high half passes, because its other half may follow.
        return "\ufffd" if unit < 0xDC00 else super().lone_surrogate(unit, at)


class PairsRefused(Reader):
    def code_unit(self, text: str, at: int) -> tuple[str, int]:
        unit, end = self.hex4(text, at)
        return (self.lone_surrogate(unit, at), end) if 0xD800 <= unit <= 0xDFFF else (chr(unit), end)


BUGS: Mapping[str, Change] = {
    "last-wins": part(reader=LastWins),
    "first-wins": part(reader=FirstWins),
    "escaped-unseen": part(reader=EscapedUnseen),
    "null-unseen": part(reader=NullUnseen),
    "outermost-only": part(reader=OutermostOnly),
    "names-folded": part(reader=CaseFolded),
    "names-composed": part(reader=Composed),
    "strict-unchecked": part(reader=StrictUnchecked),
    "surrogate-replaced": part(reader=SurrogateReplaced),
    "surrogate-questioned": part(reader=SurrogateQuestioned),
    "surrogate-dropped": part(reader=SurrogateDropped),
    "first-halves-pass": part(reader=SecondHalvesOnly),
    "name-surrogates": part(reader=NamesUnchecked),
    "pairs-refused": part(reader=PairsRefused),
}
