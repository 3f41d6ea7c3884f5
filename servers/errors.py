"""Errors of commands and servers that cannot be started."""

from __future__ import annotations

import errno

# Memory, processes, open files: what the machine lacks says nothing of the program.
TOO_LITTLE = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE})


class StartError(Exception):
    """A command cannot be started, or does not become ready; the text says what was tried and what to do."""


class ServerError(Exception):
    """A server cannot be started; the text has the server's message, and what to do."""
