"""The verifier (P4): it runs after the commit and can only flag, never take back."""

from __future__ import annotations

from holdfast.reference_impl.rs4a_replay.store import Row


class Verifier:
    """Compares what was to be written with what is durable."""

    def accepts(self, written: Row, durable: Row | None) -> bool:
        """Whether the durable row is the one that was written."""
        return durable == written
