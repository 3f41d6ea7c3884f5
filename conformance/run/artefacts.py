"""The identity of an adapter: its files, as far as they can be known, and what was not hashed.

It counts the files of the command line, those that the caller names, and those that the adapter's processes use outside
of the folders of the system. A path is written so that it does not depend on the place of a checkout: below the folder
of the program, else below the current folder, else as a bare name.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from holdfast.reports.evidence import Artefact, Artefacts, NotHashed, Redactor, Source
from holdfast.specs.registry import contracts

# By the file hierarchy standard these folders belong to the machine, not to what is built and deployed.
SYSTEM = tuple(map(Path, "/usr /lib /lib32 /lib64 /libx32 /bin /sbin /etc /proc /sys /dev".split()))
_INTERPRETER = re.compile(
    r"(python|pypy|node|nodejs|deno|bun|ruby|jruby|perl|php|lua|luajit|java|dotnet|mono|Rscript|erl|elixir|escript|guile"
    r"|tclsh|sh|bash|dash|zsh|ksh|ash|busybox|env|nice|timeout|setsid|stdbuf|sudo|npx|npm|go|cargo|uv)[0-9.\-]*\Z"
)
# These mark the folder beside an interpreter's `bin` as its library.
_LIBRARIES = ("python*", "pypy*", "node_modules", "ruby", "perl*", "php", "modules")
_REFERENCE = "holdfast.reference_impl"
_SKIPPED = frozenset({"__pycache__", ".git", ".hg", ".svn"})
# A folder with more files is no product; the bound keeps `--adapter-file /` from running without end.
MAX_FILES = 50_000
# So much is hashed in a few seconds.
MAX_BYTES = 4 << 30

# These files are never hashed, for any adapter.
ALWAYS = (
    NotHashed("folders of the system", "interpreters and libraries there belong to the machine, not to the adapter"),
    NotHashed("what was read and closed again", "modules and settings above all; --adapter-file names them"),
    NotHashed(
        "what runs outside of the adapter's process group", "servers, containers and other machines are not seen"
    ),
)


class ArtefactError(Exception):
    """A file that the caller named cannot be hashed; the text says which and why."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """A file as it was when it was first counted."""

    path: Path
    name: str
    source: Source
    stamp: tuple[int, ...]
    sha256: str


class Identity:
    """Collects the files of an adapter: from the start of a run to its end."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        started: datetime,
        named: Sequence[Path] = (),
        redactor: Redactor | None = None,
    ) -> None:
        """Hash what is known at the start of a run, which is aware. Raises ArtefactError."""
        self.started = started
        self._started_ns = int(started.timestamp() * 1e9)
        self._redactor = redactor or Redactor()
        self._taken: dict[Path, _Taken] = {}
        self._not_hashed: set[NotHashed] = set(ALWAYS)
        self._beside: list[Path] = []
        self._bases: list[Path] = []
        words = list(_command_files(command, self._redactor, self._not_hashed))
        own = [path for path in words if not self._is_interpreter(path)]
        self._bases = [base for base in (*(path.parent for path in own[:1]), Path.cwd()) if base != Path(base.anchor)]
        for path in own:
            self._take(path, Source.COMMAND)
        for given in named:
            self._take_named(given)
        if _REFERENCE in command:
            self._take_reference()

    def saw(self, paths: Iterable[str], *, scratch: Path | None = None) -> None:
        """Count files that processes of the adapter use; those below `scratch` belong to the run itself."""
        if scratch is not None:
            self._beside.append(scratch)
        found = sorted({path for text in paths if (path := self._loaded(text)) is not None})
        # The program identifies an interpreter's library, so programs go first.
        programs = [path for path in found if self._is_interpreter(path)]
        for path in found:
            if path not in programs and not self._is_of_machine(path) and path not in self._taken:
                self._take_loaded(path)

    def conclude(self) -> Artefacts:
        """The line: every file a second time, as it is now."""
        changed = [taken.name for taken in self._taken.values() if _changed(taken)]
        files = [Artefact(taken.name, taken.sha256, taken.source) for taken in self._taken.values()]
        return Artefacts.of(files, not_hashed=self._not_hashed, changed=changed)

    # What counts

    def _loaded(self, text: str) -> Path | None:
        if text.endswith(" (deleted)"):
            gone = Path(text.removesuffix(" (deleted)"))
            if not self._is_of_machine(gone) and gone not in self._taken:
                self._skip(gone, "it was replaced or removed while a process had it")
            return None
        path = _real(Path(text))
        if path is None or any(map(path.is_relative_to, SYSTEM)) or not path.is_file():
            return None
        return path

    def _is_interpreter(self, path: Path) -> bool:
        if _INTERPRETER.match(path.name) is None or not os.access(path, os.X_OK):
            return False
        why = "it belongs to the machine, and a module is not seen once it is read; --adapter-file names your modules"
        self._not_hashed.add(NotHashed(f"the interpreter {path.name} and what it imports", why))
        self._beside.append(path)
        for library in ("lib", "lib64"):
            folder = path.parent.parent / library
            if path.parent.name == "bin" and any(next(folder.glob(each), None) for each in _LIBRARIES):
                self._beside.append(folder)
        return True

    def _is_of_machine(self, path: Path) -> bool:
        """Whether it belongs to the system, to an interpreter, or to this run."""
        return any(path.is_relative_to(folder) for folder in (*SYSTEM, *self._beside))

    # Hashing

    def _take_loaded(self, path: Path) -> None:
        source = _source_of(path)
        if source in self._taken:
            return
        with contextlib.suppress(OSError):
            if source.stat().st_ctime_ns > self._started_ns:
                # A file that is unpacked or compiled at each start, under another name each time.
                self._skip(source, "it was made or changed after the run began")
                return
        self._take(source, Source.LOADED)

    def _take_named(self, given: Path) -> None:
        path = _real(given)
        if path is None:
            raise ArtefactError(f"{given} is not there; name a file or a folder that is part of the adapter")
        if path.is_file():
            self._take(path, Source.NAMED)
            return
        if not path.is_dir():
            raise ArtefactError(f"{given} is neither a file nor a folder; name what the adapter is built of")
        before = len(self._taken)
        # All are counted before the first is hashed.
        for each in _bounded(list(_below(path, given)), given):
            self._take(each, Source.NAMED, base=path.parent)
        if len(self._taken) == before:
            raise ArtefactError(f"{given} is a folder without files; name what the adapter is built of")

    def _take_reference(self) -> None:
        found = importlib.util.find_spec(_REFERENCE)
        own = (found.submodule_search_locations or ()) if found is not None else ()
        for folder in (*map(Path, own), *(one.folder for one in contracts().values() if one.distribution is not None)):
            for path in _below(folder, folder):
                self._take(path, Source.NAMED, base=folder.parent)

    def _take(self, path: Path, source: Source, *, base: Path | None = None) -> None:
        if path in self._taken:
            return
        name = self._name(path, base)
        if self._redactor.free(name) != name:
            self._skip(path, "its name looks like a secret")
            return
        try:
            stamp, digest = _stamp(path), _sha256(path)
        except OSError as error:
            if source is Source.NAMED:
                raise ArtefactError(f"{name} cannot be read: {error.strerror}") from error
            self._skip(path, f"it cannot be read: {error.strerror}")
            return
        self._taken[path] = _Taken(path, name, source, stamp, digest)

    def _skip(self, path: Path, why: str) -> None:
        self._not_hashed.add(NotHashed(self._redactor.free(self._name(path)), why))

    def _name(self, path: Path, base: Path | None = None) -> str:
        bases = [*self._bases, *([] if base is None else [base])]
        relative = next((path.relative_to(each) for each in bases if path.is_relative_to(each)), Path(path.name))
        text = relative.as_posix()
        # A name may hold a line end or bytes that are no text; a line of the digest must not.
        return text if text.isprintable() else ascii(text)[1:-1]


