"""Near misses that read numbers, words and strings of other languages."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tests.vectors.nearmiss.honest import Honest, RefusalError
from tests.vectors.nearmiss.registry import near_miss


class Lenient(Honest):
    """Reads numbers by a wider pattern. Not a near miss itself: a pattern is the guard that its heirs override."""

    pattern = ""

    def number(self, text: str, at: int) -> tuple[str, int]:
        found = re.compile(self.pattern).match(text, at)
        return (self.plain_literal(found.group()), found.end()) if found else super().number(text, at)

    def plain_literal(self, literal: str) -> str:
        """The literal as JSON spells it."""
        return repr(float(literal))


@near_miss("leading-zeros-accepted")
class LeadingZeros(Lenient):
    """Accepts zeros before a number."""

    pattern = r"-?0[0-9]+"


@near_miss("plus-accepted")
class Plus(Lenient):
    """Accepts a plus sign before a number."""

    pattern = r"\+[0-9]+"


@near_miss("bare-point-accepted")
class BarePoint(Lenient):
    """Accepts a number that begins with its point."""

    pattern = r"-?\.[0-9]+"


@near_miss("trailing-point-accepted")
class TrailingPoint(Lenient):
    """Accepts a number that ends with its point, before an exponent too."""

    pattern = r"-?[0-9]+\.(?:[eE][+-]?[0-9]+)?(?![0-9])"


@near_miss("empty-exponent-accepted")
class EmptyExponent(Lenient):
    """Accepts an exponent without digits."""

    pattern = r"[0-9]+[eE][+-]?(?![0-9+-])"

    def plain_literal(self, literal: str) -> str:
        return re.split("[eE]", literal)[0]


@near_miss("lenient-numbers")
class LenientNumbers(Lenient):
    """Reads what ParseFloat of Go reads: hexadecimal floats and separators too."""

    pattern = r"[+-]?0[xX][0-9a-fA-F_]+(?:[pP][+-]?[0-9]+)?"

    def plain_literal(self, literal: str) -> str:
        return repr(float.fromhex(literal.replace("_", "")))


@near_miss("separators-accepted")
class Separators(Lenient):
    """Accepts separators between digits, as int of Python does."""

    pattern = r"[0-9]+(?:_[0-9]+)+"


@near_miss("radix-accepted")
class Radix(Lenient):
    """Accepts hexadecimal, octal and binary integers."""

    pattern = r"0(?:x[0-9a-f]+(?![_p])|o[0-7]+|b[01]+)"

    def plain_literal(self, literal: str) -> str:
        return str(int(literal, 0))


@near_miss("digits-of-any-script")
class DigitsOfAnyScript(Lenient):
    r"""Takes \d of a regular expression for the digits of JSON."""

    pattern = r"\d*[^\x00-\x7f\D]+\d*"


@near_miss("suffix-accepted")
class Suffix(Lenient):
    """Accepts a letter behind a number."""

    pattern = r"[0-9]+[fn]"

    def plain_literal(self, literal: str) -> str:
        return literal[:-1]


@near_miss("number-prefix-read")
class NumberPrefix(Lenient):
    """Reads as much of a number as it can, as strtod does, and skips the rest."""

    pattern = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[0-9.eE+-]*"

    def plain_literal(self, literal: str) -> str:
        found = re.match(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", literal)
        return found.group() if found else literal


@near_miss("minus-alone-is-zero")
class MinusAlone(Lenient):
    """Reads a sign without digits as zero, and skips blanks and signs behind it."""

    pattern = r"-(?=[\] -])[ -]*[0-9]*"

    def plain_literal(self, literal: str) -> str:
        return literal.replace("-", "").strip() or "0"


@near_miss("nan-accepted")
class NanAccepted(Honest):
    """Reads NaN and Infinity, and writes null, as JSON.stringify does."""

    words: ClassVar[dict[str, Any]] = {
        **Honest.words,
        "NaN": None,
        "Infinity": None,
        "-Infinity": None,
        "-NaN": None,
        "inf": None,
    }


@near_miss("foreign-words")
class ForeignWords(Honest):
    """Reads the literals of other languages."""

    words: ClassVar[dict[str, Any]] = {
        **Honest.words,
        "True": True,
        "False": False,
        "None": None,
        "NULL": None,
        "undefined": None,
    }


@near_miss("words-cut-off")
class WordsCutOff(Honest):
    """Reads the first letters of a literal only."""

    def scalar(self, text: str, at: int) -> tuple[Any, int]:
        if text.startswith("tru", at):
            end = at
            while text[end : end + 1].isalpha():
                end += 1
            return True, end
        return super().scalar(text, at)


@near_miss("bare-words")
class BareWords(Honest):
    """Takes an unquoted letter for a string."""

    def scalar(self, text: str, at: int) -> tuple[Any, int]:
        if re.compile(r"[a-z][\],]").match(text, at):
            return text[at], at + 1
        return super().scalar(text, at)


@near_miss("raw-control-characters")
class RawControls(Honest):
    """Accepts control characters in a string."""

    def plain(self, character: str) -> str:
        return character


@near_miss("raw-tabs")
class RawTabs(Honest):
    """Accepts a raw tab in a string."""

    def plain(self, character: str) -> str:
        return character if character == "\t" else super().plain(character)


@near_miss("unknown-escapes")
class UnknownEscapes(Honest):
    """Takes an unknown escape for its letter."""

    def short_escape(self, letter: str) -> str:
        return self.escapes.get(letter, letter)


@near_miss("javascript-escapes")
class JavascriptEscapes(Honest):
    """Knows the escapes of JavaScript."""

    def unescape(self, text: str, at: int) -> tuple[str, int]:
        if text[at] == "x":
            return chr(int(text[at + 1 : at + 3], 16)), at + 3
        if text[at : at + 2] == "u{":
            end = text.index("}", at)
            return chr(int(text[at + 2 : end], 16)), end + 1
        known = {"v": "\v", "'": "'", "0": "\0", "\n": ""}
        return (known[text[at]], at + 1) if text[at : at + 1] in known else super().unescape(text, at)


@near_miss("lenient-hex")
class LenientHex(Honest):
    """Reads the four digits of an escape as int of Python does: signs, blanks, separators."""

    def code_unit(self, digits: str) -> int:
        try:
            return int(digits, 16)
        except ValueError:
            raise RefusalError("SYNTAX") from None


@near_miss("hex-prefix-read")
class HexPrefix(Honest):
    """Reads as many hexadecimal digits as there are."""

    def unescape(self, text: str, at: int) -> tuple[str, int]:
        found = re.compile("u([0-9A-Fa-f]{1,4})").match(text, at)
        return (chr(int(found[1], 16)), found.end()) if found else super().unescape(text, at)


@near_miss("single-quotes")
class SingleQuotes(Honest):
    """Accepts single quotes around strings and names."""

    quotes = "\"'"


@near_miss("unclosed-strings")
class UnclosedStrings(Honest):
    """Closes an unclosed string, and what is around it, at the end of the text."""

    def read(self, text: str) -> Any:
        try:
            return super().read(text)
        except RefusalError:
            if text.startswith('["') and text.endswith("]"):
                return super().read(text[:-1] + '"]')
            raise
