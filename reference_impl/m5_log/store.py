"""The store of one session: opened when it is first written, read through a view of its own before that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from holdfast.reference_impl.m5_log.database import Change, DamagedError, Database
from holdfast.reference_impl.m5_log.location import Location, check_files, check_tables
from holdfast.reference_impl.m5_log.opening import MARKS, WATERMARK, Opened, Opening, number
from holdfast.reference_impl.m5_log.terms import Family, StoreError, UncertainError
from holdfast.reference_impl.m5_log.witness import Mark, Witness, encode_marks

# How often a reader tries: a writer may just have removed a file that the reader was about to open.
_READ_TRIES = 3


class Store:
    """One store. Whoever writes holds its lock from then on, until `release`."""

    def __init__(self, location: Location, opening: Opening, witness: Witness) -> None:
        self.location = location
        self.opening = opening
        self._witness = witness
        self._held: Opened | None = None

    @property
    def held(self) -> Opened | None:
        """The store, if this session has it open for writing."""
        return self._held

    def writing(self) -> Opened:
        """The store with its lock. Raises StoreError, also where another process has it."""
        if self._held is None:
            self._held = self.opening.open()
        self.guard(self._held)
        return self._held

    def guard(self, opened: Opened) -> None:
        """Raise StoreError if the files are not those that are open: what is written to them would be lost."""
        files = self.location.files()
        if files != opened.files:
            check_files(opened.files, files)
            check_tables(opened.database.tables)
            opened.files = files

    @contextlib.contextmanager
    def reading(self) -> Iterator[Opened]:
        """The store as it is now. Raises StoreError."""
        if self._held is not None:
            self.guard(self._held)
            yield self._held
            return
        with contextlib.ExitStack() as stack:
            yield self._viewed(stack)

    def _viewed(self, stack: contextlib.ExitStack) -> Opened:
        for tries_left in reversed(range(_READ_TRIES)):
            try:
                return stack.enter_context(self.opening.read())
            except StoreError:
                # A file that another process has just removed, or a record that it is just writing.
                if not tries_left:
                    raise
        raise AssertionError("unreachable")

    def raw(self) -> contextlib.AbstractContextManager[Database]:
        """The database alone, whatever its rows say. Raises StoreError."""
        return self._bare(self.opening.raw)

    def attested(self) -> contextlib.AbstractContextManager[Database]:
        """The database alone, if it is all that was acknowledged. Raises StoreError."""
        return self._bare(self.opening.attested)

    @contextlib.contextmanager
    def _bare(self, opened: Callable[[], Database]) -> Iterator[Database]:
        if self._held is not None:
            self.guard(self._held)
            yield self._held.database
            return
        with contextlib.ExitStack() as stack:
            try:
                database = opened()
                stack.callback(database.close)
            except DamagedError:
                # A crash may have torn what was never acknowledged; only the witness knows.
                database = stack.enter_context(self.opening.read()).database
            yield database

    def commit(self, opened: Opened, changes: Sequence[Change], op_ids: Sequence[bytes] = ()) -> None:
        """Write changes in one synced batch, then the witness. The operations are in the graph already.

        Raises StoreError where nothing was written, UncertainError where that is unknown. After both the store is
        opened anew, because the graph in memory may be ahead of the disk.
        """
        try:
            changes = [*changes, (Family.META, WATERMARK, number(opened.dag.surfaced))]
            mark = opened.mark.after(changes, op_ids)
            self.write(opened, [*changes, (Family.META, MARKS, encode_marks(opened.anchor, mark))])
            opened.mark = mark
            self.attest(mark)
            if mark.is_synced:
                opened.anchor = mark
        except BaseException:
            self.release()
            raise

    def write(self, opened: Opened, changes: Sequence[Change]) -> None:
        """One batch for all of it. Raises StoreError, UncertainError."""
        opened.database.write(changes)

    def attest(self, mark: Mark) -> None:
        """The witness is written after the batch and before any answer. Raises UncertainError."""
        try:
            self._witness.write(mark)
        except OSError as error:
            raise UncertainError(f"the batch is written, its mark is not: {error}") from error

    def release(self) -> None:
        """Close the database and give back its lock. Never raises."""
        held, self._held = self._held, None
        if held is not None:
            held.database.close()
            with contextlib.suppress(OSError):
                self._witness.close()
