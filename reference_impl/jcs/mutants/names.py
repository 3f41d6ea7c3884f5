"""Bugs about names and surrogates: duplicates that pass, and halves of characters that are repaired."""

from __future__ import annotations

import unicodedata
from typing import Any

from holdfast.reference_impl.jcs.mutants.planting import mutant
from holdfast.reference_impl.jcs.reader import Container, Reader, Value, defect
from holdfast.reference_impl.jcs.terms import Profile, Reason
from holdfast.reference_impl.mutants.planting import also, part


class LastWins(Reader):
    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        pass


class _First(dict[str, Any]):
    """Keeps what it has, and says that it has nothing."""

    def __contains__(self, name: object) -> bool:
        return False

    def __setitem__(self, name: str, value: Any) -> None:
        self.setdefault(name, value)


class _Last(dict[str, Any]):
    """Says that it has nothing."""

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
        # A low half is what their check looks for, and a high one passes as something to come.
        return "\ufffd" if unit < 0xDC00 else super().lone_surrogate(unit, at)


class PairsRefused(Reader):
    def code_unit(self, text: str, at: int) -> tuple[str, int]:
        unit, end = self.hex4(text, at)
        return (self.lone_surrogate(unit, at), end) if 0xD800 <= unit <= 0xDFFF else (chr(unit), end)


_LATER = "a document with a duplicate name is among its documents"
_HALF = "a lone surrogate is among its documents"

MUTANTS = (
    mutant(
        "last-wins",
        "The last of two members of one name wins",
        part(reader=LastWins),
        {"DUP-01": "fail_open", "DUP-02": "fail_open", "DUP-03": "fail_open"},
        also(_LATER, "VER-03 PROF-01 PURE-01"),
    ),
    mutant(
        "first-wins",
        "The first of two members of one name wins",
        part(reader=FirstWins),
        {"DUP-01": "fail_open", "DUP-02": "fail_open", "DUP-03": "fail_open"},
        also(_LATER, "VER-03 PROF-01 PURE-01"),
    ),
    mutant(
        "escaped-unseen",
        "A name with an escape in it is never compared",
        part(reader=EscapedUnseen),
        {"DUP-02": "fail_open"},
    ),
    mutant(
        "null-unseen", "A member that is null counts as not there", part(reader=NullUnseen), {"DUP-01": "fail_open"}
    ),
    mutant(
        "outermost-only",
        "Names are compared in the outermost object only",
        part(reader=OutermostOnly),
        {"DUP-03": "fail_open"},
    ),
    mutant(
        "names-folded",
        "Names that differ in case are one name",
        part(reader=CaseFolded),
        {"DUP-04": "over_refusal"},
        also("its names differ in case only", "ORD-04") | also("such names are among many documents", "IDEM-02"),
    ),
    mutant(
        "names-composed",
        "Names that have one composed form are one name",
        part(reader=Composed),
        {"DUP-04": "over_refusal"},
        also("such names are among many documents", "IDEM-02"),
    ),
    mutant(
        "strict-unchecked",
        "Strict profiles look at numbers and noncharacters, and not at names",
        part(reader=StrictUnchecked),
        {"PROF-01": "fail_open"},
    ),
    mutant(
        "surrogate-replaced",
        "A lone surrogate becomes U+FFFD",
        part(reader=SurrogateReplaced),
        {"SUR-01": "fail_open", "SUR-02": "fail_open"},
        also(_HALF, "VER-03 PROF-01"),
    ),
    mutant(
        "surrogate-questioned",
        "A lone surrogate becomes a question mark",
        part(reader=SurrogateQuestioned),
        {"SUR-01": "fail_open", "SUR-02": "fail_open"},
        also(_HALF, "VER-03 PROF-01"),
    ),
    mutant(
        "surrogate-dropped",
        "A lone surrogate is left out",
        part(reader=SurrogateDropped),
        {"SUR-01": "fail_open", "SUR-02": "fail_open"},
        also(_HALF, "VER-03 PROF-01"),
    ),
    mutant(
        "first-halves-pass",
        "Only second halves of pairs are looked for",
        part(reader=SecondHalvesOnly),
        {"SUR-01": "fail_open"},
        also(_HALF, "SUR-02 VER-03 PROF-01"),
    ),
    mutant("name-surrogates", "Surrogates in names are replaced", part(reader=NamesUnchecked), {"SUR-02": "fail_open"}),
    mutant(
        "pairs-refused",
        "Escaped surrogate pairs are refused",
        part(reader=PairsRefused),
        {"SUR-03": "over_refusal"},
        also(
            "a pair is among its documents",
            "UTF8-03 DUP-02 SUR-01 STR-03 STR-05 ORD-01 ORD-03 IDEM-01 IDEM-02 PROF-02",
        ),
    ),
)
