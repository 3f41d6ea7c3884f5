"""Near misses that read or write strings and bytes wrongly."""

from __future__ import annotations

import unicodedata

from tests.vectors.nearmiss.honest import Honest, NameAware, RefusalError
from tests.vectors.nearmiss.registry import near_miss


def _units(character: str) -> str:
    data = character.encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def _with_lone_as(other: str, text: str) -> str:
    return "".join(other if "\ud800" <= c <= "\udfff" else c for c in text)


@near_miss("ascii-escaping")
class AsciiEscaping(Honest):
    """Escapes everything beyond ASCII."""

    def escape(self, character: str) -> str:
        return super().escape(character) if character.isascii() else _units(character)


@near_miss("astral-escaping")
class AstralEscaping(Honest):
    """Escapes characters beyond the basic plane as surrogate pairs."""

    def escape(self, character: str) -> str:
        return _units(character) if character > "\uffff" else super().escape(character)


@near_miss("html-escape")
class HtmlEscape(Honest):
    """Escapes angle brackets and the ampersand, as encoding/json of Go does."""

    def escape(self, character: str) -> str:
        return _units(character) if character in "<>&" else super().escape(character)


@near_miss("apostrophe-escape")
class ApostropheEscape(Honest):
    """Escapes the apostrophe."""

    def escape(self, character: str) -> str:
        return _units(character) if character == "'" else super().escape(character)


@near_miss("escape-2028")
class EscapeLineSeparators(Honest):
    """Escapes U+2028 and U+2029, which JavaScript once could not read."""

    def escape(self, character: str) -> str:
        return _units(character) if character in "\u2028\u2029" else super().escape(character)


@near_miss("escape-del")
class EscapeDelete(Honest):
    """Escapes DEL."""

    def escape(self, character: str) -> str:
        return _units(character) if character == "\x7f" else super().escape(character)


@near_miss("escape-c1")
class EscapeC1(Honest):
    """Escapes U+0080 to U+009F."""

    def escape(self, character: str) -> str:
        return _units(character) if "\x80" <= character <= "\x9f" else super().escape(character)


@near_miss("escape-slash")
class EscapeSlash(Honest):
    """Escapes the slash, as PHP does."""

    def escape(self, character: str) -> str:
        return "\\/" if character == "/" else super().escape(character)


@near_miss("escape-format-characters")
class EscapeFormatCharacters(Honest):
    """Escapes invisible characters (category Cf)."""

    def escape(self, character: str) -> str:
        return _units(character) if unicodedata.category(character) == "Cf" else super().escape(character)


@near_miss("escape-private-use")
class EscapePrivateUse(Honest):
    """Escapes private use and noncharacters, which print as nothing (categories Co and Cn)."""

    def escape(self, character: str) -> str:
        return _units(character) if unicodedata.category(character) in ("Co", "Cn") else super().escape(character)


@near_miss("upper-case-hex")
class UpperCaseHex(Honest):
    """Writes hexadecimal digits in upper case."""

    def control(self, character: str) -> str:
        text = super().control(character)
        return "\\u" + text[2:].upper() if text.startswith("\\u") else text


@near_miss("long-escapes")
class LongEscapes(Honest):
    r"""Writes \u0008 where there is a short form."""

    def control(self, character: str) -> str:
        return f"\\u{ord(character):04x}"


@near_miss("two-short-escapes-missing")
class TwoShortEscapesMissing(Honest):
    r"""Knows \n, \r and \t only, as encoding/json of Go did."""

    def control(self, character: str) -> str:
        return f"\\u{ord(character):04x}" if character in "\b\f" else super().control(character)


@near_miss("vertical-tab-escape")
class VerticalTabEscape(Honest):
    r"""Writes \v for U+000B."""

    def control(self, character: str) -> str:
        return "\\v" if character == "\v" else super().control(character)


@near_miss("bell-escape")
class BellEscape(Honest):
    r"""Writes \a for U+0007."""

    def control(self, character: str) -> str:
        return "\\a" if character == "\a" else super().control(character)


@near_miss("control-dropped")
class ControlDropped(Honest):
    """Drops control characters without a short form."""

    def control(self, character: str) -> str:
        text = super().control(character)
        return "" if text.startswith("\\u") else text


@near_miss("nul-ends-strings")
class NulEndsStrings(Honest):
    """Ends a string at NUL, as C does."""

    def surrogates(self, text: str) -> str:
        return super().surrogates(text).partition("\0")[0]


@near_miss("nfc")
class Nfc(Honest):
    """Composes characters (NFC)."""

    def surrogates(self, text: str) -> str:
        return unicodedata.normalize("NFC", super().surrogates(text))


@near_miss("nfd")
class Nfd(Honest):
    """Takes characters apart (NFD)."""

    def surrogates(self, text: str) -> str:
        return unicodedata.normalize("NFD", super().surrogates(text))


@near_miss("nfkc")
class Nfkc(Honest):
    """Replaces characters by compatible ones (NFKC)."""

    def surrogates(self, text: str) -> str:
        return unicodedata.normalize("NFKC", super().surrogates(text))


@near_miss("trimmed")
class Trimmed(Honest):
    """Trims blanks around strings."""

    def surrogates(self, text: str) -> str:
        return super().surrogates(text).strip(" ")


@near_miss("mark-stripped")
class MarkStripped(Honest):
    """Strips U+FEFF at the beginning of a string."""

    def surrogates(self, text: str) -> str:
        return super().surrogates(text).removeprefix("\ufeff")


