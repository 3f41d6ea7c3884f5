"""Bugs about strings, order and form: what is written is JSON, and not canonical."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import rfc8785

from holdfast.reference_impl.jcs.reader import Reader, Value, defect
from holdfast.reference_impl.jcs.strings import NONCHARACTER
from holdfast.reference_impl.jcs.terms import Reason
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.planting import Change, part


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


BUGS: Mapping[str, Change] = {
    "long-escapes": part(writer=LongEscapes),
    "capital-hex": part(writer=CapitalHex),
    "ascii-only": part(writer=Ascii),
    "html-safe": part(writer=HtmlSafe),
    "slash-escaped": part(writer=SlashEscaped),
    "script-safe": part(writer=ScriptSafe),
    "del-escaped": part(writer=DelEscaped),
    "nfc": part(writer=Nfc),
    "trimmed": part(writer=Trimmed),
    "noncharacters-refused": part(reader=NoncharactersRefused),
    "code-points": part(writer=CodePoints),
    "little-endian": part(writer=LittleEndian),
    "nul-ends": part(writer=NulEnds),
    "longer-first": part(writer=LongerFirst),
    "as-written": part(writer=AsWritten),
    "integers-first": part(writer=IntegersFirst),
    "by-locale": part(writer=ByLocale),
    "prototype-dropped": part(writer=PrototypeDropped),
    "as-they-came": part(writer=AsTheyCame),
    "outermost-ordered": part(writer=OutermostOrdered),
    "arrays-ordered": part(writer=ArraysOrdered),
    "line-feed-added": part(writer=LineFeed),
    "capital-literals": part(writer=Capitals),
    "recursive": part(writer=Recursive),
}
