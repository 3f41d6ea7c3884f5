"""Bugs in Phase 3: the limits of the transaction, the winner of a race, and the answer to a retry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from holdfast.reference_impl.answers import Accepted
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt
from holdfast.reference_impl.rs4a_replay.mutants.values import unique
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import (
    Insert,
)


class RetryBoundToWindow(Registrar):
    def prior_decision(self, attempt: Attempt) -> Accepted | None:
        if self.guard_nonce_window(attempt) is not None:
            return None
        return super().prior_decision(attempt)


class ActiveEffect(Registrar):
    def effect_rows(self, attempt: Attempt) -> tuple[Insert, Insert]:
        consumed, effect = super().effect_rows(attempt)
        return consumed, replace(
            effect, row={**effect.row, "committed_at": format_instant(attempt.now), "inert": False}
        )


BUGS: Mapping[str, Change] = {
    "retry-bound-to-window": part(registrar=RetryBoundToWindow),
    "key-unique-with-attempt": unique(
        "registration", {"logical_request_key_unique": ("logical_request_key", "attempt_id")}
    ),
    "key-unique-with-nonce": unique(
        "registration", {"logical_request_key_unique": ("logical_request_key", "authorization_nonce")}
    ),
    "only-replay-key-unique": unique("registration", {"replay_key_unique": ("replay_key",)}),
    "effect-active": part(registrar=ActiveEffect),
}