def _command_files(command: Sequence[str], redactor: Redactor, left_out: set[NotHashed]) -> Iterator[Path]:
    """The files of a command line: the program, and every word, or the part after its `=`, that is a path."""
    for number, (word, shown) in enumerate(zip(command, redactor.command(command), strict=True)):
        if word != shown:
            left_out.add(NotHashed(f"word {number} of the command line", "it looks like a secret"))
            continue
        program = shutil.which(word) if number == 0 else None
        for text in (program or word, word.partition("=")[2]):
            path = _real(Path(text)) if text else None
            if path is not None and path.is_file():
                yield path
            elif path is not None and path.is_dir() and number and word != _REFERENCE:
                left_out.add(NotHashed(f"{shown}, a folder", "--adapter-file names what in it belongs to the adapter"))


def _real(path: Path) -> Path | None:
    """The target of the path, None if there is none."""
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None


def _source_of(path: Path) -> Path:
    """The source of a compiled module, whose bytes do not depend on the time of the checkout."""
    if path.suffix == ".pyc" and path.parent.name == "__pycache__":
        module = path.parent.parent / f"{path.name.partition('.')[0]}.py"
        return module if module.is_file() else path
    return path


def _below(folder: Path, given: Path) -> Iterator[Path]:
    """The regular files below a folder, in order. Raises ArtefactError where there are more than MAX_FILES."""
    count = 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for name in sorted(names):
            path = Path(where, name)
            if path.is_file() and not path.is_symlink():
                count += 1
                if count > MAX_FILES:
                    raise ArtefactError(f"{given} holds more than {MAX_FILES} files; name what is part of the adapter")
                yield path


def _bounded(files: Sequence[Path], given: Path) -> Sequence[Path]:
    """The files. Raises ArtefactError where they are larger than MAX_BYTES together, or one is gone."""
    try:
        size = sum(path.stat().st_size for path in files)
    except OSError as error:
        raise ArtefactError(f"{error.filename} cannot be read: {error.strerror}") from error
    if size > MAX_BYTES:
        most = MAX_BYTES >> 30
        raise ArtefactError(f"{given} holds {size >> 30} GiB, more than {most}; name what is part of the adapter")
    return files


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _changed(taken: _Taken) -> bool:
    """Whether a file has other bytes than at the start. The time of the change, which the kernel keeps, comes first."""
    try:
        return _stamp(taken.path) != taken.stamp and _sha256(taken.path) != taken.sha256
    except OSError:
        return True
