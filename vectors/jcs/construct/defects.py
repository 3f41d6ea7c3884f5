"""The documented defects of the negative categories. Each is one change to a document that is valid without it.

A defect stands at one place of a document and has two texts: the bad one, and the good one of its twin, which is
accepted there. Defects inside strings and numbers are set in randomised surroundings, so that a block has many of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.numbers import digits_of
from holdfast.vectors.jcs.construct.segments import Reason
from holdfast.vectors.taxonomy import Category


class DefectPlace(IntEnum):
    """What of a document a defect takes the place of."""

    NONE = 0
    VALUE = 1
    NAME = 2
    SEPARATOR = 3  # between two children
    COLON = 4
    CLOSE = 5
    LEAD = 6  # before the document
    TRAIL = 7  # after the document
    DUPLICATE = 8  # a name is there twice; the twin has another name there
    ENCODING = 9  # the whole document, which is then written with `codec` after the bad text; the twin is in UTF-8


class Host(IntEnum):
    """The document that a defect needs around it."""

    ANY = 0
    SCALAR = 1  # nothing but the value
    ARRAY = 2
    OBJECT = 3
    CONTAINER = 4


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect with its twin. `children` is how many children the host must have at least."""

    category: Category
    note: str
    place: DefectPlace
    bad: bytes
    good: bytes
    reason: Reason
    host: Host = Host.ANY
    children: int = 1
    codec: str = ""


# The name that the twin of a duplicate name has; no family of names generates it.
TWIN_NAME = b'"the twin of a duplicate"'
_SYNTAX = Reason.SYNTAX
# A lone high surrogate before something that is no low one, and so on; what follows is never an escape.
_LONE = (
    ("a lone low surrogate", r"\uDEAD"), ("a lone low surrogate", r"\udc00"), ("a lone low surrogate", r"\uDFFF"),
    ("a lone high surrogate", r"\ud800"), ("a lone high surrogate", r"\uDBFF"),
    ("a high surrogate before a letter", r"\ud800\u0041"), ("a high surrogate before a short escape", r"\ud83d\n"),
    ("surrogates in the wrong order", r"\ude00\ud83d"), ("two high surrogates", r"\ud83d\ud83d"),
    ("a high surrogate before a pair", r"\ud83d\ud83d\ude00"), ("a pair before a low surrogate", r"\ud83d\ude00\ude00"),
    ("a high surrogate before a raw character", "\\ud83d\u20ac"), ("halves apart", r"\ud83d-\ude00"),
)  # fmt: skip
_NOT_UTF8 = (
    ("a byte that UTF-8 has not", b"\xff"), ("a byte that UTF-8 has not", b"\xfe"), ("Latin-1", b"caf\xe9"),
    ("a continuation byte alone", b"\x80"), ("a continuation byte alone", b"\xbf"), ("an overlong slash", b"\xc0\xaf"),
    ("an overlong NUL", b"\xc0\x80"), ("an overlong letter", b"\xc1\x81"), ("an overlong slash", b"\xe0\x80\xaf"),
    ("an overlong character", b"\xe0\x9f\xbf"), ("an overlong character", b"\xf0\x8f\xbf\xbf"),
    ("a surrogate in UTF-8", b"\xed\xa0\x80"), ("a surrogate in UTF-8", b"\xed\xbf\xbf"),
    ("a pair of surrogates in UTF-8", b"\xed\xa0\xbd\xed\xb8\x80"), ("beyond U+10FFFF", b"\xf4\x90\x80\x80"),
    ("beyond U+10FFFF", b"\xf5\x80\x80\x80"), ("a sequence of five bytes", b"\xf8\x88\x80\x80\x80"),
    ("a sequence cut short", b"\xc3"), ("a sequence cut short", b"\xe2\x82"), ("a sequence cut short", b"\xf0\x9f\x98"),
    ("Shift JIS", b"\x93\xfa\x96\x7b"), ("Windows-1252", b"\x93quoted\x94"),
)  # fmt: skip
_STRING_SYNTAX = (
    ("a raw control character", b"\x01"), ("a raw NUL", b"\x00"), ("a raw line feed", b"\n"), ("a raw tab", b"\t"),
    ("a raw carriage return", b"\r"), ("a raw control character", b"\x1f"), ("an unknown escape", rb"\a"),
    ("an unknown escape", rb"\v"), ("an unknown escape", rb"\0"), ("an unknown escape", rb"\x41"),
    ("an unknown escape", rb"\'"), ("a capital escape", rb"\N"), ("a capital escape", rb"\U0041"),
    ("a line continued", b"\\\n"), ("three hexadecimal digits", rb"\u00A"), ("no hexadecimal digit", rb"\u00G0"),
    ("no hexadecimal digits", rb"\u"), ("a sign among hexadecimal digits", rb"\u+041"),
    ("a space among hexadecimal digits", rb"\u 041"), ("an underscore among hexadecimal digits", rb"\u0_41"),
    ("a code point in braces", rb"\u{41}"), ("digits that are not ASCII", "\\u\u0660\u0660\u0664\u0661".encode()),
)  # fmt: skip
_LITERALS = (
    "a",
    "word",
    "True",
    "False",
    "NULL",
    "None",
    "nil",
    "undefined",
    "tru",
    "nulll",
    "TRUE",
    "yes",
    "NaN()",
    "void 0",
)
_NOT_SPACE = (
    ("a form feed as whitespace", b"\x0c"), ("a vertical tab as whitespace", b"\x0b"),
    ("a no-break space as whitespace", b"\xc2\xa0"), ("U+2028 as whitespace", b"\xe2\x80\xa8"),
    ("U+3000 as whitespace", b"\xe3\x80\x80"), ("U+FEFF as whitespace", b"\xef\xbb\xbf"),
    ("U+0085 as whitespace", b"\xc2\x85"), ("a NUL as whitespace", b"\x00"), ("a comment", b"/*x*/"),
    ("a comment to the end of the line", b"//x\n"), ("a comment to the end of the line", b"#x\n"),
)  # fmt: skip
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# How often the whole list is made; the surroundings differ each time.
ROUNDS = 3


