"""Near misses about the document as a whole: structure, whitespace, what stands behind it, and verifying it."""

from __future__ import annotations

import re
from typing import Any

from tests.vectors.nearmiss.honest import Honest, RefusalError
from tests.vectors.nearmiss.registry import near_miss


@near_miss("trailing-data-ignored")
class TrailingData(Honest):
    """Reads one value and ignores what follows."""

    def finish(self, text: str, at: int) -> None:
        pass


@near_miss("trailing-nul-ignored")
class TrailingNul(Honest):
    """Ends the text at NUL."""

    def finish(self, text: str, at: int) -> None:
        super().finish(text.rstrip("\0"), at)


@near_miss("trailing-brackets-ignored")
class TrailingBrackets(Honest):
    """Ignores brackets and commas behind the value."""

    def finish(self, text: str, at: int) -> None:
        super().finish(text[:at] + text[at:].strip("]},"), at)


@near_miss("comments")
class Comments(Honest):
    """Skips comments."""

    def blank(self, text: str, at: int) -> int:
        at = super().blank(text, at)
        found = re.compile(r"/\*.*?\*/|//[^\n]*|#[^\n]*").match(text, at)
        return self.blank(text, found.end()) if found else at


@near_miss("trailing-comma")
class TrailingComma(Honest):
    """Accepts a comma behind the last element or member."""

    def ends_behind_comma(self, text: str, at: int, holder: Any) -> bool:
        return self.ends(text, at, holder)


@near_miss("commas-skipped")
class CommasSkipped(Honest):
    """Skips commas like whitespace where a value begins."""

    def begin(self, text: str, at: int, open_: list[Any]) -> tuple[Any, int]:
        while open_ and text[at : at + 1] == ",":
            at = self.blank(text, at + 1)
        if open_ and self.ends(text, at, open_[-1]) and isinstance(open_[-1], list):
            return open_.pop(), at + 1
        return super().begin(text, at, open_)


@near_miss("commas-optional")
class CommasOptional(Honest):
    """Takes a blank for a comma."""

    def put(self, text: str, at: int, open_: list[Any], value: Any) -> tuple[Any, int]:
        if text[at : at + 1] not in ("", ",", "]", "}", ":") and text[at - 1] == " ":
            return super().put(text[: at - 1] + "," + text[at:], at - 1, open_, value)
        return super().put(text, at, open_, value)


@near_miss("colon-for-comma")
class ColonForComma(Honest):
    """Takes a colon between elements for a comma."""

    def put(self, text: str, at: int, open_: list[Any], value: Any) -> tuple[Any, int]:
        if isinstance(open_[-1], list) and text[at : at + 1] == ":":
            return super().put(text[:at] + "," + text[at + 1 :], at, open_, value)
        return super().put(text, at, open_, value)


@near_miss("equals-for-colon")
class EqualsForColon(Honest):
    """Takes an equals sign, or two colons, for a colon."""

    def read(self, text: str) -> Any:
        return super().read(re.sub(r'"(=|::)', '":', text))


@near_miss("value-optional")
class ValueOptional(Honest):
    """Takes a member without a value for one with null."""

    def read(self, text: str) -> Any:
        return super().read(re.sub(r'([{,]"[a-z]*"):?}', r"\1:null}", text))


@near_miss("unquoted-names")
class UnquotedNames(Honest):
    """Accepts names without quotation marks: words, numbers, literals."""

    def member_name(self, text: str, at: int) -> tuple[str, int]:
        found = re.compile(r"\w+").match(text, at)
        return (found.group(), found.end()) if found else super().member_name(text, at)


@near_miss("empty-is-null")
class EmptyIsNull(Honest):
    """Takes a text without a value for null."""

    def read(self, text: str) -> Any:
        return super().read(text) if text.strip(self.blanks) else None


@near_miss("unclosed-accepted")
class UnclosedAccepted(Honest):
    """Closes what is open at the end of the text."""

    def ends(self, text: str, at: int, holder: Any) -> bool:
        return at >= len(text) or super().ends(text, at, holder)

    def finish(self, text: str, at: int) -> None:
        super().finish(text, min(at, len(text)))


