"""Bugs about grammar: what is not JSON, and is understood all the same."""

from __future__ import annotations

import re

from holdfast.reference_impl.jcs.mutants.planting import mutant
from holdfast.reference_impl.jcs.reader import Container, Reader, Value, defect
from holdfast.reference_impl.jcs.terms import Reason
from holdfast.reference_impl.mutants.planting import also, part


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


_SCALAR = "one of its documents is a scalar"

MUTANTS = (
    mutant(
        "trailing-comma",
        "A comma before the end of an array or object is skipped",
        part(reader=TrailingComma),
        {"GRAM-01": "fail_open"},
    ),
    mutant(
        "rest-ignored",
        "What stands behind the value is ignored",
        part(reader=RestIgnored),
        {"GRAM-01": "fail_open"},
    ),
    mutant("comments-skipped", "Comments are skipped", part(reader=Comments), {"GRAM-01": "fail_open"}),
    mutant("bare-names", "Names need no quotation marks", part(reader=BareNames), {"GRAM-01": "fail_open"}),
    mutant("nothing-is-null", "No value is a null", part(reader=NothingIsNull), {"GRAM-01": "fail_open"}),
    mutant("any-bracket-closes", "Any bracket closes", part(reader=AnyBracketCloses), {"GRAM-01": "fail_open"}),
    mutant(
        "end-closes",
        "The end of the text closes what is open",
        part(reader=EndCloses),
        {"GRAM-01": "fail_open"},
        also("one of its documents is left open", "DEPTH-01 DEPTH-02 PURE-01"),
    ),
    mutant(
        "leading-zeros",
        "Leading zeros are skipped",
        part(reader=LeadingZeros),
        {"GRAM-02": "fail_open"},
        also("one of its numbers has a leading zero", "VER-03"),
    ),
    mutant("bare-points", "A number may end with its point", part(reader=BarePoints), {"GRAM-02": "fail_open"}),
    mutant("digits-set-apart", "Underscores between digits", part(reader=DigitsSetApart), {"GRAM-02": "fail_open"}),
    mutant(
        "plus-and-point", "A plus sign or a point may come first", part(reader=PlusAndPoint), {"GRAM-02": "fail_open"}
    ),
    mutant("any-digits", "Digits of every script are digits", part(reader=AnyDigits), {"GRAM-02": "fail_open"}),
    mutant("hexadecimal", "Hexadecimal numbers are read", part(reader=Hexadecimal), {"GRAM-02": "fail_open"}),
    mutant("raw-controls", "Control characters stand in strings", part(reader=RawControls), {"GRAM-03": "fail_open"}),
    mutant("escapes-kept", "An unknown escape is its letter", part(reader=EscapesKept), {"GRAM-03": "fail_open"}),
    mutant(
        "hex-as-integer",
        "The four digits are read as an integer, sign and all",
        part(reader=HexAsInteger),
        {"GRAM-03": "fail_open"},
    ),
    mutant("single-quotes", "Single quotes will do", part(reader=SingleQuotes), {"GRAM-03": "fail_open"}),
    mutant("nan-is-null", "NaN and Infinity are null", part(reader=NanIsNull), {"GRAM-04": "fail_open"}),
    mutant("any-case", "Literals in any case", part(reader=AnyCase), {"GRAM-04": "fail_open"}),
    mutant(
        "any-space",
        "Whatever Unicode calls space is skipped",
        part(reader=AnySpace),
        {"GRAM-05": "fail_open"},
        also("a record separator is a space to it", "GRAM-01"),
    ),
    mutant(
        "no-tabs",
        "Tabs and carriage returns are no whitespace",
        part(reader=NoTabs),
        {"GRAM-05": "over_refusal"},
        also("its documents are respaced", "IDEM-02"),
    ),
    mutant(
        "containers-only",
        "A scalar alone is refused",
        part(reader=ContainersOnly),
        {"TOP-01": "over_refusal"},
        also(_SCALAR, "UTF8-03 GRAM-01 NUM-05 IDEM-01 IDEM-02 VER-01 REQ-01"),
    ),
)
