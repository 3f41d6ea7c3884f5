"""The parts that a canonicaliser is built from."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.reader import Reader
from holdfast.reference_impl.jcs.service import Service
from holdfast.reference_impl.jcs.terms import Profile, load_limits
from holdfast.reference_impl.jcs.writer import Writer


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part. The defaults are the reference."""

    reader: type[Reader] = Reader
    writer: type[Writer] = Writer
    canonicaliser: type[Canonicaliser] = Canonicaliser
    service: type[Service] = Service

    def build(self, profile: Profile) -> Canonicaliser:
        """A canonicaliser for one profile. Raises OpenError, TermsError."""
        return self.canonicaliser(self.reader(load_limits(), profile), self.writer())


REFERENCE = Factory()
