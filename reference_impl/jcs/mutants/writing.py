"""Bugs about strings, order and form: what is written is JSON, and not canonical."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import rfc8785

from holdfast.reference_impl.jcs.mutants.planting import mutant
from holdfast.reference_impl.jcs.reader import Reader, Value, defect
from holdfast.reference_impl.jcs.strings import NONCHARACTER
from holdfast.reference_impl.jcs.terms import Reason
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part


class LongEscapes(Writer):
    def string(self, string: str) -> str:
        text = super().string(string)
        for control in "\b\t\n\f\r":
            text = text.replace(super().string(control)[1:-1], f"\\u{ord(control):04x}")
        return text


class CapitalHex(Writer):
    def string(self, string: str) -> str:
        return re.sub(r"\\u00[01][0-9a-f]", lambda found: f"\\u{found.group()[2:].upper()}", super().string(string))


class Ascii(Writer):
    def string(self, string: str) -> str:
        return json.dumps(string)


class HtmlSafe(Writer):
    def string(self, string: str) -> str:
        return re.sub(r"[<>&]", lambda found: f"\\u{ord(found.group()):04x}", super().string(string))


class SlashEscaped(Writer):
    def string(self, string: str) -> str:
        return super().string(string).replace("/", "\\/")


class ScriptSafe(Writer):
    def string(self, string: str) -> str:
        return super().string(string).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class DelEscaped(Writer):
    def string(self, string: str) -> str:
        return super().string(string).replace("\x7f", "\\u007f")


class Nfc(Writer):
    def string(self, string: str) -> str:
        return super().string(unicodedata.normalize("NFC", string))


class Trimmed(Writer):
    def string(self, string: str) -> str:
        return super().string(string.strip(" "))


class NoncharactersRefused(Reader):
    def refuse_noncharacter(self, string: str, at: int) -> None:
        if NONCHARACTER.search(string):
            defect(Reason.NONCHARACTER, at)


class CodePoints(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return sorted(names)


class LittleEndian(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return sorted(names, key=lambda name: name.encode("utf-16-le"))


class NulEnds(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return sorted(names, key=lambda name: name.partition("\0")[0].encode("utf-16-be"))


class LongerFirst(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return sorted(names, key=lambda name: name.encode("utf-16-be") + b"\xff\xff\xff")


class AsWritten(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return sorted(names, key=lambda name: self.string(name).encode("utf-16-be"))


class IntegersFirst(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        numbered = sorted((name for name in names if re.fullmatch(r"0|[1-9][0-9]*", name)), key=int)
        return [*numbered, *super().ordered([name for name in names if name not in numbered])]


class ByLocale(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return sorted(names, key=lambda name: (unicodedata.normalize("NFD", name).casefold(), name.swapcase()))


class PrototypeDropped(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return super().ordered([name for name in names if name != "__proto__"])


class AsTheyCame(Writer):
    def ordered(self, names: list[str]) -> Sequence[str]:
        return names


class OutermostOrdered(Writer):
    def write(self, value: Value) -> bytes:
        if not isinstance(value, dict):
            return AsTheyCame().write(value)
        members = [AsTheyCame().write({name: value[name]})[1:-1] for name in self.ordered(list(value))]
        return b"{" + b",".join(members) + b"}"


class ArraysOrdered(Writer):
    def elements(self, array: list[Value]) -> Sequence[Value]:
        if any(isinstance(item, list | dict) for item in array):
            return array
        return sorted(array, key=self.write)


class LineFeed(Writer):
    def write(self, value: Value) -> bytes:
        return super().write(value) + b"\n"


class Capitals(Writer):
    def literal(self, value: Any) -> str:
        return str(value)


class Recursive(Writer):
    def write(self, value: Value) -> bytes:
        return rfc8785.dumps(value)


_BEYOND = "one of its documents is not ASCII"
_CONTROL = "a control character is among its documents"
_ORDER = "its members move"

MUTANTS = (
    mutant(
        "long-escapes",
        "Control characters have long escapes only",
        part(writer=LongEscapes),
        {"STR-01": "wrong_reason"},
        also(_CONTROL, "IDEM-01 IDEM-02 ORD-01 ORD-03 VER-01 VER-02 GRAM-03 DUP-04"),
    ),
    mutant(
        "capital-hex",
        "Hexadecimal digits are capitals",
        part(writer=CapitalHex),
        {"STR-02": "wrong_reason"},
        also(_CONTROL, "IDEM-01 IDEM-02 VER-01 VER-02 DUP-04 ORD-02"),
    ),
    mutant(
        "ascii-only",
        "Everything beyond ASCII is escaped",
        part(writer=Ascii),
        {"STR-03": "wrong_reason"},
        also(
            _BEYOND,
            "UTF8-01 UTF8-03 BOM-01 GRAM-03 DUP-02 DUP-04 SUR-01 SUR-02 SUR-03 STR-04 STR-05 ORD-01 ORD-03 "
            "ORD-04 IDEM-01 IDEM-02 PURE-01 VER-01 VER-02 VER-03 PROF-01 PROF-02 PROF-06",
        ),
    ),
    mutant(
        "html-safe",
        "What HTML treats apart is escaped",
        part(writer=HtmlSafe),
        {"STR-03": "wrong_reason"},
        also("an angle bracket is among its documents", "IDEM-01 ORD-01"),
    ),
    mutant(
        "slash-escaped",
        "The slash is escaped",
        part(writer=SlashEscaped),
        {"STR-03": "wrong_reason"},
        also("a slash is among its documents", "DUP-02 IDEM-02 VER-01 VER-02 ORD-01"),
    ),
    mutant(
        "script-safe",
        "U+2028 and U+2029 are escaped",
        part(writer=ScriptSafe),
        {"STR-03": "wrong_reason"},
        also("U+2028 is among its documents", "VER-01 IDEM-02"),
    ),
    mutant(
        "del-escaped",
        "DEL is escaped",
        part(writer=DelEscaped),
        {"STR-03": "wrong_reason"},
        also("DEL is among its documents", "UTF8-01 VER-03 IDEM-01 ORD-01"),
    ),
    mutant(
        "nfc",
        "Strings are normalised",
        part(writer=Nfc),
        {"STR-04": "fail_open"},
        also("a string that is not normalised is among its documents", "DUP-04 STR-05 ORD-01 IDEM-02"),
    ),
    mutant(
        "trimmed",
        "Strings lose the blanks at their ends",
        part(writer=Trimmed),
        {"STR-04": "fail_open"},
        also("a blank at the end of a string is among its documents", "WS-01 DUP-01 GRAM-03 IDEM-02"),
    ),
    mutant(
        "noncharacters-refused",
        "Every profile refuses noncharacters",
        part(reader=NoncharactersRefused),
        {"STR-05": "over_refusal"},
        also("a noncharacter is among its documents", "PURE-01 PROF-06 IDEM-01 IDEM-02"),
    ),
    mutant(
        "code-points",
        "Names are ordered by code points",
        part(writer=CodePoints),
        {"ORD-01": "wrong_reason", "VER-02": "fail_open"},
        also(_ORDER, "ORD-03 IDEM-01 IDEM-02 VER-01"),
    ),
    mutant(
        "little-endian",
        "Names are ordered by the bytes of UTF-16, the lower first",
        part(writer=LittleEndian),
        {"ORD-01": "wrong_reason"},
        also(_ORDER, "ORD-03 ORD-04 IDEM-01 IDEM-02 VER-01 VER-02"),
    ),
    mutant(
        "nul-ends",
        "Names are compared up to a NUL",
        part(writer=NulEnds),
        {"ORD-02": "wrong_reason"},
        also(_ORDER, "IDEM-02"),
    ),
    mutant(
        "longer-first",
        "A name comes before its own beginning",
        part(writer=LongerFirst),
        {"ORD-02": "wrong_reason"},
        also(_ORDER, "DUP-01 DUP-04 ORD-04 IDEM-02"),
    ),
    mutant(
        "as-written",
        "Names are ordered as they are written",
        part(writer=AsWritten),
        {"ORD-03": "wrong_reason"},
        also(_ORDER, "ORD-01 ORD-02 DUP-01 DUP-02 DUP-04 IDEM-02"),
    ),
    mutant(
        "integers-first",
        "Names that are integers come first, by their value",
        part(writer=IntegersFirst),
        {"ORD-04": "wrong_reason"},
        also(_ORDER, "ORD-01 ORD-03 IDEM-02"),
    ),
    mutant(
        "by-locale",
        "Names are ordered as in a dictionary",
        part(writer=ByLocale),
        {"ORD-04": "wrong_reason"},
        also(_ORDER, "ORD-01 ORD-03 DUP-02 DUP-04 IDEM-01 IDEM-02 VER-01 VER-02"),
    ),
    mutant(
        "prototype-dropped",
        "A member called __proto__ is left out",
        part(writer=PrototypeDropped),
        {"ORD-04": "wrong_reason"},
        also("__proto__ is among its names", "DUP-04 IDEM-02"),
    ),
    mutant(
        "as-they-came",
        "Members keep the order in which they came",
        part(writer=AsTheyCame),
        {"IDEM-02": "wrong_reason", "ORD-05": "wrong_reason", "VER-02": "fail_open"},
        also(_ORDER, "ORD-01 ORD-02 ORD-03 ORD-04 DUP-01 DUP-02 DUP-04 PROF-01 IDEM-01"),
    ),
    mutant(
        "outermost-ordered",
        "Only the members of the outermost object are ordered",
        part(writer=OutermostOrdered),
        {"ORD-05": "wrong_reason"},
        also(_ORDER, "IDEM-02 ORD-06 ORD-01"),
    ),
    mutant(
        "arrays-ordered",
        "Elements of arrays that are scalars are ordered too",
        part(writer=ArraysOrdered),
        {"ORD-06": "fail_open"},
        also("one of its documents has an array", EVERYTHING),
    ),
    mutant(
        "line-feed-added",
        "A line feed ends the canonical form",
        part(writer=LineFeed),
        {"WS-01": "wrong_reason"},
        also("every canonical form changes", EVERYTHING),
    ),
    mutant(
        "capital-literals",
        "Literals are written as Python shows them",
        part(writer=Capitals),
        {"LIT-01": "wrong_reason"},
        also("a literal is among its documents", "GRAM-04 TOP-01 DUP-01 IDEM-01 IDEM-02 VER-01"),
    ),
    mutant(
        "recursive", "The writer recurses and runs out of stack", part(writer=Recursive), {"DEPTH-01": "no_verdict"}
    ),
)
