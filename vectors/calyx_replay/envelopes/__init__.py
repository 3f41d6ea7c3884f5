"""Envelopes with their keys, and envelopes that must be refused: committed vectors of `calyx-replay`."""

from __future__ import annotations

from holdfast.vectors.calyx_replay.envelopes.record import EnvelopeVector, load

__all__ = ["EnvelopeVector", "load"]
