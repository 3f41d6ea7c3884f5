"""Where the database lies, and who may read it (source section 7)."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.reference_impl.calyx_replay.terms import Settings
from holdfast.reference_impl.sqlite import FILE_MODE, DatabaseFiles

FOLDER_MODE = 0o700
# The rules for git beside the database: git ignores everything there, this file too. Nobody else's rules are touched.
IGNORE_FILE, IGNORE_RULE = ".gitignore", "*\n"


class Location(DatabaseFiles):
    """The files of one mailbox below its runtime root."""

    def __init__(self, root: Path, settings: Settings) -> None:
        super().__init__(self.place(root, settings.database_path))
        self.root = root
        self.seen_cache = self.place(root, settings.seen_cache_path)
        self.envelopes = self.place(root, settings.envelopes_path)

    def place(self, root: Path, relative: str) -> Path:
        """A path of the contract below the runtime root. It does not depend on the current folder."""
        return root.absolute() / relative

    def make_folder(self) -> None:
        """The folder of the database and those above it up to the root; new ones are their owner's. Raises OSError."""
        folder = self.root.absolute()
        for name in self.database.relative_to(folder).parts[:-1]:
            folder /= name
            folder.mkdir(FOLDER_MODE, exist_ok=True)

    def make_file(self) -> None:
        """An empty file of mode 0600 for SQLite to fill; -wal and -shm take their mode from it. Raises OSError."""
        os.close(os.open(self.database, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))

    def make_ignored(self) -> None:
        """Git ignores the folder of the database. Raises OSError."""
        (self.database.parent / IGNORE_FILE).write_text(IGNORE_RULE, encoding="utf-8")
