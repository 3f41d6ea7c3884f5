"""What the machine lacks when a process cannot be started. It says nothing of the program."""

from __future__ import annotations

import errno

# Memory, processes, open files.
TOO_LITTLE = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE})