def defects(dice: Dice) -> Iterator[Defect]:
    """The defects of a block, in no particular order; each kind several times if it has surroundings to vary."""
    yield from _structure()
    yield from _encodings()
    yield Defect(Category.DUPLICATE_NAMES, "a name twice", DefectPlace.DUPLICATE, b"", TWIN_NAME, Reason.DUPLICATE_NAME,
                 Host.OBJECT, 2)  # fmt: skip
    for _ in range(ROUNDS):
        yield from _strings(dice)
        yield from _ranges(dice)
        yield from _numbers(dice)


def _strings(dice: Dice) -> Iterator[Defect]:
    for note, text in _LONE:
        yield from _both(dice, Category.LONE_SURROGATES, note, text.encode(), Reason.LONE_SURROGATE)
    for note, bad in _NOT_UTF8:
        yield from _both(dice, Category.INVALID_UTF8, note, bad, Reason.INVALID_UTF8)
    for note, bad in _STRING_SYNTAX:
        yield from _both(dice, Category.STRING_GRAMMAR, note, bad, _SYNTAX)
    begin, end = _word(dice), _word(dice)
    for note, text in (("single quotes", f"'{begin}'"), ("a string without an end", f'"{begin}'),
                       ("a string without a beginning", f'{begin}"'), ("backquotes", f"`{begin}`"),
                       ("two strings in a row", f'"{begin}""{end}"'), ("strings added", f'"{begin}"+"{end}"'),
                       ("typographic quotes", f"\u201c{begin}\u201d")):  # fmt: skip
        good = f'"{begin}{end}"'.encode()
        yield Defect(Category.STRING_GRAMMAR, note, DefectPlace.VALUE, text.encode(), good, _SYNTAX)
        yield Defect(Category.STRING_GRAMMAR, note, DefectPlace.NAME, text.encode(), good, _SYNTAX, Host.OBJECT)
    for note, ending in (("a string without an end", ""), ("a string with an escaped end", '\\"')):
        bad, good = f',"{begin}{ending}]'.encode(), f',"{begin}"]'.encode()
        yield Defect(Category.STRING_GRAMMAR, f"{note}, at the end", DefectPlace.CLOSE, bad, good, _SYNTAX, Host.ARRAY)


def _both(dice: Dice, category: Category, note: str, bad: bytes, reason: Reason) -> Iterator[Defect]:
    # Letters around it: g-z cannot continue a \u escape, and ASCII cannot continue a sequence of UTF-8.
    begin, end = _word(dice).encode(), b"z" + _word(dice).encode()
    if dice.one_in(3):
        begin += dice.pick((b"\\ud83d\\ude00", b"\\n", "\u20ac".encode(), "\U0001f600".encode(), b"\\\\"))
    inside, twin = b'"' + begin + bad + end + b'"', b'"' + begin + b"\\u20ac" + end + b'"'
    yield Defect(category, f"{note}, in a string", DefectPlace.VALUE, inside, twin, reason)
    yield Defect(category, f"{note}, in a name", DefectPlace.NAME, inside, twin, reason, Host.OBJECT)


