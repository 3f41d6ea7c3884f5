"""Bugs about grammar: input that is not JSON, but is read without error."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.reference_impl.jcs.reader import Container, Reader, Value, defect
from holdfast.reference_impl.jcs.terms import Reason
from holdfast.reference_impl.planting import Change, part


class TrailingComma(Reader):
    def skip(self, text: str, at: int) -> int:
        end = super().skip(text, at)
        if text[end : end + 1] == ",":
            after = super().skip(text, end + 1)
            if text[after : after + 1] in ("]", "}"):
                return after
        return end


class RestIgnored(Reader):
    def refuse_rest(self, text: str, at: int) -> None:
        pass


class Comments(Reader):
    def skip(self, text: str, at: int) -> int:
        found = re.compile(r"(?:[ \t\n\r]|/\*.*?\*/|//[^\n]*)*", re.DOTALL).match(text, at)
        return at if found is None else found.end()


class BareNames(Reader):
    def name(self, text: str, at: int) -> tuple[str, int]:
        found = re.compile(r"[A-Za-z_]\w*").match(text, at)
        return (found.group(), found.end()) if found else super().name(text, at)


class NothingIsNull(Reader):
    def literal(self, text: str, at: int) -> tuple[Value, int]:
        return (None, at) if at == len(text) else super().literal(text, at)


class AnyBracketCloses(Reader):
    def closes(self, text: str, at: int, container: Container) -> bool:
        return text[at : at + 1] in ("]", "}")


class EndCloses(Reader):
    def closes(self, text: str, at: int, container: Container) -> bool:
        return at >= len(text) or super().closes(text, at, container)


class LeadingZeros(Reader):
    def number_end(self, text: str, at: int) -> int:
        found = re.compile(r"-?0+[0-9]+").match(text, at)
        return found.end() if found else super().number_end(text, at)


class BarePoints(Reader):
    def number_end(self, text: str, at: int) -> int:
        found = re.compile(r"-?[1-9][0-9]*\.(?![0-9])(?:[eE][+-]?[0-9]+)?").match(text, at)
        return found.end() if found else super().number_end(text, at)


class DigitsSetApart(Reader):
    def number_end(self, text: str, at: int) -> int:
        found = re.compile(r"-?[1-9][0-9]*(?:_[0-9]+)+").match(text, at)
        return found.end() if found else super().number_end(text, at)


class PlusAndPoint(Reader):
    def literal(self, text: str, at: int) -> tuple[Value, int]:
        found = re.compile(r"\+?[0-9]*\.?[0-9]+").match(text, at)
        return (float(found.group()), found.end()) if found else super().literal(text, at)


class AnyDigits(Reader):
    def literal(self, text: str, at: int) -> tuple[Value, int]:
        found = re.compile(r"\d+").match(text, at)
        return (float(found.group()), found.end()) if found else super().literal(text, at)


class Hexadecimal(Reader):
    def number(self, text: str, at: int) -> tuple[float, int]:
        found = re.compile(r"0[xX][0-9a-fA-F]+(?:p[+-]?[0-9]+)?").match(text, at)
        return (float.fromhex(found.group()), found.end()) if found else super().number(text, at)


class RawControls(Reader):
    def raw_control(self, text: str, at: int) -> tuple[str, int]:
        return (text[at], at + 1) if at < len(text) else super().raw_control(text, at)


class EscapesKept(Reader):
    def unknown_escape(self, text: str, at: int) -> tuple[str, int]:
        return text[at + 1 : at + 2], at + 2


class HexAsInteger(Reader):
    def hex4(self, text: str, at: int) -> tuple[int, int]:
        try:
            return int(text[at + 2 : at + 6], 16), at + 6
        except ValueError:
            return super().hex4(text, at)


class SingleQuotes(Reader):
    def literal(self, text: str, at: int) -> tuple[Value, int]:
        found = re.compile(r"'([^'\\]*)'").match(text, at)
        return (found.group(1), found.end()) if found else super().literal(text, at)


class NanIsNull(Reader):
    def literal(self, text: str, at: int) -> tuple[Value, int]:
        found = re.compile(r"NaN|Infinity").match(text, at)
        return (None, found.end()) if found else super().literal(text, at)


class AnyCase(Reader):
    def literal(self, text: str, at: int) -> tuple[Value, int]:
        found = re.compile(r"true|false|null", re.IGNORECASE).match(text, at)
        if found is None:
            return super().literal(text, at)
        return {"true": True, "false": False, "null": None}[found.group().lower()], found.end()


class AnySpace(Reader):
    def skip(self, text: str, at: int) -> int:
        while text[at : at + 1].isspace():
            at += 1
        return at


class NoTabs(Reader):
    def skip(self, text: str, at: int) -> int:
        found = re.compile(r"[ \n]*").match(text, at)
        return at if found is None else found.end()


class ContainersOnly(Reader):
    def document(self, text: str) -> Value:
        value = super().document(text)
        if not isinstance(value, list | dict):
            defect(Reason.SYNTAX, 0)
        return value


BUGS: Mapping[str, Change] = {
    "trailing-comma": part(reader=TrailingComma),
    "rest-ignored": part(reader=RestIgnored),
    "comments-skipped": part(reader=Comments),
    "bare-names": part(reader=BareNames),
    "nothing-is-null": part(reader=NothingIsNull),
    "any-bracket-closes": part(reader=AnyBracketCloses),
    "end-closes": part(reader=EndCloses),
    "leading-zeros": part(reader=LeadingZeros),
    "bare-points": part(reader=BarePoints),
    "digits-set-apart": part(reader=DigitsSetApart),
    "plus-and-point": part(reader=PlusAndPoint),
    "any-digits": part(reader=AnyDigits),
    "hexadecimal": part(reader=Hexadecimal),
    "raw-controls": part(reader=RawControls),
    "escapes-kept": part(reader=EscapesKept),
    "hex-as-integer": part(reader=HexAsInteger),
    "single-quotes": part(reader=SingleQuotes),
    "nan-is-null": part(reader=NanIsNull),
    "any-case": part(reader=AnyCase),
    "any-space": part(reader=AnySpace),
    "no-tabs": part(reader=NoTabs),
    "containers-only": part(reader=ContainersOnly),
}
