"""Frames for the Python canonicalisers. Run as `python runner.py LIBRARY`.

The pipeline that is judged is the one an author would write: the bytes of the document go to `json.loads`, and the
value that comes out goes to the library. What `json.loads` lets pass (duplicate names, NaN, UTF-16) counts.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable

Canonicalise = Callable[[bytes], bytes]


def pipeline(library: str) -> Canonicalise:
    """From the bytes of a document to canonical bytes, by the library of this name."""
    if library == "naive":
        return lambda document: json.dumps(json.loads(document), sort_keys=True, separators=(",", ":")).encode()
    serialise = {"rfc8785": "dumps", "jcs": "canonicalize"}[library]
    canonical: Callable[[object], bytes] = getattr(importlib.import_module(library), serialise)
    return lambda document: canonical(json.loads(document))


def answer(canonicalise: Canonicalise, document: bytes) -> bytes:
    """The answer's frame."""
    try:
        status, body = b"C", canonicalise(document)
    # What json and the libraries raise on a document they do not take: bad JSON, bad UTF-8, lone surrogates, numbers
    # out of range. Anything else (RecursionError above all) is no refusal: the process ends.
    except (ValueError, OverflowError) as refusal:
        status, body = b"R", f"{type(refusal).__name__}: {refusal}".encode("utf-8", "replace")
    return len(body).to_bytes(4, "big") + status + body


def main() -> None:
    """Answer all documents that one read brings in one write."""
    canonicalise = pipeline(sys.argv[1])
    held = b""
    while chunk := os.read(0, 1 << 16):
        held += chunk
        at, answers = 0, []
        while len(held) >= (begin := at + 4) and len(held) >= (end := begin + int.from_bytes(held[at:begin], "big")):
            answers.append(answer(canonicalise, held[begin:end]))
            at = end
        held = held[at:]
        left = memoryview(b"".join(answers))
        while left:
            left = left[os.write(1, left) :]


main()
