"""Bugs about bytes: encodings guessed, repaired or added."""

from __future__ import annotations

import json
from collections.abc import Mapping

from holdfast.reference_impl.jcs.reader import Reader, RefusedError
from holdfast.reference_impl.jcs.terms import Reason, Refusal
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.planting import Change, part


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


BUGS: Mapping[str, Change] = {
    "utf8-replaced": part(reader=Replaced),
    "utf8-ignored": part(reader=Ignored),
    "latin-1-instead": part(reader=Latin1),
    "cesu-8-read": part(reader=Cesu8),
    "encoding-guessed": part(reader=Guessed),
    "mark-skipped": part(reader=MarkSkipped),
    "mark-unnamed": part(reader=MarkUnnamed),
    "mark-added": part(writer=MarkAdded),
}
