"""Output folders on any file system that Hadoop knows, through the JVM: never a plain `open`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_local(master: str) -> bool:
    """Whether all work of a Spark master URL is done in this machine's own JVM: `local`, `local[N]`, `local[*]`."""
    return master == "local" or master.startswith("local[")


def is_uri(folder: str) -> bool:
    """Whether a folder is given as a URI, on any file system, and not as a path."""
    return _SCHEME.match(folder) is not None


class StorageError(Exception):
    """A folder or file cannot be read or written; the text says which and what came."""


class Store:
    """One folder, and the files in it by their path relative to it."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        """The folder `folder`: a URI, or a path.

        A path means this machine's files where Spark runs on this machine alone, and Hadoop's default file system on
        a cluster, whose workers do not see the files of this machine.
        """
        self._jvm: Any = spark.sparkContext._jvm
        self._is_local = is_local(spark.sparkContext.master)
        if not is_uri(folder) and self._is_local:
            folder = Path(folder).absolute().as_uri()
        root = self._jvm.org.apache.hadoop.fs.Path(folder)
        with _Failing(folder):
            self._fs = root.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
            self._root = self._fs.makeQualified(root)

    @property
    def uri(self) -> str:
        """The folder as Spark's readers and writers take it."""
        return str(self._root.toString())

    def at(self, name: str) -> str:
        """The URI of `name` in the folder."""
        return str(self._path(name).toString())

    def files_here(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The paths of these files, if Spark's workers find them there: on this machine, with all workers on it."""
        uris = [urlsplit(self.at(name)) for name in names]
        if not self._is_local or any(uri.scheme != "file" for uri in uris):
            return None
        return tuple(str(self._fs.pathToFile(self._path(name)).toString()) for name in names)

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or folder `name`."""
        with _Failing(self.at(name)):
            return bool(self._fs.exists(self._path(name)))

    def files(self, name: str = "") -> Mapping[str, int]:
        """The files directly in folder `name` and their lengths in bytes; none if there is no such folder."""
        with _Failing(self.at(name)):
            return {
                str(status.getPath().getName()): int(status.getLen())
                for status in self._listed(name)
                if not status.isDirectory()
            }

    def names(self, name: str = "") -> list[str]:
        """The names of everything directly in folder `name`; none if there is no such folder."""
        with _Failing(self.at(name)):
            return [str(status.getPath().getName()) for status in self._listed(name)]

    def make(self) -> None:
        """Make the folder, if it is not there yet. Raises StorageError."""
        with _Failing(self.uri):
            if not self._fs.mkdirs(self._root):
                raise StorageError(f"{self.uri}: expected a folder that can be made; name another folder")

    def is_empty(self) -> bool:
        """Whether nothing stands there, or an empty folder."""
        return not self.names()

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises StorageError."""
        with _Failing(self.at(name)):
            stream = self._fs.open(self._path(name))
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Write a file so that it is there whole or not at all. Raises StorageError."""
        beside = self._path(f"{name}.writing")
        final = self._path(name)
        with _Failing(self.at(name)):
            stream = self._fs.create(beside, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            # Hadoop's rename does not replace.
            self._fs.delete(final, False)
            if not self._fs.rename(beside, final):
                raise StorageError(f"{self.at(name)}: expected to put it in place, the file system refused")

    def remove(self, name: str) -> None:
        """Remove a file or folder, if there is one. Raises StorageError."""
        with _Failing(self.at(name)):
            self._fs.delete(self._path(name), True)

    def _listed(self, name: str) -> Sequence[Any]:
        listed: Sequence[Any] = self._fs.listStatus(self._path(name)) if self.exists(name) else ()
        return listed

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name) if name else self._root


class _Failing:
    """Turns what Java throws into a StorageError that names the place."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from py4j.protocol import Py4JJavaError

        if isinstance(error, Py4JJavaError):
            said = str(error.java_exception.toString())
            raise StorageError(
                f"{self._place}: expected a place that Hadoop can read and write, got {said}; name another folder"
            ) from error
