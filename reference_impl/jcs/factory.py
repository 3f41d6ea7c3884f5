"""The parts that a canonicaliser is built from. A mutant is a factory with one part changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.reader import Reader
from holdfast.reference_impl.jcs.service import Service
from holdfast.reference_impl.jcs.terms import Limits, Profile, load_limits
from holdfast.reference_impl.jcs.writer import Writer


def _as_loaded(limits: Limits) -> Limits:
    return limits


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and a function that may change the loaded limits. The defaults are the reference."""

    reader: type[Reader] = Reader
    writer: type[Writer] = Writer
    canonicaliser: type[Canonicaliser] = Canonicaliser
    service: type[Service] = Service
    loaded: Callable[[Limits], Limits] = field(default=_as_loaded)

    def build(self, profile: Profile) -> Canonicaliser:
        """A canonicaliser for one profile. Raises OpenError, TermsError."""
        return self.canonicaliser(self.reader(self.settings({}), profile), self.writer())

    def settings(self, _config: Mapping[str, str]) -> Limits:
        """The limits that hold, with each config. Raises OpenError, TermsError."""
        return self.loaded(load_limits())


REFERENCE = Factory()
