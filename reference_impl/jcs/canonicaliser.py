"""From bytes to canonical bytes, and the question whether bytes are canonical already."""

from __future__ import annotations

from holdfast.reference_impl.jcs.reader import Reader, RefusedError
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal, load_limits
from holdfast.reference_impl.jcs.writer import Writer


class Canonicaliser:
    """One profile's answers."""

    def __init__(self, profile: Profile) -> None:
        self.reader = Reader(load_limits(), profile)
        self.writer = Writer()

    def canonicalise(self, document: bytes) -> bytes | Refusal:
        """The canonical bytes of `document`, or why it has none."""
        try:
            value = self.reader.read(document)
        except RefusedError as error:
            return error.refusal
        return self.writer.write(value)

    def verify(self, document: bytes) -> Refusal | None:
        """None if `document` is its own canonical form. It must be I-JSON first (RFC 8785 section 5)."""
        canonical = self.canonicalise(document)
        if isinstance(canonical, Refusal):
            return canonical
        return self.compared(document, canonical)

    def compared(self, document: bytes, canonical: bytes) -> Refusal | None:
        """None if both are the same bytes; else a refusal where they part."""
        if document == canonical:
            return None
        pairs = enumerate(zip(document, canonical, strict=False))
        parting = next((at for at, (here, there) in pairs if here != there), min(len(document), len(canonical)))
        return Refusal(Reason.NOT_CANONICAL, parting)
