"""The parts that an implementation is built from. A mutant is a factory with one part changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.reference_impl.jcs.factory import REFERENCE as JCS
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.service import Service
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT, Terms, read_terms
from holdfast.specs import kept_terms


def _as_loaded(terms: Terms) -> Terms:
    return terms


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and a function that may change the loaded terms. The defaults are the reference."""

    fingerprinter: type[Fingerprinter] = Fingerprinter
    service: type[Service] = Service
    loaded: Callable[[Terms], Terms] = field(default=_as_loaded)

    def build(self) -> Service:
        """A session. Raises OpenError, TermsError."""
        terms = self.loaded(read_terms())
        fingerprinter = self.fingerprinter(terms, JCS.build(terms.meta_profile))
        return self.service(fingerprinter, kept_terms(CONTRACT).methods["fingerprint"].args)


REFERENCE = Factory()
