"""A canonicaliser with every guard as a method of its own, so that a near miss can override exactly one.

It is an oracle of the tests and nothing else: slow, and written without reading the reference. Documents are read
without recursion, numbers come from Python's correctly rounded `float` and its shortest `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.vectors.taxonomy import Profile

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_NO_VALUE = object()


class RefusalError(Exception):
    """The document is refused; the text is a reason of the contract `jcs`."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was spelt, and its double."""

    literal: str
    value: float


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: its name, the name as it was spelt between the quotation marks, and its value."""

    name: str
    spelt: str
    value: Any


@dataclass(slots=True)
class Object:
    """An object that is being read: its members, and the name that waits for a value."""

    members: list[Member]
    pending: tuple[str, str] = ("", "")


class Honest:
    """Right in every way. `canonicalise` raises RefusalError; `verify` says whether bytes are canonical."""

    name: ClassVar[str] = "honest"
    blanks: ClassVar[str] = " \t\n\r"
    words: ClassVar[dict[str, Any]] = {"true": True, "false": False, "null": None}
    quotes: ClassVar[str] = '"'
    escapes: ClassVar[dict[str, str]] = {
        '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    }  # fmt: skip

    def __init__(self, profile: Profile) -> None:
        self.profile = profile

    def canonicalise(self, document: bytes) -> bytes:
        """The canonical bytes of `document`."""
        return self.write(self.read(self.decode(document)))

    def verify(self, document: bytes) -> bool:
        """Whether `document` is canonical."""
        try:
            return self.canonicalise(document) == document
        except RefusalError:
            return False

    # Reading: bytes, structure.

    def decode(self, document: bytes) -> str:
        """The text of the bytes."""
        if document.startswith(b"\xef\xbb\xbf"):
            raise RefusalError("BYTE_ORDER_MARK")
        return self.decode_utf8(document)

    def decode_utf8(self, document: bytes) -> str:
        """The text of bytes without a mark."""
        try:
            return document.decode("utf-8")
        except UnicodeDecodeError:
            raise RefusalError("INVALID_UTF8") from None

    def read(self, text: str) -> Any:
        """The one value of the text."""
        open_: list[Any] = []
        at = self.blank(text, 0)
        while True:
            value, at = self.begin(text, at, open_)
            while value is not _NO_VALUE:
                at = self.blank(text, at)
                if not open_:
                    self.finish(text, at)
                    return value
                value, at = self.put(text, at, open_, value)

    def begin(self, text: str, at: int, open_: list[Any]) -> tuple[Any, int]:
        """Read what begins at `at`: a whole scalar or empty container, or the opening of one that is left open."""
        mark = text[at : at + 1]
        if mark not in ("[", "{"):
            return self.scalar(text, at)
        holder: Any = [] if mark == "[" else Object([])
        at = self.blank(text, at + 1)
        if self.ends(text, at, holder):
            return holder, at + 1
        open_.append(holder)
        return _NO_VALUE, self.pending(text, at, holder)

    def put(self, text: str, at: int, open_: list[Any], value: Any) -> tuple[Any, int]:
        """Put a whole value into the innermost container, and go on behind it."""
        holder = open_[-1]
        if isinstance(holder, list):
            holder.append(value)
        else:
            name, spelt = holder.pending
            self.add(holder, Member(name, spelt, value))
        if text[at : at + 1] == ",":
            at = self.blank(text, at + 1)
            if not self.ends_behind_comma(text, at, holder):
                return _NO_VALUE, self.pending(text, at, holder)
        if not self.ends(text, at, holder):
            raise RefusalError("SYNTAX")
        return open_.pop(), at + 1

    def ends(self, text: str, at: int, holder: Any) -> bool:
        """Whether the container ends at `at`."""
        return text[at : at + 1] == ("]" if isinstance(holder, list) else "}")

    def ends_behind_comma(self, text: str, at: int, holder: Any) -> bool:
        """Whether a container may end behind a comma, as it does at `at`."""
        return False

    def pending(self, text: str, at: int, holder: Any) -> int:
        """Read a member's name and colon, if the container is an object."""
        if isinstance(holder, list):
            return at
        name, end = self.member_name(text, at)
        holder.pending = (name, text[at + 1 : end - 1])
        at = self.blank(text, end)
        if text[at : at + 1] != ":":
            raise RefusalError("SYNTAX")
        return self.blank(text, at + 1)

    def member_name(self, text: str, at: int) -> tuple[str, int]:
        """Read a name."""
        if text[at : at + 1] not in tuple(self.quotes):
            raise RefusalError("SYNTAX")
        return self.string(text, at)

    def add(self, holder: Object, member: Member) -> None:
        """Add a member, if its name is new."""
        if any(other.name == member.name for other in holder.members):
            raise RefusalError("DUPLICATE_NAME")
        holder.members.append(member)

    def blank(self, text: str, at: int) -> int:
        """The first place from `at` on that is no whitespace."""
        while at < len(text) and text[at] in self.blanks:
            at += 1
        return at

    def finish(self, text: str, at: int) -> None:
        """Inspect what follows the value."""
        if at != len(text):
            raise RefusalError("SYNTAX")

    # Reading: scalars.

    def scalar(self, text: str, at: int) -> tuple[Any, int]:
        """Read a string, a number or a literal."""
        if text[at : at + 1] in tuple(self.quotes):
            return self.string(text, at)
        for word, value in self.words.items():
            if text.startswith(word, at):
                return value, at + len(word)
        literal, end = self.number(text, at)
        return Number(literal, self.double(literal)), end

    def number(self, text: str, at: int) -> tuple[str, int]:
        """Read a number's literal."""
        found = _NUMBER.match(text, at)
        if found is None:
            raise RefusalError("SYNTAX")
        return found.group(), found.end()

    def double(self, literal: str) -> float:
        """The double of a literal."""
        value = float(literal)
        if value in (float("inf"), float("-inf")):
            return self.overflow(value)
        if self.profile is Profile.I_JSON_STRICT:
            self.check_precision(literal, value)
        return value

    def overflow(self, value: float) -> float:
        """What becomes of a literal beyond the doubles."""
        raise RefusalError("NUMBER_OUT_OF_RANGE")

    def check_precision(self, literal: str, value: float) -> None:
        """The rules of i-json-strict for literals."""
        digits = re.split("[eE]", literal.lstrip("-"))[0].replace(".", "").strip("0")
        if value == 0 and digits:
            raise RefusalError("NUMBER_UNDERFLOW")
        if len(digits) > 17:
            raise RefusalError("NUMBER_TOO_PRECISE")

    def string(self, text: str, at: int) -> tuple[str, int]:
        """Read a string from its opening quotation mark on."""
        quote, at = text[at], at + 1
        characters: list[str] = []
        while True:
            mark = text[at : at + 1]
            if not mark:
                raise RefusalError("SYNTAX")
            if mark == quote:
                break
            if mark == "\\":
                character, at = self.unescape(text, at + 1)
            else:
                character, at = self.plain(mark), at + 1
            characters.append(character)
        found = self.surrogates("".join(characters))
        if self.profile is Profile.I_JSON_STRICT:
            self.check_characters(found)
        return found, at + 1

    def plain(self, character: str) -> str:
        """A character that stands in a string as it is."""
        if character < " ":
            raise RefusalError("SYNTAX")
        return character

    def unescape(self, text: str, at: int) -> tuple[str, int]:
        """The code unit of the escape whose letter stands at `at`."""
        letter = text[at : at + 1]
        if letter == "u":
            return chr(self.code_unit(text[at + 1 : at + 5])), at + 5
        return self.short_escape(letter), at + 1

    def short_escape(self, letter: str) -> str:
        """The character of an escape of one letter."""
        if letter not in self.escapes:
            raise RefusalError("SYNTAX")
        return self.escapes[letter]

    def code_unit(self, digits: str) -> int:
        """The code unit of four hexadecimal digits."""
        if not _HEX.fullmatch(digits):
            raise RefusalError("SYNTAX")
        return int(digits, 16)

    def surrogates(self, text: str) -> str:
        """Join pairs; nothing alone may be left."""
        joined = self.join(text)
        if any("\ud800" <= character <= "\udfff" for character in joined):
            return self.lone(joined)
        return joined

    def join(self, text: str) -> str:
        """Every high half directly before a low one becomes a character."""
        return _PAIR.sub(lambda m: chr(0x10000 + ((ord(m[1]) - 0xD800) << 10) + ord(m[2]) - 0xDC00), text)

    def lone(self, text: str) -> str:
        """What becomes of a lone surrogate."""
        raise RefusalError("LONE_SURROGATE")

    def check_characters(self, text: str) -> None:
        """The rule of i-json-strict for characters."""
        if any(self.is_noncharacter(ord(character)) for character in text):
            raise RefusalError("NONCHARACTER")

    def is_noncharacter(self, code: int) -> bool:
        """Unicode section 23.7: the last two of every plane, and 32 in the middle."""
        return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF

    # Writing.

    def write(self, value: Any) -> bytes:
        """The canonical bytes of a value, without recursion. In the list of what is left, bytes are ready."""
        done: list[bytes] = []
        left: list[Any] = [value]
        while left:
            item = left.pop()
            if isinstance(item, bytes):
                done.append(item)
            elif isinstance(item, list):
                left += [b"]", *self.pieces([item_] for item_ in self.elements(item)), b"["]
            elif isinstance(item, Object):
                members = self.ordered(item.members)
                left += [b"}", *self.pieces([m.value, b":", self.name_bytes(m.name)] for m in members), b"{"]
            else:
                done.append(self.scalar_bytes(item))
        return b"".join(done)

    def pieces(self, groups: Iterable[list[Any]]) -> list[Any]:
        """The groups with commas between them, last first."""
        pieces: list[Any] = []
        for group in reversed(list(groups)):
            pieces += [*group, b","]
        return pieces[:-1]

    def elements(self, elements: list[Any]) -> list[Any]:
        """The elements of an array in the order in which they are written."""
        return elements

    def ordered(self, members: list[Member]) -> list[Member]:
        """The members of an object in the order in which they are written."""
        return sorted(members, key=self.sort_key)

    def sort_key(self, member: Member) -> Any:
        """What members are ordered by: big-endian UTF-16 compares like its code units."""
        return member.name.encode("utf-16-be", "surrogatepass")

    def name_bytes(self, name: str) -> bytes:
        """A name, written."""
        return self.string_bytes(name)

    def scalar_bytes(self, value: Any) -> bytes:
        """A scalar, written."""
        if isinstance(value, str):
            return self.string_bytes(value)
        if isinstance(value, Number):
            text = self.number_text(value)
            if self.profile is Profile.SAFE_INT:
                self.check_safe(text, value)
            return text.encode("ascii")
        return {True: b"true", False: b"false", None: b"null"}[value]

    def string_bytes(self, text: str) -> bytes:
        """A string, written."""
        return self.encode('"' + "".join(map(self.escape, text)) + '"')

    def encode(self, text: str) -> bytes:
        """Text as bytes."""
        return text.encode("utf-8")

    def escape(self, character: str) -> str:
        """A character as it stands in a string."""
        if character in '"\\':
            return "\\" + character
        return self.control(character) if character < " " else character

    def control(self, character: str) -> str:
        """A control character below the blank."""
        short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
        return short.get(character, f"\\u{ord(character):04x}")

    def number_text(self, number: Number) -> str:
        """A number, written: ECMAScript's Number::toString."""
        value = number.value
        if value == 0:
            return "0"
        digits, point = self.shortest(abs(value))
        return ("-" if value < 0 else "") + self.layout(digits, point)

    def shortest(self, value: float) -> tuple[str, int]:
        """The shortest digits, and how many of them stand before the point."""
        return digits_of(repr(value))

    def layout(self, digits: str, point: int) -> str:
        """Digits with their point or exponent."""
        if 0 < point <= 21:
            if len(digits) <= point:
                return digits + "0" * (point - len(digits))
            return digits[:point] + "." + digits[point:]
        if -6 < point <= 0:
            return "0." + "0" * -point + digits
        return self.with_exponent(digits, point - 1)

    def with_exponent(self, digits: str, exponent: int) -> str:
        """Digits with an exponent."""
        return digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{exponent:+d}"

    def check_safe(self, text: str, number: Number) -> None:
        """The rule of safe-int, on the canonical text."""
        if "." not in text and "e" not in text and abs(int(text)) > 2**53 - 1:
            raise RefusalError("UNSAFE_INTEGER")


class NameAware(Honest):
    """Knows whether it reads a name. Not a near miss itself: what it makes of that is left to its heirs."""

    in_name = False

    def member_name(self, text: str, at: int) -> tuple[str, int]:
        self.in_name = True
        found = super().member_name(text, at)
        self.in_name = False
        return found


def digits_of(text: str) -> tuple[str, int]:
    """The significant digits of a positive decimal text, and how many of them stand before the point."""
    coefficient, _, exponent = text.lower().partition("e")
    whole, _, fraction = coefficient.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    return digits.rstrip("0"), point
