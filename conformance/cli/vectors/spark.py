"""What every Spark command of `holdfast vectors` shares: a session that leaves nothing behind, and its progress."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from holdfast.conformance.cli.console import Format, err, stop
from holdfast.conformance.cli.outermost import catch, was_interrupted
from holdfast.conformance.cli.vectors.sdk import looked_up
from holdfast.conformance.verdict import Exit
from holdfast.servers.janitor import Janitor
from holdfast.vectors.jcs.spark.java import NotAvailableError
from holdfast.vectors.jcs.spark.manifest import KitFaultError, OutputError
from holdfast.vectors.jcs.spark.session import Snapshot, SparkSite, opened
from holdfast.vectors.jcs.spark.storage import StorageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# A line of progress on a plain stream, at most this often.
PLAIN_EVERY_S = 5.0

Master = Annotated[
    str, typer.Option("--master", help="Spark master: local[*], local[4], yarn, spark://HOST:7077, k8s://…")
]
Partitions = Annotated[
    int | None, typer.Option("--partitions", min=1, help="tasks; by default two for each core. Results do not change")
]
# A seed stands in manifests and evidence, whose numbers every reader of JSON must be able to hold.
_SEED_BITS = 53


def seed_from(given: str | int) -> int:
    """The number of a seed, or an unpredictable one; every command prints it."""
    text = str(given)
    if text == "random":
        return secrets.randbits(_SEED_BITS)
    # Python itself would also take " 1", "1_0" and the digits of other scripts.
    if text.isascii() and text.isdigit() and len(text) <= _SEED_BITS and int(text) < 2**_SEED_BITS:
        return int(text)
    raise typer.BadParameter(f"expected a number from 0 to {2**_SEED_BITS - 1}, or the word random, got {text!r}")


Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        parser=seed_from,
        metavar="N|random",
        help="rows of equal seed are equal; `random` picks one that no runner can be prepared for, and prints it",
    ),
]


@dataclass(frozen=True, slots=True)
class Work:
    """A session, the mark that everything it starts has to carry, and where progress is shown."""

    spark: SparkSession
    janitor: Janitor
    progress: JobProgress


class JobProgress:
    """Progress: a bar on a terminal, plain lines elsewhere, nothing when the output is for programs."""

    def __init__(self, format_: Format) -> None:
        self._quiet = format_ is Format.JSON
        self._console = err()
        self._last = time.monotonic()
        self._shown: Snapshot | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> JobProgress:
        if self._console.is_terminal and not self._quiet:
            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"),
                TimeElapsedColumn(), console=self._console, transient=True,
            )  # fmt: skip
            self._progress.start()
            self._task = self._progress.add_task("starting Spark", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, snapshot: Snapshot) -> None:
        """Report how many tasks are done."""
        if self._quiet:
            return
        if self._progress is not None and self._task is not None:
            self._progress.update(
                self._task, description=snapshot.title, completed=snapshot.done, total=snapshot.total or None
            )
        elif snapshot.total and time.monotonic() - self._last > PLAIN_EVERY_S and self._shown != snapshot:
            self._last = time.monotonic()
            self._shown = snapshot
            self.say(f"{snapshot.title}: {snapshot.done} of {snapshot.total} tasks done, {snapshot.running} running")

    def say(self, text: str) -> None:
        """One plain line."""
        if not self._quiet:
            self._console.print(text)


@contextlib.contextmanager
def working(master: str, format_: Format, environment: Mapping[str, str] | None = None) -> Iterator[Work]:
    """A session at `master`. Its JVM, workers, runners and files are removed however the command ends."""
    try:
        with looked_up(), Janitor() as janitor, JobProgress(format_) as progress:
            place = SparkSite(janitor.make_folder(), master=master, environment={**(environment or {}), **janitor.mark})
            with opened(place) as spark, words_kept():
                # pyspark handles SIGINT by itself; what it would cancel ends with the JVM.
                catch()
                yield Work(spark, janitor, progress)
    except NotAvailableError as error:
        stop(Exit.INCOMPLETE, f"not proven: {error}")
    except OutputError as error:
        stop(Exit.INCOMPLETE, str(error))
    except KitFaultError as error:
        stop(Exit.KIT, str(error))
    except StorageError as error:
        stop(Exit.USAGE, str(error))
    except JobError as error:
        stop(Exit.INCOMPLETE, f"not proven: expected Spark to finish, got {error}; what was read may be damaged")
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven. `vectors generate` can go on with --resume")


# The cause of a failed job in one line: Java's own message, and the end of a worker's traceback

# The number of causes that are read of a failure, and the length of the shown text of each.
_MOST_CAUSES = 20
_MOST_WORDS = 500
_TRACEBACK = "Traceback (most recent call last)"
_LACKING = (
    "the workers' Python, which PYSPARK_PYTHON names, needs numpy, pandas, pyarrow and holdfast's other dependencies; "
    "holdfast itself travels with the job"
)
_RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception)(:|$)")


class JobError(Exception):
    """A job failed; the text says why."""


@contextlib.contextmanager
def words_kept() -> Iterator[None]:
    """Turn what Spark raises into JobError while its JVM, which has the text, still runs."""
    try:
        yield
    except Exception as error:
        # py4j, when it is interrupted, fails at what it wants to cancel.
        if was_interrupted():
            raise KeyboardInterrupt from error
        if not _is_of_spark(error):
            raise
        raise JobError(_words(error)) from error


def _is_of_spark(error: Exception) -> bool:
    """Whether a job failed: a worker died, a file could not be read, a cluster or the JVM itself went away."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JError | PySparkException | ConnectionError)


def _words(error: Exception) -> str:
    said: list[str] = []
    # After the end of the JVM its messages are lost.
    with contextlib.suppress(Exception):
        java = _java(error)
        said.append(_first_line(str(error) if java is None else str(java.toString())))
        cause = _cause(error)
        said += [cause, _LACKING] if "ModuleNotFoundError" in cause else [cause]
    return ": ".join(dict.fromkeys(filter(None, said))) or type(error).__name__


def _cause(error: Exception) -> str:
    """The most useful line: of the first cause, and of the end of a worker's traceback."""
    java = _java(error)
    for _ in range(_MOST_CAUSES):
        deeper = None if java is None else java.getCause()
        if deeper is None:
            break
        java = deeper
    text = str(error) if java is None else str(java.toString())
    raised = [line.strip() for line in text.splitlines() if _RAISED.match(line.strip())] if _TRACEBACK in text else []
    return raised[-1][:_MOST_WORDS] if raised else _first_line(text)


def _java(error: Exception) -> Any:
    """The exception of Java, if there is one; pyspark hides it in its own exception."""
    from py4j.protocol import Py4JJavaError

    return error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:_MOST_WORDS]