@near_miss("replacement")
class Replacement(Honest):
    """Writes U+FFFD for a lone surrogate."""

    def lone(self, text: str) -> str:
        return _with_lone_as("\ufffd", text)


@near_miss("question-mark")
class QuestionMark(Honest):
    """Writes a question mark for a lone surrogate, as Java does."""

    def lone(self, text: str) -> str:
        return _with_lone_as("?", text)


@near_miss("surrogate-passthrough")
class SurrogatePassthrough(Honest):
    """Writes a lone surrogate as the three bytes that UTF-8 forbids."""

    def lone(self, text: str) -> str:
        return text

    def encode(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass")


@near_miss("surrogate-escaped")
class SurrogateEscaped(Honest):
    r"""Writes a lone surrogate as \uXXXX, as JSON.stringify does."""

    def lone(self, text: str) -> str:
        return text

    def escape(self, character: str) -> str:
        return f"\\u{ord(character):04x}" if "\ud800" <= character <= "\udfff" else super().escape(character)


@near_miss("surrogate-dropped")
class SurrogateDropped(Honest):
    """Drops a lone surrogate."""

    def lone(self, text: str) -> str:
        return _with_lone_as("", text)


@near_miss("low-surrogates-unchecked")
class LowUnchecked(Honest):
    """Refuses a lone high half only, and replaces a lone low one."""

    def lone(self, text: str) -> str:
        if any("\ud800" <= c <= "\udbff" for c in text):
            return super().lone(text)
        return _with_lone_as("\ufffd", text)


@near_miss("name-surrogates-unchecked")
class NamesUnchecked(NameAware):
    """Looks for lone surrogates in values only."""

    def lone(self, text: str) -> str:
        if not self.in_name:
            return super().lone(text)
        return _with_lone_as("\ufffd", text)


@near_miss("cesu-8")
class Cesu8(Honest):
    """Writes characters beyond the basic plane as two encoded surrogates."""

    def encode(self, text: str) -> bytes:
        return b"".join(self._character(character) for character in text)

    def _character(self, character: str) -> bytes:
        if character <= "\uffff":
            return character.encode()
        data = character.encode("utf-16-be")
        return b"".join(chr(int.from_bytes(data[at : at + 2], "big")).encode("utf-8", "surrogatepass") for at in (0, 2))


@near_miss("pairs-refused")
class PairsRefused(Honest):
    """Refuses every escaped surrogate, in a pair too."""

    def join(self, text: str) -> str:
        return text


@near_miss("utf8-replacement")
class Utf8Replacement(Honest):
    """Writes U+FFFD for bytes that are not UTF-8."""

    def decode_utf8(self, document: bytes) -> str:
        return document.decode("utf-8", "replace")


@near_miss("utf8-ignored")
class Utf8Ignored(Honest):
    """Drops bytes that are not UTF-8."""

    def decode_utf8(self, document: bytes) -> str:
        return document.decode("utf-8", "ignore")


@near_miss("raw-bytes-passthrough")
class RawBytesPassthrough(Honest):
    """Passes bytes that are not UTF-8 through."""

    def decode_utf8(self, document: bytes) -> str:
        return document.decode("utf-8", "surrogateescape")

    def surrogates(self, text: str) -> str:
        return self.join(text)

    def lone(self, text: str) -> str:
        return text

    def encode(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogateescape")


@near_miss("latin-1-fallback")
class Latin1Fallback(Honest):
    """Takes bytes that are not UTF-8 for Latin-1."""

    def decode_utf8(self, document: bytes) -> str:
        try:
            return document.decode("utf-8")
        except UnicodeDecodeError:
            return document.decode("latin-1")


@near_miss("overlong-accepted")
class OverlongAccepted(Honest):
    """Reads NUL in two bytes, as Java's own UTF-8 has it."""

    def decode_utf8(self, document: bytes) -> str:
        return super().decode_utf8(document.replace(b"\xc0\x80", b"\\u0000"))


@near_miss("encoded-surrogates-accepted")
class EncodedSurrogatesAccepted(Honest):
    """Joins a pair of encoded surrogates."""

    def decode_utf8(self, document: bytes) -> str:
        try:
            return self.join(document.decode("utf-8", "surrogatepass")).encode().decode()
        except (UnicodeDecodeError, UnicodeEncodeError):
            raise RefusalError("INVALID_UTF8") from None


@near_miss("bom-skip")
class BomSkip(Honest):
    """Skips the mark of UTF-8."""

    def decode(self, document: bytes) -> str:
        return super().decode(document.removeprefix(b"\xef\xbb\xbf"))


@near_miss("utf16-guess")
class Utf16Guess(Honest):
    """Guesses UTF-16 and UTF-32 from marks and NULs, as json.loads of Python does."""

    def decode(self, document: bytes) -> str:
        for mark, encoding in (
            (b"\xff\xfe\0\0", "utf-32"),
            (b"\0\0\xfe\xff", "utf-32"),
            (b"\xff\xfe", "utf-16"),
            (b"\xfe\xff", "utf-16"),
        ):
            if document.startswith(mark):
                return document.decode(encoding)
        zeros = [byte == 0 for byte in document[:4]]
        guesses: dict[tuple[bool, ...], str] = {
            (True, True, True, False): "utf-32-be",
            (False, True, True, True): "utf-32-le",
            (True, False, True, False): "utf-16-be",
            (False, True, False, True): "utf-16-le",
        }
        encoding = guesses.get(tuple(zeros), "")
        return document.decode(encoding) if encoding else super().decode(document)
