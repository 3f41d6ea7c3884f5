"""Which key a request has (section 2.1 and 2.7 of the draft)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import http_sf

from holdfast.reference_impl.idempotency_key.terms import Reason, RefusedError


class Keys:
    """Reads the key out of the lines of the header."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def of(self, lines: Sequence[bytes]) -> str:
        """The key. Raises RefusedError."""
        if len(lines) != 1:
            raise RefusedError(Reason.MALFORMED, f"expected one line of Idempotency-Key, got {len(lines)}")
        key = self.read(lines[0])
        self.check_length(key)
        return key

    def read(self, line: bytes) -> str:
        """The text of a String of RFC 9651; its parameters mean nothing. Raises RefusedError."""
        try:
            parsed: Any = http_sf.parse(line, tltype="item")
        except ValueError as error:
            raise RefusedError(Reason.MALFORMED, "expected a String of RFC 9651 as Idempotency-Key") from error
        key = parsed[0]
        # A Token and a Display String are texts of other classes.
        if type(key) is not str:
            raise RefusedError(Reason.MALFORMED, "expected a String of RFC 9651 as Idempotency-Key, no other type")
        return key

    def check_length(self, key: str) -> None:
        """A key has a text, and one that is too long is refused and never cut. Raises RefusedError."""
        if not 1 <= len(key) <= self._longest:
            raise RefusedError(Reason.MALFORMED, f"expected an Idempotency-Key of 1 to {self._longest} characters")
