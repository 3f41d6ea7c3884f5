"""A Spark session, the same on this machine and on a cluster, of which nothing is left when it closes.

The driver's JVM is started by pyspark and ends when this process does, however that happens: it reads its standard
input. Its temporary files lie in the `scratch` folder of the caller, its messages in `scratch/jvm.log`. `watched` runs
an action while its tasks are watched through Spark's status tracker.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import holdfast
from holdfast import install_line
from holdfast.vectors.jcs.spark.java import NotAvailableError, find_java, require_bash
from holdfast.vectors.jcs.spark.storage import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


# What the workers import of holdfast; on a cluster it travels with the job.
_PACKAGES = ("vectors", "specs", "reports")
_NEEDED = ("pyspark", "pandas", "pyarrow", "numpy", "orjson")
# How long a JVM may take to end after its input did, before it is killed.
_END_S = 10.0
_LOG_TAIL = 1500
# Ten times the usual number of calls before HotSpot optimises a method in full. A job is short and most of its work is
# outside the JVM: compiling for the long run took more of the cores than it gave back.
_PATIENT_JIT = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
_LOG_CONFIG = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class SparkSite:
    """Where a session runs: Spark's master URL, a folder of its own, and variables that every process is to carry."""

    scratch: Path
    master: str = "local[*]"
    environment: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether the workers share this machine's Python and files."""
        return is_local(self.master)


@contextlib.contextmanager
def opened(place: SparkSite) -> Iterator[SparkSession]:
    """A session at `place`; closed, with its JVM and its files, on the way out.

    One at a time in a process. Raises NotAvailableError when pyspark, Java or bash is missing, or the JVM does not
    start.
    """
    _require_packages()
    home = find_java().home(place.scratch)
    require_bash()
    logged = place.scratch / "jvm.log"
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    with logged.open("wb") as log, _environment(place, home):
        gateway = _launch(place, log, logged)
        try:
            with _started(place, gateway, logged) as spark:
                yield spark
        finally:
            _end(gateway)
            # pyspark has put a handler of its own there.
            if before is not None:
                signal.signal(signal.SIGINT, before)


def _require_packages() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise NotAvailableError(
            f"expected the Python packages that the Spark jobs need, missing {', '.join(missing)}; "
            f"`{install_line('spark')}` brings them"
        )


