"""Reading one document: bytes to a value, or a refusal. Every guard is one method.

The parser keeps its own stack, so depth costs memory and never the interpreter's stack. Values are None, bool, float,
str, list and dict; every number is the double nearest to its literal, and a dict holds its members by unescaped name.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from typing import Any, NoReturn, TypeAlias

from holdfast.reference_impl.jcs import numbers, strings
from holdfast.reference_impl.jcs.terms import Limits, Profile, Reason, Refusal

Value: TypeAlias = Any
Container: TypeAlias = "list[Value] | dict[str, Value]"

_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERALS: dict[str, Value] = {"true": True, "false": False, "null": None}


class RefusedError(Exception):
    """The document is refused. A plain value outside of this module: `Refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class _DefectError(Exception):
    """A defect at a character of the text; `read` turns it into a refusal at a byte."""

    def __init__(self, reason: Enum, place: int) -> None:
        super().__init__(reason, place)
        self.reason = reason
        self.place = place


def defect(reason: Enum, place: int) -> NoReturn:
    """Give up at a character of the text."""
    raise _DefectError(reason, place)


class Reader:
    """Reads documents under one profile. Nothing is kept from one document to the next."""

    def __init__(self, limits: Limits, profile: Profile) -> None:
        self.limits = limits
        self.profile = profile

    def read(self, document: bytes) -> Value:
        """The value of `document`. Raises RefusedError."""
        text = self.decode(self.unmarked(document))
        try:
            return self.document(text)
        except _DefectError as found:
            offset = len(text[: found.place].encode("utf-8"))
            raise RefusedError(Refusal(found.reason, offset)) from None

    # Bytes

    def unmarked(self, document: bytes) -> bytes:
        """The document, which has no byte order mark. Raises RefusedError."""
        if document.startswith(_MARK):
            raise RefusedError(Refusal(Reason.BYTE_ORDER_MARK, 0))
        return document

    def decode(self, document: bytes) -> str:
        """The text of UTF-8; overlong forms, surrogates and values beyond U+10FFFF are none. Raises RefusedError."""
        try:
            return document.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RefusedError(Refusal(Reason.INVALID_UTF8, error.start)) from None

    # Structure

    def document(self, text: str) -> Value:
        """The one value of `text`, whitespace around it."""
        value, end = self.value(text, self.skip(text, 0))
        self.refuse_rest(text, self.skip(text, end))
        return value

    def refuse_rest(self, text: str, at: int) -> None:
        """Nothing stands after the value."""
        if at != len(text):
            defect(Reason.SYNTAX, at)

    def value(self, text: str, at: int) -> tuple[Value, int]:
        """The value that starts at `at`, and where it ends. Containers under way are on a stack of our own."""
        under_way: list[Container] = []
        names: list[str] = []
        while True:
            # A value is due at `at`.
            opening = text[at : at + 1]
            if opening == "[" or opening == "{":
                made = self.opened(opening, len(under_way) + 1, at)
                at = self.skip(text, at + 1)
                if not self.closes(text, at, made):
                    name, at = self.first_name(text, at, made)
                    under_way.append(made)
                    names.append(name)
                    continue
                value: Value = made
                at += 1
            else:
                value, at = self.scalar(text, at)
            # A value ended at `at`; so may the containers around it.
            while under_way:
                container = under_way[-1]
                if isinstance(container, list):
                    container.append(value)
                else:
                    container[names[-1]] = value
                at = self.skip(text, at)
                if self.goes_on(text, at, container):
                    names[-1], at = self.next_name(text, at, container)
                    break
                value = container
                under_way.pop()
                names.pop()
                at += 1
            else:
                return value, at

    def opened(self, opening: str, level: int, at: int) -> Container:
        """A new container; the outermost has level 1."""
        self.refuse_depth(level, at)
        return [] if opening == "[" else {}

    def refuse_depth(self, level: int, at: int) -> None:
        """No deeper than the limit."""
        if level > self.limits.max_depth:
            defect(Reason.DEPTH_EXCEEDED, at)

    def skip(self, text: str, at: int) -> int:
        """Where the whitespace that starts at `at` ends (RFC 8259 section 2)."""
        if text[at : at + 1] > " ":
            return at  # nearly always; the pattern would say the same
        found = _SPACE.match(text, at)
        return at if found is None else found.end()

    def closes(self, text: str, at: int, container: Container) -> bool:
        """Whether `container` ends at `at`."""
        return text[at : at + 1] == ("]" if isinstance(container, list) else "}")

    def goes_on(self, text: str, at: int, container: Container) -> bool:
        """Whether a comma is at `at`; False at the end of `container`, a defect at anything else."""
        if text[at : at + 1] == ",":
            return True
        if not self.closes(text, at, container):
            defect(Reason.SYNTAX, at)
        return False

    def first_name(self, text: str, at: int, container: Container) -> tuple[str, int]:
        """The name of a first member, and where its value starts. An element of an array has no name."""
        return ("", at) if isinstance(container, list) else self.member(text, at, container)

    def next_name(self, text: str, at: int, container: Container) -> tuple[str, int]:
        """The name of the member after the comma at `at`, and where its value starts."""
        return self.first_name(text, self.skip(text, at + 1), container)

    def member(self, text: str, at: int, container: dict[str, Value]) -> tuple[str, int]:
        """The name that starts at `at`, with its colon, and where the value starts."""
        name, end = self.name(text, at)
        self.refuse_duplicate(name, container, at)
        end = self.skip(text, end)
        if text[end : end + 1] != ":":
            defect(Reason.SYNTAX, end)
        return name, self.skip(text, end + 1)

    def refuse_duplicate(self, name: str, container: dict[str, Value], at: int) -> None:
        """One object has one member of a name (RFC 7493 section 2.3). Names are unescaped here."""
        if name in container:
            defect(Reason.DUPLICATE_NAME, at)

    # Scalars

    def scalar(self, text: str, at: int) -> tuple[Value, int]:
        """The string, number or literal that starts at `at`, and where it ends."""
        opening = text[at : at + 1]
        if opening == '"':
            return self.string(text, at)
        if opening == "-" or ("0" <= opening <= "9"):
            return self.number(text, at)
        return self.literal(text, at)

    def literal(self, text: str, at: int) -> tuple[Value, int]:
        """One of three words, in lower case."""
        for word, value in _LITERALS.items():
            if text.startswith(word, at):
                return value, at + len(word)
        defect(Reason.SYNTAX, at)

    def number(self, text: str, at: int) -> tuple[float, int]:
        """The double nearest to the literal that starts at `at`."""
        end = self.number_end(text, at)
        literal = text[at:end]
        double = self.rounded(literal)
        self.refuse_out_of_range(double, at)
        self.refuse_too_precise(literal, at)
        self.refuse_underflow(literal, double, at)
        self.refuse_unsafe_integer(double, at)
        return double, end

    def number_end(self, text: str, at: int) -> int:
        """Where the longest literal that starts at `at` ends. What follows must fit: `01` is no `0`."""
        found = numbers.LITERAL.match(text, at)
        if found is None:
            defect(Reason.SYNTAX, at)
        return found.end()

    def rounded(self, literal: str) -> float:
        """The nearest double, ties to even; infinite beyond the range."""
        return float(literal)

    def refuse_out_of_range(self, double: float, at: int) -> None:
        """RFC 8785 section 3.2.2.3: Infinity must cause an error."""
        if not math.isfinite(double):
            defect(Reason.NUMBER_OUT_OF_RANGE, at)

    def refuse_too_precise(self, literal: str, at: int) -> None:
        """i-json-strict: no digits that a double cannot hold."""
        if self.profile is not Profile.I_JSON_STRICT:
            return
        if numbers.significant_digits(literal) > self.limits.max_significant_digits:
            defect(Reason.NUMBER_TOO_PRECISE, at)

    def refuse_underflow(self, literal: str, double: float, at: int) -> None:
        """i-json-strict: what is not zero does not become zero."""
        if self.profile is Profile.I_JSON_STRICT and double == 0 and numbers.significant_digits(literal):
            defect(Reason.NUMBER_UNDERFLOW, at)

    def refuse_unsafe_integer(self, double: float, at: int) -> None:
        """safe-int: the canonical text decides, so that a canonical form is judged like its source."""
        if self.profile is not Profile.SAFE_INT:
            return
        written = numbers.integer_of(numbers.text_of(double))
        if written is not None and abs(written) > self.limits.max_safe_integer:
            defect(Reason.UNSAFE_INTEGER, at)

    # Strings

    def name(self, text: str, at: int) -> tuple[str, int]:
        """The name that starts at `at`: a string like any other."""
        return self.string(text, at)

    def string(self, text: str, at: int) -> tuple[str, int]:
        """The string whose quotation mark is at `at`, unescaped, and where it ends."""
        whole = strings.WHOLE.match(text, at)
        string, end = (whole.group(1), whole.end()) if whole else self.unescaped(text, at)
        self.refuse_noncharacter(string, at)
        return string, end

    def unescaped(self, text: str, at: int) -> tuple[str, int]:
        """A string with escapes in it, or with a defect: run by run and escape by escape."""
        if text[at : at + 1] != '"':
            defect(Reason.SYNTAX, at)
        parts: list[str] = []
        place = at + 1
        while True:
            run = strings.PLAIN.match(text, place)
            assert run is not None
            parts.append(run.group())
            place = run.end()
            stop = text[place : place + 1]
            if stop == '"':
                return "".join(parts), place + 1
            if stop != "\\":
                # An unescaped control character, or the end of the text.
                defect(Reason.SYNTAX, place)
            part, place = self.escape(text, place)
            parts.append(part)

    def escape(self, text: str, at: int) -> tuple[str, int]:
        """The character that the escape at `at` stands for, and where it ends."""
        kind = text[at + 1 : at + 2]
        if kind == "u":
            return self.code_unit(text, at)
        if kind in strings.SHORT:
            return strings.SHORT[kind], at + 2
        defect(Reason.SYNTAX, at)

    def code_unit(self, text: str, at: int) -> tuple[str, int]:
        """The character of the escape of four digits at `at`, or of two that are a surrogate pair."""
        unit, end = self.hex4(text, at)
        if strings.is_high(unit) and text.startswith("\\u", end):
            low, after = self.hex4(text, end)
            if strings.is_low(low):
                return strings.joined(unit, low), after
        if strings.is_high(unit) or strings.is_low(unit):
            return self.lone_surrogate(unit, at), end
        return chr(unit), end

    def hex4(self, text: str, at: int) -> tuple[int, int]:
        """The four digits behind the backslash and u at `at`."""
        digits = strings.HEX4.match(text, at + 2)
        if digits is None:
            defect(Reason.SYNTAX, at)
        return int(digits.group(), 16), digits.end()

    def lone_surrogate(self, unit: int, at: int) -> str:  # noqa: ARG002 - a bug would keep it
        """RFC 8785 section 3.2.2.2: half a pair must cause an error."""
        defect(Reason.LONE_SURROGATE, at)

    def refuse_noncharacter(self, string: str, at: int) -> None:
        """i-json-strict: RFC 7493 section 2.1."""
        if self.profile is Profile.I_JSON_STRICT and strings.NONCHARACTER.search(string):
            defect(Reason.NONCHARACTER, at)
