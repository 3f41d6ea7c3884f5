"""Canonicalisation vectors by construction: documents whose canonical form is known before they are written.

A document is put together from lexemes that come in pairs, a canonical text and legal disguises of it, with its
members generated in UTF-16 order. The canonical form is the canonical texts in that order; the document is the
disguises, with whitespace, in any order. So the expected bytes depend on no JSON library. Numbers are formatted by
the exact integer arithmetic of `decimals`. A negative document has one documented defect (`defects`) in a document
that is valid without it.

`batch` gives slices of the stream as Arrow, `row` one row alone, described. Rows of equal STREAM, seed and index are
equal, for all slices and on all machines.
"""

from __future__ import annotations

from holdfast.vectors.jcs.construct.stream import MOST_ROWS, SCHEMA, STREAM, Row, batch, row, twins

__all__ = ["MOST_ROWS", "SCHEMA", "STREAM", "Row", "batch", "row", "twins"]
