"""Bugs about bytes: encodings guessed, repaired or added."""

from __future__ import annotations

import json

from holdfast.reference_impl.jcs.mutants.planting import mutant
from holdfast.reference_impl.jcs.reader import Reader, RefusedError
from holdfast.reference_impl.jcs.terms import Reason, Refusal
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.mutants.planting import also, part


class Replaced(Reader):
    def decode(self, document: bytes) -> str:
        return document.decode("utf-8", "replace")


class Ignored(Reader):
    def decode(self, document: bytes) -> str:
        return document.decode("utf-8", "ignore")


class Latin1(Reader):
    def decode(self, document: bytes) -> str:
        try:
            return document.decode("utf-8")
        except UnicodeDecodeError:
            return document.decode("latin-1")


class Cesu8(Reader):
    def decode(self, document: bytes) -> str:
        try:
            # Surrogates in three bytes each, joined where they pair up.
            return document.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise RefusedError(Refusal(Reason.INVALID_UTF8, error.start)) from None


class Guessed(Reader):
    def decode(self, document: bytes) -> str:
        try:
            return document.decode(json.detect_encoding(document))
        except UnicodeDecodeError as error:
            raise RefusedError(Refusal(Reason.INVALID_UTF8, error.start)) from None


class MarkSkipped(Reader):
    def unmarked(self, document: bytes) -> bytes:
        return document.removeprefix(b"\xef\xbb\xbf")


class MarkUnnamed(Reader):
    def unmarked(self, document: bytes) -> bytes:
        return document


class MarkAdded(Writer):
    def encode(self, text: str) -> bytes:
        return text.encode("utf-8" if text.isascii() else "utf-8-sig")


_VERIFIED = "verify meets the same defect, and then compares"

MUTANTS = (
    mutant(
        "utf8-replaced",
        "Bytes that are not UTF-8 become U+FFFD",
        part(reader=Replaced),
        {"UTF8-01": "fail_open"},
        also(_VERIFIED, "VER-03"),
    ),
    mutant(
        "utf8-ignored",
        "Bytes that are not UTF-8 are left out",
        part(reader=Ignored),
        {"UTF8-01": "fail_open"},
        also(_VERIFIED, "VER-03"),
    ),
    mutant(
        "latin-1-instead",
        "What is not UTF-8 is read as Latin-1",
        part(reader=Latin1),
        {"UTF8-01": "fail_open"},
        also(_VERIFIED, "VER-03"),
    ),
    mutant(
        "cesu-8-read",
        "Surrogate pairs in six bytes are read as their character",
        part(reader=Cesu8),
        {"UTF8-01": "fail_open"},
    ),
    mutant(
        "encoding-guessed",
        "UTF-16 and UTF-32 are known by their zeros",
        part(reader=Guessed),
        {"UTF8-02": "fail_open"},
    ),
    mutant(
        "mark-skipped",
        "A byte order mark is skipped",
        part(reader=MarkSkipped),
        {"BOM-01": "fail_open"},
        also(_VERIFIED, "VER-03"),
    ),
    mutant(
        "mark-unnamed",
        "A byte order mark is refused as a stray character",
        part(reader=MarkUnnamed),
        {"BOM-01": "wrong_reason"},
        also("verify has the same reason", "VER-03"),
    ),
    mutant(
        "mark-added",
        "A canonical form that is not ASCII starts with a byte order mark",
        part(writer=MarkAdded),
        {"UTF8-03": "wrong_reason"},
        also(
            "one of its documents is not ASCII",
            "UTF8-01 BOM-01 GRAM-03 DUP-02 DUP-04 SUR-01 SUR-02 SUR-03 STR-03 STR-04 STR-05 ORD-01 ORD-03 ORD-04 "
            "IDEM-01 IDEM-02 PURE-01 VER-01 VER-02 VER-03 PROF-01 PROF-02 PROF-06",
        ),
    ),
)