@near_miss("any-bracket-closes")
class AnyBracketCloses(Honest):
    """Takes any closing bracket for the right one."""

    def ends(self, text: str, at: int, holder: Any) -> bool:
        return text[at : at + 1] in ("]", "}")


@near_miss("lone-bracket-is-empty")
class LoneBracket(Honest):
    """Takes a closing bracket alone for an empty array."""

    def read(self, text: str) -> Any:
        return [] if text == "]" else super().read(text)


@near_miss("ascii-blanks")
class AsciiBlanks(Honest):
    """Takes form feed, vertical tab and NUL for whitespace, as isspace of C does with the first two."""

    blanks = " \t\n\r\x0b\x0c\x00"


@near_miss("unicode-blanks")
class UnicodeBlanks(Honest):
    """Takes the blanks of Unicode for whitespace."""

    blanks = " \t\n\r\x85\xa0\u2028\u2029\u3000"


@near_miss("mark-is-blank")
class MarkIsBlank(Honest):
    """Takes U+FEFF for whitespace."""

    blanks = " \t\n\r\ufeff"


@near_miss("scalars-refused")
class ScalarsRefused(Honest):
    """Refuses a text that is neither an object nor an array."""

    def read(self, text: str) -> Any:
        if text.strip(self.blanks)[:1] not in ("[", "{"):
            raise RefusalError("SYNTAX")
        return super().read(text)


@near_miss("carriage-return-no-blank")
class CarriageReturn(Honest):
    """Forgets that a carriage return is whitespace."""

    blanks = " \t\n"


@near_miss("line-feed-added")
class LineFeedAdded(Honest):
    """Writes a line feed behind the value."""

    def write(self, value: Any) -> bytes:
        return super().write(value) + b"\n"


@near_miss("blank-behind-comma")
class BlankBehindComma(Honest):
    """Writes a blank behind commas, as json.dumps does."""

    def pieces(self, groups: Any) -> list[Any]:
        return [b", " if piece == b"," else piece for piece in super().pieces(groups)]


@near_miss("blank-behind-colon")
class BlankBehindColon(Honest):
    """Writes a blank behind colons, as json.dumps does."""

    def pieces(self, groups: Any) -> list[Any]:
        return [b": " if piece == b":" else piece for piece in super().pieces(groups)]


@near_miss("mark-written")
class MarkWritten(Honest):
    """Writes the mark of UTF-8 before the value."""

    def write(self, value: Any) -> bytes:
        return b"\xef\xbb\xbf" + super().write(value)


@near_miss("verify-says-yes")
class VerifySaysYes(Honest):
    """Verifies whatever can be canonicalised."""

    def verify(self, document: bytes) -> bool:
        try:
            self.canonicalise(document)
        except RefusalError:
            return False
        return True


@near_miss("verify-says-no")
class VerifySaysNo(Honest):
    """Verifies nothing."""

    def verify(self, document: bytes) -> bool:
        return False


@near_miss("verify-ignores-blanks")
class VerifyIgnoresBlanks(Honest):
    """Ignores whitespace around the value when it verifies."""

    def verify(self, document: bytes) -> bool:
        return super().verify(document.strip(b" \t\r\n"))


@near_miss("verify-by-length")
class VerifyByLength(Honest):
    """Compares lengths when it verifies."""

    def verify(self, document: bytes) -> bool:
        try:
            return len(self.canonicalise(document)) == len(document)
        except RefusalError:
            return False


@near_miss("verify-by-order")
class VerifyByOrder(Honest):
    """Verifies the order of members and no spelling."""

    def verify(self, document: bytes) -> bool:
        try:
            value = self.read(self.decode(document))
        except RefusalError:
            return False
        return self._ordered(value)

    def _ordered(self, value: Any) -> bool:
        if isinstance(value, list):
            return all(map(self._ordered, value))
        members = getattr(value, "members", [])
        return self.ordered(members) == members and all(self._ordered(member.value) for member in members)
