"""The verifier (P4): it runs after the commit and can only flag, never take back."""

from __future__ import annotations

from holdfast.reference_impl.rs4a_replay.store import Row


class Verifier:
    """Compares what was to be written with what is durable."""

    def __init__(self) -> None:
        self._reject_next = False

    def reject_next(self) -> None:
        """The provocation `fail_verify`: reject the next registration."""
        self._reject_next = True

    def accepts(self, written: Row, durable: Row | None) -> bool:
        """Whether the durable row is the one that was written, inert."""
        rejected, self._reject_next = self._reject_next, False
        return not rejected and durable is not None and dict(durable) == dict(written) and durable["inert"] is True