def _word(dice: Dice) -> str:
    return "".join(dice.pick(_LETTERS) for _ in range(dice.between(6, 12)))


def _ranges(dice: Dice) -> Iterator[Defect]:
    for _ in range(6):
        sign, digits = dice.pick(("", "-")), str(digits_of(dice, dice.between(1, 17)))
        text = f"{sign}{digits[0]}.{digits[1:]}0{dice.pick('eE')}{dice.pick(('', '+'))}"
        beyond = dice.pick((309, 310, 400, 999, 4096, 99999, 2147483648))
        yield _number(Category.NUMBER_RANGE, "a number beyond all doubles", f"{text}{beyond}", f"{text}300",
                      Reason.NUMBER_OUT_OF_RANGE)  # fmt: skip
    for bad in ("1.7976931348623159e308", "-1.7976931348623159e308", "1.8e308", "-2e+308", "17976931348623159E292"):
        yield _number(Category.NUMBER_RANGE, "just beyond the greatest double", bad, "1.7976931348623158e308",
                      Reason.NUMBER_OUT_OF_RANGE)  # fmt: skip
    whole = str(digits_of(dice, 17)) + "0" * dice.between(293, 320)
    yield _number(Category.NUMBER_RANGE, "digits beyond all doubles", whole, "1", Reason.NUMBER_OUT_OF_RANGE)
    for bad in ("NaN", "-NaN", "Infinity", "-Infinity", "+Infinity", "nan", "inf", "-inf", "INF", "1.#INF", "-1.#IND"):
        yield _number(Category.NUMBER_RANGE, "a name for what is no number", bad, "0", _SYNTAX)


def _numbers(dice: Dice) -> Iterator[Defect]:
    digits = str(digits_of(dice, dice.between(2, 8)))
    first, rest = digits[0], digits[1:]
    for note, bad, good in (
        ("a leading zero", f"0{digits}", digits), ("a leading zero", f"-0{digits}", f"-{digits}"),
        ("leading zeros", f"00.{digits}", f"0.{digits}"), ("a plus sign", f"+{digits}", digits),
        ("no digit before the point", f".{digits}", f"0.{digits}"), ("no digit before it", f"-.{digits}", f"-{digits}"),
        ("no digit after the point", f"{digits}.", f"{digits}.0"), ("no digit after it", f"{first}.e2", f"{first}e2"),
        ("no digits in the exponent", f"{digits}e", digits), ("no digits in the exponent", f"{digits}E+", digits),
        ("a point in the exponent", f"{first}e1.5", f"{first}e1"), ("two points", f"{first}.{rest}.1", f"{first}.1"),
        ("two signs", f"--{digits}", f"-{digits}"), ("a space after the sign", f"- {digits}", f"-{digits}"),
        ("hexadecimal", f"0x{digits}", digits), ("hexadecimal", "0x1p-2", "0.25"), ("hexadecimal", "0x_1p4", "16"),
        ("octal", f"0o{first}7", "7"), ("binary", "0b101", "5"), ("underscores", f"{first}_{rest}", digits),
        ("an apostrophe between digits", f"{first}'{rest}", digits), ("a suffix", f"{digits}n", digits),
        ("a suffix", f"{digits}L", digits), ("a suffix", f"{first}.{rest}f", digits),
        ("a suffix", f"{digits}d", digits), ("a percent sign", f"{digits}%", digits), ("a minus alone", "-", "-1"),
        ("an exponent alone", "e5", "1e5"), ("a sign behind", f"{digits}-", f"-{digits}"),
        ("a fraction", f"{first}/{rest}", digits), ("digits that are not ASCII", "\u0661\u0662", "12"),
        ("full-width digits", "\uff11\uff12", "12"), ("a minus that is not ASCII", f"\u2212{digits}", f"-{digits}"),
        ("two exponents", f"{first}e1e1", f"{first}e2"), ("a space before the exponent", f"{first} e5", f"{first}e5"),
    ):  # fmt: skip
        yield _number(Category.NUMBER_GRAMMAR, note, bad, good, _SYNTAX)


def _number(category: Category, note: str, bad: str, good: str, reason: Reason) -> Defect:
    return Defect(category, note, DefectPlace.VALUE, bad.encode(), good.encode(), reason)


