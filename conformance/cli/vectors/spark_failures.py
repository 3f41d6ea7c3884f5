"""The causes of failed jobs of Spark in one line: Java's own message, and the end of a worker's traceback."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

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