@contextlib.contextmanager
def _environment(place: SparkSite, home: Path) -> Iterator[None]:
    """The variables that the JVM and its Python workers inherit, for as long as the session lives."""
    wanted = {
        **place.environment,
        "JAVA_HOME": str(home),
        # A worker is started as `python -m`, which would import from the folder the user stands in.
        "PYTHONSAFEPATH": "1",
        "PYSPARK_PYTHON": sys.executable if place.is_local else os.environ.get("PYSPARK_PYTHON", "python3"),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "SPARK_HOME": str(_spark_home()),
    }
    if place.is_local:
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _spark_home() -> Path:
    """Spark as the wheel has it: another version of Spark on this machine must not serve this version of pyspark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _conf(place: SparkSite) -> dict[str, str]:
    scratch = place.scratch
    config = scratch / "log4j2.properties"
    config.write_text(_LOG_CONFIG, encoding="utf-8")
    temporary = scratch / "tmp"
    temporary.mkdir(exist_ok=True)
    conf = {
        "spark.app.name": "holdfast",
        "spark.master": place.master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile=file:{config} -Djava.io.tmpdir={temporary} -XX:-UsePerfData {_PATIENT_JIT}"
        ),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.parquet.compression.codec": "zstd",
        # The order of members and rows is ours; Spark must not merge the partitions that we asked for.
        "spark.sql.adaptive.enabled": "false",
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        **{f"spark.executorEnv.{name}": value for name, value in place.environment.items()},
    }
    if place.is_local:
        conf |= {
            "spark.local.dir": str(scratch / "local"),
            # What is shuffled here is small; two hundred tasks would take longer to start than to run.
            "spark.sql.shuffle.partitions": "16",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return conf | dict(place.conf)


def _launch(place: SparkSite, log: Any, logged: Path) -> Any:
    from pyspark import SparkConf
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(_conf(place).items()))
    try:
        return launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": subprocess.STDOUT})
    except (PySparkException, OSError) as error:
        raise NotAvailableError(f"expected Spark's JVM to start, got {error}{_tail(logged)}") from error


@contextlib.contextmanager
def _started(place: SparkSite, gateway: Any, logged: Path) -> Iterator[SparkSession]:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        conf = SparkConf(_jvm=gateway.jvm)
        conf.setAll(list(_conf(place).items()))
        context = SparkContext(conf=conf, gateway=gateway)
    except (Py4JError, PySparkException) as error:
        _forget_gateway()
        raise NotAvailableError(
            f"expected a Spark session at {place.master}, got {_first_line(error)}{_tail(logged)}"
        ) from error
    try:
        spark = SparkSession.builder.getOrCreate()
        if not place.is_local:
            context.addPyFile(str(_shipped(place.scratch)))
        yield spark
    finally:
        # What is interrupted here ends with the JVM a moment later.
        with contextlib.suppress(Py4JError, OSError):
            context.cancelAllJobs()
        with contextlib.suppress(Py4JError, OSError):
            SparkSession.builder.getOrCreate().stop()
        _forget_gateway()


def _forget_gateway() -> None:
    """Let a later session of this process start a JVM of its own: pyspark keeps the first for ever."""
    from pyspark import SparkContext

    with SparkContext._lock:
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None


def _end(gateway: Any) -> None:
    process = gateway.proc
    with contextlib.suppress(Exception):
        gateway.shutdown()
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(timeout=_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _shipped(scratch: Path) -> Path:
    """The packages that workers import, as one zip."""
    path = scratch / "holdfast-workers.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # Python finds no package in a zip by its folder alone.
        archive.write(Path(holdfast.__file__), "holdfast/__init__.py")
        for package in _PACKAGES:
            with as_file(files(f"holdfast.{package}")) as root:
                for entry in sorted(root.rglob("*")):
                    if entry.is_file() and "__pycache__" not in entry.parts:
                        archive.write(entry, f"holdfast/{package}/{entry.relative_to(root).as_posix()}")
    return path


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]


def _tail(logged: Path) -> str:
    said = logged.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace").strip() if logged.is_file() else ""
    return f"; its log ends: {said}" if said else ""


T = TypeVar("T")
# Often enough for a bar that moves, seldom enough to cost nothing.
_POLL_S = 0.2
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far an action is: tasks done, running and failed, of `total` known so far."""

    title: str
    done: int
    running: int
    failed: int
    total: int


# Shows progress. Called from the thread that asked for the action.
Listener = Callable[[Snapshot], None]


def silent(snapshot: Snapshot) -> None:
    """Show nothing."""


def watched(spark: SparkSession, title: str, action: Callable[[], T], listener: Listener = silent) -> T:
    """What `action` returns or raises, run in a thread of its own while `listener` gets reports of its tasks.

    Anything that interrupts the caller cancels the jobs of the action before it goes on.
    """
    from pyspark import InheritableThread

    context = spark.sparkContext
    group = f"holdfast-{os.getpid()}-{next(_numbers)}"
    results: list[T] = []
    failures: list[BaseException] = []

    def act() -> None:
        try:
            context.setJobGroup(group, title, interruptOnCancel=True)
            results.append(action())
        except BaseException as error:
            failures.append(error)

    thread = InheritableThread(target=act, name=title, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_S)
            listener(_snapshot(context, group, title))
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failures:
        raise failures[0]
    return results[0]


def _snapshot(context: SparkContext, group: str, title: str) -> Snapshot:
    tracker = context.statusTracker()
    done = running = failed = total = 0
    for job in tracker.getJobIdsForGroup(group):
        information = tracker.getJobInfo(job)
        for number in () if information is None else information.stageIds:
            stage = tracker.getStageInfo(number)
            if stage is not None:
                done += stage.numCompletedTasks
                running += stage.numActiveTasks
                failed += stage.numFailedTasks
                total += stage.numTasks
    return Snapshot(title, done, running, failed, total)
