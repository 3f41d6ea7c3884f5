"""The errors of reading a contract or a message."""

from __future__ import annotations


class SpecError(Exception):
    """A file that holdfast reads is missing, malformed or inconsistent.

    The text says where, what was expected, what was found and what to do.
    """


class StrictJsonError(ValueError):
    """Bytes are not one I-JSON value (RFC 7493): the text says why."""
