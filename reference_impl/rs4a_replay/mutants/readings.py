"""Bugs about what the source leaves open and the contract settles (RS4A-RP-03b, RS4A-S3-4, RS4A-TTL-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from holdfast.reference_impl.instants import InstantError
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Rule
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.registrar import Registrar


class ConsumedBeforeBound(Registrar):
    def nonce_rules(self) -> Sequence[Rule]:
        return (self.guard_nonce_consumed, *super().nonce_rules())


class NonceBeforeKey(Registrar):
    def compensation_rules(self) -> Sequence[Rule]:
        return (self.prior_compensation, *self.nonce_rules(), *super().compensation_rules())


class FromYearOne(Reader):
    def instant(self, text: str) -> datetime:
        if text.startswith("0000"):
            raise InstantError("expected a year from 1 on")
        return super().instant(text)


BUGS: Mapping[str, Change] = {
    "consumed-before-bound": part(registrar=ConsumedBeforeBound),
    "compensation-asks-nonce-first": part(registrar=NonceBeforeKey),
    "year-zero-malformed": part(reader=FromYearOne),
}