def _structure() -> Iterator[Defect]:
    category = Category.STRUCTURE_GRAMMAR

    def at(place: DefectPlace, note: str, bad: bytes, good: bytes, host: Host = Host.ANY, children: int = 1) -> Defect:
        return Defect(category, note, place, bad, good, _SYNTAX, host, children)

    for word in _LITERALS:
        yield at(DefectPlace.VALUE, "a literal that JSON has not", word.encode(), b"true")
    for note, text in (("no comma", b" "), ("two commas", b",,"), ("a semicolon", b";"), ("a colon for a comma", b":"),
                       ("an arrow for a comma", b"=>")):  # fmt: skip
        yield at(DefectPlace.SEPARATOR, note, text, b",", Host.CONTAINER, 2)
    for note, text in (("no colon", b" "), ("an equals sign", b"="), ("two colons", b"::"), ("a comma", b","),
                       ("no value", b":,"), ("an arrow", b"=>")):  # fmt: skip
        yield at(DefectPlace.COLON, note, text, b":", Host.OBJECT)
    for note, text in _NOT_SPACE:
        yield at(DefectPlace.SEPARATOR, note, b"," + text, b", ", Host.CONTAINER, 2)
        yield at(DefectPlace.COLON, note, text + b":", b" :", Host.OBJECT)
        yield at(DefectPlace.TRAIL, note, text, b" ")
        if text != b"\xef\xbb\xbf":  # which is a byte order mark there
            yield at(DefectPlace.LEAD, note, text, b" ")
    for note, text in (("a comma at the end", b",]"), ("the wrong bracket", b"}"), ("no bracket", b" "),
                       ("a bracket too many", b"]]"), ("a parenthesis", b")")):  # fmt: skip
        yield at(DefectPlace.CLOSE, note, text, b"]", Host.ARRAY)
    yield at(DefectPlace.CLOSE, "no value at the end", b',"alone":}', b',"alone":0}', Host.OBJECT)
    for note, text in (("a comma at the end", b",}"), ("the wrong bracket", b"]"), ("no bracket", b" "),
                       ("a bracket too many", b"}}"), ("a name without a value", b',"alone"}')):  # fmt: skip
        yield at(DefectPlace.CLOSE, note, text, b"}", Host.OBJECT)
    for note, text in (("a name without quotes", b"name"), ("a number as a name", b"1"), ("null as a name", b"null"),
                       ("an array as a name", b"[]"), ("a name in brackets", b'["x"]'), ("no name", b"")):  # fmt: skip
        yield at(DefectPlace.NAME, note, text, TWIN_NAME, Host.OBJECT)
    for note, text in (("a comma after it", b","), ("a bracket after it", b"]"), ("a second document", b" {}"),
                       ("a second document", b"\nnull"), ("a second line of JSON", b"\n{}\n"),
                       ("a record separator after it", b"\x1e"), ("text after it", b" x"),
                       ("end of file as text", b"\x1a"), ("a semicolon after it", b";")):  # fmt: skip
        yield at(DefectPlace.TRAIL, note, text, b" ")
    for note, text in (("a comma before it", b","), ("a bracket before it", b"]"), ("a guard against scripts", b")]}'"),
                       ("a guard against scripts", b"while(1);"), ("a guard against scripts", b"for(;;);"),
                       ("a record separator before it", b"\x1e"), ("a line of JSON before it", b"{}\n"),
                       ("an assignment", b"x="), ("a label", b"data: "), ("a callback", b"f(")):  # fmt: skip
        yield at(DefectPlace.LEAD, note, text, b" ")
    yield at(DefectPlace.VALUE, "nothing", b"", b"0", Host.SCALAR)
    yield at(DefectPlace.VALUE, "nothing but whitespace", b" \n", b"0", Host.SCALAR)
    for bad in (b"]", b"}", b"[", b"{", b",", b":"):
        yield at(DefectPlace.VALUE, "a mark alone", bad, b"0", Host.SCALAR)
    yield at(DefectPlace.VALUE, "no value", b"", b"0", Host.OBJECT)


def _encodings() -> Iterator[Defect]:
    for note, codec, mark in (
        ("UTF-16LE", "utf-16-le", b""), ("UTF-16BE", "utf-16-be", b""), ("UTF-32LE", "utf-32-le", b""),
        ("UTF-32BE", "utf-32-be", b""), ("UTF-16LE with a mark", "utf-16-le", b"\xff\xfe"),
        ("UTF-16BE with a mark", "utf-16-be", b"\xfe\xff"), ("UTF-32LE with a mark", "utf-32-le", b"\xff\xfe\0\0"),
        ("UTF-8 with a mark", "utf-8", b"\xef\xbb\xbf"),
    ):  # fmt: skip
        reason = _SYNTAX if not mark else Reason.BYTE_ORDER_MARK if codec == "utf-8" else Reason.INVALID_UTF8
        yield Defect(Category.ENCODING, note, DefectPlace.ENCODING, mark, b"", reason, codec=codec)
